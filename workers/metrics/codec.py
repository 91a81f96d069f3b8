"""A scrape as bytes for the store: JSON of series with one name together, compressed."""

from __future__ import annotations

import json
import math
import zlib

from policies.metrics.samples import Sample, Scrape

LEVEL = 9
# a scrape of a thousand series unpacks to some 100 KiB; more than this was not packed here
UNPACKED_MAX_BYTES = 8 * 1024 * 1024
Row = list[object]


class Unreadable(ValueError):
    """Bytes that are no scrape."""


def pack(scrape: Scrape) -> bytes:
    """The scrape without its instance, which is the key that it is kept under."""
    names: dict[str, list[Row]] = {}
    for sample in scrape.samples:
        row: Row = [dict(sample.labels), _number(sample.value)]
        names.setdefault(sample.name, []).append(row if sample.at is None else [*row, sample.at])
    text = json.dumps([scrape.at, scrape.url, names], separators=(",", ":"), sort_keys=True, allow_nan=False)
    return zlib.compress(text.encode(), LEVEL)


def unpack(data: bytes, instance: str) -> Scrape:
    """The scrape. Raises: Unreadable."""
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(data, UNPACKED_MAX_BYTES)
        if inflater.unconsumed_tail:
            message = f"it unpacks to more than {UNPACKED_MAX_BYTES} bytes"
            raise Unreadable(message)
        at, url, names = json.loads(text)
        samples = tuple(_sample(name, row) for name, rows in names.items() for row in rows)
        return Scrape(instance, str(url), float(at), samples)
    except (zlib.error, ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError) as error:
        message = f"no scrape of `{instance}`: {error}"
        raise Unreadable(message) from error


def _sample(name: str, row: Row) -> Sample:
    labels, value = row[0], row[1]
    if not isinstance(labels, dict) or not isinstance(value, (int, float, str)):
        message = f"no sample of `{name}`"
        raise Unreadable(message)
    at = row[2] if len(row) > 2 else None
    return Sample(name, labels, float(value), float(at) if isinstance(at, (int, float)) else None)


def _number(value: float) -> int | float | str:
    """JSON has no NaN and no infinity; whole numbers are shorter without a fraction."""
    if not math.isfinite(value):
        return repr(value)
    whole = value == int(value) and abs(value) < 2**53 and repr(value) != "-0.0"
    return int(value) if whole else value
