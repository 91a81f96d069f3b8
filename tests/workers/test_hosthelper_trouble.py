"""What the helper tells about trouble: who holds a device or a port, how a life ended, and what the unit logged."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from policies.facts import HostFacts, UnitFacts
from tests.ports import free_port
from tests.shared import skip_or_fail
from tests.workers.lab_host import LabHost, lab_host
from workers.hosthelper import log_file, masked

pytestmark = pytest.mark.real

SLEEP = "ExecStart=/bin/sleep 600"


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host() as booted:
        yield booted


def observe(host: LabHost, unit: str, **more: Any) -> UnitFacts:
    asked = {"service": "engine", "unit": unit, "port": None, "variables": [], "http": [], **more}
    answer = host.done("observe", host="h1", units=[asked], http=[])
    return HostFacts.model_validate(answer["facts"]).units[0]


@contextmanager
def holding(path: Path) -> Iterator[int]:
    """A process outside of every unit that has the file open."""
    code = "import sys; f = open(sys.argv[1]); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.communicate()


def test_who_has_a_device_open_is_named_with_pid_name_and_since_when(host: LabHost) -> None:
    device = host.folder / "nvidia0"
    device.touch()
    host.unit("dev.service", f"ExecStart=/bin/sh -c 'exec 9<{device}; exec sleep 600'")
    host.manager.systemctl("restart", "dev.service")
    link = host.folder / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(device)
    deadline = time.monotonic() + 60
    while not observe(host, "dev.service", devices=[str(device)]).device_holders:
        assert time.monotonic() < deadline
    with holding(device) as pid:
        for asked in (device, link):
            facts = observe(host, "dev.service", devices=[str(asked), str(host.folder / "none")])
            stranger, ours = facts.device_holders
            assert (stranger.pid, stranger.in_unit, stranger.path) == (pid, False, str(asked))
            assert stranger.name.startswith("python")
            assert abs(stranger.since - time.time()) < 120
            assert (ours.pid, ours.in_unit, ours.name) == (facts.incarnation.main_pid, True, "sleep")
    facts = observe(host, "dev.service", devices=[str(device)])
    assert [h.in_unit for h in facts.device_holders] == [True]
    assert observe(host, "dev.service").device_holders == ()


def test_a_character_device_is_known_by_its_number_whatever_its_path(host: LabHost) -> None:
    host.unit("dev.service", SLEEP)
    host.manager.systemctl("restart", "dev.service")
    alias = host.folder / "null"
    alias.unlink(missing_ok=True)
    try:
        os.mknod(alias, 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        skip_or_fail("no right to make a device")
    found = observe(host, "dev.service", devices=[str(alias)]).device_holders
    assert any(h.in_unit and h.path == str(alias) for h in found)  # its stdin is /dev/null


def test_a_foreign_owner_of_a_port_is_named_with_its_start(host: LabHost) -> None:
    host.unit("port.service", SLEEP)
    host.manager.systemctl("start", "port.service")
    with socket.create_server(("127.0.0.1", free_port())) as server:
        owner = observe(host, "port.service", port=server.getsockname()[1]).port
    assert owner is not None
    assert (owner.state, owner.pid, owner.in_unit) == ("owned", os.getpid(), False)
    comm = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
    assert owner.name == comm
    assert owner.since is not None
    assert owner.since < time.time()


def test_the_end_of_a_units_own_log_file_comes_without_its_secrets(host: LabHost) -> None:
    log = host.folder / "engine.log"
    said = "\\n".join(["one", "two api_key=sk-12345", "three"])
    host.unit("log.service", f"StandardOutput=append:{log}\nExecStart=/bin/sh -c 'printf \"{said}\\n\"; sleep 600'")
    host.manager.systemctl("start", "log.service")
    deadline = time.monotonic() + 60
    while not log.exists() or "three" not in log.read_text():
        assert time.monotonic() < deadline
    tail = observe(host, "log.service", log_lines=2).log
    assert tail is not None
    assert (tail.source, tail.lines, tail.error) == (str(log), ("two api_key=***", "three"), None)
    tail = observe(host, "log.service", log_lines=2, log_since=time.time() + 5).log
    assert tail is not None
    assert (tail.lines, tail.error) == ((), "nothing since then")
    assert observe(host, "log.service").log is None
    log.unlink()
    tail = observe(host, "log.service", log_lines=2).log
    assert tail is not None
    assert (tail.lines, tail.error) == ((), "not-found")


def test_a_huge_log_is_read_from_its_end_only_and_a_pipe_is_no_log(host: LabHost) -> None:
    log = host.folder / "huge.log"
    log.write_bytes(b"x" * 1_000_000 + b"\n" + b"y" * 2000 + b"\nlast \xff line\n")
    host.unit("huge.service", f"StandardOutput=append:{log}\n{SLEEP}")
    tail = observe(host, "huge.service", log_lines=1000).log
    assert tail is not None
    assert tail.lines == ("y" * 500, "last \ufffd line")
    log.unlink()
    os.mkfifo(log)
    tail = observe(host, "huge.service", log_lines=10).log
    assert tail is not None
    assert (tail.lines, tail.error) == ((), "not-a-file")
    log.unlink()


def test_a_unit_without_a_file_of_its_own_is_asked_from_the_journal(host: LabHost) -> None:
    host.unit("quiet.service", SLEEP)
    tail = observe(host, "quiet.service", log_lines=5).log
    assert tail is not None
    assert tail.source == "journal"
    assert tail.lines == ()
    assert tail.error  # this host has no journal: that is said, and is no silence of the unit


@pytest.mark.parametrize(
    ("texts", "path"),
    [
        (["StandardOutput=append:/a/%i.log"], "/a/0.log"),
        (["StandardOutput=append:/a\nStandardError=file:/b"], "/b"),
        (["StandardOutput=append:/a\nStandardError=inherit"], "/a"),
        (["StandardOutput=append:/a", "StandardOutput=journal"], None),
        (["StandardOutput=append:/a\nStandardError=journal"], None),
        (["StandardOutput=null"], None),
        (["StandardOutput=append:relative"], None),
        ([], None),
    ],
)
def test_the_log_of_a_unit_is_where_its_errors_go(texts: list[str], path: str | None) -> None:
    assert log_file([{"text": text} for text in texts] + [{"text": None}], "engine@0.service") == path


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("HF_TOKEN=hf_abcdefghijkl rest", "HF_TOKEN=*** rest"),
        ("ServerArgs(api_key='sk-1', port=3)", "ServerArgs(api_key=***, port=3)"),
        ('{"password": "p w", "a": 1}', '{"password": ***, "a": 1}'),
        ("--api-key s3cret --port 1", "--api-key *** --port 1"),
        ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer ***"),
        ("GET http://u:pw@h/x", "GET http://u:***@h/x"),
        ("using sk-abcdefghijklmnop now", "using *** now"),
        ("SECRET_KEY_BASE: x", "SECRET_KEY_BASE: ***"),
        ("#new-token: 33, max_total_num_tokens=12, keyword=1", "#new-token: 33, max_total_num_tokens=12, keyword=1"),
        (
            "Invalid value for NAME: invalid literal for int() with base 10: '512  # tuned', using default",
            "Invalid value for NAME: invalid literal for int() with base 10: '512  # tuned', using default",
        ),
    ],
)
def test_what_looks_like_a_secret_is_masked_and_the_rest_stays(line: str, shown: str) -> None:
    assert masked(line) == shown


def test_the_first_end_of_a_new_life_is_kept_when_systemd_forgets_it(host: LabHost) -> None:
    host.unit(
        "dies.service", "Restart=on-failure\nRestartSec=0.2\nExecStart=/bin/sh -c 'exit 7'", unit="StartLimitBurst=2"
    )
    host.manager.systemctl("reset-failed")
    host.manager.run(["systemctl", "--user", "start", "--no-block", "dies.service"])
    answer = host.done("wait", unit="dies.service", before=None, port=None, health=None, for_s=20)
    assert (answer["state"], answer["n_restarts"]) == ("failed", 2)  # the third start was refused
    assert answer["failed"] == {"result": "exit-code", "code": 1, "status": 7}
    assert (answer["exec_main_code"], answer["exec_main_status"]) == (1, 7)


def test_our_own_restarts_within_the_start_limit_are_counted(host: LabHost) -> None:
    host.unit("often.service", SLEEP, unit="StartLimitIntervalSec=600\nStartLimitBurst=4")
    host.manager.systemctl("start", "often.service")
    assert observe(host, "often.service").recent_restarts == 0
    for step in ("do-1", "do-2"):
        host.done("restart", unit="often.service", token=1, change="C-1", step=step)
    assert observe(host, "often.service").recent_restarts == 2
