"""Where a value is written, and whether that place wins: incidents and corner cases as data."""

from __future__ import annotations

from typing import Any

import pytest

from policies import dropin
from policies.facts import FileText, UnitFacts
from policies.finding import Finding
from policies.planning.placement import Placement, effective_now, place
from tests.policies import builders as b
from tests.policies.systemd_tree import file_text, no_file

CASES = b.golden("plans/placement.json")
UNITS = "/etc/systemd/system/"


def placed(unit: UnitFacts, value: str | None) -> Placement:
    """The placement, where there is one."""
    found = place(unit, b.ENV, value)
    assert isinstance(found, Placement), found
    return found


@pytest.mark.parametrize("case", CASES, ids=b.ids(CASES))
def test_a_value_is_put_where_it_wins_or_is_refused_with_the_line_that_wins(case: dict[str, Any]) -> None:
    unit = b.unit(**case["unit"])
    found = place(unit, b.ENV, case["value"])
    if "code" in case:
        assert isinstance(found, Finding)
        assert (found.code, found.effect) == (case["code"], "refuse")
        assert {key: found.values[key] for key in case["values"]} == case["values"]
        return
    assert isinstance(found, Placement)
    lines = found.after.splitlines()[2:] if found.after else None
    assert lines == case["lines"]
    target = found.target
    said = [[value, by.removeprefix(UNITS) if by else None] for value, by in (
        (target.now, target.now_decided_by), (target.then, target.then_decided_by),
    )]  # fmt: skip
    assert said == [case["now"], case["then"]]
    assert target.then == case["value"]
    assert (target.instance, target.variable) == ("decode@gpu1", b.ENV)
    assert [f.code for f in found.findings] == case.get("warnings", [])


@pytest.mark.parametrize("case", [c for c in CASES if "lines" in c], ids=lambda c: c["about"])
def test_what_is_written_gives_the_promised_value_when_it_is_read_again(case: dict[str, Any]) -> None:
    unit = b.unit(**case["unit"])
    found = placed(unit, case["value"])
    after = {d.path.rsplit("/", 1)[1]: d.text or "" for d in unit.dropins}
    after.pop(dropin.NAME, None)
    if found.after is not None:
        after[dropin.NAME] = found.after
    written = b.unit(**{**case["unit"], "dropins": after})
    assert effective_now(written, b.ENV).value == case["value"]
    again = placed(written, case["value"])
    assert again.before == again.after == found.after


def with_ours(error: str) -> UnitFacts:
    """A unit whose drop-in of ours is there and cannot be read."""
    path = b.unit().dropin_path
    ours = FileText(path=path, exists=True, text=None, sha256=None, mode=0o600, owner="0:0", error=error)
    return b.unit().model_copy(update={"dropins": (ours,)})


@pytest.mark.parametrize("error", ["forbidden", "not-utf-8", "too-large", "not-a-file"])
def test_a_drop_in_of_ours_that_cannot_be_read_is_not_written_over(error: str) -> None:
    found = place(with_ours(error), b.ENV, "512")
    assert isinstance(found, Finding)
    assert (found.code, found.values["why"]) == ("plan.dropin-unreadable", error)


@pytest.mark.parametrize("value", ["512", None])
def test_a_file_that_could_say_otherwise_and_cannot_be_read_makes_the_place_uncertain(value: str | None) -> None:
    hidden = file_text("/etc/sgl/secret.env", "").model_copy(update={"text": None, "error": "forbidden"})
    unit = b.unit(fragment="[Service]\nEnvironmentFile=/etc/sgl/secret.env\n").model_copy(
        update={"env_files": (hidden,)}
    )
    found = place(unit, b.ENV, value)
    assert isinstance(found, Finding)
    assert (found.code, found.values["why"]) == ("plan.place-uncertain", "envfile.unreadable")


def test_an_optional_environment_file_that_appears_later_is_told_before() -> None:
    fragment = "[Service]\nEnvironmentFile=-/etc/sgl/later.env\n"
    found = placed(b.unit(fragment=fragment).model_copy(update={"env_files": (no_file("/etc/sgl/later.env"),)}), "512")
    assert [(f.code, f.values["file"]) for f in found.findings] == [("envfile.optional-missing", "/etc/sgl/later.env")]
    then = b.unit(fragment=fragment, env_files={"/etc/sgl/later.env": f"{b.ENV}=1\n"})
    assert isinstance(place(then, b.ENV, "512"), Finding)


@pytest.mark.parametrize(
    "value", ['a "b"', "50%", "%i", "C:\\x", "a'b", " lead and trail ", "ü☃", "$HOME", "a#b", "", "\u2028"]
)
def test_a_text_value_reaches_the_process_as_it_was_typed(value: str) -> None:
    assert placed(b.unit(), value).target.then == value


def test_the_value_of_another_instance_is_nothing_to_this_one() -> None:
    template = "[Service]\nEnvironmentFile=-/etc/sgl/decode-%i.env\n"
    unit = b.unit(fragment=template, env_files={"/etc/sgl/decode-1.env": f"{b.ENV}=64\n"}).model_copy(
        update={"unit": "sgl-decode@0.service"}
    )
    assert placed(unit, "512").target.then == "512"
    mine = unit.model_copy(update={"unit": "sgl-decode@1.service"})
    found = place(mine, b.ENV, "512")
    assert isinstance(found, Finding)
    assert found.values["decided_by"] == "/etc/sgl/decode-1.env:1"
