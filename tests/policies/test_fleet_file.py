"""Golden fleet files: each names the errors it holds, by line and code."""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path

import pytest
import yaml

from policies.fleet import Fleet
from policies.fleet_file import FleetReading, read_fleet
from tests.shared import ROOT

GOLDEN = ROOT / "tests" / "golden" / "fleet"
CASES = sorted(GOLDEN.glob("*.yaml"))
EXAMPLE = ROOT / "fleet.example.yaml"


def expected(text: str) -> list[tuple[int, str]]:
    """What a golden file says of itself: `# expect: CODE, CODE` on the line, or `# expect-line N: CODE`."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := re.search(r"# expect(?:-line (\d+))?: (.*)$", line):
            found += [(int(match[1] or number), code.strip()) for code in match[2].split(",")]
    return sorted(found)


def read(text: str) -> FleetReading:
    return read_fleet(text, "fleet.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_golden_file_gives_exactly_the_errors_it_names(case: Path) -> None:
    text = case.read_text(encoding="utf-8")
    reading = read_fleet(text, case.name)
    assert sorted((e.line, e.code) for e in reading.errors) == expected(text)
    assert (reading.fleet is None) == bool(expected(text))
    for error in reading.errors:
        assert error.file == case.name
        assert error.hint
        assert "\n" not in error.message + error.hint


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_every_message_says_what_was_expected(case: Path) -> None:
    silent = [e for e in read(case.read_text(encoding="utf-8")).errors if "expected" not in e.message]
    assert silent == []


def test_every_code_has_a_golden_case() -> None:
    tried_elsewhere = {"file.too_large", "yaml.character", "text.long", "list.too_many"}
    in_source = set()
    policies = ROOT / "policies"
    for source in (policies / "fleet_file.py", *policies.glob("fleet_checks/*.py")):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                in_source |= set(re.findall(r"\A[a-z]+\.[a-z_0-9]*[a-z0-9]\Z", node.value))
    in_golden = {code for case in CASES for _, code in expected(case.read_text(encoding="utf-8"))}
    assert in_source - in_golden - tried_elsewhere == set()


def test_the_example_is_a_fleet_and_carries_the_sha256_of_its_bytes() -> None:
    data = EXAMPLE.read_bytes()
    reading = read(data.decode("utf-8"))
    assert reading.errors == ()
    assert reading.fleet is not None
    assert reading.fleet.sha256 == hashlib.sha256(data).hexdigest()


def test_the_example_reads_value_by_value() -> None:
    fleet = read(EXAMPLE.read_text(encoding="utf-8")).fleet
    assert fleet is not None
    decode = fleet.services["decode"]
    assert (decode.on, decode.unit, decode.needs) == (("gpu1",), "sglang-dsv4-decode.service", ("prefill",))
    assert (decode.health.url, decode.health.timeout_s, decode.health.boot_s) == (
        "http://127.0.0.1:30001/health",
        25.0,
        300.0,
    )
    assert decode.server_info is not None
    assert decode.server_info.timeout_s == 10.0
    canary = fleet.services["router"].canary
    assert canary is not None
    assert canary.body == {"model": "m", "prompt": "2+2=", "max_tokens": 4}
    assert (canary.expect_text, canary.timeout_s) == ("4", 60.0)
    knob = fleet.knobs["TARGET_CTAS"]
    assert (knob.env, knob.on, knob.type, knob.range) == (
        "SGLANG_SM120_MMA_TARGET_CTAS",
        ("decode",),
        "int",
        (1, 4096),
    )
    assert knob.restarts == ("co-restart", "decode-only")
    assert knob.reported is not None
    assert knob.reported.path == "internal_states.0.sm120_mma_target_ctas"
    assert fleet.knobs["LOG_LEVEL"].values == ("debug", "info", "warning")
    assert fleet.restarts["co-restart"] == ("prefill", "decode", "router")
    assert fleet.causes["cold-start"].needs == "uptime_s < 600 and ttft_s falling"
    assert fleet.roles["engineers"].groups == ("S0PERF",)
    assert fleet.roles["approvers"].users == ("U01", "U02")
    assert (fleet.rules[0].approvals, fleet.rules[0].by, fleet.rules[0].expires_s) == (1, "approvers", 1800.0)
    evidence = fleet.rules[1].evidence
    assert evidence is not None
    assert (evidence.max_age_s, evidence.repeats, evidence.correctness) == (90 * 86400.0, 3, 1)
    assert fleet.freezes[0].for_s == 62 * 3600.0
    assert fleet.prometheus_url == "http://127.0.0.1:9090"


def test_the_timing_of_the_example_is_the_default() -> None:
    fleet = read(EXAMPLE.read_text(encoding="utf-8")).fleet
    assert fleet is not None
    assert fleet.timing == Fleet.model_fields["timing"].default


def test_a_rule_knows_its_line() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    fleet = read(text).fleet
    assert fleet is not None
    assert "match: {kind: knob}" in text.splitlines()[fleet.rules[0].line - 1]


def test_an_accepted_fleet_survives_json() -> None:
    fleet = read(EXAMPLE.read_text(encoding="utf-8")).fleet
    assert fleet is not None
    assert Fleet.model_validate_json(fleet.model_dump_json()) == fleet


def test_a_one_second_timeout_is_refused_with_the_reason() -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("from: host, timeout: 25s", "from: host, timeout: 1s", 1)
    errors = read(text).errors
    assert [e.code for e in errors] == ["health.timeout_too_short"]
    assert "1.0 s by construction" in errors[0].message
    assert "25s" in errors[0].hint


def test_a_misspelt_name_brings_the_nearest_one() -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("needs: [prefill]", "needs: [prefil]")
    errors = read(text).errors
    assert errors[0].message.startswith("services.decode.needs[0]: 'prefil' is not a service of this fleet")
    assert errors[0].hint == "did you mean 'prefill'?"


def test_a_comment_after_the_host_key_is_left_out() -> None:
    fleet = read((GOLDEN / "good-minimal.yaml").read_text(encoding="utf-8")).fleet
    assert fleet is not None
    key = fleet.hosts["box"].host_key
    assert key is not None
    assert key.split() == ["ssh-ed25519", key.split()[1]]


def test_more_than_256_kib_is_refused_unread() -> None:
    errors = read("a" * (256 * 1024 + 1)).errors
    assert [(e.line, e.code) for e in errors] == [(1, "file.too_large")]


def test_an_invisible_character_is_named_with_its_line() -> None:
    errors = read("version: 1\nname: a\x07b\n").errors
    assert [(e.line, e.code) for e in errors] == [(2, "yaml.character")]
    assert "'\\x07'" in errors[0].message


def test_a_section_of_more_than_500_entries_is_refused() -> None:
    hosts = "".join(f"  h{i}: {{address: h{i}, user: me}}\n" for i in range(501))
    errors = read(f"version: 1\nname: many\nhosts:\n{hosts}services: {{}}\n").errors
    assert {e.code for e in errors} == {"list.too_many", "list.empty"}


def test_a_very_long_text_is_refused() -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("CUDA block count", "x" * 9000)
    assert [e.code for e in read(text).errors] == ["text.long"]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("500ms", 0.5), ("25s", 25), ("5m", 300), ("2h", 7200), ("90d", 7776000), ("1.5s", 1.5), ("0s", 0)],
)
def test_a_duration_is_read_in_seconds(written: str, seconds: float) -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("bake: 5m", f"bake: {written}")
    fleet = read(text).fleet
    assert fleet is not None
    assert fleet.timing.bake_s == seconds


def test_nothing_is_constructed_from_a_tag() -> None:
    errors = read("version: !!python/object/apply:builtins.exit [3]\n").errors
    assert [e.code for e in errors] == ["yaml.tag"]
    with pytest.raises(yaml.constructor.ConstructorError):
        yaml.safe_load("!!python/object/apply:builtins.exit [3]")
