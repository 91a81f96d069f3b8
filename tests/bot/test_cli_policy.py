"""`clawback policy`: cases of a file, and changes of the ledger under another fleet file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bot.cli import main
from policies import events as e
from policies.finding import Finding
from policies.intents import RevertKnob
from tests.bot import stories
from tests.conftest import Store
from tests.shared import ROOT
from workers.ledger import Ledger

EXAMPLE = ROOT / "policy.example.yaml"
CASE = """\
cases:
  - name: a measured value
    change: /knob set TARGET_CTAS=512
    actor: {id: U01, roles: [engineers]}
    live: {decode@gpu1: 256}
    evidence: [{value: 512, class: no_worse, repeats: 3, correctness: {compared: 9}}]
    now: 2026-12-01T10:00:00Z
    expect: {decision: needs_approval}
"""


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["policy", *words], env={"CLAWBACK_FLEET": "", **environment})


def on(tmp_path: Path, text: str) -> Result:
    file = tmp_path / "cases.yaml"
    file.write_text(text, encoding="utf-8")
    return run("test", str(file), "--fleet", str(ROOT / "fleet.example.yaml"))


def test_every_case_of_the_example_is_as_expected() -> None:
    answer = run("test", str(EXAMPLE), "--json")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["ok"]) == (0, True)
    assert len(document["cases"]) == EXAMPLE.read_text().count("\n  - name:") >= 10
    assert document["cases"][1] == {
        "name": "a new value without a measurement is refused",
        "ok": True,
        "expected": {"decision": "refused", "approvals": None, "by": None, "codes": ["evidence.none"]},
        "got": {
            "decision": "refused",
            "approvals": 1,
            "by": "approvers",
            "codes": ["rule.may-ask", "evidence.none", "rule.needs-approval"],
        },
    }


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("decision: needs_approval", "decision: allowed", "expected allowed, got needs_approval (1 of approvers)"),
        ("needs_approval}", "needs_approval, approvals: 2}", "expected needs_approval (2 of any role), got"),
        ("needs_approval}", "needs_approval, by: engineers}", "(any number of engineers), got needs_approval (1 of"),
        ("needs_approval}", "needs_approval, codes: [freeze.in-force]}", "with freeze.in-force, got"),
        ("class: no_worse", "class: weak", "expected needs_approval (any number of any role), got refused"),
        ("2026-12-01T10", "2026-12-05T10", "freeze.in-force: "),
        ("roles: [engineers]", "roles: []", "rule.may-not-ask: "),
        ("TARGET_CTAS=512", "NO_SUCH=512", "plan.no-such-knob: "),
        ("repeats: 3", "repeats: 2", "evidence.too-few-repeats: "),
    ],
)
def test_a_case_that_is_not_as_expected_is_told_with_its_line_and_reasons(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in CASE
    good, answer = on(tmp_path, CASE), on(tmp_path, CASE.replace(old, new).replace("live: {decode@gpu1: 256}", ""))
    assert good.exit_code == 0
    assert answer.exit_code == 1
    assert f"NOT  a measured value ({tmp_path / 'cases.yaml'}:2): " in answer.stdout
    assert told in answer.stdout
    assert answer.stdout.endswith("1 cases, 1 not as expected\n")


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("decision: needs_approval", "decision: perhaps", 8, "'perhaps'"),
        ("expect: {decision: needs_approval}", "expects: {}", 8, "unknown key 'expects'"),
        ("    expect: {decision: needs_approval}\n", "", 2, "the key 'expect' is missing"),
        ("/knob set TARGET_CTAS=512", "/knob bogus X", 3, '"bogus"'),
        ("/knob set TARGET_CTAS=512", "/knob list", 3, "changes nothing"),
        ("roles: [engineers]", "roles: [enginers]", 4, "did you mean 'engineers'"),
        ("decode@gpu1: 256", "decode@gpu9: 256", 5, "'decode@gpu9' is not a place of this knob"),
        ("class: no_worse", "class: great", 6, "'great'"),
        ("repeats: 3", "repeats: many", 6, "repeats"),
        ("2026-12-01T10:00:00Z", "tomorrow", 7, "'tomorrow' is no moment"),
        ("cases:", "cases: []\nmore:", 1, "no cases"),
        (CASE, "cases: [", 1, "expected yaml"),
        (CASE, "", 1, "the file is empty"),
    ],
)
def test_an_error_of_the_file_is_told_with_its_line(tmp_path: Path, old: str, new: str, line: int, told: str) -> None:
    answer = on(tmp_path, CASE.replace(old, new))
    assert answer.exit_code == 2
    assert f"{tmp_path / 'cases.yaml'}:{line}: " in answer.stderr
    assert told in answer.stderr


def test_a_file_that_is_not_there_and_a_fleet_that_is_not_named_are_unreadable(tmp_path: Path) -> None:
    assert run("test", str(tmp_path / "none.yaml")).exit_code == 2
    (tmp_path / "cases.json").write_text(json.dumps({"cases": [{"name": "x", "change": "/knob unset TARGET_CTAS"}]}))
    answer = run("test", str(tmp_path / "cases.json"), "--json")
    assert answer.exit_code == 2
    assert json.loads(answer.stdout)["error"]["code"] == "settings"


# replay


def record(store: Store, *changes: Sequence[e.Event]) -> Ledger:
    at = [stories.T0]
    ledger = Ledger(store.redis, lambda: at[0])
    for number, events in enumerate(changes, 1):
        for version, event in enumerate(events):
            subject = event.record.id if isinstance(event, e.EvidenceRecorded) else f"C-{number}"
            ledger.append(subject, event, expect_version=0 if subject.startswith("ab") else version)
            at[0] += 10
    return ledger


def taken_away() -> list[e.Event]:
    """A revert of 512 that succeeded: what a restore gives back."""
    asked = stories.asked()
    intent = RevertKnob(knob="TARGET_CTAS", because="multi-round hang")
    end = e.Succeeded(
        knob="TARGET_CTAS",
        order="co-restart",
        word="revert",
        was={"decode@gpu1": "512"},
        now={"decode@gpu1": None},
        took_s=160.0,
    )
    return [asked.model_copy(update={"intent": intent}), *stories.succeeded()[1:-1], end]


def fleet_file(tmp_path: Path, old: str = "", new: str = "") -> str:
    text = (ROOT / "fleet.example.yaml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "new.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return str(path)


def replayed(store: Store, fleet: str, *words: str) -> tuple[int, dict[str, Any]]:
    answer = run("replay", "--fleet", fleet, "--json", *words, REDIS_URL=store.url)
    return answer.exit_code, json.loads(answer.stdout)


RULE = "{match: {kind: knob}, ask: engineers, approvals: 1, by: approvers, expires: 30m}"
MEASURED = [e.EvidenceRecorded(record=stories.record())]


def test_a_policy_that_says_the_same_decides_all_alike(store: Store, tmp_path: Path) -> None:
    record(store, MEASURED, taken_away(), stories.succeeded(), stories.succeeded()[:2])
    code, document = replayed(store, fleet_file(tmp_path))
    assert code == 0
    assert [(one["name"], one["ok"]) for one in document["cases"]] == [("C-2", True), ("C-3", True), ("C-4", True)]
    assert document["skipped"] == []


@pytest.mark.parametrize(
    ("old", "new", "got", "why"),
    [
        (RULE, RULE.replace("approvals: 1", "approvals: 2"), "needs_approval", "needs 2 of"),
        (RULE, RULE.replace("by: approvers", "by: engineers"), "needs_approval", "engineers"),
        (RULE, RULE.replace("ask: engineers", "ask: approvers"), "refused", "approvers"),
        ("at_least: observed}", "at_least: weak}", "refused", "expected at least weak"),
        ("at_least: observed", "at_least: observed, max_age: 1d", "refused", "ab-17"),
        ('cron: "0 18 * * FRI", for: 62h', 'cron: "0 0 * * *", for: 24h', "refused", "weekend"),
        ("range: [1, 4096]", "range: [1, 256]", "refused", "512"),
    ],
)
def test_a_change_that_would_have_been_decided_otherwise_is_told_with_the_reason(
    store: Store, tmp_path: Path, old: str, new: str, got: str, why: str
) -> None:
    record(store, MEASURED, taken_away(), stories.succeeded()[:2])
    fleet = fleet_file(tmp_path, old, new)
    code, document = replayed(store, fleet)
    one = document["cases"][-1]
    assert (code, one["name"], one["ok"], one["got"]["decision"]) == (1, "C-3", False, got)
    assert why in " ".join(one["why"])
    said = run("replay", "--fleet", fleet, "--change", "C-3", REDIS_URL=store.url).stdout
    assert said.startswith("C-3: was needs_approval (1 of approvers), would be ")
    assert said.endswith("1 changes judged again, 1 would have been decided otherwise\n")


def test_evidence_counts_only_when_it_was_recorded_before(store: Store, tmp_path: Path) -> None:
    record(store, taken_away(), stories.succeeded()[:2], MEASURED)
    code, document = replayed(store, fleet_file(tmp_path))
    assert (code, [(one["name"], one["ok"]) for one in document["cases"]]) == (1, [("C-1", True), ("C-2", False)])
    assert "evidence.none" in document["cases"][1]["got"]["codes"]


def test_what_policy_refused_is_judged_again_and_what_hosts_refused_is_not(store: Store, tmp_path: Path) -> None:
    values: dict[str, str | int | float | None] = {"knob": "TARGET_CTAS", "value": "512", "line": 1, "metric": "x"}
    none = Finding(code="evidence.none", effect="refuse", values={**values, "at_least": "weak"})
    away = Finding(code="host.unreachable", effect="refuse", values={"host": "gpu1", "error": "no route"})
    record(
        store,
        MEASURED,
        taken_away(),
        [stories.asked(), e.Refused(findings=(none,))],
        [stories.asked(), e.Refused(findings=(away,))],
        [stories.asked(), e.NothingToDo(findings=())],
        [stories.asked()],
    )
    code, document = replayed(store, fleet_file(tmp_path))
    assert code == 1
    one = document["cases"][-1]
    assert (one["name"], one["expected"]["decision"], one["got"]["decision"]) == ("C-3", "refused", "needs_approval")
    assert one["live_assumed"] is True
    assert [skipped["name"] for skipped in document["skipped"]] == ["C-4", "C-5"]
    assert replayed(store, fleet_file(tmp_path), "--change", "C-4")[0] == 0


def test_a_fleet_file_with_errors_is_told_with_its_line(store: Store, tmp_path: Path) -> None:
    answer = run(
        "replay", "--fleet", fleet_file(tmp_path, "at_least: observed", "at_least: bogus"), REDIS_URL=store.url
    )
    assert answer.exit_code == 2
    assert "new.yaml:" in answer.stderr
