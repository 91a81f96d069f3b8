"""The effect at each load: one row a load, its change in percent, its interval, the margins, n and the word.

A point with an interval is filled, one without is hollow and says so. What lies outside the axis ends in an arrow at
its edge, with its number beside it.
"""

from __future__ import annotations

from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from bot.pictures import canvas
from bot.pictures.canvas import GREEN, GROUND, INK, LARGE, LOOKS, NORMAL, QUIET, RED, RULE, SMALL, TITLE
from bot.pictures.words import NothingToDraw, limits, more_loads, percent, runs_of, word
from policies.abtest.judgement import Judgement, PointJudgement
from policies.bench.metrics import short

MOST_ROWS = 24
ROOMY_ROWS = 5  # up to so many rows have three lines beside them
ROW_PX, ROOMY_PX, LINE_PX = 46, 124, 37
HEAD_PX, FOOT_PX = 172, 212
LEFT, RIGHT, KEY_TEXT = 0.155, 0.635, 0.088
FAR, NEAR = 4.0, 10.0  # a point so many times the middle one is beyond the axis, never within 40 %
CAP = 1.9  # taller than the mark, so that a narrow interval is seen around it
LEAST_SPAN = 4.0  # percent, so that noise does not look like an effect
ON_BOUND = frozenset({"no_worse", "inconclusive"})  # words that the one-sided bound decides
WORSE, USEFUL = "worse than allowed", "useful"


def effect_figure(judgement: Judgement, about: str = "") -> Figure:
    """The picture before it is a PNG.

    Raises: NothingToDraw.
    """
    if not judgement.points:
        raise NothingToDraw("there is no load that both arms have, so there is no effect to draw")
    shown = judgement.points[:MOST_ROWS]
    roomy = len(shown) <= ROOMY_ROWS
    rows_px = len(shown) * (ROOMY_PX if roomy else ROW_PX)
    height = max(canvas.HEIGHT_PX, HEAD_PX + FOOT_PX + rows_px)
    figure = canvas.paper(height)
    _head(figure, judgement, about, height)
    axes = figure.add_axes((LEFT, FOOT_PX / height, RIGHT - LEFT, (height - HEAD_PX - FOOT_PX) / height))
    low, high = span(judgement)
    axes.set_xlim(low, high)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_yticks(range(len(shown)), [point.load.label for point in shown])
    _bands(axes, judgement, low, high)
    for row, point in enumerate(shown):
        _row(axes, row, point, low, high, roomy=roomy)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xticks([tick for tick in axes.get_xticks() if low <= tick <= high])
    axes.set_xticklabels([f"{tick:+g}" if tick else "0" for tick in axes.get_xticks()])
    canvas.ticks(axes, NORMAL if roomy else SMALL)
    axes.tick_params(axis="y", pad=24)  # an arrow at the edge needs room
    _foot(figure, judgement, len(judgement.points) - len(shown), height)
    return figure


def span(judgement: Judgement) -> tuple[float, float]:
    """Both ends of the axis in percent: zero, the margins, and what most points and intervals need."""
    points = judgement.points[:MOST_ROWS]
    values = [_percent(point.ratio) for point in points]
    usual = max(median(abs(v) for v in values), NEAR)
    kept = [v for v in values if abs(v) <= FAR * usual] or [min(values, key=abs)]
    reach = max(usual, *(abs(v) for v in kept))
    ends = [_percent(end) for p in points for end in (p.ci_low, p.ci_high) if end is not None]
    ends = [end for end in ends if abs(end) <= FAR * reach]
    edges = [_percent(limit) for limit in limits(judgement) or ()]
    least, most = min(0.0, *kept, *ends, *edges), max(0.0, *kept, *ends, *edges)
    room = max(most - least, LEAST_SPAN) * 0.10
    return least - room, most + room


def _percent(ratio: float) -> float:
    return (ratio - 1) * 100


def _head(figure: Figure, judgement: Judgement, about: str, height: int) -> None:
    colour, shape = LOOKS[judgement.verdict]
    mark = figure.add_axes((0.03, 1 - 82 / height, 60 / canvas.WIDTH_PX, 60 / height))
    mark.set_axis_off()
    hollow = judgement.verdict == "observed"
    mark.plot([0.5], [0.5], marker=shape, ms=30, mec=colour, mew=7, mfc=GROUND if hollow else colour)
    mark.set_xlim(0, 1)
    mark.set_ylim(0, 1)
    title = f"{word(judgement.verdict)} · {short(judgement.metric)}"
    canvas.write(figure, 0.095, 1 - 52 / height, canvas.readable(title), size=TITLE, bold=True, room=1060)
    how = "interleaved" if judgement.interleaved else "not interleaved"
    if judgement.verdict == "invalid":
        how = "broken comparison: shows no effect"
    said = f"{canvas.readable(about) or 'B against A'}, {how}"
    canvas.write(figure, 0.035, 1 - 122 / height, said, size=NORMAL, colour=QUIET, room=1120)


def _bands(axes: Axes, judgement: Judgement, low: float, high: float) -> None:
    """Where worse is more than allowed, and where better is worth having, with their lines; and no change at all."""
    found = limits(judgement)
    rows = axes.get_ylim()[0] + 0.5
    if found is not None:
        for ratio, name, colour, hatch, dashes in (
            (found[0], WORSE, RED, "/", (0, (4, 2))),
            (found[1], USEFUL, GREEN, "", (0, (1, 1.4))),
        ):
            edge = _percent(ratio)
            outer = low if edge < 0 else high
            band = Rectangle((min(edge, outer), -0.5), abs(outer - edge), rows, facecolor=colour, alpha=0.13, lw=0)
            canvas.named(band, f"band {name}")
            axes.add_patch(band)
            if hatch:
                axes.add_patch(Rectangle(band.get_xy(), band.get_width(), rows, fill=False, hatch=hatch, lw=0,
                                         ec=colour, alpha=0.35))  # fmt: skip
            line = axes.axvline(edge, color=colour, lw=4, ls=dashes)
            canvas.named(line, f"line {name}")
    axes.axvline(0, color=INK, lw=4)


def _row(axes: Axes, row: int, point: PointJudgement, low: float, high: float, *, roomy: bool) -> None:
    value = _percent(point.ratio)
    colour, shape = LOOKS[point.klass]
    size = 20 if roomy else 14
    axes.axhline(row + 0.5, color=RULE, lw=1.5, zorder=0.5)
    whole = point.ci_low is not None and point.ci_high is not None
    if point.ci_low is not None and point.ci_high is not None:
        ends = (_percent(point.ci_low), _percent(point.ci_high))
        (line,) = axes.plot([max(low, ends[0]), min(high, ends[1])], [row, row], color=colour, lw=8 if roomy else 5,
                            solid_capstyle="butt", zorder=3)  # fmt: skip
        canvas.named(line, f"interval {point.load.label}")
        for end in ends:
            _end(axes, row, end, low, high, colour, size)
        if point.klass in ON_BOUND and point.bound is not None and low <= (bound := _percent(point.bound)) <= high:
            (notch,) = axes.plot([bound], [row], marker="|", ms=size * CAP * 0.8, mew=4, color=INK, zorder=3.5)
            canvas.named(notch, f"bound {point.load.label}")
    inside = min(max(value, low), high)
    if inside == value:
        (mark,) = axes.plot([value], [row], marker=shape, ms=size, color=colour, zorder=4, mew=5 if roomy else 3.5,
                            mfc=colour if whole else GROUND, mec=GROUND if whole else colour)  # fmt: skip
        mark.set_markeredgewidth(2.5 if whole else (5 if roomy else 3.5))
    else:
        mark = _arrow(axes, row, inside, colour, size, outwards=value > high, hollow=not whole)
    canvas.named(mark, f"point {point.load.label}")
    _beside(axes, row, point, roomy=roomy)


def _end(axes: Axes, row: int, end: float, low: float, high: float, colour: str, size: float) -> None:
    """A cap where the interval ends, an arrow where it goes on beyond the edge."""
    if low <= end <= high:
        axes.plot([end], [row], marker="|", ms=size * CAP, mew=4, color=colour, zorder=3)
    else:
        edge = low if end < low else high
        _arrow(axes, row, edge, colour, size * 1.1, outwards=end > high, hollow=False)


def _arrow(axes: Axes, row: int, edge: float, colour: str, size: float, *, outwards: bool, hollow: bool) -> Line2D:
    (mark,) = axes.plot([edge], [row], marker=">" if outwards else "<", ms=size, color=colour, mew=4, zorder=5,
                        mfc=GROUND if hollow else colour, mec=colour, clip_on=False)  # fmt: skip
    return mark


def _beside(axes: Axes, row: int, point: PointJudgement, *, roomy: bool) -> None:
    """The change and what stands behind it, right of the axis."""
    value, kind = percent(point.ratio), word(point.klass)
    if point.ci_low is None or point.ci_high is None:
        told = [f"{runs_of(point)}, no interval", *([] if point.klass == "observed" else [kind])]
    else:
        told = [f"95 %: {_ends(point.ci_low, point.ci_high)}", f"{runs_of(point)}, {kind}"]
    lines = [value, *told] if roomy else [f"{value}  {told[0] if len(told) == 1 else f'{runs_of(point)}, {kind}'}"]
    pixel = 1 / axes.bbox.height * (axes.get_ylim()[0] + 0.5)  # in rows
    right = canvas.WIDTH_PX * (1 - RIGHT) - 50
    for number, line in enumerate(lines):
        first = roomy and number == 0
        place = row + (number - (len(lines) - 1) / 2) * LINE_PX * pixel
        text = canvas.write(axes, 1.055, place, line, size=LARGE if first else SMALL + 2 * roomy, bold=first,
                            colour=INK if first or not roomy else QUIET, room=right)  # fmt: skip
        text.set_transform(axes.get_yaxis_transform())
        canvas.named(text, f"beside {point.load.label}")


def _ends(low: float, high: float) -> str:
    return f"{percent(low).removesuffix(' %')} to {percent(high).removesuffix(' %')}"


def _foot(figure: Figure, judgement: Judgement, left_out: int, height: int) -> None:
    """What the axis, the bands and the notch mean."""
    axis = f"change in %, {judgement.better} is better"
    middle = (LEFT + RIGHT) / 2
    canvas.write(figure, middle, (FOOT_PX - 80) / height, axis, size=NORMAL, across="center", room=760)
    if left_out:
        said = more_loads(left_out)
        canvas.write(figure, 0.97, (FOOT_PX - 80) / height, said, size=SMALL, colour=QUIET, across="right")
    if any(point.klass in ON_BOUND and point.bound is not None for point in judgement.points):
        figure.add_artist(Line2D([0.053, 0.053], [24 / height, 54 / height], color=INK, lw=4))
        said = 'one-sided 95 % bound: "no worse" needs it clear of the hatching'
        canvas.write(figure, KEY_TEXT, 38 / height, said, size=SMALL, room=1080)
    found = limits(judgement)
    if found is None:
        return
    worse, useful = (f"{_percent(ratio):+.2g} %" for ratio in found)
    for x, name, said, colour, hatch in (
        (0.035, WORSE, f"{WORSE}: beyond {worse}", RED, "//"),
        (0.58, USEFUL, f"{USEFUL}: beyond {useful}", GREEN, ""),
    ):
        wide, high = 46 / canvas.WIDTH_PX, 32 / height
        key = Rectangle((x, 66 / height), wide, high, facecolor=colour, alpha=0.3, hatch=hatch, lw=0)
        canvas.named(key, f"key {name}")
        figure.add_artist(key)
        canvas.write(figure, x + KEY_TEXT - 0.035, 82 / height, said, size=SMALL, room=560)
