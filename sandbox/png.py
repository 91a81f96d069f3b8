"""PNG files of screens made small: at most 256 colours, so that a page with many pictures loads quickly.

Text on plain grounds has few colours that matter; each rare one becomes the nearest of the frequent ones.
Source: PNG specification, second edition: chunks (5), filters (9), palettes (11.2.3).
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

from policies.errors import SettingsError

MAGIC = b"\x89PNG\r\n\x1a\n"
CHANNELS = {2: 3, 6: 4}  # colour type -> bytes a pixel: RGB, RGB with alpha (which is dropped)
MOST_COLOURS = 256


def small(data: bytes) -> bytes:
    """The same picture with a palette.

    Raises: SettingsError for what is no PNG of 8 bits a channel without interlacing.
    """
    width, height, pixels = decoded(data)
    counts = Counter(pixels)
    palette = [colour for colour, _ in counts.most_common(MOST_COLOURS)]
    places = {colour: _nearest(palette, colour) for colour in counts}
    rows = bytes(places[pixel] for pixel in pixels)
    raw = b"".join(b"\0" + rows[start : start + width] for start in range(0, width * height, width))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return MAGIC + b"".join(map(_chunk, *zip(*chunks, strict=True)))


def decoded(data: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and the pixels (three bytes each), row by row.

    Raises: SettingsError as `small`.
    """
    chunks = list(_chunks(data))
    head = chunks[0][1] if chunks else b""
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", head) if len(head) == 13 else (0,) * 7
    if not data.startswith(MAGIC) or depth != 8 or kind not in CHANNELS or interlaced:
        raise SettingsError("this is no PNG of 8 bits a channel, expected what a browser makes")
    each = CHANNELS[kind]
    raw = zlib.decompress(b"".join(body for name, body in chunks if name == b"IDAT"))
    above = bytearray(width * each)
    pixels: list[bytes] = []
    for start in range(0, height * (width * each + 1), width * each + 1):
        line = bytearray(raw[start + 1 : start + 1 + width * each])
        _unfilter(raw[start], line, above, each)
        pixels += [bytes(line[at : at + 3]) for at in range(0, len(line), each)]
        above = line
    return width, height, pixels


def _unfilter(kind: int, line: bytearray, above: bytearray, each: int) -> None:
    """Take the filter of one row back, in place."""
    for at in range(len(line)):
        left = line[at - each] if at >= each else 0
        up = above[at]
        if kind == 1:
            line[at] = (line[at] + left) & 255
        elif kind == 2:
            line[at] = (line[at] + up) & 255
        elif kind == 3:
            line[at] = (line[at] + (left + up) // 2) & 255
        elif kind == 4:
            line[at] = (line[at] + _paeth(left, up, above[at - each] if at >= each else 0)) & 255


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    by = (abs(guess - left), abs(guess - up), abs(guess - corner))
    return (left, up, corner)[by.index(min(by))]


def _nearest(palette: list[bytes], colour: bytes) -> int:
    red, green, blue = colour
    return min(
        range(len(palette)),
        key=lambda n: (palette[n][0] - red) ** 2 + (palette[n][1] - green) ** 2 + (palette[n][2] - blue) ** 2,
    )


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(MAGIC)
    while at + 8 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
