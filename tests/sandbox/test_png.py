"""Pictures are made small without being changed where they have few colours."""

from __future__ import annotations

import struct
import zlib

import pytest

from policies.errors import SettingsError
from sandbox.png import MAGIC, decoded, small

WIDTH, HEIGHT = 4, 5


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(raw: bytes, kind: int, width: int = WIDTH, height: int = HEIGHT) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return MAGIC + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def filtered(rows: list[bytes], each: int) -> bytes:
    """Row n with filter n, as the specification defines the five."""
    out = b""
    above = bytes(len(rows[0]))
    for kind, row in enumerate(rows):
        out += bytes([kind])
        for at, value in enumerate(row):
            left = row[at - each] if at >= each else 0
            up = above[at]
            corner = above[at - each] if at >= each else 0
            p = left + up - corner
            nearest = min((left, up, corner), key=lambda one: abs(p - one))
            out += bytes([(value - (0, left, up, (left + up) >> 1, nearest)[kind]) & 255])
        above = row
    return out


@pytest.mark.parametrize(("kind", "each"), [(2, 3), (6, 4)])
def test_every_filter_is_taken_back(kind: int, each: int) -> None:
    rows = [bytes((17 * y + 53 * x + 7 * x * y) % 256 for x in range(WIDTH * each)) for y in range(HEIGHT)]
    wanted = [row[at : at + 3] for row in rows for at in range(0, len(row), each)]
    assert decoded(png(filtered(rows, each), kind)) == (WIDTH, HEIGHT, wanted)


def indexed(data: bytes) -> list[bytes]:
    """The pixels of a palette picture without filters."""
    palette = data[data.index(b"PLTE") + 4 :]
    raw = zlib.decompress(data[data.index(b"IDAT") + 4 : data.index(b"IEND") - 8])
    width, height = struct.unpack(">II", data[16:24])
    rows = [raw[y * (width + 1) + 1 : (y + 1) * (width + 1)] for y in range(height)]
    return [palette[3 * n : 3 * n + 3] for row in rows for n in row]


def test_a_picture_of_few_colours_stays_as_it_is() -> None:
    rows = [bytes([y, 0, 255] * WIDTH) for y in range(HEIGHT)]
    data = small(png(b"".join(b"\0" + row for row in rows), 2))
    assert indexed(data) == [bytes([y, 0, 255]) for y in range(HEIGHT) for _ in range(WIDTH)]


def test_a_rare_colour_becomes_the_nearest_of_the_frequent_ones() -> None:
    width = 600
    row = b"".join(bytes([n % 256, n % 256, n % 256]) for n in range(width - 1)) + bytes([101, 100, 100])
    data = small(png(b"\0" + row, 2, width, 1))
    assert indexed(data)[-1] == bytes([100, 100, 100])
    assert indexed(data)[300] == bytes([44, 44, 44])


@pytest.mark.parametrize("data", [b"", b"GIF89a", MAGIC, png(b"\0" * 25, 3)])
def test_what_is_no_picture_of_a_browser_is_refused(data: bytes) -> None:
    with pytest.raises(SettingsError, match="expected what a browser makes"):
        small(data)
