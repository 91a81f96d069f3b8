"""The helper's verbs write, restart and fence, on a real user manager: tokens, records, files."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.workers.lab_host import LabHost, lab_host

pytestmark = pytest.mark.real
TEXT = '[Service]\nEnvironment="KNOB=512"\n'


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host() as booted:
        yield booted


@pytest.fixture
def unit(host: LabHost, request: pytest.FixtureRequest) -> str:
    """A running unit of its own for each test."""
    digest = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:8]
    name = f"engine-{digest}.service"
    host.unit(name, "ExecStart=/usr/bin/sleep 600")
    host.manager.systemctl("start", name)
    return name


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write(text: str | None, expect: str | None, token: int = 1, change: str = "C-1", step: str = "0") -> dict[str, Any]:
    return {"token": token, "change": change, "step": step, "text": text, "expect_sha256": expect}


def test_a_drop_in_is_written_loaded_and_removed_again(host: LabHost, unit: str) -> None:
    path = host.manager.units / f"{unit}.d" / "zz-clawback.conf"
    written = host.done("write", unit=unit, **write(TEXT, None))
    assert (written["path"], written["already"]) == (str(path), False)
    assert (written["before_sha256"], written["after_sha256"]) == (None, sha(TEXT))
    assert written["loaded_dropins"] == [str(path)]
    assert path.read_text(encoding="utf-8") == TEXT
    assert (path.stat().st_mode & 0o7777, path.parent.stat().st_mode & 0o7777) == (0o644, 0o755)
    assert host.manager.show(unit, "Environment")["Environment"] == "KNOB=512"
    removed = host.done("write", unit=unit, **write(None, sha(TEXT), change="C-2"))
    assert (removed["before_sha256"], removed["after_sha256"]) == (sha(TEXT), None)
    assert removed["loaded_dropins"] == []
    assert os.listdir(path.parent) == []  # noqa: PTH208 - no temporary file either


def test_mode_and_owner_of_an_existing_file_are_kept(host: LabHost, unit: str) -> None:
    path = host.manager.units / f"{unit}.d" / "zz-clawback.conf"
    host.done("write", unit=unit, **write(TEXT, None))
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 12, 34)
    before = path.stat()
    host.done("write", unit=unit, **write("[Service]\n", sha(TEXT), change="C-2"))
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_a_file_that_is_not_as_planned_is_left_alone_and_both_digests_are_told(host: LabHost, unit: str) -> None:
    path = host.manager.units / f"{unit}.d" / "zz-clawback.conf"
    host.done("write", unit=unit, **write(TEXT, None))
    path.write_text("# by hand\n", encoding="utf-8")
    refused = host.refused("write", unit=unit, **write("[Service]\n", sha(TEXT), change="C-2"))
    assert refused["code"] == "file-changed"
    assert (refused["present_sha256"], refused["expect_sha256"]) == (sha("# by hand\n"), sha(TEXT))
    assert path.read_text(encoding="utf-8") == "# by hand\n"
    gone = host.refused("write", unit=unit, **write(TEXT, None, change="C-3"))
    assert gone["code"] == "file-changed"
    path.unlink()
    assert host.refused("write", unit=unit, **write("[Service]\n", sha(TEXT), change="C-4"))["present_sha256"] is None


def test_the_same_step_written_twice_is_done_once(host: LabHost, unit: str) -> None:
    host.done("write", unit=unit, **write(TEXT, None))
    again = host.done("write", unit=unit, **write(TEXT, None))
    assert (again["already"], again["before_sha256"], again["after_sha256"]) == (True, None, sha(TEXT))
    taken_over = host.done("write", unit=unit, **write(TEXT, None, token=2))
    assert taken_over["already"]


def test_links_that_lead_elsewhere_are_not_followed(host: LabHost, unit: str) -> None:
    outside = host.folder / "outside"
    outside.mkdir(exist_ok=True)
    folder = host.manager.units / f"{unit}.d"
    folder.symlink_to(outside)
    assert host.refused("write", unit=unit, **write(TEXT, None))["code"] == "forbidden"
    assert list(outside.iterdir()) == []
    folder.unlink()
    folder.mkdir()
    victim = outside / "victim"
    victim.write_text("precious", encoding="utf-8")
    (folder / "zz-clawback.conf").symlink_to(victim)
    assert host.refused("write", unit=unit, **write(TEXT, sha("precious")))["code"] == "forbidden"
    assert host.refused("write", unit=unit, **write(None, sha("precious")))["code"] == "forbidden"
    assert victim.read_text(encoding="utf-8") == "precious"
    victim.unlink()


@pytest.mark.parametrize("text", ["x" * 300_000, "a\0b", "\ud800"], ids=["long", "nul", "surrogate"])
def test_a_text_that_cannot_be_a_drop_in_is_refused(host: LabHost, unit: str, text: str) -> None:
    assert host.refused("write", unit=unit, **write(text, None))["code"] == "bad-request"


def test_nothing_is_written_or_restarted_for_a_unit_that_does_not_exist(host: LabHost) -> None:
    assert host.refused("write", unit="none.service", **write(TEXT, None))["code"] == "no-such-unit"
    assert not (host.manager.units / "none.service.d").exists()
    refused = host.refused("restart", unit="none.service", token=1, change="C-1", step="1")
    assert refused["code"] == "no-such-unit"


def test_a_restart_is_done_once_for_each_change_step_and_token(host: LabHost, unit: str) -> None:
    before = host.manager.show(unit, "MainPID", "InvocationID")
    first = host.done("restart", unit=unit, token=1, change="C-1", step="1")
    assert first["already"] is False
    assert first["before"]["main_pid"] == int(before["MainPID"])
    assert first["before"]["invocation_id"] == before["InvocationID"]
    ready = host.done("wait", unit=unit, before=first["before"], port=None, health=None, for_s=20)
    assert ready["state"] == "ready"
    again = host.done("restart", unit=unit, token=1, change="C-1", step="1")
    assert (again["already"], again["before"], again["at"]) == (True, first["before"], first["at"])
    assert again["current"] == ready["incarnation"]
    assert host.manager.show(unit, "InvocationID")["InvocationID"] == ready["incarnation"]["invocation_id"]
    other = host.done("restart", unit=unit, token=1, change="C-1", step="2")
    assert (other["already"], other["before"]) == (False, ready["incarnation"])


def test_twenty_calls_at_once_restart_once(host: LabHost, unit: str) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: host.done("restart", unit=unit, token=1, change="C-1", step="1"), range(20)))
    assert sorted(a["already"] for a in answers) == [False] + [True] * 19
    assert len({json.dumps(a["before"]) for a in answers}) == 1


def test_a_lower_token_is_refused_with_both_numbers_and_does_nothing(host: LabHost, unit: str) -> None:
    assert host.done("fence", unit=unit, token=5)["previous_token"] == 0
    invocation = host.manager.show(unit, "InvocationID")
    for verb, fields in (
        ("restart", {"token": 4, "change": "C-1", "step": "1"}),
        ("write", write(TEXT, None, token=4)),
        ("fence", {"token": 4}),
    ):
        refused = host.refused(verb, unit=unit, **fields)
        assert (refused["code"], refused["token"], refused["stored"]) == ("stale-token", 4, 5)
    assert host.manager.show(unit, "InvocationID") == invocation
    assert not (host.manager.units / f"{unit}.d").exists()
    assert host.done("fence", unit=unit, token=5)["token"] == 5


def test_the_token_is_on_the_disk_before_the_act(host: LabHost, unit: str) -> None:
    host.refused("write", unit=unit, **write(TEXT, sha("never there"), token=7))
    assert json.loads(host.state_file(unit).read_text(encoding="utf-8"))["token"] == 7
    assert host.state_file(unit).parent.stat().st_mode & 0o7777 == 0o700


def test_fence_tells_what_was_done_and_whether_a_new_life_began(host: LabHost, unit: str) -> None:
    host.done("write", unit=unit, **write(TEXT, None, token=3))
    issued = host.done("restart", unit=unit, token=3, change="C-1", step="1")
    ready = host.done("wait", unit=unit, before=issued["before"], port=None, health=None, for_s=20)
    fenced = host.done("fence", unit=unit, token=4)
    wrote, restarted = fenced["records"]
    assert (wrote["verb"], wrote["phase"], wrote["token"]) == ("write", "done", 3)
    assert (wrote["before_sha256"], wrote["after_sha256"]) == (None, sha(TEXT))
    assert (restarted["verb"], restarted["phase"], restarted["step"]) == ("restart", "issued", "1")
    assert (restarted["before"], restarted["after"]) == (issued["before"], ready["incarnation"])
    assert fenced["current"] == ready["incarnation"]


def test_a_restart_that_was_only_intended_is_not_done_again(host: LabHost, unit: str) -> None:
    before = host.done("fence", unit=unit, token=1)["current"]
    record = {
        "verb": "restart", "change": "C-1", "step": "1", "token": 1, "at": 1.0, "phase": "intended", "before": before,
    }  # fmt: skip
    host.state_file(unit).write_text(json.dumps({"token": 1, "records": [record]}), encoding="utf-8")
    answer = host.done("restart", unit=unit, token=1, change="C-1", step="1")
    assert (answer["already"], answer["phase"], answer["current"]) == (True, "intended", before)


def test_only_the_last_fifty_records_are_kept(host: LabHost, unit: str) -> None:
    old = [
        {"verb": "restart", "change": f"C-{n}", "step": "1", "token": 1, "at": 1.0, "phase": "issued", "before": None}
        for n in range(50)
    ]
    host.done("fence", unit=unit, token=1)
    host.state_file(unit).write_text(json.dumps({"token": 1, "records": old}), encoding="utf-8")
    host.done("write", unit=unit, **write(TEXT, None, change="C-new"))
    kept = [r["change"] for r in host.done("fence", unit=unit, token=1)["records"]]
    assert (len(kept), kept[0], kept[-1]) == (50, "C-1", "C-new")


def test_a_damaged_state_file_stops_every_act(host: LabHost, unit: str) -> None:
    host.done("fence", unit=unit, token=9)
    host.state_file(unit).write_text("{", encoding="utf-8")
    assert host.refused("restart", unit=unit, token=10, change="C-1", step="1")["code"] == "forbidden"


def test_a_helper_killed_at_any_moment_leaves_the_old_or_the_new_file(host: LabHost, unit: str) -> None:
    path = host.manager.units / f"{unit}.d" / "zz-clawback.conf"
    host.done("write", unit=unit, **write(TEXT, None))
    other = "[Service]\n" + "# filler\n" * 20_000
    argv = host.manager.wrap(["/usr/bin/python3", "-I", str(host.folder / "helper.py")])
    (host.folder / "helper.py").write_bytes(open("workers/hosthelper.py", "rb").read())  # noqa: PTH123, SIM115
    for delay_ms in range(20, 140, 10):
        request = {
            "v": 1,
            "verb": "write",
            "scope": "user",
            "unit": unit,
            **write(other, sha(TEXT), change=f"C-{delay_ms}"),
        }
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode())
        process.stdin.close()
        try:
            process.wait(delay_ms / 1000)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        present = path.read_text(encoding="utf-8")
        assert present in (TEXT, other)
        token = json.loads(host.state_file(unit).read_text(encoding="utf-8"))["token"]
        assert token == 1
        if present == other:
            host.done("write", unit=unit, **write(TEXT, sha(other), change=f"D-{delay_ms}"))
