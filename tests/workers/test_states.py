"""States at a look: the earlier scrape that decides, the routers beside it, and nothing where nobody scraped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from policies.facts import UnitFacts
from policies.finding import Finding
from policies.metrics.samples import Scrape
from policies.states.state import State
from tests.policies import builders as b
from tests.policies.scrapes import PD_EMPTY, engine_text, router_text, scrape
from workers.states import States

DECODE, PREFILL, ROUTER = "decode@gpu1", "prefill@gpu1", "router@gpu1"
FLEET = b.fleet()


class Recorded:
    """Scrapes by instance; `fresh` are those that are asked for now."""

    def __init__(self, found: Mapping[str, list[Scrape]], fresh: Mapping[str, Scrape | Finding] | None = None) -> None:
        self._found = found
        self.fresh = fresh or {}
        self.asked: list[tuple[str, ...]] = []

    def scrapes(self, instance: str, start: float, end: float) -> tuple[Scrape, ...]:
        """As the store gives them."""
        return tuple(s for s in self._found.get(instance, []) if start <= s.at <= end)

    def take(self, instances: Sequence[str]) -> Mapping[str, Scrape | Finding]:
        """As hosts give them."""
        self.asked.append(tuple(instances))
        return {i: self.fresh[i] for i in instances if i in self.fresh}


def text(**given: object) -> str:
    """A decode engine."""
    return engine_text(role="decode", pd=PD_EMPTY["decode"], **given)  # type: ignore[arg-type]  # families by name


def looked(now: str, *earlier: Scrape, **others: list[Scrape]) -> State:
    """The state of decode, whose metrics say `now`."""
    recorded = Recorded({DECODE: list(earlier), **{f"{service}@gpu1": found for service, found in others.items()}})
    unit = b.unit(DECODE, http=(b.answer(200, now, id="metrics"),))
    return States(FLEET, recorded).of({DECODE: unit})[DECODE]


def test_a_look_alone_is_one_sample() -> None:
    assert [f.code for f in looked(text(queued=3)).findings] == ["state.one-sample"]
    too_old = scrape(text(queued=3), -400)
    assert [f.code for f in looked(text(queued=3), too_old).findings] == ["state.one-sample"]


def test_the_closest_scrape_decides_what_moves_and_a_further_one_what_hangs() -> None:
    close, far = scrape(text(queued=3), -5), scrape(text(queued=3), -40)
    assert looked(text(queued=3, tokens=8830200), far, close).moved[0].over_s == 5
    hung = looked(text(queued=3), far, close)
    assert (hung.word, {c.time - b.NOW for c in hung.citations}) == ("hung", {-40, 0})
    assert looked(text(queued=3), close).word == "not_proven"


def test_a_scrape_from_before_a_restart_is_passed_over_for_a_younger_one() -> None:
    old, young = scrape(text(queued=3, started=1.0), -40), scrape(text(queued=3), -10)
    assert looked(text(queued=3, tokens=8830200), old, young).word == "saturated"
    assert looked(text(queued=3), old).word == "not_proven"


def test_idle_takes_the_routers_scrapes_of_both_moments() -> None:
    earlier = scrape(text(), -5)
    both = [scrape(router_text(0), at, ROUTER) for at in (-6, 1)]
    assert looked(text(), earlier, router=both).word == "idle"
    assert looked(text(), earlier, router=both[:1]).unknown == ("router_in_flight",)
    assert looked(text(), earlier).unknown == ("router_in_flight",)
    busy = [scrape(router_text(2), at, ROUTER) for at in (-6, 1)]
    assert looked(text(), earlier, router=busy).word == "not_proven"


def test_an_engine_that_needs_another_is_not_its_router() -> None:
    now = engine_text(role="prefill", pd=PD_EMPTY["prefill"])
    recorded = Recorded({
        PREFILL: [scrape(now, -5, PREFILL)],
        DECODE: [scrape(text(running=9), at, DECODE) for at in (-5, 0)],
        ROUTER: [scrape(router_text(0), at, ROUTER) for at in (-5, 0)],
    })  # fmt: skip
    unit = b.unit(PREFILL, http=(b.answer(200, now, id="metrics"),))
    assert States(FLEET, recorded).of({PREFILL: unit})[PREFILL].word == "idle"


def test_what_is_no_engine_or_did_not_answer_has_no_state() -> None:
    def of(unit: UnitFacts) -> dict[str, State]:
        return States(FLEET, Recorded({})).of({ROUTER: unit})

    assert of(b.unit(ROUTER, http=(b.answer(200, router_text(3), id="metrics"),))) == {}
    assert of(b.unit(ROUTER, http=(b.answer(503, "", id="metrics"),))) == {}
    assert of(b.unit(ROUTER)) == {}


@pytest.mark.parametrize(
    ("again", "took_s", "paused", "words"),
    [
        (scrape(text(queued=3, tokens=8830200), 21), 20.0, 0.0, ("saturated",)),
        (scrape(text(queued=3, tokens=8830200), 3), 0.5, 1.5, ("saturated",)),
        (scrape(text(queued=3), 21), 20.0, 0.0, ("busy", "hung", "saturated")),
        (Finding(code="metrics.host-away", effect="warn"), 20.0, 0.0, ("busy", "hung", "saturated")),
    ],
)
def test_an_engine_whose_health_fails_is_asked_once_more_where_nothing_was_recorded(
    again: Scrape | Finding, took_s: float, paused: float, words: tuple[str, ...]
) -> None:
    slept: list[float] = []
    recorded = Recorded({}, {DECODE: again})
    health = b.answer(503, id="health", took_s=took_s)
    unit = b.unit(DECODE, http=(health, b.answer(200, text(queued=3), id="metrics")))
    state = States(FLEET, recorded, slept.append).of({DECODE: unit})[DECODE]
    assert (state.possible, slept, recorded.asked) == (words, [paused], [(DECODE,)])


def test_an_engine_that_is_well_or_known_to_work_is_not_asked_again() -> None:
    earlier = Recorded({DECODE: [scrape(text(queued=3, tokens=8830000), -5)]})
    metrics = b.answer(200, text(queued=3), id="metrics")
    for health, recorded in ((200, Recorded({})), (503, earlier)):
        unit = b.unit(DECODE, http=(b.answer(health, id="health"), metrics))
        States(FLEET, recorded).of({DECODE: unit})
        assert recorded.asked == []
