"""What was observed on a host: the answer of the host helper's verb `observe`, typed.

Nothing here is a judgement. A reading that could not be made says so by its own word and is never "absent".
Clock values are the host's own (epoch seconds) unless a name says otherwise.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from policies.model import Model


class Incarnation(Model):
    """One life of a unit's main process. Two incarnations are the same only when all three fields agree."""

    main_pid: int  # 0: no main process
    started: int  # start time of main_pid in clock ticks after boot, /proc/PID/stat field 22; 0 without a pid
    invocation_id: str  # "" where systemd has none


class FileText(Model):
    """A file that systemd reads for a unit. Text is None when it could not be read; `error` says why."""

    path: str
    exists: bool
    text: str | None
    sha256: str | None  # of the raw bytes
    mode: int | None  # st_mode & 0o7777
    owner: str | None  # "uid:gid"
    error: str | None = None  # "forbidden", "not-a-file", "too-large", "not-utf-8", "vanished"


class ProcessEnv(Model):
    """The answer of one process about one variable.

    present: `value` holds its bytes, decoded utf-8 with surrogateescape. absent: the environment was read and
    lacks it. unreadable: the area is all NUL (the process renamed itself). forbidden: no permission.
    vanished: the process ended while it was looked at.
    """

    pid: int
    name: str  # /proc/PID/comm
    main: bool
    variable: str
    answer: Literal["present", "absent", "unreadable", "forbidden", "vanished"]
    value: str | None = None


class PortOwner(Model):
    """Who listens on a TCP port, from /proc/net/tcp and tcp6 and the socket inodes in /proc/PID/fd."""

    port: int
    state: Literal["owned", "free", "hidden"]  # hidden: somebody listens, whose sockets may not be read
    pid: int | None = None
    cgroup: str | None = None  # of the owner
    started: int | None = None
    in_unit: bool = False  # the owner's cgroup is the unit's or below it
    name: str | None = None  # /proc/PID/comm of the owner
    since: float | None = None  # its start, epoch seconds


class DeviceHolder(Model):
    """A process that has a device of the fleet file's `devices` open, from the links in /proc/PID/fd."""

    path: str
    pid: int
    name: str  # /proc/PID/comm
    cgroup: str | None
    started: int  # clock ticks after boot
    since: float  # the same in epoch seconds
    in_unit: bool  # a process of the unit: its cgroup or below, or a descendant of its main process


class LogTail(Model):
    """The last lines that a unit wrote. What looks like a secret is masked already on the host."""

    source: str  # "journal", or the file that the unit appends to
    lines: tuple[str, ...]
    error: str | None = (
        None  # why there are none: "not-found", "forbidden", "not-a-file", "nothing since the restart", ...
    )


class HttpAnswer(Model):
    """One HTTP exchange made from the host. status None: no answer; `error` says what happened.

    Units: at is epoch seconds of the host when it asked, took_s until the answer was there.
    """

    id: str
    url: str
    status: int | None
    body: str = ""  # utf-8 with replacement, cut at the asked size
    truncated: bool = False
    error: str | None = None
    at: float
    took_s: float


class UnitFacts(Model):
    """Everything that one look at a unit gives."""

    unit: str
    host: str
    service: str
    at: float
    load_state: str  # loaded, not-found, masked, bad-setting, error
    active_state: str
    sub_state: str
    result: str
    type: str  # simple, notify, ...; "" when the property is missing
    n_restarts: int | None
    exec_main_status: int | None
    timeout_start_s: float | None  # None: infinity
    timeout_stop_s: float | None
    restart: str
    restart_s: float | None
    start_limit_burst: int | None
    start_limit_interval_s: float | None
    need_daemon_reload: bool
    control_group: str
    exec_start: tuple[str, ...]  # argv of the main command
    incarnation: Incarnation
    fragment: FileText  # the unit file
    dropins: tuple[FileText, ...]  # in the order in which systemd reads them, ours included
    loaded_dropins: tuple[str, ...]  # DropInPaths as the manager knows them now
    env_files: tuple[FileText, ...]  # one for each EnvironmentFile= path after specifiers and globs
    unset_environment: tuple[str, ...]
    manager_environment: dict[str, str]  # the asked variables as the manager itself would pass them on
    dropin_path: str  # where our own drop-in is or would be
    processes: tuple[ProcessEnv, ...]  # one for each process and asked variable
    port: PortOwner | None
    http: tuple[HttpAnswer, ...]  # ids: "health", "metrics", "server_info" as far as asked
    exec_main_code: int | None = None  # of the last main process: 1 exited, 2 killed by a signal; 0 or None: runs
    device_holders: tuple[DeviceHolder, ...] = ()  # of the devices that were asked for
    recent_restarts: int = 0  # that clawback asked for within the start limit's interval
    devices_unseen: int = 0  # processes whose open files may not be read, when devices were asked for
    log: LogTail | None = None  # when it was asked for
    problems: tuple[str, ...] = ()  # what could not be read, in plain words


class HostFacts(Model):
    """One observe call: all asked units of one host."""

    host: str
    at: float
    boot_id: str
    helper: str  # sha256 of the helper's source that answered
    units: tuple[UnitFacts, ...]


class UnitRights(Model):
    """What the helper may do for one unit, by permissions alone."""

    unit: str
    load_state: str
    dropin: str  # path of our drop-in
    dropin_writable: bool
    state: str  # path of the unit's token and records
    state_writable: bool
    may_restart: bool


class Rights(Model):
    """The answer of `rights`: as whom the helper runs, on which python and systemd, by which clock."""

    at: float
    login: str
    python: str
    systemd: str
    units: tuple[UnitRights, ...]
    folders: dict[str, Literal["writable", "forbidden", "absent", "not-a-folder"]] = Field(default_factory=dict)
