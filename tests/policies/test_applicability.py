"""Whether a record holds today: every field of the table, and that what is not known is never valid."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.messages import strict
from policies.applicability import ORDER, Standing, standing
from policies.context import Context
from tests.policies import builders as b

CASES = b.golden("decisions/applicability.json")
TOKEN = re.compile(r"<!date\^[^|]*\|([^>]*)>")


def stands(case: dict[str, Any]) -> Standing:
    record = b.judged(
        case.get("klass", "improves"), at=b.NOW - case.get("age_s", 3600), context=b.measured(**case.get("record", {}))
    )
    now = Context() if case.get("nothing_today") else b.today(**case.get("today", {}))
    return standing(record, now, b.NOW, max_age_s=case.get("max_age_s"), variable=b.ENV)


@pytest.mark.parametrize("case", CASES, ids=b.ids(CASES))
def test_a_record_holds_where_it_was_measured(case: dict[str, Any]) -> None:
    found = stands(case)
    assert found.word == case["word"]
    said = [TOKEN.sub(r"\1", strict(finding)) for finding in found.findings]
    if case.get("parts"):
        whole = " · ".join(said)
        assert "2 more" in whole
        assert all(text not in whole for text in case["without"])
    else:
        for text in case.get("said", ()):
            assert text in said
    assert all(strict(finding) for finding in found.findings)


def test_every_word_has_its_case() -> None:
    assert {case["word"] for case in CASES} == set(ORDER)


def test_the_worst_is_told_first_and_what_is_the_same_last() -> None:
    found = stands({"today": {"accelerator": "H100", "version": "0.5.21", "flags": {}}})
    words = [finding.values["word"] for finding in found.findings]
    assert words == ["invalid", "stale", "weak", "valid"]
    assert [finding.effect for finding in found.findings] == ["refuse", "refuse", "warn", "note"]
    assert [finding.values["word"] for finding in found.reasons] == words[:3]


FIELDS = sorted(set(Context.model_fields) - {"model_names", "reads_why", "other", "knobs"})
MUST = ("accelerator", "accelerators", "model", "version", "commit", "flags", "topology", "load")


@settings(max_examples=150, deadline=None)
@given(st.sets(st.sampled_from(FIELDS)), st.sets(st.sampled_from(FIELDS)))
def test_what_is_not_known_is_never_valid(then: set[str], now: set[str]) -> None:
    empty = Context()
    record = b.judged(context=b.measured(**{name: getattr(empty, name) for name in then}))
    found = standing(record, b.today(**{name: getattr(empty, name) for name in now}), b.NOW)
    assert found.word in {"valid", "weak"}
    assert (found.word == "valid") == (not (then | now) & set(MUST))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([c for c in CASES if "today" in c]), st.sampled_from([c for c in CASES if "today" in c]))
def test_two_things_together_are_no_better_than_each(one: dict[str, Any], other: dict[str, Any]) -> None:
    if set(one["today"]) & set(other["today"]) or "record" in one or "record" in other or "klass" in one | other:
        return
    both = stands({"today": {**one["today"], **other["today"]}})
    worst = max(ORDER.index(one["word"]), ORDER.index(other["word"]))
    if "reads_knob" not in one["today"] | other["today"]:
        assert ORDER.index(both.word) == worst
