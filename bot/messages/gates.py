"""What a gate read, and what it expected."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "gate.host-not-answering": "{host} could not be asked ({error}), so nothing is known about this gate",
    "gate.incarnation.new": "new pid {new_pid} instead of {old_pid}, {state}, after {waited_s:s}",
    "gate.incarnation.old-process": (
        "{instance} still runs as pid {new_pid}, expected another process than {old_pid}: what answers is the old one"
    ),
    "gate.incarnation.crash-loop": (
        "{instance} was started again {restarts:n=time} by systemd within {waited_s:s} ({state}, {result}), expected"
        " none; look at its journal"
    ),
    "gate.incarnation.start-timeout": (
        "systemd gave up waiting for {instance} to start ({state}, {result}) after {waited_s:s}; raise TimeoutStartSec"
        " or look at its journal"
    ),
    "gate.incarnation.start-limit": (
        "systemd refuses to start {instance} again ({result}); `systemctl reset-failed` on the host lets it try"
    ),
    "gate.incarnation.failed": "{instance} is {state}, {result}, after {waited_s:s}; look at its journal",
    "gate.incarnation.no-process": "{instance} has no main process ({state}, {result}) after {waited_s:s}",
    "gate.incarnation.no-invocation-id": (
        "systemd gives no InvocationID for {instance}, so a new process cannot be told from the old one for certain"
    ),
    "gate.incarnation.not-active": "{instance} is {state} after {waited_s:s}, expected active",
    "gate.incarnation.other": "{instance} got another process than the one of this restart",
    "gate.port.owned": "pid {pid} in the unit owns port {port} after {waited_s:s}",
    "gate.port.free": "nobody listens on port {port} of {instance} after {waited_s:s}, expected its pid {main_pid}",
    "gate.port.hidden": (
        "somebody listens on port {port} of {instance}, but whose socket it is may not be read; give the user of"
        " clawback the right to read it"
    ),
    "gate.port.foreign": (
        "port {port} of {instance} belongs to pid {pid} in {cgroup:cgroup}, expected the unit itself (main"
        " pid {main_pid}); end that process, then look again"
    ),
    "gate.port.older": (
        "port {port} of {instance} belongs to pid {pid}, which is older than the main process (pid {main_pid}): it was"
        " left over from before the restart; end it, then look again"
    ),
    "gate.port.not-read": "the port of {instance} was not read, so its owner is not known",
    "gate.health.ok": "health {status} after {waited_s:s}, answered in {took_s:s}",
    "gate.health.status": "health of {instance} answers {status} ({url}) after {waited_s:s}, expected 200",
    "gate.health.no-answer": "health of {instance} gives no answer ({url}: {error}) after {waited_s:s}, expected 200",
    "gate.health.not-asked": "health of {instance} was not asked within {waited_s:s}, so nothing is known",
    "gate.health.not-confirmed": (
        "health of {instance} answered {status} after {waited_s:s}, but not as often in a row as asked for"
    ),
    "gate.environment.live": "{variable:code} is {wanted:value} in the running process of {instance}",
    "gate.environment.not-live": "{variable:code} is not {wanted:value} in the running process of {instance}",
    "gate.environment.mixed": "{variable:code} is {wanted:value} in some processes of {instance} and not in others",
    "gate.environment.unproven": (
        "whether {variable:code} is {wanted:value} in {instance} could not be read from its processes"
    ),
    "gate.reported.same": "the engine of {instance} reports {reported:value} at {path:code}",
    "gate.reported.unset": "the engine of {instance} reports {reported:or=nothing} at {path:code}, nothing is expected",
    "gate.reported.differs": "the engine of {instance} says {reported:value} at {path:code}, expected {wanted:value}",
    "gate.reported.not-there": "the engine of {instance} reports nothing at {path:code}, expected {wanted:value}",
    "gate.reported.no-answer": "the engine of {instance} did not report (status {status}), expected {wanted:value}",
    "gate.canary.path": (
        "canary {expected:code} came back through {service} in {took_s:s}; any of {behind} may have answered, so it"
        " proves the path and says nothing about one instance"
    ),
    "gate.canary.instance-path": (
        "canary {expected:code} came back through {instance} in {took_s:s}; behind it any of {behind} may have"
        " answered, so it proves {instance} and the path, and says nothing about one of those"
    ),
    "gate.canary.instance": "canary {expected:code} came back from {instance} itself in {took_s:s}",
    "gate.canary.text": "canary {expected:code} came back through {service} in {took_s:s}",
    "gate.canary.wrong-text": (
        "canary through {service} came back with {text:or=no text} in {took_s:s}, expected {expected:code}"
    ),
    "gate.canary.status": "canary through {service} answers {status}, expected 200",
    "gate.canary.no-answer": "canary through {service} gave no answer ({error}) within {took_s:s}",
    "gate.canary.not-asked": "the canary through {service} was not asked",
}
