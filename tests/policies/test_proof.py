"""The proof ladder: every kind of answer of the main process and its children, and how high the ladder is climbed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policies.facts import ProcessEnv
from policies.proof import Proof, answer_of, prove
from policies.systemd.effective import Effective
from policies.systemd.settings import Place

CASES: list[dict[str, Any]] = json.loads(Path("tests/golden/systemd/proof.json").read_text(encoding="utf-8"))


def process(pid: int, answer: str, value: str | None = None, *, main: bool = False) -> ProcessEnv:
    return ProcessEnv.model_validate(
        {"pid": pid, "name": f"p{pid}", "main": main, "variable": "KNOB", "answer": answer, "value": value}
    )


def proved(wanted: str | None, *processes: ProcessEnv, **more: Any) -> Proof:
    given = {"effective": wanted, **more}
    return prove(instance="decode@gpu1", variable="KNOB", wanted=wanted, processes=processes, **given)


@pytest.mark.parametrize("case", CASES, ids=[case["about"] for case in CASES])
def test_the_verdict_follows_from_what_each_process_said(case: dict[str, Any]) -> None:
    processes = [process(4100 + n, p["answer"], p["value"], main=p["main"]) for n, p in enumerate(case["processes"])]
    proof = proved(case["wanted"], *processes)
    assert proof.verdict == case["verdict"]
    assert [f.code for f in proof.findings] == case["codes"]


def test_the_process_that_lacks_it_is_named() -> None:
    proof = proved(
        "512", process(4100, "present", "512", main=True), process(4188, "unreadable"), process(4189, "absent")
    )
    assert proof.verdict == "mixed"
    assert [(f.code, f.values["pid"]) for f in proof.findings] == [("proof.absent", 4189)]
    assert [p.answer for p in proof.processes] == ["present", "unreadable", "absent"]


def test_other_variables_do_not_count() -> None:
    other = process(4100, "present", "512", main=True).model_copy(update={"variable": "OTHER"})
    assert proved("512", other).verdict == "unproven"


MAIN = process(1, "present", "512", main=True)


@pytest.mark.parametrize(
    ("more", "rung", "verdict"),
    [
        ({}, "environment", "live"),
        ({"reported": "512"}, "reported", "live"),
        ({"report_asked": True}, "environment", "live"),
        ({"reported": "256"}, "environment", "mixed"),
        ({"reported": "512", "behaviour": True}, "behaviour", "live"),
        ({"behaviour": True}, "behaviour", "live"),
        ({"reported": "512", "behaviour": False}, "reported", "live"),
        ({"configured": True, "effective": "256"}, "configured", "live"),
        ({"configured": False}, "none", "live"),
    ],
)
def test_the_ladder_is_climbed_without_a_gap(more: dict[str, Any], rung: str, verdict: str) -> None:
    proof = proved("512", MAIN, **more)
    assert (proof.rung, proof.verdict) == (rung, verdict)


def test_configuration_alone_is_never_live() -> None:
    proof = proved("512", process(1, "absent", main=True), configured=True)
    assert (proof.rung, proof.verdict) == ("effective", "not_live")


def test_the_line_that_would_win_at_the_next_start_is_named() -> None:
    place = Place(file="/etc/sgl/common.env", line=1)
    other = Effective(variable="KNOB", value="256", decided_by=place, overridden=(), warnings=())
    said = proved("512", MAIN, effective=other).findings
    assert [(f.code, f.values["decided_by"]) for f in said] == [("proof.effective-other", "/etc/sgl/common.env:1")]
    unsure = proved("512", MAIN, effective=other.model_copy(update={"certain": False}))
    assert (unsure.rung, unsure.findings[0].code) == ("environment", "proof.effective-uncertain")
    broken = proved("512", MAIN, effective=other.model_copy(update={"starts": False}))
    assert broken.findings[0].code == "proof.will-not-start"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (b"PATH=/bin\0KNOB=512\0HOME=/\0", ("present", "512")),
        (b"PATH=/bin\0KNOB=512\0KNOB=1\0", ("present", "512")),
        (b"KNOB=\0", ("present", "")),
        (b"KNOB=a=b\0", ("present", "a=b")),
        (b"KNOB=\xff\0", ("present", "\udcff")),
        (b"PATH=/bin\0XKNOB=1\0KNOB2=2\0", ("absent", None)),
        (b"", ("absent", None)),
        (b"\0" * 1966, ("unreadable", None)),
        (b"heduler_TP0\0" + b"\0" * 900, ("unreadable", None)),
        (b"sglang::a=b\0" + b"\0" * 900, ("unreadable", None)),
    ],
)
def test_an_environment_area_gives_one_of_three_answers(environ: bytes, expected: tuple[str, str | None]) -> None:
    assert answer_of(environ, "KNOB") == expected
