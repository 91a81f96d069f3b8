"""One real `systemd --user` manager per demo host, in a mount and cgroup namespace of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from policies.errors import SettingsError
from sandbox.fleet.cgroup import HINT, Cgroup
from sandbox.fleet.guard import Guard

SYSTEMD = next((p for p in ("/lib/systemd/systemd", "/usr/lib/systemd/systemd") if Path(p).exists()), "")
BOOT_S = 60.0
COMMAND_S = 60.0
SOCKET_PATH_MAX_BYTES = 107  # Source: unix(7), sun_path

TARGETS = {
    "basic.target": "",
    "sysinit.target": "",
    "shutdown.target": "",
    "default.target": "Requires=basic.target\nAfter=basic.target\n",
    "exit.target": "Requires=systemd-exit.service\nAfter=systemd-exit.service\n",
}
EXIT_SERVICE = (
    "[Unit]\nDefaultDependencies=no\nSuccessAction=exit-force\n[Service]\nType=oneshot\nExecStart=/bin/true\n"
)

# everything the manager sees below /run and /sys/fs/cgroup is its own: two hosts cannot meet there.
# A cgroup2 mount over a cgroup2 mount is refused, so a tmpfs goes between (this serves hybrid machines too).
INSIDE = """set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system
mount -t tmpfs tmpfs /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
{mounts}exec env -i {environment} {systemd} --user --log-target=console --log-level=info
"""


class UserManager:
    """A user manager below `folder`; `units` holds its unit files, `run()` executes beside it.

    own: folder -> the folder that stands in its place on this host, so that hosts of one disk differ there.
    """

    def __init__(self, folder: Path, name: str = "host", own: Mapping[Path, Path] | None = None) -> None:
        self.folder = folder
        self.own = own or {}
        self.name = name
        self.xdg = folder / "xdg"
        self.units = folder / "units"
        self.home = folder / "home"
        self.log = folder / "systemd.log"
        self.cgroup: Cgroup | None = None
        self._guard: Guard | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What the manager and every command beside it get; nothing of ours leaks in."""
        return {
            "XDG_RUNTIME_DIR": str(self.xdg),
            "SYSTEMD_UNIT_PATH": str(self.units),
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }

    @property
    def pid(self) -> int:
        """Process id of the manager.

        Raises: SettingsError when it is not running.
        """
        if self._process is None or self._process.poll() is not None:
            raise SettingsError(f"the manager of '{self.name}' is not running", hint=f"see {self.log}")
        return self._process.pid

    def boot(self, timeout_s: float = BOOT_S) -> None:
        """Start the manager and wait until it answers.

        Raises: SettingsError where it cannot run; nothing is left behind then.
        """
        self._check()
        self._write_folders()
        self.cgroup = Cgroup.create(f"clawback-{os.getpid()}-{self.name}-{time.monotonic_ns():x}")
        try:
            self._guard = Guard(self.cgroup)
            leaf = self.cgroup.child("manager")
            self.cgroup.child("sessions")
            self._start(leaf)
            self._wait_answer(timeout_s)
        except BaseException:
            self.stop()
            raise

    def wrap(self, argv: Sequence[str], extra: Mapping[str, str] | None = None) -> list[str]:
        """The argument list that runs `argv` on this host: its /run, its cgroups, its environment."""
        if self.cgroup is None:
            raise SettingsError(f"the manager of '{self.name}' is not running", hint="boot() it first")
        environment = {**self.environment, **(extra or {})}
        user = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
        enter = ("nsenter", "--target", str(self.pid), *user, "--mount", "--cgroup", f"--wdns={self.home}", "--")
        inner = [*enter, "env", "-i", *(f"{key}={value}" for key, value in environment.items()), *argv]
        procs = self.cgroup.path / "sessions" / "cgroup.procs"
        return ["/bin/sh", "-c", f'echo $$ > {shlex.quote(str(procs))} && exec "$@"', "sh", *inner]

    def run(self, argv: Sequence[str], timeout_s: float = COMMAND_S) -> subprocess.CompletedProcess[str]:
        """Run a command on this host and return what it wrote; a failure is a return code."""
        return subprocess.run(
            self.wrap(argv), capture_output=True, text=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL
        )

    def systemctl(self, *arguments: str, timeout_s: float = COMMAND_S) -> str:
        """Run `systemctl --user ARGUMENTS` and return its output.

        Raises: SettingsError with what systemctl said, when it fails.
        """
        done = self.run(["systemctl", "--user", *arguments], timeout_s)
        if done.returncode != 0:
            raise SettingsError(
                f"'systemctl --user {' '.join(arguments)}' on '{self.name}' ended with {done.returncode}: "
                f"{done.stderr.strip()}",
                hint=f"see {self.log}",
            )
        return done.stdout

    def show(self, unit: str, *properties: str) -> dict[str, str]:
        """Properties of a unit as `systemctl show` prints them."""
        lines = self.systemctl("show", unit, "-p", ",".join(properties)).splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def stop(self) -> None:
        """End every process of this host by id and remove its cgroup. Safe to call twice."""
        if self._process is not None:
            self._process.kill()  # first: it may not have entered its cgroup yet
            self._process.wait()
        if self.cgroup is not None:
            self.cgroup.destroy()
        if self._guard is not None:
            self._guard.release()
        self.cgroup = self._process = self._guard = None

    def _check(self) -> None:
        if not SYSTEMD:
            raise SettingsError(
                "no systemd on this machine", hint="install the systemd package; it need not be running"
            )
        for tool in ("unshare", "nsenter", "mount"):
            if shutil.which(tool, path="/usr/bin:/bin") is None:
                raise SettingsError(f"no '{tool}' on this machine", hint="install util-linux")
        socket_path = os.fsencode(self.xdg / "systemd" / "private")
        if len(socket_path) > SOCKET_PATH_MAX_BYTES:
            raise SettingsError(
                f"'{self.folder}' is too long a path: systemd's socket would need {len(socket_path)} bytes, "
                f"at most {SOCKET_PATH_MAX_BYTES} work",
                hint="choose a folder with a shorter path",
            )
        if any(character.isspace() or character in "%\\\"'" for character in str(self.folder)):
            raise SettingsError(
                f"'{self.folder}' holds characters that unit files give a meaning", hint="choose a plain path"
            )

    def _write_folders(self) -> None:
        for path in (self.folder, self.xdg, self.units, self.home, *self.own, *self.own.values()):
            path.mkdir(parents=True, exist_ok=True)
        self.xdg.chmod(0o700)
        for name, more in TARGETS.items():
            (self.units / name).write_text(f"[Unit]\nDefaultDependencies=no\n{more}", encoding="utf-8")
        (self.units / "systemd-exit.service").write_text(EXIT_SERVICE, encoding="utf-8")

    def _start(self, leaf: Cgroup) -> None:
        environment = " ".join(shlex.quote(f"{key}={value}") for key, value in self.environment.items())
        mounts = "".join(
            f"mount --bind {shlex.quote(str(its))} {shlex.quote(str(at))}\n" for at, its in self.own.items()
        )
        inside = INSIDE.format(environment=environment, systemd=SYSTEMD, mounts=mounts)
        user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
        argv = ["unshare", *user, "--mount", "--cgroup", "--propagation", "private", "/bin/sh", "-c", inside]
        enter = f'echo $$ > {shlex.quote(str(leaf.path / "cgroup.procs"))} && exec "$@"'
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", enter, "sh", *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )

    def _wait_answer(self, timeout_s: float) -> None:
        assert self._process is not None  # noqa: S101 - set by _start
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            if (self.xdg / "systemd" / "private").exists():
                state = self.run(["systemctl", "--user", "is-system-running"]).stdout.strip()
                if state in ("running", "degraded"):
                    return
            time.sleep(0.01)
        said = self.log.read_text(encoding="utf-8", errors="replace").strip()[-500:] or "it said nothing"
        raise SettingsError(f"systemd --user of '{self.name}' did not come up: {said}", hint=HINT)
