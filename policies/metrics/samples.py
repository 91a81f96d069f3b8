"""A metrics text, read: samples under the names that the text gives them.

Read by prometheus-client's parser, one line at a time, so that a bad line is named and a counter keeps its own name
(the parser would add `_total` to some and take it from the family's name). As in Prometheus, a series that stands
twice in a text counts once, and one bad line spoils the whole text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policies.facts import HttpAnswer
from policies.finding import Finding

# Source: DCGM's marks for "no value" are the integers 0x7ffffffffffffff0 to ...f3; as a float all of them are 2^63
NO_VALUE = float(2**63)
LONGEST_QUOTE = 80
LONGEST_LINE = 8192  # the parser takes quadratic time for a line of escaped quotes


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a metrics text. `at` is set only where the line itself has a time.

    Units: at is epoch seconds. A value may be NaN or infinite; DCGM's "no value" never gets here.
    """

    name: str
    labels: Mapping[str, str]
    value: float
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Scrape:
    """What one instance answered at one moment. Units: at is epoch seconds, of the host's clock."""

    instance: str  # service@host
    url: str
    at: float
    samples: tuple[Sample, ...]

    @property
    def source(self) -> str:
        """The words that cite it."""
        return f"scrape of {self.url} on {self.instance.partition('@')[2] or self.instance}"

    def named(self, name: str) -> tuple[Sample, ...]:
        """The series of one name; none at all means no data."""
        return tuple(sample for sample in self.samples if sample.name == name)


def read_scrape(text: str, *, instance: str, url: str, at: float) -> Scrape | Finding:
    """The samples of a metrics text, or a finding `metrics.unreadable` with the first line that cannot be read."""
    from prometheus_client.parser import text_fd_to_metric_families

    lines = _Lines(text)
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    try:
        for family in text_fd_to_metric_families(lines):  # type: ignore[arg-type]  # it asks for nothing but lines
            for found in family.samples:
                # found.timestamp is in seconds already, though the text has milliseconds
                stamp = None if found.timestamp is None else float(found.timestamp)
                sample = Sample(found.name, found.labels, float(found.value), stamp)
                if sample.value != NO_VALUE:
                    samples.setdefault((sample.name, tuple(sorted(sample.labels.items()))), sample)
    except (ValueError, IndexError, OverflowError):
        quoted = lines.line if len(lines.line) <= LONGEST_QUOTE else lines.line[: LONGEST_QUOTE - 3] + "..."
        values: dict[str, str | int | float | None] = {"instance": instance, "url": url, "line": lines.number}
        return Finding(code="metrics.unreadable", effect="warn", values={**values, "text": quoted})
    return Scrape(instance, url, at, tuple(samples.values()))


def answered_scrape(instance: str, answer: HttpAnswer | None) -> Scrape | Finding:
    """The samples of an answer that came from a host, or why there are none."""
    if answer is None or answer.status != 200:
        values: dict[str, str | int | float | None] = {"instance": instance}
        values |= {"status": answer.status if answer else None, "error": answer.error if answer else None}
        return Finding(code="metrics.no-answer", effect="warn", values=values)
    if answer.truncated:  # a line that was cut is another number
        values = {"instance": instance, "url": answer.url, "bytes": len(answer.body.encode())}
        return Finding(code="metrics.too-long", effect="warn", values=values)
    return read_scrape(answer.body, instance=instance, url=answer.url, at=answer.at)


class _Lines:
    """The lines that hold samples; remembers the one that is being read."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self.number = 0
        self.line = ""

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self._lines, start=1):
            self.number, self.line = number, line
            # without TYPE lines a counter keeps its name, and each sample is given out before the next line is read
            if not line.lstrip().startswith("#"):
                if len(line) > LONGEST_LINE:
                    message = f"a line of {len(line)} characters"
                    raise ValueError(message)
                yield line
