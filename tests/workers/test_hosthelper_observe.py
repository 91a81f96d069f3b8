"""The helper's verb observe, on a real user manager: units, files, processes, ports, endpoints."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from bot.cli.systemd import RootTree
from policies.facts import HostFacts, HttpAnswer, UnitFacts
from policies.systemd import root
from policies.systemd.effective import effective
from tests.ports import free_port
from tests.shared import skip_or_fail
from tests.workers.lab_host import HELPER, LabHost, lab_host

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host() as booted:
        yield booted


def observe(host: LabHost, unit: str, **more: Any) -> UnitFacts:
    asked = {"service": "engine", "unit": unit, "port": None, "variables": [], "http": [], **more}
    answer = host.done("observe", host="h1", units=[asked], http=[])
    return HostFacts.model_validate(answer["facts"]).units[0]


def until(host: LabHost, unit: str, port: int, **more: Any) -> UnitFacts:
    """Facts as soon as the unit owns its port."""
    deadline = time.monotonic() + 60
    while True:
        facts = observe(host, unit, port=port, **more)
        if (facts.port and facts.port.state == "owned") or time.monotonic() > deadline:
            return facts
        time.sleep(0.05)


def test_a_running_unit_is_described_with_its_files_processes_port_and_endpoints(host: LabHost) -> None:
    port = free_port()
    env = host.folder / "engine-0.env"
    env.write_text("KNOB=256\n", encoding="utf-8")
    os.chmod(env, 0o640)  # noqa: PTH101 - as a shell would
    host.unit(
        "engine@.service",
        f"Environment=KNOB=128 SECRET=hidden\nEnvironmentFile={host.folder}/engine-%i.env\n"
        f"EnvironmentFile=-{host.folder}/none.env\nUnsetEnvironment=GONE\nTimeoutStartSec=40min\nRestart=on-failure\n"
        f"RestartSec=5\n{host.engine_line(port, 0, 0)}",
    )
    dropin = host.manager.units / "engine@.service.d" / "50-knobs.conf"
    dropin.parent.mkdir()
    dropin.write_text("[Service]\nEnvironment=KNOB=512\n", encoding="utf-8")
    host.manager.systemctl("daemon-reload")
    host.manager.systemctl("start", "engine@0.service")
    probe = {"id": "health", "url": f"http://127.0.0.1:{port}/health", "timeout_s": 5, "max_bytes": 1000}
    facts = until(host, "engine@0.service", port, variables=["KNOB", "NONE"], http=[probe])
    facts = observe(host, "engine@0.service", port=port, variables=["KNOB", "NONE"], http=[probe])
    shown = host.manager.show("engine@0.service", "MainPID", "InvocationID", "ControlGroup")

    assert (facts.load_state, facts.active_state, facts.sub_state, facts.type) == (
        "loaded",
        "active",
        "running",
        "simple",
    )
    assert (facts.timeout_start_s, facts.restart, facts.restart_s) == (2400.0, "on-failure", 5.0)
    assert (facts.start_limit_burst, facts.start_limit_interval_s, facts.n_restarts) == (5, 10.0, 0)
    assert facts.incarnation.main_pid == int(shown["MainPID"])
    assert facts.incarnation.invocation_id == shown["InvocationID"]
    assert facts.incarnation.started > 0
    assert facts.control_group == shown["ControlGroup"]
    assert facts.exec_start[:2] == ("/usr/bin/python3", str(host.engine))
    assert facts.fragment.path == str(host.manager.units / "engine@.service")
    assert [d.path for d in facts.dropins] == [str(dropin)] == list(facts.loaded_dropins)
    assert facts.dropins[0].sha256 == hashlib.sha256(dropin.read_bytes()).hexdigest()
    assert [(f.path, f.exists, f.mode) for f in facts.env_files] == [
        (str(env), True, 0o640),
        (str(host.folder / "none.env"), False, None),
    ]
    assert facts.unset_environment == ("GONE",)
    assert facts.dropin_path == str(host.manager.units / "engine@0.service.d" / "zz-clawback.conf")
    assert [(p.variable, p.main, p.answer, p.value) for p in facts.processes] == [
        ("KNOB", True, "present", "256"),
        ("NONE", True, "absent", None),
    ]
    assert facts.port is not None
    assert (facts.port.pid, facts.port.in_unit, facts.port.started) == (
        facts.incarnation.main_pid,
        True,
        facts.incarnation.started,
    )
    assert [(a.id, a.status, a.body, a.error) for a in facts.http] == [("health", 200, "256", None)]
    assert facts.problems == ()
    assert "hidden" not in "".join(str(p) for p in facts.processes)
    found = effective(
        facts.fragment,
        facts.dropins,
        {f.path: f for f in facts.env_files},
        facts.unit,
        "KNOB",
        facts.manager_environment,
    )
    assert (found.value, found.decided_by and found.decided_by.file) == ("256", str(env))


def test_each_process_of_a_unit_gives_its_own_answer(host: LabHost) -> None:
    port = free_port()
    words = ("child", "wiped-child", "bare-child", "grandchild")
    host.unit("family.service", f"Environment=KNOB=512\n{host.engine_line(port, 0.2, 0, *words)}")
    host.manager.systemctl("start", "family.service")
    facts = until(host, "family.service", port, variables=["KNOB"])
    said = sorted((p.main, p.name, p.answer) for p in facts.processes)
    assert said == [
        (False, "python3", "present"),
        (False, "python3", "present"),
        (False, "python3", "unreadable"),
        (False, "sleep", "absent"),
        (False, "sleep", "absent"),
        (True, "python3", "present"),
    ]
    host.manager.systemctl("stop", "family.service")


def test_a_main_process_that_wiped_its_environment_is_unreadable_not_absent(host: LabHost) -> None:
    port = free_port()
    host.unit("wiped.service", f"Environment=KNOB=512\n{host.engine_line(port, 0, 0, 'wipe')}")
    host.manager.systemctl("start", "wiped.service")
    facts = until(host, "wiped.service", port, variables=["KNOB"])
    assert [(p.main, p.answer, p.value) for p in facts.processes] == [(True, "unreadable", None)]
    host.manager.systemctl("stop", "wiped.service")


def test_a_port_held_from_outside_the_unit_is_not_the_units(host: LabHost) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        host.unit("late.service", "ExecStart=/usr/bin/sleep 600")
        host.manager.systemctl("start", "late.service")
        owner = observe(host, "late.service", port=port).port
        assert owner is not None
        assert (owner.state, owner.pid, owner.in_unit) == ("owned", os.getpid(), False)
        assert owner.cgroup
        assert owner.started
    host.manager.systemctl("stop", "late.service")
    free = observe(host, "late.service", port=port).port
    assert free is not None
    assert (free.state, free.pid, free.in_unit) == ("free", None, False)


def test_a_listener_on_another_address_does_not_own_the_port(host: LabHost) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.2", 0))
        holder.listen()
        port = holder.getsockname()[1]
        probe = {"id": "health", "url": f"http://127.0.0.1:{port}/", "timeout_s": 1, "max_bytes": 10}
        facts = observe(host, "nothing.service", port=port, http=[probe])
        assert facts.port is not None
        assert facts.port.state == "free"
        assert facts.http[0].error == "connection refused"


def test_listening_sockets_are_the_same_by_the_kernels_answer_and_by_its_tables() -> None:
    scope: dict[str, Any] = {"__name__": "helper"}
    exec(HELPER.read_text(encoding="utf-8"), scope)  # noqa: S102 - the program itself, as hosts run it
    with socket.socket() as four, socket.socket(socket.AF_INET6) as six:
        four.bind(("127.0.0.1", 0))
        six.bind(("::1", 0))
        for server in (four, six):
            server.listen()
        for server, family, table in ((four, socket.AF_INET, "tcp"), (six, socket.AF_INET6, "tcp6")):
            inode, port = str(os.fstat(server.fileno()).st_ino), server.getsockname()[1]
            asked = scope["listeners_asked"](family)
            if asked is None:
                skip_or_fail("this kernel answers no questions about sockets")
            mine = [entry for entry in asked if entry[2] == inode]
            assert mine == [entry for entry in scope["listeners_read"](f"/proc/net/{table}") if entry[2] == inode]
            assert [entry[1] for entry in mine] == [port]
            assert scope["listening"](port, server.getsockname()[0]) == {inode}


def test_a_unit_that_does_not_exist_is_said_to_be_not_found(host: LabHost) -> None:
    facts = observe(host, "nothing.service", port=9, variables=["KNOB"])
    assert (facts.load_state, facts.incarnation.main_pid, facts.fragment.exists) == ("not-found", 0, False)
    assert facts.processes == ()


def test_several_units_are_answered_in_the_order_asked(host: LabHost) -> None:
    names = ["nothing.service", "default-b.service", "default-a.service"]
    host.unit("default-a.service", "ExecStart=/bin/true")
    host.unit("default-b.service", "ExecStart=/bin/true")
    units: list[dict[str, Any]] = [{"service": n, "unit": n, "port": None, "variables": [], "http": []} for n in names]
    facts = HostFacts.model_validate(host.done("observe", host="h1", units=units)["facts"])
    assert [u.unit for u in facts.units] == names
    assert facts.helper == hashlib.sha256(HELPER.read_bytes()).hexdigest()
    assert facts.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def test_drop_ins_are_found_as_systemd_finds_them(host: LabHost) -> None:
    host.unit("aa-bb-cc@.service", "ExecStart=/bin/true", reload=False)
    folders = ("aa-bb-cc@x.service", "aa-bb-cc@.service", "aa-bb-@.service", "aa-bb-@x.service", "aa-@.service",
               "aa-.service", "aa-bb-.service", "service", "aa-bb@.service", "aa-bb-cc.service")  # fmt: skip
    for number, folder in enumerate(folders):
        place = host.manager.units / f"{folder}.d"
        place.mkdir(exist_ok=True)
        (place / f"{90 - number}-own.conf").write_text("[Service]\n", encoding="utf-8")
        (place / "50-same.conf").write_text("[Service]\n", encoding="utf-8")
        (place / "ignored.txt").write_text("", encoding="utf-8")
    for number, (a, b) in enumerate(combinations(folders, 2)):
        for folder in (a, b):
            (host.manager.units / f"{folder}.d" / f"pair-{number}.conf").write_text("[Service]\n", encoding="utf-8")
    (host.manager.units / "aa-bb-cc@.service.d" / "60-mask.conf").symlink_to("/dev/null")
    host.manager.systemctl("daemon-reload")
    facts = observe(host, "aa-bb-cc@x.service")
    assert [d.path for d in facts.dropins] == list(facts.loaded_dropins)
    assert len(facts.dropins) > 50
    pure = root.dropin_paths(RootTree(Path("/")), ["aa-bb-cc@x.service"], [str(host.manager.units)])
    assert pure == list(facts.loaded_dropins)
    shutil.rmtree(host.manager.units / "service.d")
    host.manager.systemctl("daemon-reload")


def test_the_first_drop_in_of_a_unit_is_seen_before_systemd_reloads(host: LabHost) -> None:
    host.unit("first.service", "ExecStart=/usr/bin/sleep 600")
    host.manager.systemctl("start", "first.service")
    place = host.manager.units / "first.service.d"
    place.mkdir()
    (place / "10.conf").write_text("[Service]\nEnvironment=KNOB=1\n", encoding="utf-8")
    facts = observe(host, "first.service")
    assert [d.path for d in facts.dropins] == [str(place / "10.conf")]
    assert facts.loaded_dropins == ()
    host.manager.systemctl("stop", "first.service")


def test_files_that_cannot_be_taken_as_text_say_why(host: LabHost) -> None:
    broken, large, folder = host.folder / "broken.env", host.folder / "large.env", host.folder / "folder.env"
    broken.write_bytes(b"A=\xff\n")
    large.write_bytes(b"A=1\n" * 100_000)
    folder.mkdir()
    lines = "\n".join(f"EnvironmentFile=-{p}" for p in (broken, large, folder))
    host.unit("texts.service", f"{lines}\nExecStart=/bin/true")
    facts = observe(host, "texts.service")
    assert [(f.exists, f.text, f.error) for f in facts.env_files] == [
        (True, None, "not-utf-8"),
        (True, None, "too-large"),
        (True, None, "not-a-file"),
    ]
    assert len(facts.problems) == 3


def test_what_the_manager_passes_on_is_told_for_asked_variables_only(host: LabHost) -> None:
    host.unit("passing.service", "ExecStart=/bin/true")
    host.manager.systemctl("set-environment", 'KNOB=it\'s "odd" $x', "OTHER=1")
    facts = observe(host, "passing.service", variables=["KNOB", "NONE"])
    assert facts.manager_environment == {"KNOB": 'it\'s "odd" $x'}
    host.manager.systemctl("unset-environment", "KNOB", "OTHER")


def test_endpoints_are_asked_without_redirects_and_cut_at_the_asked_size(host: LabHost) -> None:
    port = free_port()
    host.unit("web.service", host.engine_line(port, 0, 0))
    host.manager.systemctl("start", "web.service")
    until(host, "web.service", port)
    base = f"http://127.0.0.1:{port}"
    probes = [
        {"id": "moved", "url": f"{base}/moved", "timeout_s": 5, "max_bytes": 10},
        {"id": "long", "url": f"{base}/long", "timeout_s": 5, "max_bytes": 100},
        {"id": "slow", "url": f"{base}/slow", "timeout_s": 0.5, "max_bytes": 100},
        {"id": "drip", "url": f"{base}/drip", "timeout_s": 1, "max_bytes": 100},
        {"id": "post", "url": f"{base}/post", "method": "POST", "json": {"a": [1]}, "timeout_s": 5, "max_bytes": 100},
        {"id": "closed", "url": f"http://127.0.0.1:{free_port()}/", "timeout_s": 5, "max_bytes": 100},
    ]
    answers = [HttpAnswer.model_validate(a) for a in host.done("observe", host="h1", units=[], http=probes)["http"]]
    by_id = {a.id: a for a in answers}
    assert list(by_id) == [p["id"] for p in probes]
    assert by_id["moved"].status == 302
    assert (by_id["long"].body, by_id["long"].truncated) == ("y" * 100, True)
    assert (by_id["slow"].status, by_id["slow"].error) == (None, "no answer in 0.5 s")
    assert by_id["drip"].error is not None
    assert (by_id["post"].status, by_id["post"].body) == (201, 'application/json {"a": [1]}')
    assert (by_id["closed"].status, by_id["closed"].error) == (None, "connection refused")
    host.manager.systemctl("stop", "web.service")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'{"v": 2, "verb": "observe", "scope": "user"}',
        b'{"v": 1, "verb": "shell", "scope": "user"}',
        b'{"v": 1, "verb": "fence", "scope": "root", "unit": "a.service", "token": 1}',
        b'{"v": 1, "verb": "observe", "scope": "user", "host": 1}',
        b"[" * 100_000,
        b" " * (2 * 1024 * 1024),
    ],
    ids=["nothing", "list", "half", "version", "verb", "scope", "type", "deep", "huge"],
)
def test_a_bad_request_is_refused_with_one_json_document(host: LabHost, data: bytes) -> None:
    answer = json.loads(host.raw(data))
    assert (answer["ok"], answer["code"]) == (False, "bad-request")


@pytest.mark.parametrize(
    "unit",
    ["", "a", "a.timer", "../a.service", "a/b.service", "a b.service", "-a;reboot.service", "a@.service", "é.service",
     "$(id).service", "a" * 250 + ".service", "a\n.service", "@a.service", "*.service"],
)  # fmt: skip
def test_a_name_that_is_no_service_unit_never_reaches_systemctl(host: LabHost, unit: str) -> None:
    assert host.refused("fence", unit=unit, token=1)["code"] == "bad-request"


@pytest.mark.parametrize(
    "asked",
    [{"variables": ["A=B"]}, {"variables": ["1A"]}, {"variables": [1]}, {"port": 0}, {"port": 70000}, {"port": True},
     {"http": [{"id": "x", "url": "file:///etc/passwd"}]}, {"http": [{"id": "x", "url": "http://"}]}, {"http": ["x"]},
     {"http": [{"id": "x", "url": "http://127.0.0.1/", "method": "DELETE"}]},
     {"http": [{"id": "x", "url": "http://127.0.0.1/\r\nX: y"}]}],
)  # fmt: skip
def test_odd_fields_are_refused(host: LabHost, asked: dict[str, Any]) -> None:
    units = [{"service": "s", "unit": "s.service", "port": None, "variables": [], "http": [], **asked}]
    assert host.refused("observe", host="h", units=units)["code"] == "bad-request"


def test_the_helper_runs_as_text_given_to_python_and_still_names_its_source(host: LabHost) -> None:
    source = HELPER.read_text(encoding="utf-8")
    request = json.dumps({"v": 1, "verb": "observe", "scope": "user", "host": "h", "units": []}).encode()
    done = subprocess.run(
        [sys.executable, "-I", "-c", source], input=request, capture_output=True, check=True, timeout=60
    )
    assert json.loads(done.stdout)["facts"]["helper"] == hashlib.sha256(source.encode()).hexdigest()


def test_another_persons_process_is_forbidden_and_its_port_hidden() -> None:
    if os.geteuid() != 0:
        skip_or_fail("only root can look as somebody else")
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        code = (
            "import sys; h = {'__name__': 'helper'}; exec(sys.stdin.read(), h)\n"
            f"life = h['process_stat']({os.getpid()})\n"
            f"print(h['read_environ']({os.getpid()}, life.started, ['KNOB'])['KNOB'],"
            f" h['port_owner']({port}, '127.0.0.1', [], h['Processes']().lives)['state'],"
            f" h['read_environ']({os.getpid()}, life.started - 1, ['KNOB'])['KNOB'][0])"
        )
        done = subprocess.run(
            ["/usr/bin/python3", "-I", "-c", code],
            input=HELPER.read_text(encoding="utf-8"),
            capture_output=True,
            text=True,
            user=65534,
            group=65534,
            extra_groups=[],
            cwd="/",
            timeout=60,
            check=False,
        )
    assert (done.stdout.strip(), done.stderr) == ("('forbidden', None) hidden vanished", "")


def test_a_pid_that_was_given_to_another_process_meanwhile_has_vanished() -> None:
    scope: dict[str, Any] = {"__name__": "helper"}
    exec(HELPER.read_text(encoding="utf-8"), scope)  # noqa: S102 - the program itself, as hosts run it
    with subprocess.Popen(["/bin/sleep", "600"]) as other:
        started = scope["process_stat"](other.pid).started
        assert scope["read_environ"](other.pid, started, ["NO_SUCH"]) == {"NO_SUCH": ("absent", None)}
        assert scope["read_environ"](other.pid, started + 1, ["NO_SUCH"]) == {"NO_SUCH": ("vanished", None)}
        other.kill()
    assert scope["read_environ"](2**22 + 1, 1, ["NO_SUCH"]) == {"NO_SUCH": ("vanished", None)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("A=1 B=2", ["A=1", "B=2"]),
        (r'"A=b c" D=1', ["A=b c", "D=1"]),
        (r"$'A=it\'s' B=1", ["A=it's", "B=1"]),
        (r"$'A=a\nb\x41\101'", ["A=a\nbAA"]),
        (r'"K_i=<x\\x2dy>"', [r"K_i=<x\x2dy>"]),
    ],
)
def test_lists_of_systemctl_are_taken_apart(text: str, words: list[str]) -> None:
    scope: dict[str, Any] = {"__name__": "helper"}
    exec(HELPER.read_text(encoding="utf-8"), scope)  # noqa: S102 - the program itself, as hosts run it
    assert scope["words_of"](text) == words
