"""`clawback systemd effective` and `clawback proof`: the documents, the exit codes, the words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bot.cli import proof, systemd
from tests.shared import skip_or_fail

KNOB = "SGLANG_SM120_MMA_TARGET_CTAS"
GOLDEN: list[dict[str, Any]] = json.loads(Path("tests/golden/systemd/effective.json").read_text(encoding="utf-8"))
UNIT = f"""[Service]
Environment={KNOB}=128
EnvironmentFile=/etc/sgl/common.env
EnvironmentFile=-/etc/sgl/prefill-%i.env
ExecStart=/opt/sgl/bin/python -m sglang.launch_server --disaggregation-mode prefill
"""


def put(root: Path, files: dict[str, str], links: dict[str, str] | None = None) -> Path:
    for path, text in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogateescape"))
    for path, target in (links or {}).items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    return root


def effective(root: Path, unit: str, name: str, *options: str) -> Result:
    return CliRunner().invoke(systemd.command, ["effective", "--root", str(root), unit, name, *options])


def lost(tmp_path: Path, **more: str) -> Path:
    files = {
        "/etc/systemd/system/sgl-prefill@.service": UNIT,
        "/etc/systemd/system/sgl-prefill@.service.d/50-knobs.conf": f"[Service]\nEnvironment={KNOB}=512\n",
        "/etc/sgl/common.env": f"{KNOB}=256\n",
    }
    return put(tmp_path, {**files, **more})


def test_the_drop_in_lost_to_the_environment_file(tmp_path: Path) -> None:
    result = effective(lost(tmp_path), "sgl-prefill@0", KNOB, "--json")
    said = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (said["value"], said["decided_by"]) == ("256", {"file": "/etc/sgl/common.env", "line": 1})
    folder = "/etc/systemd/system/sgl-prefill@.service"
    assert said["overridden"] == [
        {"file": folder, "line": 2, "value": "128"},
        {"file": f"{folder}.d/50-knobs.conf", "line": 2, "value": "512"},
    ]
    (warning,) = said["warnings"]
    assert (warning["code"], warning["file"]) == ("envfile.optional-missing", "/etc/sgl/prefill-0.env")
    assert warning["message"].startswith("/etc/sgl/prefill-0.env does not exist")


def test_a_value_that_systemd_itself_may_give_is_not_said_to_be_unset_for_certain(tmp_path: Path) -> None:
    unit = f"[Service]\nPassEnvironment=HOME {KNOB}\nExecStart=/bin/x\n"
    root = put(
        tmp_path,
        {
            "/etc/systemd/system/x.service": unit,
            "/etc/systemd/system.conf": f"[Manager]\nDefaultEnvironment=A=1 \\\n  {KNOB}=64\n",
            "/etc/systemd/system.conf.d/10-env.conf": f'[Manager]\nDefaultEnvironment="{KNOB}=96"\n',
        },
    )
    said = json.loads(effective(root, "x", KNOB, "--json").stdout)
    assert (said["value"], said["certain"]) == (None, False)
    assert [(w["code"], w["file"], w["line"]) for w in said["warnings"]] == [
        ("unit.manager-environment", "/etc/systemd/system.conf.d/10-env.conf", 2),
        ("unit.passed", "/etc/systemd/system/x.service", 2),
    ]
    assert "`96`" in said["warnings"][0]["message"]
    for line in (f"Environment={KNOB}=1", f"UnsetEnvironment={KNOB}"):
        put(root, {"/etc/systemd/system/x.service": f"{unit}{line}\n"})
        said = json.loads(effective(root, "x", KNOB, "--json").stdout)
        assert (said["certain"], said["warnings"]) == (True, [])


def test_a_line_of_default_environment_that_goes_on_is_read(tmp_path: Path) -> None:
    root = put(
        tmp_path,
        {
            "/etc/systemd/system/x.service": "[Service]\nExecStart=/bin/x\n",
            "/usr/lib/systemd/system.conf.d/a.conf": f"[Manager]\nDefaultEnvironment=A=1 \\\n  {KNOB}=64\n",
        },
    )
    result = effective(root, "x", KNOB)
    assert result.exit_code == 0
    assert "/usr/lib/systemd/system.conf.d/a.conf:3: DefaultEnvironment= of systemd itself gives" in result.stdout
    assert "not certain" in result.stdout


def test_unset_environment_in_any_drop_in_leaves_it_unset(tmp_path: Path) -> None:
    place = "/run/systemd/system/sgl-prefill@0.service.d/10-off.conf"
    result = effective(
        lost(tmp_path, **{place: f"[Service]\nUnsetEnvironment={KNOB}\n"}), "sgl-prefill@0", KNOB, "--json"
    )
    said = json.loads(result.stdout)
    assert (result.exit_code, said["value"], said["decided_by"]) == (0, None, {"file": place, "line": 2})
    assert [o["value"] for o in said["overridden"]] == ["128", "512", "256"]


def test_people_read_the_same_in_sentences(tmp_path: Path) -> None:
    lines = effective(lost(tmp_path), "sgl-prefill@0.service", KNOB).stdout.splitlines()
    assert lines[0] == f"{KNOB} = '256', decided by /etc/sgl/common.env:1"
    assert lines[1] == "  overridden: '128' of /etc/systemd/system/sgl-prefill@.service:2"
    assert lines[3].startswith("  note: /etc/sgl/prefill-0.env does not exist")


@pytest.mark.parametrize("case", GOLDEN, ids=[case["about"] for case in GOLDEN])
def test_a_tree_on_the_disk_gives_the_golden_answer(case: dict[str, Any], tmp_path: Path) -> None:
    put(tmp_path, case["files"], case["links"])
    result = effective(tmp_path, case["unit"], "KNOB", "--json")
    said = json.loads(result.stdout)
    assert result.exit_code == (0 if case["starts"] else 1)
    assert said["value"] == case["value"]
    assert [w["code"] for w in said["warnings"] if w["code"] != "unit.will-not-start"] == case["codes"]
    assert all(w["message"] and w["code"] not in w["message"] for w in said["warnings"])


def test_the_comment_that_became_the_value_is_shown_byte_for_byte(tmp_path: Path) -> None:
    text = f'{KNOB}=512  # tuned 2026-11\nSGLANG_LOG_LEVEL="info"  # quiet\nexport SGLANG_EXTRA=1\n'
    lost(tmp_path, **{"/etc/sgl/prefill-0.env": text})
    said = json.loads(effective(tmp_path, "sgl-prefill@0", KNOB, "--json").stdout)
    assert (said["value"], said["decided_by"]["line"]) == ("512  # tuned 2026-11", 1)
    assert [(w["code"], w["line"]) for w in said["warnings"]] == [
        ("envfile.inline-comment", 1),
        ("envfile.inline-comment", 2),
        ("envfile.export", 3),
    ]
    assert (
        json.loads(effective(tmp_path, "sgl-prefill@0", "SGLANG_LOG_LEVEL", "--json").stdout)["value"] == "info# quiet"
    )
    assert json.loads(effective(tmp_path, "sgl-prefill@0", "SGLANG_EXTRA", "--json").stdout)["value"] is None


def test_a_masked_unit_does_not_start(tmp_path: Path) -> None:
    put(tmp_path, {"/usr/lib/systemd/system/e.service": "[Service]\n"}, {"/etc/systemd/system/e.service": "/dev/null"})
    result = effective(tmp_path, "e", "KNOB", "--json")
    assert result.exit_code == 1
    assert [w["code"] for w in json.loads(result.stdout)["warnings"]] == ["unit.masked"]


def test_links_never_lead_out_of_the_tree(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("KNOB=leaked\n", encoding="utf-8")
    root = put(
        tmp_path / "root",
        {"/etc/systemd/system/e.service": "[Service]\n" + "".join(f"EnvironmentFile=-/etc/{n}\n" for n in "abc")},
        {"/etc/a": str(secret), "/etc/b": "../../../../../../../" + str(secret).lstrip("/"), "/etc/c": "/etc/c"},
    )
    said = json.loads(effective(root, "e", "KNOB", "--json").stdout)
    assert said["value"] is None
    assert [w["code"] for w in said["warnings"]] == ["envfile.optional-missing"] * 3


@pytest.mark.parametrize(("unit", "name"), [("../x", "A"), ("x y", "A"), ("e", "1A"), ("e", "A=1"), ("e", "")])
def test_a_wrong_name_is_a_usage_error(tmp_path: Path, unit: str, name: str) -> None:
    assert effective(tmp_path, unit, name, "--json").exit_code == 2


def test_the_installed_command_exits_with_two_for_a_unit_that_is_not_there(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-c",
        "from bot.cli import main; main()",
        "systemd",
        "effective",
        "--root",
        str(tmp_path),
        "e",
        "K",
    ]
    done = subprocess.run([*argv, "--json"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "no unit 'e.service'" in json.loads(done.stdout)["error"]["message"]


# --- proof ---


def proc(root: Path, **environs: bytes) -> Path:
    for pid, data in environs.items():
        place = root / pid.removeprefix("p")
        place.mkdir(parents=True, exist_ok=True)
        (place / "environ").write_bytes(data)
    return root


def stat_of(root: Path, pid: int, parent: int, name: str = "python3", state: str = "S") -> None:
    (root / str(pid) / "stat").write_text(f"{pid} ({name}) {state} {parent} " + "0 " * 17 + "77 0\n", encoding="ascii")


def prove(root: Path, pid: int, wanted: str, *options: str) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(proof.command, ["--proc", str(root), "--pid", str(pid), wanted, "--json", *options])
    return result.exit_code, json.loads(result.stdout)


HAS = f"PATH=/usr/bin\0{KNOB}=512\0HOME=/srv/sgl\0".encode()
LACKS = b"PATH=/usr/bin\0HOME=/srv/sgl\0"
WIPED = bytes(1966)


def test_a_wiped_child_is_unreadable_and_the_one_that_lacks_it_is_named(tmp_path: Path) -> None:
    proc(tmp_path, p4100=HAS, p4188=WIPED, p4189=LACKS)
    code, said = prove(tmp_path, 4100, f"{KNOB}=512")
    assert (code, said["verdict"]) == (1, "mixed")
    assert [(p["pid"], p["answer"], p["value"]) for p in said["processes"]] == [
        (4100, "present", "512"),
        (4188, "unreadable", None),
        (4189, "absent", None),
    ]
    assert "whose child" in said["warnings"][0]
    words = CliRunner().invoke(proof.command, ["--proc", str(tmp_path), "--pid", "4100", f"{KNOB}=512"]).stdout
    assert "pid 4188: unreadable (all NUL: the process renamed itself)" in words
    assert words.splitlines()[-1] == "verdict: mixed; 1 of 2 children cannot be read; not so in pid 4189"


def test_with_all_children_wiped_it_is_live_in_the_main_process(tmp_path: Path) -> None:
    proc(tmp_path, p4100=HAS, p4188=WIPED, p4189=WIPED)
    code, said = prove(tmp_path, 4100, f"{KNOB}=512")
    assert (code, said["verdict"]) == (0, "live")
    words = CliRunner().invoke(proof.command, ["--proc", str(tmp_path), "--pid", "4100", f"{KNOB}=512"]).stdout
    assert words.splitlines()[-1] == "verdict: live in the main process; children unreadable"


@pytest.mark.parametrize(
    ("environ", "wanted", "verdict"),
    [
        (HAS, f"{KNOB}=512", "live"),
        (HAS, f"{KNOB}=51", "not_live"),
        (HAS, f"{KNOB}=5120", "not_live"),
        (HAS, f"{KNOB}=", "not_live"),
        (HAS, KNOB, "not_live"),
        (LACKS, KNOB, "live"),
        (LACKS, f"{KNOB}=512", "not_live"),
        (WIPED, f"{KNOB}=512", "unproven"),
        (f"{KNOB}=512  # tuned 2026-11\0".encode(), f"{KNOB}=512", "not_live"),
        (f"{KNOB}=\0".encode(), f"{KNOB}=", "live"),
    ],
)
def test_bytes_are_compared_exactly(tmp_path: Path, environ: bytes, wanted: str, verdict: str) -> None:
    code, said = prove(proc(tmp_path, p10=environ), 10, wanted)
    assert (code, said["verdict"]) == (0 if verdict == "live" else 1, verdict)


def test_children_are_found_by_their_parent_and_strangers_are_left_out(tmp_path: Path) -> None:
    proc(tmp_path, p1=LACKS, p10=HAS, p11=HAS, p12=HAS, p13=LACKS)
    for pid, parent in ((1, 0), (10, 1), (11, 10), (12, 11), (13, 1)):
        stat_of(tmp_path, pid, parent, name="a) b (c")
    code, said = prove(tmp_path, 10, f"{KNOB}=512")
    assert (code, [p["pid"] for p in said["processes"]], said["warnings"]) == (0, [10, 11, 12], [])


def test_a_status_file_does_as_well(tmp_path: Path) -> None:
    proc(tmp_path, p10=HAS, p11=LACKS, p12=LACKS)
    for pid, parent in ((10, 1), (11, 10), (12, 1)):
        (tmp_path / str(pid) / "status").write_text(
            f"Name:\tx\nState:\tS (sleeping)\nPPid:\t{parent}\n", encoding="ascii"
        )
    assert [p["pid"] for p in prove(tmp_path, 10, f"{KNOB}=512")[1]["processes"]] == [10, 11]


def test_the_children_files_of_threads_do_as_well(tmp_path: Path) -> None:
    proc(tmp_path, p10=HAS, p11=HAS, p12=HAS, p13=LACKS)
    for pid, children in ((10, "11 "), (11, "12 ")):
        place = tmp_path / str(pid) / "task" / str(pid)
        place.mkdir(parents=True)
        (place / "children").write_text(children, encoding="ascii")
    code, said = prove(tmp_path, 10, f"{KNOB}=512")
    assert (code, [p["pid"] for p in said["processes"]]) == (0, [10, 11, 12])


def test_a_permission_and_a_process_that_is_gone_are_two_more_answers(tmp_path: Path) -> None:
    proc(tmp_path, p10=HAS, p11=HAS, p12=HAS)
    (tmp_path / "11" / "environ").chmod(0)
    (tmp_path / "12" / "environ").unlink()
    code, said = prove(tmp_path, 10, f"{KNOB}=512")
    assert [p["answer"] for p in said["processes"]] == ["present", "forbidden", "vanished"]
    assert (code, said["verdict"]) == (0, "live")
    gone = prove(tmp_path, 99, f"{KNOB}=512")
    assert gone[0] == 1
    assert (gone[1]["verdict"], gone[1]["processes"][0]["answer"]) == ("unproven", "vanished")
    assert gone[1]["warnings"] == [f"there is no process 99 below '{tmp_path}'"]


def test_a_zombie_has_vanished(tmp_path: Path) -> None:
    proc(tmp_path, p10=HAS, p11=b"")
    stat_of(tmp_path, 10, 1)
    stat_of(tmp_path, 11, 10, state="Z")
    assert [p["answer"] for p in prove(tmp_path, 10, f"{KNOB}=512")[1]["processes"]] == ["present", "vanished"]


def test_the_real_proc_is_read_too() -> None:
    if not Path("/proc/self/environ").exists():
        skip_or_fail("no /proc here")
    child = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 60 & wait"], env={**os.environ, KNOB: "512"}, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            code, said = prove(Path("/proc"), child.pid, f"{KNOB}=512")
            if [p["name"] for p in said["processes"]] == ["sh", "sleep"] or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        assert (code, said["verdict"]) == (0, "live")
        assert [(p["name"], p["main"], p["value"]) for p in said["processes"]] == [
            ("sh", True, "512"),
            ("sleep", False, "512"),
        ]
    finally:
        os.killpg(child.pid, 9)
        child.wait()


@pytest.mark.parametrize("arguments", [["--pid", "0", "A=1"], ["--pid", "1", "=1"], ["--pid", "1", "1A=1"], ["A=1"]])
def test_a_question_that_is_none_is_a_usage_error(tmp_path: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(proof.command, ["--proc", str(tmp_path), *arguments])
    assert result.exit_code == 2
