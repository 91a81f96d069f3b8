"""Fleets that misbehave: what a plan warns of before, and what is found out after a gate has failed."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    # before
    "plan.port-foreign": (
        "{instance}: port {port} is held by pid {pid} ({name:code}), which runs since {since:day} in"
        " {cgroup:cgroup} and is not of {unit:code}; what answers there is not the unit"
    ),
    "plan.device-held": (
        "{instance}: {device:code} is held by pid {pid} ({name:code}), which runs since {since:day} in"
        " {cgroup:cgroup} and is not of the unit; the start may find no memory there"
    ),
    "plan.devices-not-all-seen": (
        "{instance}: the open files of {n} processes may not be read, so who holds its devices is not known for certain"
    ),
    "plan.start-timeout-recorded": (
        "{instance}: Type={type}, systemd stops waiting for the start after {timeout_start_s:s}; the last recorded boot"
        " took {last_s:s}, the longest of {n} took {longest_s:s}; raise TimeoutStartSec in {unit:code}"
    ),
    "plan.start-limit-never": (
        "{instance}: Restart={restart} with {each_s:s} or more a try never meets the start limit ({burst} starts in"
        " {interval_s:s}), so a start that fails is tried without end"
    ),
    "plan.start-limit-near": (
        "{instance} was restarted {recent:n=time} by clawback within {interval_s:s}, and systemd refuses the start"
        " after {burst} of them; wait, or run `systemctl reset-failed`"
    ),
    "plan.start-timeout-below-boot": (
        "{instance}: systemd stops waiting for the start after {timeout_start_s:s}, a boot takes {boot_s:s} (n={n}"
        " recorded); it is {state}, result {result}, NRestarts={restarts}, status {status}; another restart would end"
        " alike, so raise TimeoutStartSec in {unit:code} first"
    ),
    "plan.wraps-container": (
        "{instance}: {unit:code} only wraps {program:code}; the environment in the container is not the unit's, so that"
        " a value is live there cannot be proven"
    ),
    "plan.wraps-starter": (
        "{instance}: {unit:code} only starts {program:code}, which starts what does the work; its own environment"
        " proves no value, only those of its children do"
    ),
    "plan.managed": (
        "{instance}: {path:code} says that {tool} manages it (line {line}); the next run of {tool} may revert what is"
        " written there or beside it"
    ),
    "plan.not-reloaded": (
        "{instance}: the files of {unit:code} changed since systemd read them ({path:code}); a daemon-reload makes them"
        " count, those of this change included"
    ),
    "plan.dropin-not-loaded": (
        "{instance}: systemd has not read {files:code} yet; a daemon-reload makes it count, those of this change"
        " included"
    ),
    "plan.router-health-says-nothing": (
        "{instance}: {url} of a router answers 200 while its process runs, whatever becomes of {needs}; ask its"
        " /readiness in the fleet file"
    ),
    "plan.busy-not-dead": (
        "{instance} is not dead: its health check fails ({status:or=no answer} after {took_s:s}) while it works,"
        " {counter:or=progress} +{by:or=?} in {over_s:s} ({rate:or=?}/s), running {running_before} to {running}, queue"
        ' {queued_before} to {queued} ({at:at}); wait, or restart it all the same with `anyway because "..."`, which'
        " is recorded with your name"
    ),
    "plan.busy-restarted-anyway": (
        "{instance} works while its health check fails ({status:or=no answer} after {took_s:s}):"
        " {counter:or=progress} +{by:or=?} in {over_s:s} ({rate:or=?}/s), running {running_before} to {running}, queue"
        " {queued_before} to {queued} ({at:at}); {actor:who} asked to restart it anyway"
    ),
    "plan.busy-restarted": (
        "{instance} works while its health check fails ({status:or=no answer} after {took_s:s}):"
        " {counter:or=progress} +{by:or=?} in {over_s:s} ({rate:or=?}/s), running {running_before} to {running}, queue"
        " {queued_before} to {queued} ({at:at}); the restart ends what it works on"
    ),
    "plan.hung-behind-health": (
        "{instance} hangs behind a health check that says {status}, which is no proof of health: no counter of progress"
        " moved, running {running_before} to {running}, queue {queued_before} to {queued} ({at:at})"
    ),
    "plan.hung": (
        "{instance} hangs: its health check fails ({status:or=no answer} after {took_s:s}) and no counter of progress"
        " moved, running {running_before} to {running}, queue {queued_before} to {queued} ({at:at})"
    ),
    "plan.health-fails-unknown-work": (
        "{instance}: its health check fails ({status:or=no answer} after {took_s:s}); whether it works or hangs is not"
        " known ({why})"
    ),
    # right before
    "hold.device-held": (
        "{instance}: {device:code} is held by pid {pid} ({name:code}), which runs since {since:day} in"
        " {cgroup:cgroup} and is not of the unit; nothing of {instance} was touched; end that process,"
        " then retry"
    ),
    # after
    "gate.port.holder": (
        "pid {pid} is {name:code}, runs since {since:day} in {cgroup:cgroup}; clawback does not end it"
    ),
    "gate.version-differs": (
        "what answers for {instance} says that it is version {version:code}, planned was {planned:code} ({url})"
    ),
    "gate.device-held": (
        "{device:code} is held by pid {pid} ({name:code}), which runs since {since:day} in"
        " {cgroup:cgroup} and is not of the life that was started"
    ),
    "gate.ended.timeout-sigterm": (
        "systemd's time limit for the start: result {result}, NRestarts={restarts}; status {status} is systemd's own"
        " SIGTERM, not a crash of {instance}"
    ),
    "gate.ended.timeout": (
        "systemd's time limit for the start: result {result}, NRestarts={restarts}, status {status} of {instance}"
    ),
    "gate.ended.exit": "{instance} ended with exit status {status} first (result {result}, NRestarts={restarts})",
    "gate.ended.signal": "{instance} was ended by signal {status} first (result {result}, NRestarts={restarts})",
    "gate.ended.out-of-memory": "the kernel ended {instance} for lack of memory first (result {result})",
    "gate.ended.other": "{instance} ended first with result {result}, status {status}, NRestarts={restarts}",
    "gate.start-limit-reached": (
        "systemd starts {unit:code} no more: {burst} starts in {interval_s:s} are its limit; `systemctl reset-failed`"
        " lets it try again"
    ),
    "gate.timeout-foreseen": (
        "the plan had warned that {unit:code} is given {timeout_start_s:s} to start; raise TimeoutStartSec before"
        " anything is restarted again, an undo included"
    ),
    "gate.log-tail": "the log ends ({source:code}): {text:code}",
    "gate.log-none": "the log says nothing ({source:code}: {error})",
    "gate.log-about": "the log says of {variable:code} ({source:code}): {text:code}",
    "gate.router-lacks": "{instance} has no healthy {worker} ({urls:or=none is registered}), says {source}",
    "gate.health-said": "{url} says: {text:code}",
    "proof.container": (
        "the unit only wraps {program:code}: the environment in the container is not the unit's, so nothing is proven"
        " of {variable:code}"
    ),
    "proof.starter": (
        "the unit only starts {program:code}: {variable:code} was looked for in the {counted} processes that it started"
    ),
    "proof.log-about": "the log says of {variable:code} ({source:code}): {text:code}",
}
