"""Units that only wrap: their main process is a starter or a client, and what does the work is somebody else.

A shell that ends in `exec` is none: the process that runs then is the engine itself. What runs counts more than the
command line, which is asked only where no main process was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from policies.facts import ProcessEnv, UnitFacts

Kind = Literal["container", "starter"]

# comm is cut at 15 characters by the kernel
CLIENTS = frozenset({"docker", "podman", "nerdctl", "docker-compose", "podman-compose", "apptainer", "singularity"})
MONITORS = frozenset({"conmon", "crun", "runc", "containerd-shim", "docker-proxy", "slirp4netns", "pasta"})
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "busybox", "fish"})
STARTERS = SHELLS | {
    "screen", "tmux", "tmux: server", "tmux: client", "nohup", "setsid", "sudo", "su", "runuser", "timeout", "flock",
    "script", "systemd-run", "daemonize", "start-stop-daem", "start-stop-daemon", "make", "xargs",
}  # fmt: skip
# what stands beside an engine in a script and is none
PIPES = frozenset({"tee", "cat", "sleep", "logger", "rotatelogs", "multilog", "sed", "awk", "grep", "tail", "ts"})


@dataclass(frozen=True, slots=True)
class Wrapped:
    """`program` is what wraps. In a container the unit's environment is not that of the engine."""

    kind: Kind
    program: str


def wrapped(unit: UnitFacts) -> Wrapped | None:
    """What the unit only wraps with; None when its main process is the thing itself, as far as can be seen."""
    main = next((p.name for p in unit.processes if p.main), None)
    return wraps(unit.exec_start, main)


def wraps(exec_start: Sequence[str], main: str | None) -> Wrapped | None:
    """As `wrapped`, from the command line and the name of the main process (None: not seen)."""
    if main in CLIENTS or main in MONITORS:
        return Wrapped("container", main)
    if main is not None:
        return Wrapped("starter", main) if main in STARTERS else None
    names = [word.strip("'\"").rsplit("/", 1)[-1] for word in exec_start]
    if not names:
        return None
    if names[0] in CLIENTS:
        return Wrapped("container", names[0])
    if names[0] not in STARTERS:
        return None
    client = next((name for name in names if name in CLIENTS), None)
    if client is not None:
        return Wrapped("container", client)
    return None if names[0] in SHELLS and "exec" in names else Wrapped("starter", names[0])


def counted(processes: Iterable[ProcessEnv], wrapped: Wrapped | None) -> tuple[ProcessEnv, ...]:
    """The processes whose environment says something about the engine."""
    if wrapped is None:
        return tuple(processes)
    if wrapped.kind == "container":
        return ()
    return tuple(p for p in processes if not p.main and p.name not in STARTERS and p.name not in PIPES)
