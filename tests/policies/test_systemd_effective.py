"""The value with which a unit would start, and the line that decides it: golden cases and the incidents behind them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policies.systemd import root
from policies.systemd.effective import effective
from policies.systemd.settings import read, span_s
from tests.policies.systemd_tree import MemoryTree, file_text

CASES: list[dict[str, Any]] = json.loads(Path("tests/golden/systemd/effective.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["about"] for case in CASES])
def test_the_deciding_line_and_the_losers_are_named(case: dict[str, Any]) -> None:
    tree = MemoryTree(case["files"], case["links"])
    found = root.effective_in(tree, root.load(tree, case["unit"]), "KNOB")
    assert found is not None
    assert found.value == case["value"]
    decided = [found.decided_by.file, found.decided_by.line] if found.decided_by else None
    assert decided == case["decided_by"]
    assert [[o.file, o.line, o.value] for o in found.overridden] == case["overridden"]
    assert [w.code for w in found.warnings] == case["codes"]
    assert found.starts is case["starts"]
    assert found.certain


def test_a_unit_that_does_not_exist_has_no_value() -> None:
    tree = MemoryTree({"/etc/systemd/system/other.service": "[Service]\n"})
    assert root.effective_in(tree, root.load(tree, "engine.service"), "KNOB") is None


def test_a_unit_linked_to_dev_null_is_masked() -> None:
    place = "/etc/systemd/system/engine.service"
    usual = {"/usr/lib/systemd/system/engine.service": "[Service]\nEnvironment=KNOB=1\n"}
    files = root.load(MemoryTree(usual, {place: "/dev/null"}), "engine.service")
    assert files.masked
    assert files.fragment is not None
    assert files.fragment.path == place


def test_an_alias_brings_the_drop_ins_of_both_names() -> None:
    folder = "/etc/systemd/system/"
    tree = MemoryTree(
        {f"{folder}real.service": "[Service]\n", f"{folder}real.service.d/1.conf": "[Service]\nEnvironment=KNOB=1\n"},
        {f"{folder}alias.service": f"{folder}real.service"},
    )
    found = root.effective_in(tree, root.load(tree, "alias.service"), "KNOB")
    assert found is not None
    assert found.value == "1"


@pytest.mark.parametrize("name", ["", "a b", "../x", "x/y", "a" * 300, "x.timer.service/..", "é"])
def test_a_name_that_cannot_be_a_unit_is_refused(name: str) -> None:
    assert root.unit_name(name) is None


def test_the_type_is_added_where_none_is_given() -> None:
    assert root.unit_name("sgl-prefill@0") == "sgl-prefill@0.service"


def test_the_managers_own_environment_is_the_weakest() -> None:
    unit = file_text("/u.service", "[Service]\nExecStart=/bin/true\n")
    alone = effective(unit, (), {}, "u.service", "KNOB", {"KNOB": "mgr"})
    assert (alone.value, alone.decided_by and alone.decided_by.line) == ("mgr", 0)
    dropin = file_text("/u.service.d/1.conf", "[Service]\nEnvironment=KNOB=own\n")
    set_too = effective(unit, (dropin,), {}, "u.service", "KNOB", {"KNOB": "mgr"})
    assert set_too.value == "own"
    assert [o.value for o in set_too.overridden] == ["mgr"]


def test_a_file_that_could_not_be_read_makes_the_value_uncertain() -> None:
    unit = file_text("/u.service", "[Service]\nEnvironment=KNOB=1\nEnvironmentFile=/etc/secret.env\n")
    secret = file_text("/etc/secret.env", "").model_copy(update={"text": None, "error": "forbidden"})
    found = effective(unit, (), {"/etc/secret.env": secret}, "u.service", "KNOB", {})
    assert not found.certain
    assert [w.code for w in found.warnings] == ["envfile.unreadable"]


def test_a_specifier_that_only_the_host_knows_makes_the_value_uncertain() -> None:
    unit = file_text("/u.service", "[Service]\nEnvironment=KNOB=%H\n")
    found = effective(unit, (), {}, "u.service", "KNOB", {})
    assert (found.value, found.certain) == ("%H", False)
    given = effective(unit, (), {}, "u.service", "KNOB", {}, specifiers={"H": "gpu1"})
    assert (given.value, given.certain) == ("gpu1", True)


def test_another_variable_with_an_unknown_specifier_does_no_harm() -> None:
    unit = file_text("/u.service", "[Service]\nEnvironment=OTHER=%H KNOB=1\n")
    found = effective(unit, (), {}, "u.service", "KNOB", {})
    assert (found.value, found.certain) == ("1", True)


def test_start_settings_are_read_with_the_last_one_winning() -> None:
    unit = file_text(
        "/etc/systemd/system/sgl-decode@.service",
        "[Unit]\nDescription=decode %i\n[Service]\nType=notify\nRestart=on-failure\nStartLimitIntervalSec=600\n"
        "StartLimitBurst=3\nExecStart=/opt/sgl/bin/python -m sglang.launch_server\n",
    )
    settings = read(unit, (), "sgl-decode@0.service")
    assert settings.type == "notify"
    assert settings.timeout_start_s == 90.0
    assert [(f.code, f.values["message"]) for f in settings.findings] == [
        ("unit.limit-in-service", "Unknown key name 'StartLimitIntervalSec' in section 'Service', ignoring.")
    ]
    longer = file_text("/d.conf", "[Service]\nTimeoutStartSec=40min\nTimeoutStartSec=nonsense\n")
    assert read(unit, (longer,), "sgl-decode@0.service").timeout_start_s == 2400.0
    without = file_text("/d.conf", "[Service]\nTimeoutStartSec=infinity\n")
    assert read(unit, (without,), "sgl-decode@0.service").timeout_start_s is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90.0), ("1min 30s", 90.0), ("5m", 300.0), ("1h30min", 5400.0), ("2.5s", 2.5), ("100ms", 0.1),
     ("infinity", None), ("", None), ("5 parsecs", None), ("-5", None)],
)  # fmt: skip
def test_time_spans_are_read_as_systemd_writes_them(text: str, expected: float | None) -> None:
    assert span_s(text) == expected
