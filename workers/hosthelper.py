"""The one program that runs on hosts: reads JSON requests on stdin, a line each, prints a line of JSON for each.

Standard library only, Python 3.9 or newer, one file, no shell.
It ends with its stdin, so one request and its end is one answer and an exit with 0. Nothing but what was imported is
kept from one request to the next: locks, tokens, files and facts are looked at anew each time.
Request: {"v": 1, "verb": V, "scope": "system"|"user", ...}.
Answer: {"v": 1, "ok": true, ...} or {"v": 1, "ok": false, "code": C, "message": M, "hint": H}.

    hello    says which text this program is; from then on the end of stdin means that nobody waits for an answer
    observe  reads units, files, processes, ports and endpoints; changes nothing
    write    writes or removes clawback's own drop-in of one unit, then daemon-reload
    restart  `systemctl restart --no-block UNIT`, once for each (change, step, token)
    rights   says as whom this program runs and what it may do for units; changes nothing
    wait     long poll until a unit is ready; changes nothing but the time it takes
    fence    raises the token of a unit and answers what was done to it
    releases looks at release folders and the link that names the one that runs; changes nothing
    switch   has that link name another release, when that one is whole
    prune    takes old releases away
    command  runs the declared command of a deploy
    workers  adds a worker at a router of this host, or removes one, through the router's own API
    read     reads files, and what programs that change nothing write

write, restart, fence, switch, prune, command and workers carry a fencing token. A token lower than the stored one is
refused; a higher one is stored (and on the disk) before anything is done, so that a worker which lost its lease cannot
act any more.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import hashlib
import json
import math
import os
import pwd
import re
import select
import shlex
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple
from urllib.parse import urlsplit

Json = Dict[str, Any]

VERSION = 1
REQUEST_MAX_BYTES = 1024 * 1024
TEXT_MAX_BYTES = 256 * 1024
BODY_MAX_BYTES = 8 * 1024 * 1024
ENVIRON_MAX_BYTES = 4 * 1024 * 1024
PROCESSES_MAX = 1024
RECORDS_MAX = 50
SYSTEMCTL_TIMEOUT_S = 90.0
LOCK_TIMEOUT_S = 15.0
IDLE_S = 120.0  # without a request for so long the program ends
LOG_LINES_MAX = 200
LOG_LINE_MAX = 500  # characters of one line
LOG_MAX_BYTES = 256 * 1024  # read from the end of a log file
LOG_TIMEOUT_S = 10.0
HOLDERS_MAX = 200
LOOK_UP_S = 0.2  # how often somebody who may have left is looked for while something long is awaited
SHOW_EVERY_S = 0.5  # while waiting, systemctl is asked when something moved and at least this often
DROPIN_NAME = "zz-clawback.conf"
RELEASES_MAX = 1000
FILES_MAX = 200000
MANIFEST_MAX_BYTES = 64 * 1024 * 1024
NAMES_MAX = 20  # of files that are told
CHANGES_FILES = ("changes", "CHANGES", "CHANGES.md")
CHANGES_MAX_BYTES = 4096
DYING = ".clawback-removed-"  # in front of the name of a release that is being taken away
OUTPUT_MAX_BYTES = 65536  # of a program, from its end
OUTPUT_LINES = 10
ANSWER_MAX_CHARACTERS = 65536
END_S = 2.0  # between the signals that end a program

# systemd's unit-name grammar: prefix, optional @instance, type; only services are handled here
UNIT_NAME = re.compile(r"[A-Za-z0-9:_.\\-]+(?:@[A-Za-z0-9:_.\\@-]*)?\.service")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RELEASE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
WORKER_ID = re.compile(r"[0-9A-Za-z-]{1,64}")  # a router gives UUIDs; nothing that could be another path
NOTE_MAX_CHARACTERS = 16384
ROUTER_TIMEOUT_S = 10.0  # below LOCK_TIMEOUT_S: who waits for the lock gets it
PART_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
RELEASES_PATH = re.compile(r"(?:/[A-Za-z0-9][A-Za-z0-9._+@-]{0,254}){2,16}")


class Refused(Exception):
    """An answer that says no. `code` is stable; `extra` goes into the answer as it is."""

    def __init__(self, code: str, message: str, hint: str = "", **extra: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.hint, self.extra = code, message, hint, extra


class Gone(Exception):
    """Nobody is there to take the answer."""


class Caller:
    """Who asks, at the other ends of stdin and stdout.

    Read from the descriptor itself, because a buffer of Python's cannot be asked with a time limit.
    """

    def __init__(self) -> None:
        self.stays = False  # said hello: stdin stays open for as long as somebody is there
        self.idle_s = IDLE_S
        self._kept = bytearray()
        self._ended = False

    def line(self) -> Optional[bytes]:
        """The next request; None: there is no more, or it did not come in time.

        Without a hello the end of stdin ends a request as well, and a first line that is no document is its beginning.
        """
        deadline = time.monotonic() + self.idle_s
        searched, by_lines = 0, True
        while True:
            at = self._kept.find(b"\n", searched) if by_lines else -1
            if at >= 0 and (self.stays or is_document(bytes(self._kept[:at]))):
                return self._take(at + 1)
            by_lines = by_lines and at < 0
            searched = len(self._kept)
            if len(self._kept) > REQUEST_MAX_BYTES:
                return self._take(len(self._kept))
            if self._ended:
                whole = not self.stays and self._kept.strip()
                return self._take(len(self._kept)) if whole else None
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not readable(0, left_s):
                return None
            piece = os.read(0, 65536)
            self._kept += piece
            self._ended = not piece

    def _take(self, count: int) -> bytes:
        piece = bytes(self._kept[:count])
        del self._kept[:count]
        return piece

    def answer(self, answer: Json) -> None:
        """Raises: OSError when nobody reads it."""
        data = memoryview(json.dumps(answer).encode() + b"\n")
        while data:
            data = data[os.write(1, data) :]

    def check(self) -> None:
        """Raises Gone when nobody reads answers any more. Never called between an act and its record."""
        poll = select.poll()
        poll.register(1, 0)
        if self.stays:
            poll.register(0, select.POLLRDHUP)
        if any(
            seen & (select.POLLHUP | select.POLLERR | select.POLLNVAL | select.POLLRDHUP) for _, seen in poll.poll(0)
        ):
            raise Gone

    def sleep(self, duration_s: float) -> None:
        """Sleeps, and raises Gone as soon as the caller is."""
        end = time.monotonic() + duration_s
        while True:
            self.check()
            left_s = end - time.monotonic()
            if left_s <= 0:
                return
            time.sleep(min(left_s, LOOK_UP_S))


CALLER = Caller()


def readable(fd: int, timeout_s: float) -> bool:
    """Something to read, or the end, came in time."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def is_document(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


# --- request fields -------------------------------------------------------------------------------------------------


def field(request: Json, name: str, kinds: Any, default: Any = None, required: bool = True) -> Any:
    """One field of the request, of one of `kinds`. bool is never taken for a number."""
    if name not in request:
        if required:
            raise Refused("bad-request", f"the request lacks {name!r}")
        return default
    value = request[name]
    accepted = kinds if isinstance(kinds, tuple) else (kinds,)
    if (isinstance(value, bool) and bool not in accepted) or not isinstance(value, accepted):
        raise Refused(
            "bad-request", f"{name!r} is {str(value)[:80]!r}, expected {'/'.join(k.__name__ for k in accepted)}"
        )
    return value


NONE = type(None)
NUMBER = (int, float)


def seconds(request: Json, name: str, default: float, most: float) -> float:
    value = float(field(request, name, NUMBER, default, required=False))
    if not 0 <= value <= most:
        raise Refused("bad-request", f"{name!r} is {value}, expected 0 to {most:g} seconds")
    return value


def unit_field(request: Json) -> str:
    unit: str = field(request, "unit", str)
    if len(unit) > 255 or not UNIT_NAME.fullmatch(unit) or unit.startswith("@") or unit.endswith("@.service"):
        raise Refused(
            "bad-request",
            f"{unit[:80]!r} is not a service unit name",
            "a name such as engine.service or engine@0.service",
        )
    return unit


def key_field(request: Json, name: str) -> str:
    value: str = field(request, name, str)
    if not 1 <= len(value) <= 200 or not value.isprintable():
        raise Refused("bad-request", f"{name!r} is {value[:80]!r}, expected 1 to 200 printable characters")
    return value


def token_field(request: Json) -> int:
    token: int = field(request, "token", int)
    if token < 1:
        raise Refused("bad-request", f"'token' is {token}, expected 1 or more")
    return token


def incarnation_field(request: Json, name: str) -> Optional[Json]:
    value = field(request, name, (dict, NONE), None, required=False)
    if value is None:
        return None
    return {
        "main_pid": field(value, "main_pid", int),
        "started": field(value, "started", int),
        "invocation_id": field(value, "invocation_id", str),
    }


# --- systemctl ------------------------------------------------------------------------------------------------------

UNIT_PROPERTIES = (
    "Id", "Names", "LoadState", "ActiveState", "SubState", "Result", "Type", "NRestarts", "ExecMainStatus",
    "ExecMainCode", "TimeoutStartUSec", "TimeoutStopUSec", "Restart", "RestartUSec", "StartLimitBurst",
    "StartLimitIntervalUSec", "StartLimitInterval", "NeedDaemonReload", "ControlGroup", "ExecStart", "MainPID",
    "InvocationID", "FragmentPath", "DropInPaths", "EnvironmentFiles", "EnvironmentFile", "UnsetEnvironment",
    "PassEnvironment", "Job",
)  # fmt: skip
SPAN_UNITS_S = {
    "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0,
    "w": 604800.0, "month": 2629800.0, "y": 31557600.0,
}  # fmt: skip
Properties = Dict[str, List[str]]


class Manager:
    """The system or user manager, asked through systemctl by argument lists."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.env = {
            k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
        }
        self.env.update(LC_ALL="C", SYSTEMD_PAGER="", SYSTEMD_COLORS="0")
        self.env.setdefault("PATH", "/usr/bin:/bin")
        if scope == "user":
            self.env.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
        self._base: Optional[str] = None

    def start(self, *words: str) -> "Asked":
        """A systemctl that runs while something else is done."""
        return Asked(["systemctl", *(["--user"] if self.scope == "user" else []), "--no-pager", *words], self.env)

    def run(self, *words: str) -> str:
        with self.start(*words) as asked:
            return asked.text()

    def start_show(self, units: List[str], names: Iterable[str] = UNIT_PROPERTIES) -> "Asked":
        return self.start("show", *[f"-p{name}" for name in names], "--", *units)

    def show(self, units: List[str]) -> List[Properties]:
        """Properties of each unit, in the order asked."""
        with self.start_show(units) as asked:
            return asked.properties(len(units))

    def unit(self, unit: str) -> Properties:
        return self.show([unit])[0]

    def pid(self) -> int:
        """The manager's own process: 1, or for a user manager the peer of its private socket."""
        if self.scope == "system":
            return 1
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(2)
                s.connect(os.path.join(self.env["XDG_RUNTIME_DIR"], "systemd", "private"))
                return int(struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
        except (OSError, AttributeError):
            return 0

    def cgroup_base(self) -> str:
        """What precedes ControlGroup= in /proc/PID/cgroup: in a cgroup namespace the manager's own root is '/'."""
        if self._base is None:
            pid = self.pid()
            path = cgroup_of(pid) if pid else None
            base = path[: -len("/init.scope")] if path and path.endswith("/init.scope") else ""
            self._base = base.rstrip("/")
        return self._base

    def unit_cgroup(self, properties: Properties) -> Optional[str]:
        """The unit's cgroup as /proc shows it here; None while it has none."""
        control_group = one(properties, "ControlGroup").rstrip("/")
        if not control_group:
            return None
        main = int(one(properties, "MainPID") or 0)
        own = cgroup_of(main) if main else None
        for path in (own, os.path.dirname(own) if own else None):
            if path and path.endswith(control_group):
                return path
        if self.scope == "user" and control_group.startswith(self.cgroup_base() + "/"):
            return control_group
        return self.cgroup_base() + control_group


class Asked:
    """One systemctl that was started. It has ended when the block is left; only its time limit ends it early."""

    def __init__(self, argv: List[str], env: Dict[str, str]) -> None:
        self.words = " ".join(argv)
        self._deadline = time.monotonic() + SYSTEMCTL_TIMEOUT_S
        try:
            self._process = subprocess.Popen(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as e:
            raise Refused(
                "systemctl-failed", f"systemctl cannot be run: {e.strerror}", "this host needs systemd"
            ) from None

    def __enter__(self) -> "Asked":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdout is None or self._process.stdout.closed:
            return
        with contextlib.suppress(Refused):
            self.text()

    def text(self) -> str:
        try:
            out, err = self._process.communicate(timeout=max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise Refused("systemctl-failed", f"{self.words!r} gave no answer in {SYSTEMCTL_TIMEOUT_S:g} s") from None
        if self._process.returncode != 0:
            said = err.decode("utf-8", "replace").strip()[:2000]
            denied = "ccess denied" in said or "uthentication" in said or "ermission denied" in said
            hint = "the login user may not manage this unit: allow it by sudo or polkit" if denied else ""
            raise Refused("forbidden" if denied else "systemctl-failed", f"{self.words!r} failed: {said}", hint)
        return out.decode("utf-8", "surrogateescape")

    def properties(self, count: int = 1) -> List[Properties]:
        answers = [read_properties(block) for block in self.text().split("\n\n") if block.strip()]
        if len(answers) != count:
            raise Refused("systemctl-failed", f"systemctl show answered {len(answers)} units, asked for {count}")
        return answers

    def known(self, unit: str) -> Properties:
        """The properties of a unit that has to be there."""
        shown = self.properties()[0]
        if one(shown, "LoadState") == "not-found":
            raise Refused(
                "no-such-unit",
                f"this host has no unit {unit!r}",
                f"`systemctl cat {shlex.quote(unit)}` on the host shows what it knows",
            )
        return shown


def read_properties(text: str) -> Properties:
    found: Properties = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found.setdefault(name, []).append(value)
    return found


def one(properties: Properties, name: str, default: str = "") -> str:
    values = properties.get(name)
    return values[0] if values else default


def whole(properties: Properties, name: str) -> Optional[int]:
    value = one(properties, name)
    return int(value) if value.isdigit() else None


def span_s(text: str) -> Optional[float]:
    """`1min 30s` in seconds; None for infinity and for what is no time span."""
    total, seen = 0.0, False
    for word in text.split():
        match = re.fullmatch(r"([0-9.]+)([a-z]*)", word)
        if not match or (match[2] or "s") not in SPAN_UNITS_S:
            return None
        total, seen = total + float(match[1]) * SPAN_UNITS_S[match[2] or "s"], True
    return round(total, 6) if seen else None


def words_of(text: str) -> List[str]:
    """A list as systemctl prints it: words apart by blanks, odd ones as \"...\" or $'...'."""
    words: List[str] = []
    for match in re.finditer(r"""\$'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+)""", text):
        dollar, quoted, plain = match.groups()
        if dollar is not None:
            words.append(re.sub(r"\\(x[0-9a-fA-F]{2}|[0-7]{3}|.)", _unescape, dollar))
        else:
            words.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain)
    return words


def _unescape(match: "re.Match[str]") -> str:
    code: str = match[1]
    if code[0] == "x" and len(code) == 3:
        return chr(int(code[1:], 16))
    if len(code) == 3:
        return chr(int(code, 8))
    return {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}.get(code, code)


def incarnation_of(properties: Properties) -> Json:
    main = int(one(properties, "MainPID") or 0)
    life = process_stat(main) if main else None
    return {
        "main_pid": main if life else 0,
        "started": life.started if life else 0,
        "invocation_id": one(properties, "InvocationID"),
    }


# --- files ----------------------------------------------------------------------------------------------------------


def file_text(path: str) -> Json:
    """A file with its text, digest, mode and owner; why not, where it cannot be read."""
    answer: Json = {
        "path": path,
        "exists": False,
        "text": None,
        "sha256": None,
        "mode": None,
        "owner": None,
        "error": None,
    }
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return answer
    except PermissionError:
        answer.update(exists=os.path.lexists(path), error="forbidden")
        return answer
    except (OSError, ValueError):
        answer.update(error="not-a-file")
        return answer
    info = os.fstat(fd)
    answer.update(exists=True, mode=stat.S_IMODE(info.st_mode), owner=f"{info.st_uid}:{info.st_gid}")
    if stat.S_ISDIR(info.st_mode):
        os.close(fd)
        answer.update(error="not-a-file")
        return answer
    with os.fdopen(fd, "rb", buffering=0) as f:
        if stat.S_ISCHR(info.st_mode) and os.path.realpath(path) == "/dev/null":  # a mask: systemd reads an empty file
            answer.update(text="", sha256=hashlib.sha256(b"").hexdigest())
            return answer
        if not stat.S_ISREG(info.st_mode):
            answer.update(error="not-a-file")
            return answer
        data = b""
        while len(data) <= TEXT_MAX_BYTES:
            piece = f.read(TEXT_MAX_BYTES + 1 - len(data))
            if not piece:
                break
            data += piece
    if len(data) > TEXT_MAX_BYTES:
        answer.update(error="too-large")
        return answer
    answer["sha256"] = hashlib.sha256(data).hexdigest()
    try:
        answer["text"] = data.decode("utf-8")
    except UnicodeDecodeError:
        answer["error"] = "not-utf-8"
    return answer


def dropin_folder_names(name: str) -> List[str]:
    """Names with `.d` folders for one unit name, in systemd's order: itself, its template, then shorter prefixes.

    A template is shortened to a plain name (`a-b@.service` to `a-.service`), an instance keeps its instance.
    """
    names = [name]
    prefix, _, instance = name[: -len(".service")].partition("@")
    if instance:
        names += dropin_folder_names(f"{prefix}@.service")
    cut = prefix[:-1].rfind("-") if prefix.endswith("-") else prefix.rfind("-")
    if cut > 0:
        names += dropin_folder_names(prefix[: cut + 1] + (f"@{instance}" if instance else "") + ".service")
    return list(dict.fromkeys(names))


def dropin_files(unit_names: List[str], search_path: List[str]) -> List[str]:
    """Paths of all drop-ins in the order in which systemd reads them.

    Each file name counts once, from the first folder that has it; files are then read sorted by name. Read from the
    disk because the manager's own DropInPaths= and NeedDaemonReload= miss the first drop-in folder of a unit.
    """
    chosen: Dict[str, str] = {}
    groups = [dropin_folder_names(name) for name in unit_names] + [["service"]]
    for group in groups:
        for folder in search_path:
            for name in group:
                place = os.path.join(folder, name + ".d")
                try:
                    entries = os.listdir(place)
                except OSError:
                    continue
                for entry in entries:
                    if entry.endswith(".conf") and not entry.startswith("."):
                        chosen.setdefault(entry, os.path.join(place, entry))
    return [chosen[entry] for entry in sorted(chosen, key=os.fsencode)]


def own_folder(scope: str) -> str:
    """Where clawback's own drop-ins live, by the manager's scope."""
    if scope == "system":
        return "/etc/systemd/system"
    first = os.environ.get("SYSTEMD_UNIT_PATH", "").split(":")[0]
    if first:
        return first
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home(), ".config")
    return os.path.join(config, "systemd", "user")


def home() -> str:
    return os.environ.get("HOME") or os.path.expanduser("~")


def dropin_path(scope: str, unit: str) -> str:
    return os.path.join(own_folder(scope), unit + ".d", DROPIN_NAME)


def environment_files(properties: Properties) -> List[str]:
    """The paths of EnvironmentFile=, patterns expanded as systemd does at start; one without a match stays as it is."""
    paths: List[str] = []
    for value in properties.get("EnvironmentFiles", properties.get("EnvironmentFile", [])):
        pattern = re.sub(r" \(ignore_errors=(?:yes|no)\)$", "", value)
        if not pattern:
            continue
        hits = sorted(glob.glob(pattern), key=os.fsencode) if re.search(r"[*?\[]", pattern) else []
        paths += hits or [pattern]
    return paths


# --- processes ------------------------------------------------------------------------------------------------------


class Life:
    """What /proc/PID/stat says about one process."""

    __slots__ = ("name", "parent", "started", "state")

    def __init__(self, name: str, state: str, parent: int, started: int) -> None:
        self.name, self.state, self.parent, self.started = name, state, parent, started


def process_stat(pid: int) -> Optional[Life]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            data = f.read(4096)
    except OSError:
        return None
    head, _, tail = data.rpartition(b")")
    fields = tail.split()
    if len(fields) < 20:
        return None
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    return Life(name, fields[0].decode(), int(fields[1]), int(fields[19]))


def cgroup_of(pid: int) -> Optional[str]:
    """The cgroup path of a process in systemd's hierarchy: the unified one, or the named one where that is not used."""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="surrogateescape") as f:
            lines = f.read().splitlines()
    except OSError:
        return None
    unified = named = None
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            unified = path
        elif controllers == "name=systemd":
            named = path
    if unified in (None, "/") and named:
        return named
    return unified


class Processes:
    """One look at /proc: who is whose child, and in which cgroup."""

    def __init__(self) -> None:
        self.lives: Dict[int, Life] = {}
        self.children: Dict[int, List[int]] = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                life = process_stat(int(entry))
                if life:
                    self.lives[int(entry)] = life
                    self.children.setdefault(life.parent, []).append(int(entry))
        self._cgroups: Dict[int, Optional[str]] = {}

    def cgroup(self, pid: int) -> Optional[str]:
        if pid not in self._cgroups:
            self._cgroups[pid] = cgroup_of(pid)
        return self._cgroups[pid]

    def descendants(self, pid: int) -> Set[int]:
        found: Set[int] = set()
        todo = [pid]
        while todo:
            for child in self.children.get(todo.pop(), ()):
                if child not in found:
                    found.add(child)
                    todo.append(child)
        return found

    def of_unit(self, main: int, unit_cgroup: Optional[str]) -> List[int]:
        """The main process, all of the unit's cgroup and below, and all descendants of the main process."""
        pids: Set[int] = self.descendants(main) if main else set()
        if unit_cgroup:
            members = members_of(unit_cgroup)
            if members is None or (main in self.lives and main not in members):  # not seen from here: ask each process
                members = set()
                for pid in self.lives:
                    path = self.cgroup(pid)
                    if path is not None and (path == unit_cgroup or path.startswith(unit_cgroup + "/")):
                        members.add(pid)
            pids |= members & set(self.lives)
        pids.discard(main)
        return ([main] if main in self.lives else []) + sorted(pids)


def members_file(cgroup: Optional[str]) -> Optional[str]:
    """The cgroup.procs file of a cgroup path, through whichever mount of this host shows it."""
    if cgroup is None:
        return None
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
            lines = f.read().splitlines()
    except OSError:
        return None
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if not kinds or not (kinds[0] == "cgroup2" or (kinds[0] == "cgroup" and "name=systemd" in kinds[-1])):
            continue
        root, mount = fields[3].rstrip("/"), fields[4]
        if cgroup == root or cgroup.startswith(root + "/"):
            path = f"{mount}{cgroup[len(root) :]}/cgroup.procs"
            if os.path.exists(path):
                return path
    return None


def members_of(cgroup: str) -> Optional[Set[int]]:
    """The processes of a cgroup and of those below it; None where they cannot all be read."""
    path = members_file(cgroup)
    if path is None:
        return None
    found: Set[int] = set()
    for folder, _, _ in os.walk(os.path.dirname(path)):
        try:
            with open(os.path.join(folder, "cgroup.procs"), "rb") as f:
                found.update(int(word) for word in f.read().split())
        except FileNotFoundError:
            continue  # it ended meanwhile
        except OSError:
            return None
    return found


def read_environ(pid: int, started: int, variables: List[str]) -> Dict[str, Tuple[str, Optional[str]]]:
    """The answer of one process about each variable; only asked values are kept."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            data = f.read(ENVIRON_MAX_BYTES)
    except PermissionError:
        return {v: ("forbidden" if same_life(pid, started) else "vanished", None) for v in variables}
    except OSError:
        return dict.fromkeys(variables, ("vanished", None))
    if not same_life(pid, started):
        return dict.fromkeys(variables, ("vanished", None))
    values: Dict[bytes, bytes] = {}
    for entry in data.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals:
            values.setdefault(name, value)
    # a process that renames itself writes its title and NULs over this area; a sound one has no run of NULs
    wiped = bool(data) and (not values or b"\0" * 8 in data)
    answers: Dict[str, Tuple[str, Optional[str]]] = {}
    for variable in variables:
        found = values.get(variable.encode())
        if found is not None:
            answers[variable] = ("present", found.decode("utf-8", "surrogateescape"))
        else:
            answers[variable] = ("unreadable" if wiped else "absent", None)
    return answers


def same_life(pid: int, started: int) -> bool:
    life = process_stat(pid)
    return life is not None and life.started == started and life.state not in ("Z", "X")


def started_at(started: int) -> float:
    """Host clock time of a start given in clock ticks after boot."""
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK"))


# --- ports ----------------------------------------------------------------------------------------------------------

ANY = ("00000000", "0" * 32)


def hex_addresses(host: Optional[str]) -> Set[str]:
    """An address as /proc/net/tcp{,6} writes it (each 32-bit word in host order); empty: unknown, so every address."""
    known: Set[str] = set()
    for text in {"localhost": ["127.0.0.1", "::1"]}.get(host or "", [host or ""]):
        for family in (socket.AF_INET, socket.AF_INET6):
            try:
                raw = socket.inet_pton(family, text)
            except (OSError, ValueError):
                continue
            if family == socket.AF_INET:
                known.add("0000000000000000FFFF0000" + f"{struct.unpack('=I', raw)[0]:08X}")
            known.add("".join(f"{w:08X}" for w in struct.unpack(f"={len(raw) // 4}I", raw)))
    return known


def listening(port: int, host: Optional[str] = None) -> Set[str]:
    """Inodes of the sockets that would take a connection to the port; the very address wins over a general one.

    Two addresses of a host are two services: only who listens on every address covers both. An IPv4 listener never
    takes a connection to an IPv6 address.
    """
    families = ((socket.AF_INET, "/proc/net/tcp"), (socket.AF_INET6, "/proc/net/tcp6"))
    sockets: List[Tuple[str, int, str]] = []
    for family, table in families:
        asked = listeners_asked(family)
        sockets += listeners_read(table) if asked is None else asked
    found = [(address, inode) for address, number, inode in sockets if number == port]
    wanted = hex_addresses(host)
    if not wanted:
        return {inode for _, inode in found}
    exact = {inode for address, inode in found if address in wanted}
    general = {address for address in ANY if len(address) in {len(known) for known in wanted}}
    return exact or {inode for address, inode in found if address in general}


def listeners_asked(family: int) -> Optional[List[Tuple[str, int, str]]]:
    """Address, port and inode of each listening socket, from the kernel's socket diagnostics; None where it has none.

    The tables below /proc walk every connection of the host: 20 ms where there are some thousand, at each poll.
    Source: sock_diag(7); dump requests of inet_diag_req_v2, answers of inet_diag_msg.
    """
    listen, dump, done, error, interrupted = 1 << 10, 0x301, 3, 2, 0x10
    found: List[Tuple[str, int, str]] = []
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as s:
            s.settimeout(2)
            s.send(struct.pack("=IHHIIBBxxI48x", 72, 20, dump, 1, 0, family, socket.IPPROTO_TCP, listen))
            while True:
                data, at = s.recv(1 << 18), 0
                while at < len(data):
                    length, kind, flags = struct.unpack_from("=IHH", data, at)
                    if kind == error or flags & interrupted:
                        return None
                    if kind == done:
                        return found
                    number = struct.unpack_from(">H", data, at + 20)[0]
                    words = struct.unpack_from(f"={1 if family == socket.AF_INET else 4}I", data, at + 24)
                    inode = struct.unpack_from("=I", data, at + 84)[0]
                    found.append(("".join(f"{word:08X}" for word in words), number, str(inode)))
                    at += (length + 3) & ~3
    except (AttributeError, OSError, struct.error):
        return None


def listeners_read(table: str) -> List[Tuple[str, int, str]]:
    """The same from a table below /proc/net."""
    found: List[Tuple[str, int, str]] = []
    try:
        with open(table, encoding="ascii") as f:
            lines = f.readlines()[1:]
    except OSError:
        return found
    for line in lines:
        fields = line.split()
        if len(fields) > 9 and fields[3] == "0A":
            address, _, number = fields[1].rpartition(":")
            found.append((address, int(number, 16), fields[9]))
    return found


def holders(pids: Iterable[int], inodes: Set[str]) -> Dict[str, List[int]]:
    """Which of the processes hold which of the sockets."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: Dict[str, List[int]] = {}
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for name in names:
            try:
                inode = wanted.get(os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:
                continue
            if inode is not None and pid not in found.setdefault(inode, []):
                found[inode].append(pid)
    return found


def port_owner(port: int, host: Optional[str], unit_pids: List[int], everybody: Iterable[int]) -> Json:
    """Who owns a port. With several sockets on it, one that is not the unit's is the answer."""
    answer: Json = {
        "port": port, "state": "free", "pid": None, "cgroup": None, "started": None, "in_unit": False,
        "name": None, "since": None,
    }  # fmt: skip
    inodes = listening(port, host)
    if not inodes:
        return answer
    ours = holders(unit_pids, inodes)
    strangers = inodes - set(ours)
    if strangers:
        others = holders((pid for pid in everybody if pid not in set(unit_pids)), strangers)
        if not others:
            answer["state"] = "hidden"
            return answer
        pid = min(p for pids in others.values() for p in pids)
    else:
        pid = min((p for pids in ours.values() for p in pids), key=unit_pids.index)
        answer["in_unit"] = True
    life = process_stat(pid)
    answer.update(state="owned", pid=pid, cgroup=cgroup_of(pid), started=life.started if life else None)
    if life:
        answer.update(name=life.name, since=started_at(life.started))
    return answer


# --- devices --------------------------------------------------------------------------------------------------------


def device_holders(paths: List[str], unit_pids: List[int], processes: "Processes") -> Tuple[List[Json], int]:
    """Who has one of the files open, and how many processes could not be asked.

    A device is known by its number as well: in a container it has the same one, whatever its path.
    """
    names: Dict[str, str] = {}
    numbers: Dict[int, str] = {}
    for path in paths:
        names[os.path.realpath(path)] = path
        with contextlib.suppress(OSError):
            info = os.stat(path)
            if stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode):
                numbers[info.st_rdev] = path
    ours = set(unit_pids)
    found: List[Json] = []
    unseen = 0
    for pid, life in sorted(processes.lives.items()):
        try:
            links = os.listdir(f"/proc/{pid}/fd")
        except PermissionError:
            unseen += 1
            continue
        except OSError:
            continue
        held: Set[str] = set()
        for number in links:
            with contextlib.suppress(OSError):
                link = os.readlink(f"/proc/{pid}/fd/{number}")
                match = names.get(link)
                if match is None and numbers and link.startswith("/dev/"):
                    match = numbers.get(os.stat(f"/proc/{pid}/fd/{number}").st_rdev)
                if match is not None:
                    held.add(match)
        if held and same_life(pid, life.started):
            common = {"pid": pid, "name": life.name, "cgroup": processes.cgroup(pid), "started": life.started}
            found += [
                {"path": path, **common, "since": started_at(life.started), "in_unit": pid in ours}
                for path in sorted(held)
            ]
    found.sort(key=lambda holder: holder["in_unit"])  # strangers are never cut off
    return found[:HOLDERS_MAX], unseen


# --- log ------------------------------------------------------------------------------------------------------------

# NAME=VALUE, NAME: VALUE, "name": "value", --name VALUE, Bearer VALUE and user:password@ of an url
SECRETS = (
    re.compile(
        r"""(?ix)
        ( (?<![\w.-]) [\w.-]* (?: token(?!s)(?!["']?\s*[=:]\s*\d{1,7}\b)  # a count of tokens is none
            | secret | password | passwd | credential | (?<![a-z])key(?![a-z]) | apikey ) [\w.-]*
          ["']? (?: \s*[=:]\s* | \s+(?=\S*\d) ) )
        ( "[^"]*" | '[^']*' | [^\s,;&)}\]]+ )"""
    ),
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{6,})"),
    re.compile(r"(://[^/\s:@]+:)([^@\s/]+)(?=@)"),
    re.compile(r"()(\b(?:sk|hf|ghp|xoxb|xapp|xoxp|AKIA)[-_]?[A-Za-z0-9_-]{12,})"),
)


def masked(line: str) -> str:
    """A line without the values that look like secrets."""
    for secret in SECRETS:
        line = secret.sub(r"\1***", line)
    return line


def log_file(texts: List[Json], unit: str) -> Optional[str]:
    """The file that a unit's errors (else its output) go to by StandardError= or StandardOutput=; None: the journal."""
    said: Dict[str, str] = {}
    for text in texts:
        for line in (text["text"] or "").splitlines():
            match = re.match(r"\s*Standard(Error|Output)\s*=\s*(.*?)\s*$", line)
            if match:
                said[match[1]] = match[2]
    if said.get("Error", "inherit") in ("inherit", ""):
        said["Error"] = said.get("Output", "")
    kind, _, path = said["Error"].partition(":")
    if kind not in ("file", "append", "truncate") or not path.startswith("/"):
        return None
    name = unit[: -len(".service")]
    prefix, _, instance = name.partition("@")
    for letter, value in (("i", instance), ("n", unit), ("N", name), ("p", prefix)):
        path = path.replace("%" + letter, value)
    return path


def log_tail(asked: Json, texts: List[Json], manager: Manager) -> Json:
    """The last lines of a unit's log, since a moment when one is given; what looks like a secret is masked."""
    path = log_file(texts, asked["unit"])
    since: Optional[float] = asked["log_since"]
    answer: Json = {"source": path or "journal", "lines": [], "error": None}
    try:
        data = file_tail(path, since) if path else journal_tail(asked, since, manager)
    except FileNotFoundError as e:
        answer["error"] = "not-found" if path else f"journalctl cannot be run: {e.strerror}"
        return answer
    except PermissionError:
        answer["error"] = "forbidden"
        return answer
    except (OSError, ValueError) as e:
        answer["error"] = str(e)[:200] or type(e).__name__
        return answer
    lines = [line.rstrip() for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    answer["lines"] = [masked(line[:LOG_LINE_MAX]) for line in lines[-asked["log_lines"] :]]
    if not lines:
        answer["error"] = "nothing since then" if since is not None else "empty"
    return answer


def file_tail(path: str, since: Optional[float]) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb", buffering=0) as f:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise ValueError("not-a-file")
        if since is not None and info.st_mtime < since:
            return b""
        begin = max(0, info.st_size - LOG_MAX_BYTES)
        f.seek(begin)
        data = f.read(LOG_MAX_BYTES)
    return data.partition(b"\n")[2] if begin else data


def journal_tail(asked: Json, since: Optional[float], manager: Manager) -> bytes:
    of = "--user-unit" if manager.scope == "user" else "--unit"
    argv = ["journalctl", of, asked["unit"], "-n", str(asked["log_lines"]), "-o", "cat", "-q", "--no-pager"]
    if since is not None:
        argv.append(f"--since=@{since:.3f}")
    try:
        done = subprocess.run(
            argv, env=manager.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=LOG_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"journalctl gave no answer in {LOG_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        raise ValueError(done.stderr.decode("utf-8", "replace").strip()[:200] or "journalctl failed")
    return done.stdout


# --- http -----------------------------------------------------------------------------------------------------------


def probe_fields(item: Any) -> Json:
    if not isinstance(item, dict):
        raise Refused("bad-request", f"a probe is {str(item)[:80]!r}, expected an object")
    url: str = field(item, "url", str)
    try:
        parts = urlsplit(url)
        sound = (
            parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0 and url.isprintable()
        )
    except ValueError:
        sound = False
    if not sound or len(url) > 2000 or " " in url:
        raise Refused("bad-request", f"{url[:200]!r} is not an http url")
    method = field(item, "method", str, "GET", required=False)
    if method not in ("GET", "POST"):
        raise Refused("bad-request", f"'method' is {method[:20]!r}, expected 'GET' or 'POST'")
    max_bytes = field(item, "max_bytes", int, 65536, required=False)
    return {
        "id": field(item, "id", str, "health", required=False),
        "url": url,
        "method": method,
        "json": item.get("json"),
        "timeout_s": max(0.05, seconds(item, "timeout_s", 25.0, 3600.0)),
        "max_bytes": min(max(0, max_bytes), BODY_MAX_BYTES),
    }


def ask_http(probe: Json, answer: Json, wires: List[socket.socket]) -> None:
    """One exchange with the very address: no proxy, no redirect. Fills `answer` and `wires` (its socket) on its way."""
    import http.client

    parts = urlsplit(probe["url"])
    deadline = time.monotonic() + probe["timeout_s"]
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=probe["timeout_s"])
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"User-Agent": "clawback", "Accept": "*/*", "Connection": "close"}
        body = None
        if probe["json"] is not None:
            body = json.dumps(probe["json"]).encode()
            headers["Content-Type"] = "application/json"
        connection.connect()
        wire = connection.sock
        wires.append(wire)
        connection.request(probe["method"], target, body=body, headers=headers)
        response = connection.getresponse()
        answer["status"] = response.status
        kept = b""
        while len(kept) <= probe["max_bytes"]:
            left = deadline - time.monotonic()
            if left <= 0:
                raise socket.timeout
            wire.settimeout(left)
            piece = response.read1(min(65536, probe["max_bytes"] + 1 - len(kept)))
            if not piece:
                break
            kept += piece
        answer["truncated"] = len(kept) > probe["max_bytes"]
        answer["body"] = kept[: probe["max_bytes"]].decode("utf-8", "replace")
    except socket.timeout:
        answer["error"] = f"no answer in {probe['timeout_s']:g} s"
    except ConnectionRefusedError:
        answer["error"] = "connection refused"
    except ConnectionError as e:
        answer["error"] = f"connection lost: {e.strerror or e}"
    except http.client.HTTPException as e:
        answer["error"] = f"not http: {type(e).__name__} {str(e)[:200]}".strip()
    except (OSError, ValueError) as e:
        answer["error"] = str(e)[:300] or type(e).__name__
    finally:
        connection.close()


def ask_all(probes: List[Json]) -> List[Json]:
    """All exchanges at once, each ended by its own time limit even when a server drips bytes."""
    running = []
    for probe in probes:
        answer: Json = {
            "id": probe["id"], "url": probe["url"], "status": None, "body": "", "truncated": False, "error": None,
            "at": time.time(),
        }  # fmt: skip
        begun = time.monotonic()
        wires: List[socket.socket] = []

        def work(
            probe: Json = probe, answer: Json = answer, begun: float = begun, wires: List[socket.socket] = wires
        ) -> None:
            ask_http(probe, answer, wires)
            answer["took_s"] = round(time.monotonic() - begun, 6)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        running.append((thread, probe, answer, begun, wires))
    answers = []
    for thread, probe, answer, begun, wires in running:
        join(thread, begun + probe["timeout_s"] + 0.25)
        if thread.is_alive():
            for wire in wires:  # its thread ends now, and not when the server has dripped its last byte
                with contextlib.suppress(OSError):
                    wire.shutdown(socket.SHUT_RDWR)
            error = f"no complete answer in {probe['timeout_s']:g} s"
            answers.append(dict(answer, status=None, body="", error=error, took_s=round(time.monotonic() - begun, 6)))
        else:
            answers.append(answer)
    return answers


def join(thread: threading.Thread, until: float) -> None:
    """Waits for a thread until then, and no longer than somebody waits for the answer."""
    while thread.is_alive():
        left_s = until - time.monotonic()
        if left_s <= 0:
            return
        thread.join(min(left_s, LOOK_UP_S))
        CALLER.check()


def host_of(url: Optional[str], port: Optional[int]) -> Optional[str]:
    """The url's host when the url is about this port."""
    if not url or port is None:
        return None
    parts = urlsplit(url)
    return parts.hostname if (parts.port or (443 if parts.scheme == "https" else 80)) == port else None


# --- observe --------------------------------------------------------------------------------------------------------


def observe(request: Json, manager: Manager) -> Json:
    host: str = field(request, "host", str)
    items = field(request, "units", list, [], required=False)
    extra = [probe_fields(p) for p in field(request, "http", list, [], required=False)]
    if len(items) > 200 or len(extra) > 200 or not all(isinstance(item, dict) for item in items):
        raise Refused("bad-request", "'units' and 'http' hold at most 200 objects each")
    asked = [asked_unit(item) for item in items]
    # endpoints are asked while the disk is read; they are the slow part
    probes = [p for a in asked for p in a["http"]] + extra
    answers: List[Json] = []
    web = threading.Thread(target=lambda: answers.extend(ask_all(probes)), daemon=True)
    web.start()
    manager_properties: Properties = {}
    shown: List[Properties] = []
    if asked:
        with manager.start("show", "-pUnitPath", "-pEnvironment") as own:
            shown = manager.show([a["unit"] for a in asked])
            manager_properties = read_properties(own.text())
    processes = Processes()
    units = [unit_facts(a, p, manager, manager_properties, processes) for a, p in zip(asked, shown)]  # noqa: B905 python 3.9 has no strict=
    join(web, math.inf)
    for facts, a in zip(units, asked):  # noqa: B905 python 3.9 has no strict=
        facts["host"] = host
        facts["http"], answers = answers[: len(a["http"])], answers[len(a["http"]) :]
    facts = {"host": host, "at": time.time(), "boot_id": boot_id(), "helper": source_sha256(), "units": units}
    return {"facts": facts, "http": answers}


def asked_unit(item: Json) -> Json:
    port = field(item, "port", (int, NONE), None, required=False)
    variables = field(item, "variables", list, [], required=False)
    for name in variables:
        if not isinstance(name, str) or not VARIABLE_NAME.fullmatch(name) or len(name) > 200:
            raise Refused("bad-request", f"{str(name)[:80]!r} is not the name of an environment variable")
    if port is not None and not 0 < port < 65536:
        raise Refused("bad-request", f"'port' is {port}, expected 1 to 65535")
    devices = field(item, "devices", list, [], required=False)
    for path in devices:
        if not isinstance(path, str) or not path.startswith("/") or len(path) > 4096 or not path.isprintable():
            raise Refused("bad-request", f"{str(path)[:80]!r} is not the absolute path of a device")
    since = field(item, "log_since", (*NUMBER, NONE), None, required=False)
    return {
        "service": field(item, "service", str),
        "unit": unit_field(item),
        "port": port,
        "variables": variables,
        "devices": devices,
        "log_lines": max(0, min(field(item, "log_lines", int, 0, required=False), LOG_LINES_MAX)),
        "log_since": since,
        "http": [probe_fields(p) for p in field(item, "http", list, [], required=False)],
    }


def unit_facts(asked: Json, p: Properties, manager: Manager, own: Properties, processes: Processes) -> Json:
    problems: List[str] = []
    unit = asked["unit"]
    incarnation = incarnation_of(p)
    main = incarnation["main_pid"]
    pids = processes.of_unit(main, manager.unit_cgroup(p))
    if len(pids) > PROCESSES_MAX:
        problems.append(f"only {PROCESSES_MAX} of {len(pids)} processes were asked")
        pids = pids[:PROCESSES_MAX]
    entries: List[Json] = []
    for pid in pids:
        life = processes.lives[pid]
        for variable, (answer, value) in read_environ(pid, life.started, asked["variables"]).items():
            entries.append(
                {
                    "pid": pid,
                    "name": life.name,
                    "main": pid == main,
                    "variable": variable,
                    "answer": answer,
                    "value": value,
                }
            )
    search_path = words_of(one(own, "UnitPath"))
    names = [unit] + [n for n in words_of(one(p, "Names")) if n != unit and n.endswith(".service")]
    fragment = one(p, "FragmentPath")
    argv = re.search(r"argv\[\]=(.*?) ; ignore_errors=", one(p, "ExecStart"))
    host_name = next((h for h in (host_of(probe["url"], asked["port"]) for probe in asked["http"]) if h), None)
    port = port_owner(asked["port"], host_name, pids, processes.lives) if asked["port"] else None
    if port and port["state"] == "hidden":
        problems.append(f"the owner of port {asked['port']} cannot be seen by this login")
    texts = [file_text(path) for path in dropin_files(names, search_path)]
    env_files = [file_text(path) for path in environment_files(p)]
    fragment_text = file_text(fragment) if fragment else dict(file_text("/nonexistent/unit"), path="")
    read = [fragment_text, *texts, *env_files]
    problems += [f"{text['path']} cannot be read: {text['error']}" for text in read if text["error"]]
    passed = dict(w.split("=", 1) for w in words_of(one(own, "Environment")) if "=" in w)
    pass_names = set(words_of(one(p, "PassEnvironment"))) & set(asked["variables"])
    if pass_names:  # PassEnvironment= takes from the manager's own process, which `systemctl show` does not tell
        parent = process_stat(manager.pid())
        seen = read_environ(manager.pid(), parent.started, sorted(pass_names)) if parent else {}
        for name, (answer, value) in seen.items():
            if answer == "present" and value is not None:
                passed[name] = value
            elif answer != "absent":
                problems.append(f"PassEnvironment={name} cannot be followed: the manager's environment is {answer}")
    held, unseen = device_holders(asked["devices"], pids, processes) if asked["devices"] else ([], 0)
    interval = one(p, "StartLimitIntervalUSec") or one(p, "StartLimitInterval")
    return {
        "unit": unit,
        "service": asked["service"],
        "at": time.time(),
        "load_state": one(p, "LoadState"),
        "active_state": one(p, "ActiveState"),
        "sub_state": one(p, "SubState"),
        "result": one(p, "Result"),
        "type": one(p, "Type"),
        "n_restarts": whole(p, "NRestarts"),
        "exec_main_status": whole(p, "ExecMainStatus"),
        "timeout_start_s": span_s(one(p, "TimeoutStartUSec")),
        "timeout_stop_s": span_s(one(p, "TimeoutStopUSec")),
        "restart": one(p, "Restart"),
        "restart_s": span_s(one(p, "RestartUSec")),
        "start_limit_burst": whole(p, "StartLimitBurst"),
        "start_limit_interval_s": span_s(interval),
        "recent_restarts": UnitState(manager.scope, unit).restarts_since(time.time() - (span_s(interval) or 0)),
        "need_daemon_reload": one(p, "NeedDaemonReload") == "yes",
        "control_group": one(p, "ControlGroup"),
        "exec_start": argv[1].split() if argv else [],
        "incarnation": incarnation,
        "fragment": fragment_text,
        "dropins": texts,
        "loaded_dropins": words_of(one(p, "DropInPaths")),
        "env_files": env_files,
        "unset_environment": words_of(one(p, "UnsetEnvironment")),
        "manager_environment": {v: passed[v] for v in asked["variables"] if v in passed},
        "dropin_path": dropin_path(manager.scope, unit),
        "processes": entries,
        "exec_main_code": whole(p, "ExecMainCode"),
        "device_holders": held,
        "devices_unseen": unseen,
        "log": log_tail(asked, [fragment_text, *texts], manager) if asked["log_lines"] else None,
        "port": port,
        "http": [],
        "problems": problems,
    }


def rights(request: Json, manager: Manager) -> Json:
    units = [unit_field({"unit": unit}) for unit in field(request, "units", list)[:200]]
    version = one(read_properties(manager.run("show", "-pVersion")), "Version")
    shown = manager.show(units) if units else []
    found = []
    for unit, p in zip(units, shown):  # noqa: B905 python 3.9 has no strict=
        place, state = dropin_path(manager.scope, unit), UnitState(manager.scope, unit).path
        found.append(
            {
                "unit": unit,
                "load_state": one(p, "LoadState"),
                "dropin": place,
                "dropin_writable": may_write(place),
                "state": state,
                "state_writable": may_write(state),
                # without root, polkit decides about units of the system, and only when it is asked to act
                "may_restart": manager.scope == "user" or os.geteuid() == 0,
            }
        )
    folders: List[str] = field(request, "folders", list, [], required=False)[:200]
    for path in folders:
        if not isinstance(path, str) or not path.startswith("/") or len(path) > 4096 or not path.isprintable():
            raise Refused("bad-request", f"{str(path)[:80]!r} is not the absolute path of a folder")
    return {
        "at": time.time(),
        "folders": {path: folder_state(path) for path in folders},
        "login": login_name(),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "systemd": version.partition(" ")[0],
        "units": found,
    }


def may_write(path: str) -> bool:
    """Whether a file could be written or made there, by the permissions of what exists on the way to it."""
    place = path
    while not os.path.lexists(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    if place == path:
        return os.access(place, os.W_OK, effective_ids=True)
    return os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK, effective_ids=True)


def folder_state(path: str) -> str:
    if not os.path.isdir(path):
        return "not-a-folder" if os.path.lexists(path) else "absent"
    return "writable" if os.access(path, os.W_OK | os.X_OK, effective_ids=True) else "forbidden"


def login_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        return f.read().strip()


def source_sha256() -> str:
    """Of this program's own text, whether it runs from a file or from `python3 -c`."""
    path = globals().get("__file__")
    if path and os.path.isfile(path):
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()
    with open("/proc/self/cmdline", "rb") as f:
        words = f.read().split(b"\0")
    source = words[words.index(b"-c") + 1] if b"-c" in words[:-1] else b""
    return hashlib.sha256(source).hexdigest()


# --- tokens and records ---------------------------------------------------------------------------------------------


class UnitState:
    """Token and records of one unit, under a lock that is held from the check to the record."""

    def __init__(self, scope: str, unit: str) -> None:
        if scope == "system":
            self.folder = "/var/lib/clawback"
        else:
            state = os.environ.get("XDG_STATE_HOME") or os.path.join(home(), ".local", "state")
            self.folder = os.path.join(state, "clawback")
        name = unit if len(unit) <= 200 else hashlib.sha256(unit.encode()).hexdigest()
        self.path = os.path.join(self.folder, name + ".json")
        self.unit, self.token, self.records = unit, 0, []  # type: str, int, List[Json]
        self.lock = -1

    def __enter__(self) -> "UnitState":
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self.lock = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as e:
            hint = "a system unit needs a login that is root or may become it by sudo"
            raise Refused("forbidden", f"{self.folder!r} cannot be used: {e.strerror}", hint) from None
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    os.close(self.lock)
                    raise Refused(
                        "busy", f"another action on {self.unit} has run for {LOCK_TIMEOUT_S:g} s", "ask again"
                    ) from None
                time.sleep(0.02)
            try:
                CALLER.check()  # an act that nobody waits for is not begun
            except Gone:
                os.close(self.lock)
                raise
        try:
            self._load()
        except BaseException:
            os.close(self.lock)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.lock)

    def _load(self) -> None:
        try:
            with open(self.path, "rb") as f:
                kept = json.loads(f.read())
            self.token, self.records = int(kept["token"]), list(kept["records"])
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError):
            raise Refused(
                "forbidden", f"{self.path!r} is damaged, so tokens cannot be checked", "look at it by hand"
            ) from None

    def raise_token(self, token: int) -> None:
        """Refuses a lower token; stores a higher one on the disk before it returns."""
        if token < self.token:
            message = f"token {token} is stale: {self.unit} was fenced with {self.token}"
            raise Refused("stale-token", message, "another worker holds this unit now", token=token, stored=self.token)
        if token > self.token:
            self.token = token
            self.save()

    def record(self, entry: Json) -> None:
        """Adds or replaces the record of (verb, change, step, token) and stores it.

        Whole after a power cut, but maybe the one from before: after that no process of the unit is what it was either.
        """
        self._put(entry)
        self.save(sync=False)

    @contextlib.contextmanager
    def recording(self, entry: Json, phase: str) -> Iterator[None]:
        """The record of a phase, made ready while the block runs and put in its place when the block was done."""
        self._put(dict(entry, phase=phase))
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        temporary = ""
        try:
            temporary = temporary_file(folder, os.path.basename(self.path), self._data(), 0o600, None)
            yield
            os.rename(temporary, os.path.basename(self.path), src_dir_fd=folder, dst_dir_fd=folder)
            temporary = ""
            entry["phase"] = phase
        finally:
            if temporary:
                self._put(entry)
                os.unlink(temporary, dir_fd=folder)
            os.close(folder)

    def _put(self, entry: Json) -> None:
        others = [r for r in self.records if identity(r) != identity(entry)]
        self.records = [*others[-(RECORDS_MAX - 1) :], entry]

    def _data(self) -> bytes:
        return json.dumps({"token": self.token, "records": self.records}).encode()

    def restarts_before(self, before: Optional[Json]) -> int:
        """What systemd had counted when the restart that ended this life was asked for; looked up without the lock."""
        with contextlib.suppress(Refused, OSError):
            self._load()
        for record in reversed(self.records):
            if record["verb"] == "restart" and record["before"] == before:
                return record.get("n_restarts") or 0
        return 0

    def restarts_since(self, at: float) -> int:
        """How often we asked for a restart since then; looked up without the lock."""
        with contextlib.suppress(Refused, OSError):
            self._load()
        return sum(record["verb"] == "restart" and record["at"] >= at for record in self.records)

    def find(self, verb: str, change: str, step: str, token: Optional[int]) -> Optional[Json]:
        for record in reversed(self.records):
            if (record["verb"], record["change"], record["step"]) == (verb, change, step) and token in (
                None,
                record["token"],
            ):
                return record
        return None

    def save(self, sync: bool = True) -> None:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            replace_file(folder, os.path.basename(self.path), self._data(), 0o600, None, sync=sync)
        finally:
            os.close(folder)


def identity(record: Json) -> Tuple[Any, ...]:
    return (record["verb"], record["change"], record["step"], record["token"])


def replace_file(
    folder: int, name: str, data: bytes, mode: int, owner: Optional[Tuple[int, int]], sync: bool = True
) -> None:
    """Writes a file of an open folder so that a reader, or a power cut, meets the old or the new text.

    With `sync` a power cut after the return meets the new one.
    """
    temporary = temporary_file(folder, name, data, mode, owner)
    try:
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(temporary, dir_fd=folder)
        raise
    if sync:
        os.fsync(folder)


def temporary_file(folder: int, name: str, data: bytes, mode: int, owner: Optional[Tuple[int, int]]) -> str:
    """The name of a file beside `name` that is on the disk as a whole, to be renamed."""
    temporary = f".{name[:150]}.{os.getpid()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileNotFoundError):  # of a killed process that had our number
        os.unlink(temporary, dir_fd=folder)
    fd = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(data)
            f.flush()
            if owner is not None and owner != (os.geteuid(), os.getegid()):
                os.fchown(f.fileno(), *owner)
            os.fchmod(f.fileno(), mode)
            os.fsync(f.fileno())
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return temporary


# --- write ----------------------------------------------------------------------------------------------------------


def write(request: Json, manager: Manager) -> Json:
    unit, token = unit_field(request), token_field(request)
    change, step = key_field(request, "change"), key_field(request, "step")
    text = field(request, "text", (str, NONE))
    expected = field(request, "expect_sha256", (str, NONE))
    data = encode_text(text)
    wanted = hashlib.sha256(data).hexdigest() if data is not None else None
    path = dropin_path(manager.scope, unit)
    with UnitState(manager.scope, unit) as state:
        with manager.start_show([unit]) as asked:
            state.raise_token(token)
            asked.known(unit)
        folder = open_own_folder(path, create=data is not None)
        try:
            present, mode, owner = present_file(folder, path)
            earlier = state.find("write", change, step, None)
            already = earlier is not None and present == wanted and earlier["after_sha256"] == wanted
            if not already and present != expected:
                message = f"{path} is not as planned: it has sha256 {present}, expected {expected}"
                raise Refused(
                    "file-changed",
                    message,
                    "look at the file, then ask again",
                    present_sha256=present,
                    expect_sha256=expected,
                )
            entry: Json = {
                "verb": "write", "change": change, "step": step, "token": token, "at": time.time(),
                "phase": "intended", "path": path, "after_sha256": wanted,
                "before_sha256": earlier["before_sha256"] if already and earlier else present,
            }  # fmt: skip
            state.record(entry)
            if not already and folder is not None:
                if data is not None:
                    replace_file(folder, DROPIN_NAME, data, mode, owner)
                elif present is not None:
                    os.unlink(DROPIN_NAME, dir_fd=folder)
                    os.fsync(folder)
        finally:
            if folder is not None:
                os.close(folder)
        with manager.start("daemon-reload") as asked:
            entry["phase"] = "written"
            state.record(entry)
            asked.text()
        with manager.start_show([unit]) as asked, state.recording(entry, "done"):
            shown = asked.properties()[0]
    return {
        "unit": unit,
        "path": path,
        "already": already,
        "before_sha256": entry["before_sha256"],
        "after_sha256": wanted,
        "loaded_dropins": words_of(one(shown, "DropInPaths")),
        "need_daemon_reload": one(shown, "NeedDaemonReload") == "yes",
        "at": entry["at"],
    }


def encode_text(text: Optional[str]) -> Optional[bytes]:
    if text is None:
        return None
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("bad-request", "'text' is not valid utf-8") from None
    if len(data) > TEXT_MAX_BYTES or b"\0" in data:
        raise Refused("bad-request", f"'text' has {len(data)} bytes, expected at most {TEXT_MAX_BYTES} and no NUL")
    return data


def open_own_folder(path: str, create: bool) -> Optional[int]:
    """The open UNIT.d folder, made 0755 where it is missing; None when it is missing and not to be made."""
    folder, base = os.path.dirname(path), os.path.dirname(os.path.dirname(path))
    try:
        if create:
            if not os.path.isdir(base):
                os.makedirs(base, mode=0o755, exist_ok=True)
            try:
                os.mkdir(folder, 0o755)
            except FileExistsError:
                pass
            else:
                os.chmod(folder, 0o755)  # noqa: S103 whatever the umask says, others may look at unit files
                sync_folder(base)
        elif not os.path.lexists(folder):
            return None
        real = os.path.realpath(folder)
        if os.path.dirname(real) != os.path.realpath(base):
            raise Refused(
                "forbidden",
                f"{folder} is a link that leads to {real}",
                "clawback writes only into the unit's own folder",
            )
        return os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError as e:
        raise Refused(
            "forbidden", f"{e.filename or folder} cannot be written: {e.strerror}", "check the login's rights"
        ) from None
    except OSError as e:
        raise Refused("forbidden", f"{folder} cannot be used: {e.strerror}") from None


def sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def present_file(folder: Optional[int], path: str) -> Tuple[Optional[str], int, Optional[Tuple[int, int]]]:
    """Digest, mode and owner of our drop-in as it is; (None, 0644, None) when there is none."""
    if folder is None:
        return None, 0o644, None
    try:
        fd = os.open(DROPIN_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None, 0o644, None
    except OSError as e:
        raise Refused(
            "forbidden", f"{path} cannot be read, or is a link: {e.strerror}", "clawback replaces only a plain file"
        ) from None
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        os.close(fd)
        raise Refused("forbidden", f"{path} is not a plain file", "clawback replaces only a plain file")
    with os.fdopen(fd, "rb") as f:
        digest = hashlib.sha256()
        for piece in iter(lambda: f.read(65536), b""):
            digest.update(piece)
    return digest.hexdigest(), stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid)


# --- restart and fence ----------------------------------------------------------------------------------------------


def restart(request: Json, manager: Manager) -> Json:
    unit, token = unit_field(request), token_field(request)
    change, step = key_field(request, "change"), key_field(request, "step")
    with UnitState(manager.scope, unit) as state:
        with manager.start_show([unit]) as asked:
            state.raise_token(token)
            shown = asked.known(unit)
        entry = state.find("restart", change, step, token)
        already = entry is not None
        if entry is None:
            entry = {
                "verb": "restart", "change": change, "step": step, "token": token, "at": time.time(),
                "phase": "intended", "before": incarnation_of(shown), "n_restarts": whole(shown, "NRestarts"),
            }  # fmt: skip
            state.record(entry)
            with manager.start("restart", "--no-block", "--", unit) as asked, state.recording(entry, "issued"):
                asked.text()
        # "intended" and already: an earlier call ended between the two records; the incarnation tells whether it acted
        current = incarnation_of(shown) if already else entry["before"]
    return {
        "unit": unit,
        "already": already,
        "phase": entry["phase"],
        "before": entry["before"],
        "current": current,
        "at": entry["at"],
    }


def fence(request: Json, manager: Manager) -> Json:
    unit, token = unit_field(request), token_field(request)
    with UnitState(manager.scope, unit) as state:
        before = state.token
        with manager.start_show([unit]) as asked:
            state.raise_token(token)
            current = incarnation_of(asked.properties()[0])
        records = [dict(r) for r in state.records]
    for record in records:
        if record["verb"] == "restart":
            record["after"] = current if differs(current, record["before"]) else None
    return {"unit": unit, "token": token, "previous_token": before, "current": current, "records": records}


def differs(now: Json, before: Optional[Json]) -> bool:
    """A new life: a main process, and pid, start time and invocation all others than before."""
    if now["main_pid"] == 0:
        return False
    return before is None or all(now[k] != before[k] for k in ("main_pid", "started", "invocation_id"))


# --- releases -------------------------------------------------------------------------------------------------------


class Releases:
    """Release folders below a declared path, and the symlink that names the one that runs.

    Everything is reached from the open path downwards and no link is followed, so that no name leads out of it.
    """

    def __init__(self, request: Json) -> None:
        self.path: str = field(request, "path", str)
        self.folder: str = field(request, "folder", str)
        self.current: str = field(request, "current", str)
        self.manifest: str = field(request, "manifest", str)
        self.verify_s = seconds(request, "verify_s", 120.0, 3600.0)
        if not RELEASES_PATH.fullmatch(self.path) or any(part in (".", "..") for part in self.path.split("/")):
            raise Refused("bad-request", f"{self.path[:80]!r} is not the absolute path of release folders")
        for name in (self.current, self.manifest, *([self.folder] if self.folder != "." else [])):
            if not PART_NAME.fullmatch(name):
                raise Refused("bad-request", f"{name[:80]!r} is not the name of one file or folder")
        self.root = self.below = -1

    def __enter__(self) -> "Releases":
        wanted = self.path
        try:
            self.root = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            wanted = self.home
            self.below = open_folder(self.folder, self.root)
        except OSError as e:
            self.__exit__()
            code = "no-releases" if isinstance(e, FileNotFoundError) else "forbidden"
            raise Refused(code, f"{wanted} cannot be opened: {e.strerror}", "it must be a folder, not a link") from None
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (self.below, self.root):
            if fd >= 0:
                os.close(fd)
        self.root = self.below = -1

    @property
    def home(self) -> str:
        return self.path if self.folder == "." else f"{self.path}/{self.folder}"

    def name_field(self, name: str) -> str:
        if not RELEASE_NAME.fullmatch(name) or name in (self.current, self.manifest):
            raise Refused("bad-request", f"{name[:80]!r} is not the name of a release")
        return name

    def link(self) -> Json:
        """What the symlink names. state: link, absent, not-a-link, outside (it leads to no folder of a release)."""
        try:
            target = os.readlink(self.current, dir_fd=self.root)
        except FileNotFoundError:
            return {"state": "absent", "release": None, "target": None, "exists": False}
        except OSError:
            return {"state": "not-a-link", "release": None, "target": None, "exists": False}
        head, _, name = os.path.normpath(os.path.join(self.path, target)).rpartition("/")
        if RELEASE_NAME.fullmatch(name) and head != self.home and os.path.realpath(head) == os.path.realpath(self.home):
            head = self.home
        if head != self.home or not RELEASE_NAME.fullmatch(name):
            return {"state": "outside", "release": None, "target": target, "exists": False}
        exists = False
        with contextlib.suppress(OSError):
            os.close(self.open(name))
            exists = True
        return {"state": "link", "release": name, "target": target, "exists": exists}

    def listed(self) -> List[Json]:
        """The releases, the newest first; what has no manifest is none, or not yet."""
        found: List[Json] = []
        for name in os.listdir(self.below):
            if not RELEASE_NAME.fullmatch(name) or name == self.current:
                continue
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(os.stat(name, dir_fd=self.below, follow_symlinks=False).st_mode):
                    # the manifest's age: a folder gets younger with each file that a running program adds
                    info = os.stat(f"{name}/{self.manifest}", dir_fd=self.below, follow_symlinks=False)
                    found.append({"name": name, "at": info.st_mtime})
        found.sort(key=lambda release: (-release["at"], release["name"]))
        return found[:RELEASES_MAX]

    def open(self, name: str) -> int:
        return open_folder(name, self.below)

    def lists(self, name: str) -> Tuple[str, Dict[str, str]]:
        """The manifest's own digest, and the digest that it gives for each file of a release."""
        folder = self.open(name)
        try:
            fd = os.open(self.manifest, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(fd, "rb") as f:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ValueError("it is no plain file")
            data = f.read(MANIFEST_MAX_BYTES + 1)
        if len(data) > MANIFEST_MAX_BYTES:
            raise ValueError(f"it has more than {MANIFEST_MAX_BYTES} bytes")
        return hashlib.sha256(data).hexdigest(), manifest_files(data, self.manifest.endswith(".json"))

    def verified(self, name: str, deadline: float) -> Json:
        """Whether every file of a release has the digest that its manifest gives."""
        answer: Json = {
            "ref": name, "exists": False, "manifest_sha256": None, "files": 0, "bytes": 0, "missing": 0,
            "differing": 0, "extra": 0, "names": [], "error": None,
        }  # fmt: skip
        try:
            folder = self.open(name)
        except FileNotFoundError:
            return answer
        except OSError as e:
            answer["error"] = f"{self.home}/{name} cannot be opened: {e.strerror}"
            return answer
        answer["exists"] = True
        try:
            answer["manifest_sha256"], wanted = self.lists(name)
            self._compare(folder, wanted, answer, deadline)
        except FileNotFoundError:
            answer["error"] = f"there is no {self.manifest}"
        except OSError as e:
            answer["error"] = f"{self.manifest} cannot be read: {e.strerror}"
        except (ValueError, RecursionError) as e:
            answer["error"] = f"{self.manifest} cannot be used: {e}"[:300]
        finally:
            os.close(folder)
        return answer

    def _compare(self, folder: int, wanted: Dict[str, str], answer: Json, deadline: float) -> None:
        answer["files"] = len(wanted)
        with Below(folder) as below:
            for path in sorted(wanted):
                CALLER.check()
                try:
                    digest, length = below.digest(path, deadline)
                except (FileNotFoundError, NotADirectoryError):
                    sign = "missing"
                except OSError:  # a link, a device, no permission: nothing that the manifest speaks of
                    sign = "differing"
                else:
                    sign = "" if digest == wanted[path] else "differing"
                    answer["bytes"] += length
                if sign:
                    answer[sign] += 1
                    if len(answer["names"]) < NAMES_MAX:
                        answer["names"].append(path)
        for top, _, names, _ in os.fwalk(".", dir_fd=folder):
            if "__pycache__" not in top.split("/"):
                paths = {os.path.normpath(os.path.join(top, name)) for name in names}
                answer["extra"] += len(paths - set(wanted) - {self.manifest})

    def difference(self, new: str, old: str) -> Optional[Json]:
        """What a release holds against another one, by their manifests; None where one of them cannot be read."""
        try:
            theirs, ours = self.lists(old)[1], self.lists(new)[1]
        except (OSError, ValueError, RecursionError):
            return None
        both = set(theirs) & set(ours)
        added, removed = sorted(set(ours) - both), sorted(set(theirs) - both)
        changed = sorted(path for path in both if ours[path] != theirs[path])
        names = [f"+{p}" for p in added] + [f"~{p}" for p in changed] + [f"-{p}" for p in removed]
        return {
            "against": old,
            "added": len(added),
            "changed": len(changed),
            "removed": len(removed),
            "names": names[:NAMES_MAX],
        }

    def changes(self, name: str) -> Optional[str]:
        """The first lines of what a release says about itself."""
        with contextlib.suppress(OSError):
            folder = self.open(name)
            try:
                for file in CHANGES_FILES:
                    with contextlib.suppress(FileNotFoundError):
                        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                        with os.fdopen(os.open(file, flags, dir_fd=folder), "rb") as f:
                            lines = f.read(CHANGES_MAX_BYTES).decode("utf-8", "replace").splitlines()
                        return "\n".join(masked(line[:LOG_LINE_MAX].rstrip()) for line in lines).strip() or None
            finally:
                os.close(folder)
        return None

    def runs_from(self, pids: List[int]) -> Dict[int, str]:
        """The release in which a process stands or from which its program was started, by process."""
        home = os.path.realpath(self.home) + "/"
        found: Dict[int, str] = {}
        for pid in pids:
            for link in ("cwd", "exe"):
                with contextlib.suppress(OSError):
                    place = os.readlink(f"/proc/{pid}/{link}")
                    below = place[len(home) :] if place.startswith(home) else ""
                    name = below.split("/")[0].removesuffix(" (deleted)")
                    if RELEASE_NAME.fullmatch(name) and pid not in found:
                        found[pid] = name
        return found

    def point(self, to: Optional[str]) -> None:
        """Have the symlink name another release, or nothing: whoever looks meets the old one or the new one."""
        if to is None:
            os.unlink(self.current, dir_fd=self.root)
        else:
            target = to if self.folder == "." else f"{self.folder}/{to}"
            temporary = f".{self.current}.{os.getpid()}.tmp"
            with contextlib.suppress(FileNotFoundError):  # of a killed process that had our number
                os.unlink(temporary, dir_fd=self.root)
            os.symlink(target, temporary, dir_fd=self.root)
            try:
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    info = os.stat(self.current, dir_fd=self.root, follow_symlinks=False)
                    os.chown(temporary, info.st_uid, info.st_gid, dir_fd=self.root, follow_symlinks=False)
                os.rename(temporary, self.current, src_dir_fd=self.root, dst_dir_fd=self.root)
            except BaseException:
                os.unlink(temporary, dir_fd=self.root)
                raise
        os.fsync(self.root)

    def remove(self, name: str) -> None:
        """Take a release away: first its name, then what is in it."""
        dying = f"{DYING}{name}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(name, dying, src_dir_fd=self.below, dst_dir_fd=self.below)
        for _, folders, files, fd in os.fwalk(dying, topdown=False, dir_fd=self.below):
            for file in files:
                os.unlink(file, dir_fd=fd)
            for folder in folders:
                if stat.S_ISLNK(os.stat(folder, dir_fd=fd, follow_symlinks=False).st_mode):
                    os.unlink(folder, dir_fd=fd)
                else:
                    os.rmdir(folder, dir_fd=fd)
        os.rmdir(dying, dir_fd=self.below)
        os.fsync(self.below)


class Below:
    """Files below an open folder, reached without following a link. Folders on the way to the last file stay open."""

    def __init__(self, folder: int) -> None:
        self._top = folder
        self._way: List[Tuple[str, int]] = []

    def __enter__(self) -> "Below":
        return self

    def __exit__(self, *_: object) -> None:
        self._back_to(0)

    def _back_to(self, depth: int) -> None:
        while len(self._way) > depth:
            os.close(self._way.pop()[1])

    def digest(self, path: str, deadline: float) -> Tuple[str, int]:
        """SHA-256 and length of a plain file. Raises: OSError; ValueError after the deadline."""
        *folders, name = path.split("/")
        same = 0
        while same < min(len(folders), len(self._way)) and self._way[same][0] == folders[same]:
            same += 1
        self._back_to(same)
        for folder in folders[same:]:
            self._way.append((folder, open_folder(folder, self._way[-1][1] if self._way else self._top)))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(name, flags, dir_fd=self._way[-1][1] if self._way else self._top)
        with os.fdopen(fd, "rb", buffering=0) as f:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "not a plain file")
            found, length = hashlib.sha256(), 0
            while True:
                piece = f.read(1 << 20)
                if not piece:
                    return found.hexdigest(), length
                found.update(piece)
                length += len(piece)
                if time.monotonic() > deadline:
                    raise ValueError("its files were not all read in the time given (`verify` of the fleet file)")


def open_folder(name: str, at: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)


def manifest_files(data: bytes, as_json: bool) -> Dict[str, str]:
    """Digests by path, of `{"files": {path: sha256}}`, the same bare, or lines as sha256sum writes them.

    Raises: ValueError.
    """
    found: Dict[str, str] = {}
    if as_json:
        document = json.loads(data)
        files = document.get("files", document) if isinstance(document, dict) else document
        if isinstance(files, list):
            files = {item.get("path"): item.get("sha256") for item in files if isinstance(item, dict)}
        if not isinstance(files, dict):
            raise ValueError('expected {"files": {path: sha256}}')
        pairs = list(files.items())
    else:
        pairs = []
        for line in data.decode("utf-8").splitlines():
            digest, _, path = line.partition(" ")
            if line.strip():
                pairs.append((path[1:] if path[:1] in (" ", "*") else path, digest))
    if not pairs or len(pairs) > FILES_MAX:
        raise ValueError(f"it lists {len(pairs)} files, expected 1 to {FILES_MAX}")
    for name, digest in pairs:
        path = name[2:] if isinstance(name, str) and name.startswith("./") else name
        if not isinstance(path, str) or not path or any(part in ("", ".", "..") for part in path.split("/")):
            raise ValueError(f"{str(path)[:80]!r} is not the path of a file in a release")
        if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
            raise ValueError(f"{path[:80]!r} has no sha256")
        found[path] = digest.lower()
    return found


def releases(request: Json, manager: Manager) -> Json:
    """Looks at release folders: the link, what is there, whether releases are whole, what one holds against another."""
    unit, tree = unit_field(request), Releases(request)
    wanted = [tree.name_field(name) for name in field(request, "verify", list, [], required=False)]
    compare = field(request, "compare", (list, NONE), None, required=False)
    new, old = [tree.name_field(str(name)) for name in compare] if compare else ("", "")
    shown = manager.unit(unit)
    deadline = time.monotonic() + tree.verify_s
    with tree:
        main = incarnation_of(shown)["main_pid"]
        pids = Processes().of_unit(main, manager.unit_cgroup(shown))[:PROCESSES_MAX]
        stands = tree.runs_from(pids)
        return {
            "link": tree.link(),
            "releases": tree.listed(),
            "verified": [tree.verified(name, deadline) for name in wanted],
            "difference": tree.difference(new, old) if compare and new != old else None,
            "changes": tree.changes(new) if compare else None,
            "runs": [{"pid": pid, "main": pid == main, "release": name} for pid, name in stands.items()],
            "at": time.time(),
        }


def switch(request: Json, manager: Manager) -> Json:
    """Has the symlink name another release, when it names the expected one and that release is whole."""
    unit, token = unit_field(request), token_field(request)
    change, step = key_field(request, "change"), key_field(request, "step")
    tree = Releases(request)
    names = [field(request, name, (str, NONE)) for name in ("expect", "to")]
    expected, to = (None if name is None else tree.name_field(name) for name in names)
    manifest_sha256 = field(request, "manifest_sha256", (str, NONE))
    with UnitState(manager.scope, unit) as state:
        with manager.start_show([unit]) as asked:
            state.raise_token(token)
            asked.known(unit)
        with tree:
            link = tree.link()
            if link["state"] in ("not-a-link", "outside"):
                message = f"{tree.path}/{tree.current} is {link['state'].replace('-', ' ')} ({link['target']})"
                raise Refused("forbidden", message, "clawback switches only a link to a release")
            earlier = state.find("switch", change, step, None)
            already = earlier is not None and earlier["to"] == to and link["release"] == to
            if not already and link["release"] != expected:
                message = f"{tree.path}/{tree.current} names {link['release']}, expected {expected}"
                raise Refused("link-changed", message, "look who switched it, then ask again", present=link["release"])
            if not already and to is not None:
                must_be_whole(tree, to, manifest_sha256)
            entry: Json = {
                "verb": "switch", "change": change, "step": step, "token": token, "at": time.time(),
                "phase": "intended", "path": f"{tree.path}/{tree.current}", "from": expected, "to": to,
            }  # fmt: skip
            state.record(entry)
            with state.recording(entry, "done"):
                if not already and link["release"] != to:
                    tree.point(to)
    return {"unit": unit, "already": already, "from": expected, "to": to, "at": entry["at"]}


def must_be_whole(tree: Releases, name: str, manifest_sha256: Optional[str]) -> None:
    """The release is there and, where a digest of its manifest is given, as it was planned."""
    found = tree.verified(name, time.monotonic() + tree.verify_s) if manifest_sha256 is not None else None
    if found is None:
        try:
            os.close(tree.open(name))
        except OSError as e:
            raise Refused("no-release", f"{tree.home}/{name} cannot be used: {e.strerror}") from None
        return
    if not found["exists"]:
        raise Refused("no-release", f"{tree.home}/{name} is not there", "put the release there, then ask again")
    if found["error"] or found["missing"] or found["differing"]:
        told = found["error"] or f"{found['missing']} files missing, {found['differing']} other than in the manifest"
        raise Refused("release-broken", f"{tree.home}/{name}: {told}", "put the release there again, then ask again")
    if found["manifest_sha256"] != manifest_sha256:
        raise Refused("release-broken", f"{tree.home}/{name} is another release than planned", "ask again")


def prune(request: Json, manager: Manager) -> Json:
    """Takes old releases away: not the newest `keep`, none that is protected, runs, is named or newer than that."""
    unit, token = unit_field(request), token_field(request)
    change, step = key_field(request, "change"), key_field(request, "step")
    tree = Releases(request)
    keep = field(request, "keep", int)
    protected = {tree.name_field(str(name)) for name in field(request, "protect", list)}
    if keep < 1:
        raise Refused("bad-request", f"'keep' is {keep}, expected 1 or more")
    with UnitState(manager.scope, unit) as state:
        with manager.start_show([unit]) as asked:
            state.raise_token(token)
            shown = asked.known(unit)
        with tree:
            link = tree.link()
            if link["state"] != "link":
                message = f"{tree.path}/{tree.current} is {link['state'].replace('-', ' ')}, so what runs is not known"
                raise Refused("forbidden", message, "nothing was removed")
            found = tree.listed()
            pids = Processes().of_unit(incarnation_of(shown)["main_pid"], manager.unit_cgroup(shown))
            protected |= {link["release"], *tree.runs_from(pids).values()}
            since = next((r["at"] for r in found if r["name"] == link["release"]), 0.0)
            old = [r["name"] for r in found[keep:] if r["name"] not in protected and r["at"] < since]
            entry: Json = {
                "verb": "prune", "change": change, "step": step, "token": token, "at": time.time(),
                "phase": "intended", "path": tree.home,
            }  # fmt: skip
            state.record(entry)
            with state.recording(entry, "done"):
                left = [n[len(DYING) :] for n in os.listdir(tree.below) if n.startswith(DYING)]
                for name in [*old, *left]:
                    tree.remove(name)
            kept = [r["name"] for r in found if r["name"] not in old]
    return {"unit": unit, "removed": old, "kept": kept, "at": entry["at"]}


# --- commands -------------------------------------------------------------------------------------------------------


def argv_field(request: Json, name: str) -> List[str]:
    argv = field(request, name, list)
    sound = all(isinstance(word, str) and len(word) <= 4096 and word.isprintable() for word in argv)
    if not 1 <= len(argv) <= 100 or not sound or not argv[0].startswith("/"):
        raise Refused("bad-request", f"{name!r} is no argument list whose program is named by its absolute path")
    return [str(word) for word in argv]


def run_program(
    argv: List[str], user: Optional[str], timeout_s: float, manager: Manager, keep: Tuple[int, ...] = ()
) -> Json:
    """Runs a program with its arguments, in an environment of its own, and says how it ended.

    `keep`: descriptors that it holds until it ends, a lock for one: also when this program is gone before.
    """
    answer: Json = {"status": None, "output": "", "errors": "", "error": None, "at": time.time(), "took_s": 0.0}
    begun = time.monotonic()
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": home()}
    more: Dict[str, Any] = {}
    if manager.scope == "user":
        env.update({k: v for k, v in manager.env.items() if k in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")})
    if user is not None and pwd.getpwuid(os.geteuid()).pw_name != user:
        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            raise Refused("forbidden", f"this host has no user {user!r}", "see `user` of the fleet file") from None
        if os.geteuid() != 0:
            raise Refused("forbidden", f"only root can run a program as {user!r}", "see `user` of the fleet file")
        env["HOME"] = entry.pw_dir
        more = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": os.getgrouplist(user, entry.pw_gid)}
    try:
        process = subprocess.Popen(
            argv, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, pass_fds=keep, **more,
        )  # fmt: skip
    except OSError as e:
        answer["error"] = f"{argv[0]} cannot be run: {e.strerror}"
        return answer
    tails = {stream.fileno(): b"" for stream in (process.stdout, process.stderr) if stream is not None}
    out, err = tails
    poll, open_fds = select.poll(), set(tails)
    for fd in tails:
        os.set_blocking(fd, False)
        poll.register(fd, select.POLLIN)
    while True:
        ended = process.poll() is not None
        for fd in sorted(open_fds):
            with contextlib.suppress(BlockingIOError):
                piece = os.read(fd, 65536)
                while piece:
                    tails[fd] = (tails[fd] + piece)[-OUTPUT_MAX_BYTES:]
                    piece = os.read(fd, 65536)
                poll.unregister(fd)
                open_fds.discard(fd)
        left_s = begun + timeout_s - time.monotonic()
        if ended:
            break
        if left_s <= 0:
            answer["error"] = f"{argv[0]} had not ended after {timeout_s:g} s and was stopped"
            end_group(process)
            break
        if open_fds:
            poll.poll(min(left_s, 0.1) * 1000)
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(min(left_s, 0.5))
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    answer.update(status=process.returncode, output=tails[out].decode("utf-8", "replace"))
    answer.update(errors=tails[err].decode("utf-8", "replace"), took_s=round(time.monotonic() - begun, 6))
    return answer


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Ends a program with all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
            return


def tail_lines(text: str, count: int) -> List[str]:
    """The last lines of an output, without what looks like a secret."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return [masked(line[:LOG_LINE_MAX]) for line in lines[-count:]]


def command(request: Json, manager: Manager) -> Json:
    """Runs the declared command of a change's step; once it has ended well it is not run again for that step.

    One that was begun and whose end is not recorded is run again when it is asked for again: it is declared to bring
    about the same then. It holds the unit's lock for as long as it runs, whatever becomes of this program.
    first: the change's first token; what is recorded under a lower one was another change of the same name.
    """
    unit, token, first = unit_field(request), token_field(request), field(request, "first", int)
    change, step = key_field(request, "change"), key_field(request, "step")
    argv, user = argv_field(request, "argv"), field(request, "user", (str, NONE), None, required=False)
    timeout_s = seconds(request, "limit_s", 300.0, 3600.0)
    with UnitState(manager.scope, unit) as state:
        with manager.start_show([unit]) as asked:
            state.raise_token(token)
            asked.known(unit)
        earlier = state.find("command", change, step, None)
        argv_sha256 = hashlib.sha256(json.dumps([user, *argv]).encode()).hexdigest()
        same = earlier is not None and earlier["token"] >= first and earlier["argv_sha256"] == argv_sha256
        if earlier is not None and same and earlier["phase"] == "done":
            entry = dict(earlier, token=token)
            state.record(entry)
            return {"unit": unit, "already": True, "status": 0, "error": None, "lines": [], "at": entry["at"]}
        entry = {
            "verb": "command", "change": change, "step": step, "token": token, "at": time.time(),
            "phase": "intended", "argv_sha256": argv_sha256, "status": None,
        }  # fmt: skip
        state.record(entry)
        done = run_program(argv, user, timeout_s, manager, keep=(state.lock,))
        entry.update(status=done["status"], phase="done" if done["status"] == 0 and not done["error"] else "failed")
        state.record(entry)
        with manager.start("daemon-reload") as asked:  # it may have brought another unit file
            asked.text()
    lines = tail_lines(done["output"] + done["errors"], OUTPUT_LINES)
    told = {"status": done["status"], "error": done["error"], "lines": lines, "at": entry["at"]}
    return {"unit": unit, "already": False, **told}


def workers(request: Json, manager: Manager) -> Json:
    """Asks a router's own API to add a worker, or to remove one, while the token of the router's unit is held.

    A router answers at once and does it a moment later; asked twice it does it once. So the answer is passed on as it
    is, and whoever asks looks at the router before and after. note: kept with the record, for a successor.
    """
    unit, token = unit_field(request), token_field(request)
    change, step = key_field(request, "change"), key_field(request, "step")
    note = field(request, "note", str, "", required=False)
    add = field(request, "add", (dict, NONE), None, required=False)
    remove = field(request, "remove", (str, NONE), None, required=False)
    if (add is None) == (remove is None):
        raise Refused("bad-request", "either 'add' or 'remove' is expected")
    if remove is not None and not WORKER_ID.fullmatch(remove):
        raise Refused("bad-request", f"'remove' is {remove[:80]!r}, expected the id that the router gave a worker")
    if len(note) > NOTE_MAX_CHARACTERS:
        raise Refused("bad-request", f"'note' has more than {NOTE_MAX_CHARACTERS} characters")
    url = field(request, "api", str).rstrip("/") + "/workers" + ("" if remove is None else f"/{remove}")
    probe = probe_fields({"id": "workers", "url": url, "json": add, "timeout_s": ROUTER_TIMEOUT_S})
    probe["method"] = "POST" if remove is None else "DELETE"
    with UnitState(manager.scope, unit) as state:
        with manager.start_show([unit]) as asked:
            state.raise_token(token)
            asked.known(unit)
        entry: Json = {
            "verb": "workers", "change": change, "step": step, "token": token, "at": time.time(), "phase": "intended",
            "status": None, "note": note,
        }  # fmt: skip
        state.record(entry)
        answer = ask_all([probe])[0]
        sure = answer["status"] is not None
        entry.update(
            status=answer["status"], phase=("done" if answer["status"] < 400 else "failed") if sure else "intended"
        )
        state.record(entry)
    told = {"status": answer["status"], "body": answer["body"], "error": answer["error"]}
    return {"unit": unit, "at": entry["at"], **told}


def read(request: Json, manager: Manager) -> Json:
    """Reads files, and what programs that change nothing write."""
    answers: List[Json] = []
    for item in field(request, "items", list):
        if not isinstance(item, dict):
            raise Refused("bad-request", f"an item is {str(item)[:80]!r}, expected an object")
        path = field(item, "file", (str, NONE), None, required=False)
        if path is not None:
            answers.append(read_line(path))
            continue
        argv, user = argv_field(item, "argv"), field(item, "user", (str, NONE), None, required=False)
        CALLER.check()
        done = run_program(argv, user, seconds(item, "limit_s", 10.0, 3600.0), manager)
        error = done["error"]
        if error is None and done["status"] != 0:
            said = tail_lines(done["errors"] or done["output"], 1)
            error = f"{argv[0]} ended with {done['status']}" + (f": {said[0]}" if said else "")
        text = None if error else done["output"][:ANSWER_MAX_CHARACTERS].strip()
        answers.append({"text": text, "error": error, "status": done["status"], "at": done["at"]})
    return {"answers": answers}


def read_line(path: str) -> Json:
    """The text of a small file."""
    if not path.startswith("/") or len(path) > 4096 or not path.isprintable():
        raise Refused("bad-request", f"{path[:80]!r} is not the absolute path of a file")
    found = file_text(path)
    error = found["error"] or (None if found["exists"] else "not-found")
    text = None if error else (found["text"] or "")[:ANSWER_MAX_CHARACTERS].strip()
    return {"text": text, "error": f"{path}: {error}" if error else None, "status": None, "at": time.time()}


# --- wait -----------------------------------------------------------------------------------------------------------


class Watch:
    """Cheap looks at one unit: systemctl only when its processes changed, or half a second passed."""

    def __init__(self, manager: Manager, unit: str) -> None:
        self.manager, self.unit = manager, unit
        self.shown: Properties = {}
        self.incarnation: Json = {}
        self.cgroup: Optional[str] = None
        self._at = 0.0
        self._members: Optional[bytes] = None
        self._members_path: Optional[str] = None
        self._owner: Tuple[Set[str], Json] = (set(), {})

    def refresh(self, force: bool = False) -> None:
        age_s = time.monotonic() - self._at
        members = self._read_members()
        moved = members != self._members or (self.incarnation and not self._main_alive())
        if not (force or not self.shown or age_s >= SHOW_EVERY_S or moved):
            return
        self.shown = self.manager.unit(self.unit)
        self.incarnation = incarnation_of(self.shown)
        self.cgroup = self.manager.unit_cgroup(self.shown)
        self._members_path = members_file(self.cgroup) or self._members_path
        self._members = self._read_members()
        self._at = time.monotonic()

    def _main_alive(self) -> bool:
        pid = self.incarnation["main_pid"]
        return pid == 0 or same_life(pid, self.incarnation["started"])

    def _read_members(self) -> Optional[bytes]:
        if self._members_path is None:
            return None
        try:
            with open(self._members_path, "rb") as f:
                return f.read(65536)
        except OSError:
            return b""

    def port(self, port: int, host: Optional[str]) -> Json:
        """The owner of the port; the search through open files is repeated only when the sockets changed."""
        inodes = listening(port, host)
        known, owner = self._owner
        if inodes and inodes == known and same_life(owner["pid"], owner["started"]):
            return owner
        if not inodes:  # most polls of a boot: not worth a look at every process
            return port_owner(port, host, [], ())
        processes = Processes()
        pids = processes.of_unit(self.incarnation["main_pid"], self.cgroup)
        owner = port_owner(port, host, pids, processes.lives)
        self._owner = (inodes, owner) if owner["state"] == "owned" else (set(), {})
        return owner


def wait(request: Json, manager: Manager) -> Json:
    """Looks until the unit is ready or the slice is over.

    ready: a new incarnation (all three fields differ from `before`), active, the port is the unit's with an owner not
    older than the main process, and `confirmations` answers 200 in a row while the incarnation stayed the same.
    failed: the unit failed, or ended with no job left. other-incarnation: a further life began that systemd's own
    Restart= does not explain (NRestarts did not grow), or the life is not the one given as `expect`.
    foreign-port-owner: given at the end of a slice only, when every look at the port in its last second or more showed
    an owner outside. A request that has begun, and a row of 200s that has begun, are finished after the slice: the
    answer takes at most for_s + confirmations * (timeout_s + poll_s) and a second or two.
    """
    unit, before, expect = (
        unit_field(request),
        incarnation_field(request, "before"),
        incarnation_field(request, "expect"),
    )
    port = field(request, "port", (int, NONE), None, required=False)
    health = field(request, "health", (dict, NONE), None, required=False)
    probe = probe_fields(dict({"id": "health", "max_bytes": 4096}, **health)) if health is not None else None
    needed = field(request, "confirmations", int, 2, required=False)
    poll_s, for_s = max(0.01, seconds(request, "poll_s", 0.05, 60.0)), seconds(request, "for_s", 10.0, 600.0)
    host = host_of(probe["url"] if probe else None, port)
    watch = Watch(manager, unit)
    counted = UnitState(manager.scope, unit).restarts_before(before)
    deadline = time.monotonic() + for_s
    since: Json = {"new_incarnation_at": None, "port_owned_at": None, "first_200_at": None, "ready_at": None}
    owner: Optional[Json] = None
    answer: Optional[Json] = None
    streak, life, restarts_seen = 0, None, None  # type: int, Optional[Json], Optional[int]
    foreign_since: Optional[float] = None
    failed: Optional[Json] = None  # the first end of a life since `before`, before systemd forgets it in the next try
    state = "waiting"
    while True:
        watch.refresh()
        if one(watch.shown, "LoadState") == "not-found":
            raise Refused("no-such-unit", f"this host has no unit {unit!r}")
        now, active = watch.incarnation, one(watch.shown, "ActiveState")
        fresh = differs(now, before)
        if failed is None and (before is None or now["invocation_id"] != before["invocation_id"]):
            failed = failure_of(watch.shown)
        if fresh and life is not None and now != life:
            if (whole(watch.shown, "NRestarts") or 0) <= (restarts_seen or 0):
                state = "other-incarnation"
                break
            streak, foreign_since = 0, None
            since.update(port_owned_at=None, first_200_at=None)
        if fresh and now != life:
            life, restarts_seen = now, whole(watch.shown, "NRestarts")
            since["new_incarnation_at"] = started_at(now["started"])
            if expect is not None and now != expect:
                state = "other-incarnation"
                break
        if active in ("failed", "inactive") and one(watch.shown, "Job", "0") in ("", "0"):
            state = "failed"
            break
        owned = fresh and port is None
        if fresh and port is not None:
            owner = watch.port(port, host)
            owned = owner["in_unit"] and (owner["started"] or 0) >= now["started"]
            foreign = owner["state"] == "owned" and not owned
            foreign_since = (foreign_since or time.monotonic()) if foreign else None
            if owned and since["port_owned_at"] is None:
                since["port_owned_at"] = time.time()
        healthy = owned and probe is None
        if owned and probe is not None:
            answer = ask_all([probe])[0]
            good = answer["status"] == 200 and answer["error"] is None and same_life(now["main_pid"], now["started"])
            streak = streak + 1 if good else 0
            if good and since["first_200_at"] is None:
                since["first_200_at"] = time.time()
            healthy = streak >= needed
        elif not owned:
            streak = 0
        if healthy:
            watch.refresh(force=True)  # the last word on life and state is systemd's
            if watch.incarnation == now and one(watch.shown, "ActiveState") == "active":
                state, since["ready_at"] = "ready", time.time()
                break
        if time.monotonic() >= deadline and (streak == 0 or healthy):
            if foreign_since is not None and time.monotonic() - foreign_since >= min(1.0, for_s):
                state = "foreign-port-owner"
            break
        CALLER.sleep(poll_s)
    if owner is None and port is not None:
        owner = watch.port(port, host)
    # a restart that meets a running process sets the count back; one that meets the pause before Restart= does not
    shown = whole(watch.shown, "NRestarts")
    return {
        "unit": unit,
        "state": state,
        "incarnation": watch.incarnation,
        "active_state": one(watch.shown, "ActiveState"),
        "sub_state": one(watch.shown, "SubState"),
        "result": one(watch.shown, "Result"),
        "n_restarts": shown if shown is None or shown < counted else shown - counted,
        "n_restarts_shown": shown,
        "exec_main_status": whole(watch.shown, "ExecMainStatus"),
        "exec_main_code": whole(watch.shown, "ExecMainCode"),
        "failed": failed,
        "port": owner,
        "health": answer,
        "since": since,
        "at": time.time(),
    }


def failure_of(shown: Properties) -> Optional[Json]:
    """How the last life ended, when it ended badly."""
    result = one(shown, "Result")
    if result in ("", "success"):
        return None
    return {"result": result, "code": whole(shown, "ExecMainCode"), "status": whole(shown, "ExecMainStatus")}


# --- the door -------------------------------------------------------------------------------------------------------


def hello(request: Json, _manager: Manager) -> Json:
    """The caller stays: requests follow on the same stdin."""
    import http.client  # noqa: F401 here, so that the first request does not wait for it

    CALLER.idle_s = max(1.0, seconds(request, "idle_s", IDLE_S, 3600.0))
    CALLER.stays = True
    return {"helper": source_sha256(), "pid": os.getpid()}


VERBS = {"hello": hello, "observe": observe, "write": write, "restart": restart, "wait": wait, "fence": fence}
VERBS.update(rights=rights, releases=releases, switch=switch, prune=prune, command=command, workers=workers, read=read)


def answer_to(data: bytes) -> Json:
    try:
        if len(data) > REQUEST_MAX_BYTES:
            raise Refused("bad-request", f"the request has more than {REQUEST_MAX_BYTES} bytes")
        try:
            request = json.loads(data)
        except (ValueError, RecursionError):
            raise Refused("bad-request", "the request is not one JSON document") from None
        if not isinstance(request, dict) or request.get("v") != VERSION:
            raise Refused(
                "bad-request", f"this helper speaks version {VERSION}", "send its own version of the helper along"
            )
        verb, scope = field(request, "verb", str), field(request, "scope", str)
        if verb not in VERBS:
            raise Refused("bad-request", f"{verb[:40]!r} is no verb, expected one of {', '.join(VERBS)}")
        if scope not in ("system", "user"):
            raise Refused("bad-request", f"'scope' is {scope[:40]!r}, expected 'system' or 'user'")
        return dict(VERBS[verb](request, Manager(scope)), v=VERSION, ok=True)
    except Refused as refusal:
        said = {"v": VERSION, "ok": False, "code": refusal.code, "message": refusal.message, "hint": refusal.hint}
        return dict(refusal.extra, **said)
    except OSError as e:  # a disk that is full or read-only, a /proc that is closed
        return {
            "v": VERSION,
            "ok": False,
            "code": "forbidden",
            "message": f"{e.filename or 'the host'}: {e.strerror or e}",
            "hint": "",
        }
    except Gone:
        raise
    except Exception as e:
        import traceback

        traceback.print_exc()
        # neither a yes nor a no: what was done before it went wrong is not known
        return {"v": VERSION, "ok": None, "code": "crashed", "message": f"{type(e).__name__}: {e}"[:500], "hint": ""}


def main() -> int:
    served = 0
    try:
        while True:
            request = CALLER.line()
            if request is None and served:
                return 0
            CALLER.check()
            CALLER.answer(answer_to(request or b""))
            served += 1
            if request is None or len(request) > REQUEST_MAX_BYTES:
                return 0
    except (Gone, BrokenPipeError, ConnectionResetError):
        return 0


if __name__ == "__main__":
    sys.exit(main())
