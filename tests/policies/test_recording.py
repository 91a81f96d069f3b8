"""Records from files: judged whatever the verdict, with what the files tell of where they were measured."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.context import ContextError, LoadRange
from policies.events import Entry, chain_problem, indexes, stored_digest
from policies.events.records import EvidenceRecorded
from policies.evidence import Draft, Record, remarks, worth
from policies.intents import Actor
from policies.recording import Given, RecordingError, Terms, already, from_results, from_summary, may_record
from tests.policies import builders as b
from tests.policies.test_bench_rules import SGLANG
from tests.shared import ROOT

A = (1000.0, 1010.0, 995.0)
B = (1129.0, 1140.0, 1121.0)
INFO = {
    "version": "0.5.23+g4f2a91c77", "model_path": "m", "tp_size": 8, "ep_size": 1, "quantization": "fp8",
    "api_key": "sk-geheim-1234567890", "host": "10.0.0.7", "max_running_requests": 256,
    "internal_states": [{"env_vars": {b.ENV: "512", "SGLANG_LOG_LEVEL": "info"}}],
}  # fmt: skip
OLD = ROOT / "tests" / "golden" / "ledger" / "evidence-recorded-as-typed.json"


def given(name: str, values: tuple[float, ...], concurrency: int = 64, **more: Any) -> Given:
    lines = []
    for value in values:
        document = SGLANG | {"output_throughput": value, "max_concurrency": concurrency, "completed": 1000}
        document |= {"total_input_tokens": 1024000, "total_output_tokens": 128000, "duration": 128000 / value}
        lines.append(json.dumps(document | {"request_throughput": value / 128} | more))
    return Given(name, "\n".join(lines).encode())


def terms(**changes: Any) -> Terms:
    told: dict[str, Any] = {"knob": "TARGET_CTAS", "value": "512", "variable": b.ENV, "interleaved": True}
    return Terms(**{**told, **changes})


def draft(**changes: Any) -> Draft:
    return from_results([given("a.jsonl", A)], [given("b.jsonl", B)], terms(**changes))


def test_a_record_carries_its_judgement_its_files_and_its_margins() -> None:
    found = draft(note="quiet night")
    assert (found.klass, found.value, found.baseline, found.metric) == ("improves", "512", None, "output_throughput")
    assert found.judgement is not None
    assert found.judgement.margins.throughput == 0.02
    assert [(f.arm, f.file, f.sha256) for f in found.files] == [
        ("A", "a.jsonl", given("a.jsonl", A).sha256),
        ("B", "b.jsonl", given("b.jsonl", B).sha256),
    ]
    assert (found.repeats, found.note, found.source) == (3, "quiet night", "a.jsonl, b.jsonl")
    record = found.recorded("ab-1", "U0ANA", b.NOW)
    assert (record.id, record.by, record.at, record.judgement) == ("ab-1", "U0ANA", b.NOW, found.judgement)
    assert Record.model_validate_json(record.model_dump_json()) == record


def test_bad_news_is_a_record_too() -> None:
    worse = from_results([given("a", B)], [given("b", A)], terms())
    assert worse.klass == "regresses"
    broken = from_results([given("a", A)], [given("b", B, completed=900)], terms())
    assert broken.klass == "invalid"
    assert broken.judgement is not None
    assert broken.judgement.problems[0].effect == "refuse"


def test_what_the_files_tell_of_the_server_is_the_context_and_no_secret_is() -> None:
    other = frozenset({"SGLANG_LOG_LEVEL"})
    info = {**INFO, "internal_states": [{"env_vars": {"SGLANG_LOG_LEVEL": "info"}}]}
    a, with_knob = given("a", A, server_info=info), given("b", B, server_info=INFO)
    found = from_results([a], [with_knob], terms(knobs=other, context={"gpu": "H200", "gpus": "8"}))
    context = found.context
    assert (context.version, context.commit, context.model) == ("0.5.23", "4f2a91c77", "m")
    assert (context.accelerator, context.accelerators, context.node_pool) == ("H200", 8, None)
    assert (context.quantization, context.kv_dtype) == ("fp8", "not set")
    assert context.topology == {"tp": "8", "ep": "1"}
    assert context.flags == {"max_running_requests": "256"}
    assert context.knobs == {"SGLANG_LOG_LEVEL": "info"}
    assert context.load == LoadRange(low=64, high=64)
    stored = found.model_dump_json()
    assert "geheim" not in stored
    assert "10.0.0.7" not in stored


def test_a_server_that_had_another_value_than_is_said_is_refused() -> None:
    with pytest.raises(RecordingError, match=f"{b.ENV}=512`, you say `256` for B"):
        from_results([given("a", A)], [given("b", B, server_info=INFO)], terms(value="256"))


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"version": "0.5.21"}, "the files say `0.5.23`, you say `0.5.21`"),
        ({"colour": "green"}, "no field that is compared"),
        ({"gpu": "H200", "accelerator": "B200"}, "told twice"),
        ({"gpus": "many"}, "expected how many"),
        ({"gpu": "H\u202e200"}, "printable"),
    ],
)
def test_a_context_that_cannot_be_is_refused(context: dict[str, str], said: str) -> None:
    files = [given("a", A, server_info={**INFO, "internal_states": []})]
    with pytest.raises(ContextError, match=said):
        from_results(files, [given("b", B, server_info=INFO)], terms(context=context))


def test_loads_above_todays_were_not_judged_and_are_no_licence() -> None:
    a = [given("a64", A), given("a128", A, 128)]
    more = [given("b64", B), given("b128", tuple(v * 0.9 for v in A), 128)]
    assert from_results(a, more, terms()).klass == "trade_off"
    found = from_results(a, more, terms(today=64))
    assert (found.klass, found.context.load) == ("improves", LoadRange(low=64, high=64))


def test_correctness_and_scrapes_are_files_of_the_record() -> None:
    found = draft(correctness=Given("c.yaml", b"compared: 200\ndiffering: 0\n"))
    assert found.correctness is not None
    assert (found.correctness.level, [f.arm for f in found.files]) == (1, ["A", "B", "correctness"])
    assert draft(correctness="0/20").correctness is not None


def test_the_same_files_for_the_same_value_are_one_record() -> None:
    record = draft().recorded("ab-1", "U0ANA", b.NOW)
    assert already(draft(note="again"), [record]) == record
    assert already(draft(value="256"), [record]) is None
    assert already(draft(metric="median_ttft_ms"), [record]) is None
    swapped = from_results([given("b.jsonl", B)], [given("a.jsonl", A)], terms())
    assert already(swapped, [record]) is None


def test_files_without_a_run_make_no_record() -> None:
    for bad, said in ((b"{}", "no known result format"), (b"# a heading\n\nwords\n", "text for people")):
        with pytest.raises(RecordingError, match=said):
            from_results([Given("a", bad)], [given("b", B)], terms())
    with pytest.raises(RecordingError, match="no arm `none`"):
        from_results([Given("a", given("a", A).data, "none")], [given("b", B)], terms())
    with pytest.raises(RecordingError, match="401 runs at 1 loads, expected at most 400"):
        from_results([given("a", A * 132)], [given("b", B[:2] + B)], terms())


def test_a_record_is_as_old_as_its_oldest_run() -> None:
    dated = from_results(
        [given("a", A, date="20261101-120000")], [given("b", B, date="20261103-120000")], terms()
    ).recorded("ab-1", "U0ANA", b.NOW)
    assert dated.measured_on == "2026-11-01"
    assert b.NOW - dated.measured_at == pytest.approx(30 * 86400 + 36000)
    half = from_results([given("a", A)], [given("b", B, date="20261103-120000")], terms())
    assert half.measured_on is None


SUMMARY = b"value: 512\npoints: {C64: +12.8 %, C96: +5.7 %, C80: +1.2 %}\ncontext: {gpu: H200, gpus: 8, commit: 0012}\n"


def test_a_typed_summary_is_observed_without_an_interval_and_asks_for_repeats() -> None:
    found = from_summary(Given("ab.yaml", SUMMARY), "TARGET_CTAS")
    assert (found.klass, found.judgement, found.repeats) == ("observed", None, 1)
    assert [p.ci for p in found.points] == [None, None, None]
    assert (found.context.accelerator, found.context.accelerators, found.context.commit) == ("H200", 8, "0012")
    assert found.context.load == LoadRange(low=64, high=96)
    (said,) = remarks(found)
    assert (said.code, said.values["point"], said.values["before"], said.values["after"]) == (
        "evidence.not-monotone", "C80", "C64", "C96",
    )  # fmt: skip
    assert worth(found) == (("C64", 1.128, 1, None), ("C96", 1.057, 1, None), ("C80", 1.012, 1, None))


def test_a_latency_that_is_higher_between_two_others_asks_for_repeats() -> None:
    text = b"value: 1\nmetric: median_ttft_ms\nbetter: lower\npoints: {C1: -9.0 %, C2: -1.0 %, C4: -8.0 %}\n"
    assert [f.values["point"] for f in remarks(from_summary(Given("x", text), "K"))] == ["C2"]
    even = text.replace(b"-1.0", b"-8.5")
    assert remarks(from_summary(Given("x", even), "K")) == ()


def test_a_load_with_an_interval_needs_no_remark_about_its_neighbours() -> None:
    sweep = [
        (c, given(f"a{c}", A, c), tuple(a * factor for a in A)) for c, factor in ((8, 1.1), (16, 1.001), (64, 1.1))
    ]
    found = from_results([a for _, a, _ in sweep], [given(f"b{c}", b_runs, c) for c, _, b_runs in sweep], terms())
    assert [p.concurrency for p in found.points] == [8, 16, 64]
    assert found.points[1].ratio < min(found.points[0].ratio, found.points[2].ratio)
    assert remarks(found) == ()


def test_what_runs_show_is_worth_something_with_its_interval() -> None:
    (one,) = worth(draft())
    assert (one.load, one.n) == ("C64", 3)
    assert one.ci is not None
    assert one.ci[0] < one.ratio < one.ci[1]


def test_an_entry_of_before_there_were_judgements_still_reads() -> None:
    text = OLD.read_text(encoding="utf-8").strip()
    entry = Entry.model_validate_json(text)
    assert chain_problem(entry.prev, entry, stored_digest(text)) is None
    assert indexes(entry) == ("evidence:TARGET_CTAS", "evidence")
    assert isinstance(entry.event, EvidenceRecorded)
    record = entry.event.record
    assert (record.id, record.klass, record.value, record.baseline, record.by) == (
        "ab-17", "observed", "512", None, "ana",
    )  # fmt: skip
    assert [(p.load, p.ratio) for p in record.points] == [("C64", 1.128), ("C96", 1.057), ("C80", 1.012)]
    assert (record.files[0].sha256, record.files[0].arm) == ("0" * 64, "typed")
    assert (record.context.accelerator, record.context.version) == ("RTX PRO 6000", "0.5.23")
    assert record.correctness is not None
    assert record.correctness.could_percent == 1.5
    assert record.context.load == LoadRange(low=1, high=96)
    again = entry.sealed().canonical()
    assert Entry.model_validate_json(again).event == entry.event


@pytest.mark.parametrize("context", [{"gpu": ""}, {"gpu": "a", "accelerator": "b"}, {"gpus": "many"}, {"x": "y" * 500}])
def test_no_context_of_an_old_entry_keeps_it_from_being_read(context: dict[str, str]) -> None:
    document = json.loads(OLD.read_text(encoding="utf-8"))
    document["event"]["record"]["summary"]["context"] = context
    found = Entry.model_validate_json(json.dumps(document)).event
    assert isinstance(found, EvidenceRecorded)
    assert found.record.context.other


@pytest.mark.parametrize(
    ("roles", "rules", "may"),
    [
        (("engineers",), (b.RULE,), True),
        (("approvers",), (b.RULE,), True),
        ((), (b.RULE,), False),
        (("others",), (b.RULE,), False),
        (("engineers",), ({**b.RULE, "match": {"kind": "deploy"}},), False),
        (("engineers",), ({**b.RULE, "match": {"knob": "OTHER"}},), False),
        (("engineers",), ({**b.RULE, "match": {"service": "decode"}},), True),
        (("engineers",), (), False),
    ],
)
def test_who_may_ask_for_a_change_or_approve_one_may_record(
    roles: tuple[str, ...], rules: tuple[Any, ...], may: bool
) -> None:
    fleet = b.fleet(rules=rules)
    found = may_record(fleet, fleet.knobs["TARGET_CTAS"], Actor(id="U1", roles=roles))
    assert found.code == ("evidence.may-record" if may else "evidence.may-not-record")
    assert found.effect == ("allow" if may else "refuse")
