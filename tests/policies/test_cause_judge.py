"""Claims: what verifies, what only agrees, what refutes, what is not known; and that nothing else becomes a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from pydantic import ValidationError

from policies.causes.cause import Cause, Consistent, established
from policies.causes.claim import Claim, catalogue, catalogued, free, metrics_needed, named_in
from policies.causes.judge import judge
from policies.causes.verdict import Verdict
from policies.errors import CauseNotVerified
from policies.finding import Finding
from policies.fleet import CauseEntry
from tests.policies.builders import NOW, fleet
from tests.policies.cause_windows import Values, state, window

QUEUED = CauseEntry(
    name="queued-behind-load",
    about="the request queued behind live traffic",
    needs="queue_reqs > 0",
    refuted_by="queue_reqs == 0",
)
COLD = CauseEntry(
    name="cold-start",
    about="cold start after a restart",
    needs="uptime_s < 600 and ttft_s falling",
    refuted_by="uptime_s > 3600 or ttft_s not falling",
)
METRICS = {
    name: {"name": name, "on": "decode", "query": f"sum({name})", "unit": ""}
    for name in ("queue_reqs", "uptime_s", "ttft_s")
}
FLEET = fleet(metrics=METRICS, causes={c.name: c for c in (QUEUED, COLD)})
CATALOGUE = catalogue(FLEET)
BUSY: Mapping[str, Values] = {"queue_reqs": [11, 9], "uptime_s": [78000, 78060], "ttft_s": [0.2, 0.9, 17.9]}
COLD_NOW: Mapping[str, Values] = {"queue_reqs": [0, 0], "uptime_s": [30, 90], "ttft_s": [29.0, 9.0, 3.6]}
CALM: Mapping[str, Values] = {"queue_reqs": [0, 0], "uptime_s": [70000, 70060], "ttft_s": [0.2, 0.2, 0.2]}


def claim(entry: CauseEntry = QUEUED) -> Claim:
    found = catalogued(entry)
    assert isinstance(found, Claim)
    return found


def judged(
    of: CauseEntry | Claim,
    now: Mapping[str, Values],
    before: Mapping[str, Values] | None = None,
    rivals: Sequence[Claim] = CATALOGUE,
) -> Verdict:
    baseline = None if before is None else window(before, at=-3600)
    return judge(claim(of) if isinstance(of, CauseEntry) else of, window(now), baseline, rivals, NOW)


def test_a_cause_that_came_with_the_effect_is_verified_and_cites_both_times() -> None:
    found = judged(QUEUED, BUSY, CALM)
    assert (found.word, found.reason.code, found.name) == ("verified", "claim.holds", "queued-behind-load")
    assert [(c.name, c.value, c.time - NOW) for c in found.citations] == [
        ("queue_reqs", 11, -60),
        ("queue_reqs", 9, 0),
    ]
    assert {(c.name, c.value, c.time - NOW) for c in found.baseline} == {
        ("queue_reqs", 0, -3660),
        ("queue_reqs", 0, -3600),
    }
    assert [(r.name, r.word) for r in found.rivals] == [("cold-start", "refuted")]
    assert Cause(found).verdict == found


def test_a_cold_start_of_a_server_that_is_up_for_hours_is_refuted_with_its_uptime_and_the_rival_that_holds() -> None:
    found = judged(COLD, BUSY, CALM)
    assert (found.word, found.reason.code) == ("refuted", "claim.spoken-against")
    assert ("uptime_s", 78060) in [(c.name, c.value) for c in found.citations]
    assert [(r.name, r.word, [c.value for c in r.citations]) for r in found.rivals] == [
        ("queued-behind-load", "holds", [11, 9])
    ]


def test_a_real_cold_start_is_verified() -> None:
    assert judged(COLD, COLD_NOW, CALM).word == "verified"


@pytest.mark.parametrize(
    ("entry", "now", "before", "word", "code"),
    [
        (QUEUED, BUSY, None, "consistent", "claim.no-baseline"),
        (QUEUED, BUSY, {**CALM, "queue_reqs": [4, 4]}, "consistent", "claim.held-before"),
        (QUEUED, BUSY, {**CALM, "queue_reqs": []}, "consistent", "claim.baseline-unknown"),
        (QUEUED, BUSY, {**CALM, "queue_reqs": [0, 4]}, "consistent", "claim.baseline-unknown"),
        (QUEUED, {**COLD_NOW, "queue_reqs": [3]}, CALM, "consistent", "claim.rivals-hold"),
        (QUEUED, CALM, CALM, "refuted", "claim.spoken-against"),
        (QUEUED, {**BUSY, "queue_reqs": []}, CALM, "unverified", "claim.not-known"),
        (QUEUED, {**BUSY, "queue_reqs": [0, 9]}, CALM, "unverified", "claim.not-known"),
        (COLD, {**COLD_NOW, "ttft_s": [29.0, 3.6]}, CALM, "unverified", "claim.not-known"),
        (COLD, {**COLD_NOW, "uptime_s": []}, CALM, "unverified", "claim.not-known"),
        (COLD, {**COLD_NOW, "uptime_s": [], "ttft_s": [1, 1, 1]}, CALM, "refuted", "claim.spoken-against"),
        (COLD, {**COLD_NOW, "uptime_s": [700, 760]}, CALM, "refuted", "claim.does-not-hold"),
    ],
)
def test_anything_that_is_missing_keeps_a_claim_from_being_a_cause(
    entry: CauseEntry, now: Mapping[str, Values], before: Mapping[str, Values] | None, word: str, code: str
) -> None:
    found = judged(entry, now, before)
    assert (found.word, found.reason.code) == (word, code)
    with pytest.raises(CauseNotVerified):
        Cause(found)
    if word == "consistent":
        assert established(found) == Consistent(found)
    else:
        assert established(found) is None
        with pytest.raises(CauseNotVerified):
            Consistent(found)


def test_a_refutation_that_is_not_known_keeps_it_at_consistent() -> None:
    entry = QUEUED.model_copy(update={"refuted_by": "running_reqs == 0"})
    found = judge(claim(entry), window({**BUSY, "running_reqs": []}), window(CALM, at=-3600), (), NOW)
    assert (found.word, found.reason.code) == ("consistent", "claim.refutation-unknown")
    assert [f.code for f in found.unknown] == ["metrics.missing"]


def test_a_rival_whose_readings_do_not_say_is_named() -> None:
    found = judged(QUEUED, {**BUSY, "uptime_s": [], "ttft_s": [1.0]}, CALM)
    assert found.word == "verified"
    assert [(r.name, r.word, [f.code for f in r.why]) for r in found.rivals] == [
        ("cold-start", "unknown", ["metrics.missing", "claim.few-readings"])
    ]


def test_the_baseline_ends_before_the_effect_begins_and_the_effect_is_over() -> None:
    effect = window(BUSY)
    overlapping = judge(claim(), effect, window(CALM, at=-60), CATALOGUE, NOW)
    assert (overlapping.word, overlapping.reason.code) == ("consistent", "claim.baseline-not-before")
    later = judge(claim(), effect, window(CALM, at=600), CATALOGUE, NOW + 600)
    assert (later.word, later.reason.code) == ("consistent", "claim.baseline-not-before")
    assert judge(claim(), effect, window(CALM, at=-3600), CATALOGUE, NOW - 1).reason.code == "claim.not-over"


def test_nothing_cited_is_unverified() -> None:
    nothing = free((), FLEET)
    assert isinstance(nothing, Claim)
    found = judged(nothing, BUSY, CALM)
    assert (found.word, found.reason.code, found.citations) == ("unverified", "claim.nothing-cited", ())


def test_what_a_person_cites_is_judged_the_same_way_and_has_every_catalogued_cause_as_a_rival() -> None:
    cited = free(["uptime_s < 600", "ttft_s > 1"], FLEET)
    assert isinstance(cited, Claim)
    found = judged(cited, {**COLD_NOW, "queue_reqs": [0]}, CALM)
    assert (found.word, found.reason.values["rivals"]) == ("consistent", "cold-start")
    assert (found.name, found.needs) == ("", "uptime_s < 600 and ttft_s > 1")
    assert judged(cited, COLD_NOW, CALM, rivals=()).word == "verified"
    assert judged(cited, BUSY, CALM).word == "refuted"


@pytest.mark.parametrize(
    ("text", "code", "values"),
    [
        ("queue_req > 0", "claim.no-such-metric", {"metric": "queue_req"}),
        ("queue_reqs >> 0", "claim.malformed", {"at": 12}),
        ("it was cold", "claim.malformed", {"at": 1}),
    ],
)
def test_what_cannot_be_judged_is_refused_with_what_to_write(text: str, code: str, values: dict[str, object]) -> None:
    found = free([text], FLEET)
    assert isinstance(found, Finding)
    assert found.code == code
    assert values.items() <= found.values.items()
    assert found.values["hint"]


def test_a_state_is_judged_like_any_reading() -> None:
    hung = free(["state == hung"], None)
    assert isinstance(hung, Claim)
    before = replace(window({}, at=-3600), state=state("busy"))
    assert judge(hung, window({}, state=state("hung")), before, (), NOW).word == "verified"
    assert judge(hung, window({}, state=state("hung")), None, (), NOW).word == "consistent"
    assert judge(hung, window({}, state=state("busy")), before, (), NOW).word == "refuted"
    open_ = judge(hung, window({}, state=state("busy", "hung")), before, (), NOW)
    assert (open_.word, [f.code for f in open_.unknown]) == ("unverified", ["state.unread"])
    assert judge(hung, window({}), before, (), NOW).word == "unverified"


def test_a_verdict_without_readings_cannot_be_made_or_read_from_a_file() -> None:
    found = judged(QUEUED, BUSY, CALM)
    assert Verdict.model_validate_json(found.model_dump_json()) == found
    rival = found.rivals[0].model_copy(update={"word": "holds"})
    for hollow in ({"citations": ()}, {"baseline": ()}, {"rivals": (rival,)}):
        with pytest.raises(ValidationError):
            Verdict.model_validate({**found.model_dump(), **hollow})


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("cold start", ("cold-start",)),
        ("Cold Start after a co-restart (handshake, graph warm-up)", ("cold-start",)),
        ("cold-start", ("cold-start",)),
        ("The request queued behind live traffic", ("queued-behind-load",)),
        ("cold starting", ()),
        ("a proxy of mine", ()),
    ],
)
def test_a_catalogued_cause_is_found_in_a_persons_words(words: str, names: tuple[str, ...]) -> None:
    assert named_in(words, FLEET.causes.values()) == names


def test_everything_that_a_verdict_needs_is_asked_for_once() -> None:
    assert [m.text for m in metrics_needed(claim(), CATALOGUE)] == ["queue_reqs", "uptime_s", "ttft_s"]
