"""The paper: size, type and colours of every picture, and how it becomes a PNG.

A thread shows a picture of 1200 points about 360 wide on a phone, so type is large: 25 pt at 100 dpi are 10 px there.
Pictures have a ground of their own and read the same in light and dark mode; what a colour says, a shape says too.
Source: the colours are near those of Okabe and Ito, darker, which people with any common colour blindness tell apart.
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from PIL import Image

from bot.escape import visible
from policies.abtest.judgement import Word

DPI = 100
WIDTH_PX = 1200
HEIGHT_PX = 900
GROUND, INK, QUIET, RULE = "#fcfcf9", "#16181d", "#565b66", "#d5d7dc"
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#B06F00", "#00795A", "#C44E00", "#6b7078"
TITLE, LARGE, NORMAL, SMALL = 37.0, 30.0, 25.0, 21.0
MOST_TEXT = 60
MOST_COLOURS = 96
# the word of a point -> colour and shape
LOOKS: dict[Word, tuple[str, str]] = {
    "improves": (GREEN, "^"),
    "no_worse": (BLUE, "o"),
    "trade_off": (ORANGE, "D"),
    "regresses": (RED, "v"),
    "inconclusive": (GREY, "D"),
    "observed": (GREY, "o"),
    "weak": (ORANGE, "s"),
    "stale": (GREY, "h"),
    "outside": (GREY, "h"),
    "invalid": (RED, "X"),
}


def paper(height_px: int = HEIGHT_PX) -> Figure:
    """An empty picture."""
    return Figure(figsize=(WIDTH_PX / DPI, height_px / DPI), dpi=DPI, facecolor=GROUND, edgecolor=RULE, linewidth=4)


def png(figure: Figure) -> bytes:
    """The picture as a PNG file with a palette, a quarter of the size; the same bytes for the same picture."""
    drawn, out = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=DPI, facecolor=GROUND, edgecolor=RULE, pil_kwargs={"compress_level": 1})
    # few colours matter: the text on its ground, and those above
    with Image.open(drawn) as picture:
        small = picture.convert("RGB").quantize(MOST_COLOURS, dither=Image.Dither.NONE)
    small.save(out, "PNG", optimize=True)
    return out.getvalue()


@cache
def font(size: float, *, bold: bool = False) -> FontProperties:
    """The type that comes with matplotlib, whatever the machine has."""
    file = Path(mpl.get_data_path()) / "fonts" / "ttf" / f"DejaVuSans{'-Bold' if bold else ''}.ttf"
    return FontProperties(fname=str(file), size=size)


def readable(text: str) -> str:
    """One line of letters that the type has, not longer than fits; nothing in it is taken for a formula."""
    line = "".join(char if char < "\u0500" or char in "–—−…≤≥·" else "?" for char in visible(text[: MOST_TEXT * 4]))
    return line if len(line) <= MOST_TEXT else f"{line[: MOST_TEXT - 1]}…"


def write(
    on: Figure | Axes,
    x: float,
    y: float,
    text: str,
    *,
    size: float = NORMAL,
    bold: bool = False,
    colour: str = INK,
    across: str = "left",
    up: str = "center",
    room: float | None = None,
) -> Text:
    """Text at a place of the picture, or of axes: then `x` and `y` are data. room: made smaller to fit so many px."""
    written = on.text(x, y, text, color=colour, ha=across, va=up, fontproperties=font(size, bold=bold))
    written.set_parse_math(False)
    if room is not None:
        extent = written.get_window_extent().width
        if extent > room:
            written.set_fontproperties(font(round(size * room / extent, 1), bold=bold))
    return written


def ticks(axes: Axes, size: float = NORMAL) -> None:
    """Tick labels in the type of the picture, and no frame but the ground line."""
    axes.set_facecolor(GROUND)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontproperties(font(size))
        label.set_color(QUIET)
    axes.tick_params(length=0, pad=10)
    for spine in axes.spines.values():
        spine.set_visible(False)


def named(artist: Artist, name: str) -> None:
    """A name by which the artist is found again."""
    artist.set_gid(name)
