"""Every run of both arms in the order in which they ran, a panel for each load, so that a drift is seen.

Runs that took turns stand as pairs, 1 of A beside 1 of B. Others stand apart: which arm ran first is not in the record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bot.pictures import canvas
from bot.pictures.canvas import BLUE, GROUND, INK, NORMAL, QUIET, RED, RULE, SMALL, TITLE
from bot.pictures.words import NothingToDraw, arms_of, more_loads, word
from policies.abtest.judgement import Judgement, PointJudgement
from policies.bench.metrics import short

MOST_PANELS = 12
ARMS = {"A": (BLUE, "o"), "B": (RED, "^")}
HEAD_PX, FOOT_PX, TALL_PX = 172, 96, 250
SIDE, PAIR = 0.13, 0.16  # shares of the width: labels of an axis; of a step: each of a pair beside its number
GAP = 1.0  # steps between arms that did not take turns
LEAST_SPAN = 0.04  # of the middle value, so that noise does not look like a drift
MOST_TICKS = 12


def runs_figure(judgement: Judgement, about: str = "") -> Figure:
    """The picture before it is a PNG.

    Raises: NothingToDraw.
    """
    points = [point for point in judgement.points if point.runs_a and point.runs_b]
    if not points:
        raise NothingToDraw("no runs are known of this record, only its ratios")
    shown = points[:MOST_PANELS]
    columns = 1 if len(shown) < 3 else 2
    rows = math.ceil(len(shown) / columns)
    height = max(canvas.HEIGHT_PX, HEAD_PX + FOOT_PX + rows * TALL_PX)
    figure = canvas.paper(height)
    _head(figure, judgement, about, height)
    each = (height - HEAD_PX - FOOT_PX) / rows / height
    for number, point in enumerate(shown):
        row, column = divmod(number, columns)
        wide = 0.97 / columns
        box = (
            0.015 + column * wide + SIDE,
            FOOT_PX / height + (rows - 1 - row) * each + 46 / height,
            wide - SIDE - 0.02,
            each - 100 / height,
        )
        _panel(figure, figure.add_axes(box), point, judgement, roomy=columns == 1)
    _foot(figure, judgement, len(points) - len(shown), height)
    return figure


def places(point: PointJudgement, *, interleaved: bool) -> tuple[list[float], list[float]]:
    """Where the runs of A and of B stand along the axis, in steps; the first run of A is at 1."""
    a, b = len(point.runs_a), len(point.runs_b)
    if interleaved:
        return [i - PAIR for i in range(1, a + 1)], [i + PAIR for i in range(1, b + 1)]
    first = a + GAP + 1 + (point.left_out_b is not None)
    return [float(i) for i in range(1, a + 1)], [first + i for i in range(b)]


def _left_out(point: PointJudgement) -> list[float]:
    return [value for value in (point.left_out_a, point.left_out_b) if value is not None]


def span(values: Sequence[float]) -> tuple[float, float]:
    """Both ends of the axis of values, in their unit."""
    least, most = min(values), max(values)
    room = max((most - least) * 1.25, (most + least) / 2 * LEAST_SPAN) / 2
    return (most + least) / 2 - room, (most + least) / 2 + room


def _head(figure: Figure, judgement: Judgement, about: str, height: int) -> None:
    title = f"runs in order · {short(judgement.metric)}"
    canvas.write(figure, 0.035, 1 - 52 / height, canvas.readable(title), size=TITLE, bold=True, room=1130)
    how = "took turns" if judgement.interleaved else "each arm in its own order"
    if any(_left_out(point) for point in judgement.points):
        how += ", hollow: left out"
    said = f"{canvas.readable(about) or 'B against A'}, {how}, {word(judgement.verdict)}"
    canvas.write(figure, 0.035, 1 - 122 / height, said, size=NORMAL, colour=QUIET, room=1130)


def _panel(figure: Figure, axes: Axes, point: PointJudgement, judgement: Judgement, *, roomy: bool) -> None:
    at = places(point, interleaved=judgement.interleaved)
    for (name, values), x in zip(arms_of(point), at, strict=True):
        colour, shape = ARMS[name]
        size = 18 if roomy else 14
        (line,) = axes.plot(x, values, color=colour, marker=shape, ms=size, lw=size / 4, zorder=3, mec=GROUND, mew=2)
        canvas.named(line, f"{name} {point.load.label}")
        left_out = point.left_out_a if name == "A" else point.left_out_b
        if left_out is not None:
            (mark,) = axes.plot([x[0] - 1], [left_out], marker=shape, ms=size, zorder=3, mec=colour, mew=4, mfc=GROUND)
            canvas.named(mark, f"left out {name} {point.load.label}")
    if judgement.interleaved:
        for x_a, x_b, a, b in zip(*at, point.runs_a, point.runs_b, strict=False):
            axes.plot([x_a, x_b], [a, b], color=QUIET, lw=2, zorder=2)
    else:
        axes.axvline(len(point.runs_a) + (1 + GAP) / 2, color=RULE, lw=3, zorder=1)
    axes.set_ylim(*span([*point.runs_a, *point.runs_b, *_left_out(point)]))
    axes.set_xlim(0.4 - bool(_left_out(point)), max(*at[0], *at[1]) + 0.6)
    _numbered(axes, point, at, interleaved=judgement.interleaved)
    axes.locator_params(axis="y", nbins=4 if roomy else 3)
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")
    low, high = axes.get_ylim()
    kept = [tick for tick in axes.get_yticks() if low <= tick <= high]
    axes.set_yticks(kept, [f"{tick:,.6g}".replace(",", "\u2009") for tick in kept])
    canvas.ticks(axes, SMALL)
    axes.grid(axis="y", color=RULE, lw=2)
    box = axes.get_position()
    head = f"{point.load.label} · n={point.n_a}" + ("" if point.n_a == point.n_b else f" and {point.n_b}")
    top = box.y1 + 26 / figure.bbox.height
    canvas.write(figure, box.x0, top, head, size=NORMAL if roomy else SMALL, bold=True, colour=INK)


def _numbered(axes: Axes, point: PointJudgement, at: tuple[list[float], list[float]], *, interleaved: bool) -> None:
    """The numbers of the runs below the axis, of each arm from 1."""
    a, b = len(point.runs_a), len(point.runs_b)
    if interleaved:
        step = math.ceil(max(a, b) / MOST_TICKS)
        numbers = range(1, max(a, b) + 1, step)
        axes.set_xticks([float(n) for n in numbers], [str(n) for n in numbers])
        return
    step = math.ceil((a + b) / MOST_TICKS)
    marks = [(x, f"{name}{i}") for name, xs in (("A", at[0]), ("B", at[1])) for i, x in enumerate(xs, 1)]
    kept = [mark for mark in marks if (int(mark[1][1:]) - 1) % step == 0]
    axes.set_xticks([x for x, _ in kept], [label for _, label in kept])


def _foot(figure: Figure, judgement: Judgement, left_out: int, height: int) -> None:
    unit = f"in {canvas.readable(judgement.unit)}, " if judgement.unit else ""
    more = f", {more_loads(left_out)}" if left_out else ""
    said = f"{unit}{judgement.better} is better{more}"
    canvas.write(figure, 0.97, 38 / height, said, size=SMALL, colour=QUIET, across="right", room=640)
    key = figure.add_axes((0.02, 8 / height, 0.42, 60 / height))
    key.set_axis_off()
    key.set_xlim(0, 1)
    key.set_ylim(0, 1)
    for x, name in ((0.06, "A"), (0.55, "B")):
        colour, shape = ARMS[name]
        key.plot([x], [0.5], marker=shape, ms=20, color=colour)
        said = "A (baseline)" if name == "A" else "B (new)"
        canvas.write(key, x + 0.07, 0.48, said, size=SMALL)
