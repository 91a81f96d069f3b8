"""What the pictures of a judgement show: the data of their axes, the size of their files, and their words."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from PIL import Image

from bot.pictures import NothingToDraw, effect_png, effect_words, runs_png, runs_words
from bot.pictures.canvas import GROUND, LOOKS, readable
from bot.pictures.effect import effect_figure
from bot.pictures.runs import runs_figure
from policies.abtest.judge import Question, judge
from policies.abtest.judgement import Judgement
from policies.bench.run import Run
from tests.policies.runs import arm, ask, run

TURNS = Question(interleaved=True)
FIVE = (1000.0, 1004.0, 997.0, 1002.0, 999.0)


def sweep(effects: Mapping[int, float], values: Sequence[float] = FIVE, question: Question = TURNS) -> Judgement:
    """Runs at several loads: A as given, B so many times A, a little apart from run to run."""
    a: list[Run] = []
    b: list[Run] = []
    for concurrency, effect in effects.items():
        a += arm(values, concurrency=concurrency)
        b += arm([v * effect * (1 + 0.001 * (i % 2)) for i, v in enumerate(values)], concurrency=concurrency)
    return judge(a, b, question)


def found(figure: Figure, name: str) -> list[Artist]:
    return [artist for artist in figure.findobj() if artist.get_gid() == name]


def line(figure: Figure, name: str) -> Line2D:
    (artist,) = found(figure, name)
    assert isinstance(artist, Line2D)
    return artist


def xs(figure: Figure, name: str) -> list[float]:
    return [float(x) for x, _ in line(figure, name).get_xydata().tolist()]  # type: ignore[union-attr]  # an array


def ys(figure: Figure, name: str) -> list[float]:
    return [float(y) for _, y in line(figure, name).get_xydata().tolist()]  # type: ignore[union-attr]  # an array


def beside(figure: Figure, load: str) -> list[str]:
    return [text.get_text() for text in found(figure, f"beside {load}") if isinstance(text, Text)]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]


def main_axes(figure: Figure) -> Axes:
    return max(figure.axes, key=lambda axes: axes.bbox.height)


def percent(ratio: float | None) -> float:
    assert ratio is not None
    return (ratio - 1) * 100


def test_a_point_stands_at_its_change_and_its_interval_is_the_one_of_the_record() -> None:
    judged = sweep({1: 1.001, 64: 1.128})
    figure = effect_figure(judged)
    for row, point in enumerate(judged.points):
        assert xs(figure, f"point {point.load.label}") == [pytest.approx(percent(point.ratio))]
        assert ys(figure, f"point {point.load.label}") == [row]
        ends = [percent(point.ci_low), percent(point.ci_high)]
        assert xs(figure, f"interval {point.load.label}") == pytest.approx(ends)
    assert [text.get_text() for text in main_axes(figure).get_yticklabels()] == ["C1", "C64"]
    assert beside(figure, "C64")[0] == "+12.8 %"
    assert beside(figure, "C64")[2] == "n=5, improves"
    assert "improves · output tok/s" in texts(figure)


def test_one_run_an_arm_is_hollow_without_interval_and_says_so() -> None:
    figure = effect_figure(sweep({64: 1.128, 80: 1.012, 96: 1.057}, [1000.0], Question()))
    for load in ("C64", "C80", "C96"):
        assert line(figure, f"point {load}").get_markerfacecolor() == GROUND
        assert found(figure, f"interval {load}") == []
        assert beside(figure, load)[1] == "n=1, no interval"
    assert beside(figure, "C80")[0] == "+1.2 %"
    assert "observed · output tok/s" in texts(figure)


def test_a_point_with_an_interval_is_filled_in_the_colour_and_shape_of_its_word() -> None:
    judged = sweep({1: 1.0, 8: 0.9, 64: 1.128})
    figure = effect_figure(judged)
    assert [p.klass for p in judged.points] == ["no_worse", "regresses", "improves"]
    for point in judged.points:
        mark = line(figure, f"point {point.load.label}")
        assert (mark.get_markerfacecolor(), mark.get_marker()) == LOOKS[point.klass]
    assert len(set(LOOKS.values())) >= 8


def test_the_margins_stand_where_the_judge_had_them_also_for_a_metric_where_less_is_better() -> None:
    figure = effect_figure(sweep({64: 1.1}))
    assert xs(figure, "line worse than allowed") == pytest.approx([-2, -2])
    assert xs(figure, "line useful") == pytest.approx([1, 1])
    (worse,) = found(figure, "band worse than allowed")
    assert isinstance(worse, Rectangle)
    assert worse.get_x() + worse.get_width() == pytest.approx(-2)

    a = [run(1000, order=i, median_ttft=80.0 + i) for i in range(4)]
    b = [run(1000, order=i, median_ttft=70.0 + i) for i in range(4)]
    figure = effect_figure(judge(a, b, Question(metric="median_ttft_ms", interleaved=True)))
    assert xs(figure, "line worse than allowed") == pytest.approx([5, 5])
    assert xs(figure, "line useful") == pytest.approx([-100 / 101, -100 / 101])
    assert "change in %, lower is better" in texts(figure)


def test_no_worse_shows_the_one_sided_bound_that_it_stands_on() -> None:
    judged = sweep({8: 1.0, 64: 1.1})
    figure = effect_figure(judged)
    assert xs(figure, "bound C8") == pytest.approx([percent(judged.points[0].bound)])
    assert found(figure, "bound C64") == []


def test_a_huge_point_is_an_arrow_at_the_edge_and_leaves_the_others_their_room() -> None:
    figure = effect_figure(sweep({1: 1.001, 8: 1.01, 16: 1.02, 64: 5.2}))
    low, high = main_axes(figure).get_xlim()
    assert high < 10
    assert low < -2
    mark = line(figure, "point C64")
    assert (xs(figure, "point C64"), mark.get_marker()) == ([high], ">")
    assert beside(figure, "C64")[0] == "+420.2 %"


def test_an_ordinary_effect_is_never_cut_off_beside_small_ones() -> None:
    figure = effect_figure(sweep({1: 1.0, 8: 1.001, 16: 0.999, 64: 1.3}))
    assert main_axes(figure).get_xlim()[1] > 30


def test_a_loss_lies_on_the_hatched_side() -> None:
    judged = sweep({64: 0.85})
    figure = effect_figure(judged)
    assert judged.verdict == "regresses"
    low, high = main_axes(figure).get_xlim()
    assert low < xs(figure, "point C64")[0] < -14 < 0 < high


def test_a_broken_comparison_is_drawn_hollow_and_says_that_it_shows_nothing() -> None:
    a, b = arm(FIVE), arm([v * 1.1 for v in FIVE])
    judged = ask(a, [one.model_copy(update={"failed": 300, "completed": 700}) for one in b])
    figure = effect_figure(judged)
    assert judged.verdict == "invalid"
    assert line(figure, "point C64").get_markerfacecolor() == GROUND
    assert beside(figure, "C64")[1:] == ["n=5, no interval", "invalid"]
    assert any("broken comparison: shows no effect" in text for text in texts(figure))


def test_what_does_not_fit_on_the_picture_is_counted() -> None:
    judged = sweep(dict.fromkeys(range(1, 26), 1.01), FIVE[:1])
    assert "and 1 more load" in texts(effect_figure(judged))
    assert any("and 13 more loads" in text for text in texts(runs_figure(judged)))
    assert "and 13 more loads" in effect_words(judged)


def test_runs_that_took_turns_stand_beside_each_other_in_their_order() -> None:
    judged = sweep({8: 1.0, 64: 1.1})
    figure = runs_figure(judged)
    for point in judged.points:
        load = point.load.label
        assert ys(figure, f"A {load}") == list(point.runs_a)
        assert ys(figure, f"B {load}") == list(point.runs_b)
        assert xs(figure, f"A {load}") == sorted(xs(figure, f"A {load}"))
        pairs = zip(xs(figure, f"A {load}"), xs(figure, f"B {load}"), strict=True)
        assert [round(b) - round(a) for a, b in pairs] == [0] * 5


def test_runs_that_took_no_turns_stand_apart() -> None:
    judged = sweep({64: 1.1}, FIVE, Question())
    figure = runs_figure(judged)
    assert max(xs(figure, "A C64")) + 1 < min(xs(figure, "B C64"))
    assert any("each arm in its own order" in text for text in texts(figure))


def test_a_drift_within_the_arms_is_as_steep_as_it_was_and_noise_is_not_blown_up() -> None:
    climbing = judge(arm([1000, 1020, 1040, 1060]), arm([1090, 1110, 1130, 1150]), Question())
    assert ys(runs_figure(climbing), "A C64") == [1000, 1020, 1040, 1060]
    low, high = main_axes(runs_figure(sweep({64: 1.0}))).get_ylim()
    assert high - low >= 0.04 * 1000


def test_a_cold_first_run_that_was_left_out_is_shown_hollow_before_the_others() -> None:
    judged = ask(arm([800, 1000, 1010, 1005]), arm([850, 1090, 1100, 1095]))
    figure = runs_figure(judged)
    assert ys(figure, "left out A C64") == [800]
    assert xs(figure, "left out A C64")[0] < min(xs(figure, "A C64"))
    assert line(figure, "left out B C64").get_markerfacecolor() == GROUND
    assert any("hollow: left out" in text for text in texts(figure))


@pytest.mark.parametrize("loads", [1, 14])
def test_a_picture_is_a_png_1200_wide_and_small_enough_for_a_thread(loads: int) -> None:
    judged = sweep({c: 1 + 0.01 * c for c in range(1, loads + 1)}, FIVE[:3])
    for data in (effect_png(judged, "TARGET_CTAS 512 against unset"), runs_png(judged)):
        with Image.open(io.BytesIO(data)) as picture:
            assert (picture.format, picture.width) == ("PNG", 1200)
            assert picture.height == 900 if loads == 1 else 900 < picture.height < 1800
            assert picture.convert("RGB").getpixel((30, 150)) == (252, 252, 249)  # its own ground
        assert len(data) < 200_000


def test_the_same_judgement_is_the_same_file() -> None:
    judged = sweep({64: 1.1})
    assert effect_png(judged) == effect_png(judged)


def test_text_of_people_is_written_as_it_is_and_never_taken_for_a_formula() -> None:
    about = "$\\frac{1}{0}$ <!channel> \u202egnp\u0000 \U0001f600 \u05d0 " + "x" * 900
    assert effect_png(sweep({64: 1.1}), about).startswith(b"\x89PNG")
    shown = readable(about)
    assert shown.startswith("$\\frac{1}{0}$ <!channel> gnp? ? ? xxx")
    assert len(shown) == 60


def test_without_a_common_load_or_without_runs_there_is_nothing_to_draw() -> None:
    alone = ask(arm([1000.0], concurrency=1), arm([1000.0], concurrency=2))
    with pytest.raises(NothingToDraw, match="no load that both arms have"):
        effect_png(alone)
    with pytest.raises(NothingToDraw, match="no runs are known"):
        runs_png(alone)


def test_the_words_of_a_picture_tell_its_numbers() -> None:
    judged = sweep({64: 1.128}, [1000.0], Question())
    assert effect_words(judged, "X 512 against unset") == (
        "X 512 against unset: observed: output tok/s, higher is better. C64 +12.8 %, n=1, no interval, observed."
    )
    words = effect_words(sweep({8: 0.9}))
    assert words.startswith(
        "regresses: output tok/s, higher is better. C8 -10.0 %, 95 % interval -10.0 % to -9.9 %, n=5"
    )
    assert "runs in tok/s, taking turns. C8: A 1000, 1004, 997, 1002, 999; B 900," in runs_words(sweep({8: 0.9}))
    assert len(runs_words(sweep(dict.fromkeys(range(1, 13), 1.1)))) <= 1000


def test_the_module_of_pictures_is_imported_without_loading_what_draws() -> None:
    code = "import sys, bot.pictures; sys.exit('matplotlib' in sys.modules or 'PIL' in sys.modules)"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False, timeout=30).returncode == 0
