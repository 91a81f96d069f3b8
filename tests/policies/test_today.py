"""Today's context out of one look, and whether the running build reads the knob at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.applicability import standing
from policies.context import Context, LoadRange
from policies.deploys.strategy import DeployEntry
from policies.facts import HttpAnswer, LogTail, PortOwner, ProcessEnv, UnitFacts
from policies.fleet import Fleet, Reported
from policies.inert import Reads, reads
from policies.metrics.measured import Reading
from policies.today import running_query, scraped, today, variables, with_load
from tests.policies import builders as b
from tests.shared import shared

PATH = f"internal_states.0.env_vars.{b.ENV}"
DIGEST = "sha256:" + "ab" * 32
INFO: dict[str, Any] = {
    "version": "0.5.23+g4f2a91c77", "model_path": "/home/ops/models/m", "served_model_name": "m", "tp_size": 8,
    "quantization": "fp8", "kv_cache_dtype": None, "api_key": "sk-geheim-123456789", "max_running_requests": 256,
    "disaggregation_mode": "decode", "internal_states": [{"env_vars": {b.ENV: "512"}}],
}  # fmt: skip
METRICS = """\
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{tp_rank="0",dp_rank="0"} 41
sglang:num_running_reqs{tp_rank="1",dp_rank="0"} 41
"""
EXPORTER = """\
DCGM_FI_DEV_POWER_MGMT_LIMIT{gpu="0",UUID="GPU-a",modelName="NVIDIA H200",DCGM_FI_DRIVER_VERSION="570.195.03"} 700.0
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a",modelName="NVIDIA H200",DCGM_FI_DRIVER_VERSION="570.195.03"} 1980
"""
DCGM = """\
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a",modelName="NVIDIA H200"} 1980
DCGM_FI_DEV_SM_CLOCK{gpu="1",UUID="GPU-b",modelName="NVIDIA H200"} 1980
"""


def http(**bodies: object) -> tuple[HttpAnswer, ...]:
    return tuple(
        b.answer(200, body if isinstance(body, str) else json.dumps(body), id=name) for name, body in bodies.items()
    )


def env(name: str, value: str | None) -> ProcessEnv:
    return b.process(value).model_copy(update={"variable": name})


def seen(of: Fleet | None = None, **changes: Any) -> Context:
    fleet = of or b.fleet(knobs=(b.knob(name="OTHER", env="OTHER_ENV", on=("decode",)),))
    unit = b.unit(running="512", **{"http": http(server_info=INFO, metrics=METRICS), **changes})
    return today(fleet, fleet.knobs["TARGET_CTAS"], {"decode@gpu1": unit})


def test_a_server_tells_its_build_model_and_flags_and_no_secret() -> None:
    found = seen()
    assert (found.version, found.commit) == ("0.5.23", "4f2a91c77")
    assert (found.model, found.model_names) == ("~/models/m", ("m",))
    assert (found.quantization, found.kv_dtype, found.revision) == ("fp8", "not set", "not set")
    assert found.topology == {"tp": "8"}
    assert found.flags == {"max_running_requests": "256", "disaggregation_mode": "decode"}
    assert "geheim" not in found.model_dump_json()
    assert found.load == LoadRange(low=41, high=41, kind="now")


def test_the_accelerators_are_those_of_the_loads_endpoint() -> None:
    loads = {"accelerator": "H200", "num_accelerators": 8, "version": "x"}
    found = seen(http=http(server_info=INFO, loads=loads))
    assert (found.accelerator, found.accelerators) == ("H200", 8)
    odd_ones: tuple[object, ...] = (
        {"accelerator": 7, "num_accelerators": "8"}, [], "not json", {"num_accelerators": True},
    )  # fmt: skip
    for wrong in odd_ones:
        odd = seen(http=http(loads=wrong))
        assert (odd.accelerator, odd.accelerators) == (None, None)


def test_without_that_endpoint_dcgm_tells_them() -> None:
    found = seen(http=http(metrics=METRICS + DCGM))
    assert (found.accelerator, found.accelerators) == ("NVIDIA H200", 2)


def test_an_exporter_of_dcgm_tells_driver_power_limit_and_slices_too() -> None:
    found = seen(http=http(metrics=METRICS, loads=EXPORTER))
    assert (found.accelerator, found.accelerators, found.driver) == ("NVIDIA H200", 1, "570.195.03")
    assert (found.power_limit, found.mig) == ("700 W", None)
    sliced = EXPORTER.replace('gpu="0"', 'gpu="0",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1"')
    assert seen(http=http(loads=sliced)).mig == "3g.40gb"
    mixed = EXPORTER + DCGM.replace("H200", "H100")
    assert (seen(http=http(loads=mixed)).accelerator, seen(http=http(loads=mixed)).accelerators) == (None, 2)
    assert (
        seen(http=http(loads=shared("metrics").joinpath("dcgm-exporter_readme_sample.prom").read_text())) != Context()
    )


@pytest.mark.parametrize(
    ("spelled", "told", "same"), [("700W", "700 W", True), ("700 watts", "700 W", True), ("600", "700 W", False)]
)
def test_a_power_limit_is_one_in_every_spelling(spelled: str, told: str, same: bool) -> None:
    record = b.judged(context=b.measured(power_limit=spelled))
    found = standing(record, b.today(power_limit=told), b.NOW)
    assert (found.word == "valid") is same


def test_the_version_that_a_deploy_reads_back_is_the_commit() -> None:
    plain_fleet = b.fleet(server_info=True)
    deploy = {
        "strategy": {"kind": "releases", "path": "/srv/x"}, "restarts": ("decode-only",),
        "version": {"http": "http://127.0.0.1:30001/server_info", "field": "build"},
    }  # fmt: skip
    decode = plain_fleet.services["decode"].model_copy(update={"deploy": DeployEntry.model_validate(deploy)})
    fleet = plain_fleet.model_copy(update={"services": {**plain_fleet.services, "decode": decode}})
    info = http(server_info={"version": "0.5.23", "build": "r-4711"})
    assert seen(fleet, http=info).commit == "r-4711"
    assert seen(fleet, http=http(server_info={"version": "0.5.23", "build": "0.5.23"})).commit is None
    assert seen(plain_fleet, http=info).commit is None


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ({"object": "list", "data": [{"id": "openai/m"}, {"id": "lora"}]}, ("openai/m", "lora")),
        ({"model_path": "openai/m", "revision": "abc"}, ("openai/m",)),
        ({"data": [{"id": 7}, "x"]}, ()),
        ("no json", ()),
    ],
)
def test_a_served_model_has_every_name_that_is_told(document: object, names: tuple[str, ...]) -> None:
    found = seen(http=http(model_info=document))
    assert found.model_names == names
    assert found.model == (names[0] if names else None)


def test_the_commit_is_the_images_digest_or_what_the_environment_tells() -> None:
    bare = http(server_info={"version": "0.5.23"})
    assert seen(http=bare, exec_start=("/usr/bin/docker", "run", f"lmsys/sglang@{DIGEST}")).commit == DIGEST
    told = (b.process("512"), env("VLLM_BUILD_COMMIT", "4f2a91c77d0e"))
    assert seen(http=bare, processes=told).commit == "4f2a91c77d0e"
    assert seen(http=bare).commit is None


def test_other_knobs_are_read_from_the_main_process() -> None:
    assert seen(processes=(b.process("512"), env("OTHER_ENV", "7"))).knobs == {"OTHER_ENV": "7"}
    assert seen(processes=(b.process("512"), env("OTHER_ENV", None))).knobs == {"OTHER_ENV": "unset"}
    unread = b.process(None, answer="unreadable").model_copy(update={"variable": "OTHER_ENV"})
    assert seen(processes=(b.process("512"), unread)).knobs == {}


def test_what_somebody_else_answers_at_the_port_is_not_asked() -> None:
    owner = PortOwner(port=30001, state="owned", pid=9, in_unit=False)
    found = seen(port=owner)
    assert (found.version, found.model, found.load) == (None, None, None)


def test_instances_that_differ_equal_nothing() -> None:
    fleet = b.fleet(hosts=("gpu1", "gpu2"))
    units = {
        f"decode@{host}": b.unit(f"decode@{host}", running="512", http=http(server_info={**INFO, "version": version}))
        for host, version in (("gpu1", "0.5.23"), ("gpu2", "0.5.21"))
    }
    found = today(fleet, fleet.knobs["TARGET_CTAS"], units)
    assert found.version == "0.5.23 / 0.5.21"
    assert found.model == "~/models/m"


def test_the_load_is_that_of_all_instances_and_unknown_where_one_does_not_say() -> None:
    fleet = b.fleet(hosts=("gpu1", "gpu2"))

    def load(second: str) -> LoadRange | None:
        bodies = {"gpu1": METRICS, "gpu2": second}
        units = {
            f"decode@{h}": b.unit(f"decode@{h}", running="512", http=http(metrics=text)) for h, text in bodies.items()
        }
        return today(fleet, fleet.knobs["TARGET_CTAS"], units).load

    assert load(METRICS) == LoadRange(low=82, high=82, kind="now")
    assert load("nothing 1\n") is None


def test_services_that_share_requests_are_not_added() -> None:
    fleet = b.fleet(knobs=(b.knob(name="BOTH", env="BOTH", on=("prefill", "decode")),))
    units = {
        f"{s}@gpu1": b.unit(f"{s}@gpu1", http=http(metrics=METRICS.replace("41", n)))
        for s, n in (("prefill", "3"), ("decode", "41"))
    }
    assert today(fleet, fleet.knobs["BOTH"], units).load == LoadRange(low=41, high=41, kind="now")


def readings(values: list[float], apart_s: float = 60.0) -> list[Reading]:
    return [Reading(at=b.NOW + apart_s * i, value=value) for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("measured", "now", "load"),
    [
        ([float(v) for v in range(100)], 3.0, LoadRange(low=94, high=94, kind="p95")),
        ([10.0] * 100, 64.0, LoadRange(low=64, high=64, kind="p95")),
        ([10.0] * 100, None, LoadRange(low=10, high=10, kind="p95")),
        ([10.0] * 19, 3.0, LoadRange(low=3, high=3, kind="now")),
        ([], None, None),
    ],
)
def test_the_load_is_a_p95_where_enough_was_measured(
    measured: list[float], now: float | None, load: LoadRange | None
) -> None:
    seen_now = None if now is None else LoadRange(low=now, high=now, kind="now")
    assert with_load(readings(measured), seen_now, "p95") == load


def test_many_readings_of_a_moment_are_no_p95() -> None:
    assert with_load(readings([10.0] * 100, apart_s=1.0), None, "p95") is None


def test_the_query_for_the_load_is_of_what_the_engine_exports() -> None:
    fleet = b.fleet()
    units = {"decode@gpu1": b.unit(http=http(metrics='vllm:num_requests_running{engine="0"} 7\n'))}
    knob = fleet.knobs["TARGET_CTAS"]
    found = running_query(fleet, knob, scraped(fleet, knob, units))
    assert found is not None
    assert found[0] == "decode"
    assert "vllm:num_requests_running" in found[1]
    assert running_query(fleet, fleet.knobs["TARGET_CTAS"], {}) is None


def test_prefill_and_decode_are_counted_where_both_were_seen() -> None:
    fleet = b.fleet(decode_on=("gpu1", "gpu2"), hosts=("gpu1", "gpu2"))
    units = {
        "prefill@gpu1": b.unit("prefill@gpu1", http=http(server_info={**INFO, "disaggregation_mode": "prefill"})),
        **{f"decode@{h}": b.unit(f"decode@{h}", running="512", http=http(server_info=INFO)) for h in ("gpu1", "gpu2")},
    }
    knob = fleet.knobs["TARGET_CTAS"]
    assert today(fleet, knob, units).topology == {"tp": "8", "prefill": "1", "decode": "2"}
    del units["prefill@gpu1"]
    assert today(fleet, knob, units).topology == {"tp": "8"}


def test_the_variables_of_a_look_are_those_of_all_knobs_of_the_services() -> None:
    more = (b.knob(name="OTHER", env="OTHER_ENV"), b.knob(name="FAR", env="FAR_ENV", on=("prefill",)))
    fleet = b.fleet(knobs=more)
    found = variables(fleet, fleet.knobs["TARGET_CTAS"])
    assert found[0] == b.ENV
    assert "OTHER_ENV" in found
    assert "FAR_ENV" not in found


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | st.sampled_from(["{", "[]", '{"internal_states": 7}', '{"version": {"a": 1}}', "nan"]))
def test_no_answer_whatever_it_is_stops_a_look(body: str) -> None:
    answers = tuple(b.answer(200, body, id=name) for name in ("server_info", "loads", "model_info", "metrics"))
    assert isinstance(seen(http=answers), Context)


def test_a_document_that_is_nested_too_deep_is_nothing() -> None:
    assert seen(http=http(server_info="[" * 50_000, loads="[" * 50_000, model_info="{" * 9)).version is None


# --- does the build read the knob ---


def read(unit: UnitFacts, *, reported: str | None = PATH) -> Reads:
    knob = b.knob(reported=Reported(path=reported) if reported else None)
    return reads(knob, [unit])


def unit(body: object = None, *, running: str | None = "512", log: tuple[str, ...] = (), **more: Any) -> UnitFacts:
    answers = http(server_info=body) if body is not None else ()
    tail = LogTail(source="journal", lines=log) if log else None
    return b.unit(running=running, http=answers, log=tail, **more)


@pytest.mark.parametrize(
    ("found", "answer", "why"),
    [
        (unit(INFO), "yes", "reports 512"),
        (unit({"internal_states": [{"env_vars": {b.ENV: 256}}]}, running=None), "yes", "reports 256"),
        (unit({"internal_states": [{"env_vars": {b.ENV: 256}}]}), "no", "reports 256 although 512 is in its environ"),
        (unit({"internal_states": [{"env_vars": {"X": 1}}]}), "no", "reports its settings, and"),
        # what is unset is not among the variables that are set
        (unit({"internal_states": [{"env_vars": {"X": 1}}]}, running=None), None, ""),
        (unit({"internal_states": [{}]}), None, ""),
        (unit({"version": "0.5.23"}), None, ""),
        (unit("no json"), None, ""),
        (unit(None), None, ""),
        # a value that cannot be taken says nothing about the variable
        (unit({"internal_states": [{"env_vars": {b.ENV: 256}}]}, running="512  # tuned"), None, ""),
        (
            unit(INFO, log=(f"WARNING envs.py:1818] Unknown vLLM environment variable detected: {b.ENV}",)),
            "no", "says in its log: WARNING",
        ),
        (
            unit({"internal_states": [{"env_vars": {b.ENV: 256}}]}, log=(f"Invalid value for {b.ENV}: x",)),
            "yes", "read it and refused its value",
        ),
        (unit(INFO, log=(f"Unknown vLLM environment variable detected: {b.ENV}_MORE",)), "yes", "reports 512"),
        (unit(INFO, port=PortOwner(port=1, state="owned", in_unit=False)), None, ""),
    ],
)  # fmt: skip
def test_a_build_that_does_not_know_the_variable_is_told_from_one_that_does(
    found: UnitFacts, answer: str | None, why: str
) -> None:
    said = read(found)
    assert said.answer == answer
    assert why in said.why
    assert (answer == "no") == ("decode@gpu1" in said.why)


def test_a_setting_of_its_own_that_is_not_there_is_not_read_even_when_unset() -> None:
    body = {"internal_states": [{"max_running_requests": 1}]}
    assert read(unit(body, running=None), reported="internal_states.0.target_ctas").answer == "no"
    assert read(unit(body, running=None), reported="nowhere.0.target_ctas").answer is None


@pytest.mark.parametrize(
    ("variables_told", "running", "answer"),
    [({b.ENV: "512"}, "512", "yes"), ({"X": "1"}, "512", "no"), ({"X": "1"}, None, None)],
)
def test_without_a_path_the_servers_own_list_of_variables_tells(
    variables_told: dict[str, str], running: str | None, answer: str | None
) -> None:
    body = {"internal_states": [{"env_vars": variables_told}]}
    assert read(unit(body, running=running), reported=None).answer == answer


def test_one_instance_that_does_not_read_it_is_enough() -> None:
    knob = b.knob(reported=Reported(path=PATH))
    bad = unit({"internal_states": [{"env_vars": {"X": 1}}]}).model_copy(update={"host": "gpu2"})
    assert reads(knob, [unit(INFO), bad]).answer == "no"
    assert reads(knob, [unit(INFO), unit(None)]).answer is None
    assert reads(knob, []).answer is None


def test_the_environment_of_a_wrapper_proves_nothing() -> None:
    wrapper = b.process("512").model_copy(update={"name": "docker"})
    found = unit({"internal_states": [{"env_vars": {b.ENV: 256}}]}, processes=(wrapper,))
    assert read(found).answer == "yes"
