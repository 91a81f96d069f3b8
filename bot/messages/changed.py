"""What changed: by changes, outside of them, and what nobody watches."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "changed.head": "what changed in the last {since_s:s}",
    "changed.nothing": "no change was asked for or worked on, and nothing was found outside of changes",
    "changed.change": "{at:day} {change} {state:words}: {said:code}, asked by {actor:who}",
    "changed.approved": "approved by {actor:who}",
    "changed.ticket": "ticket {ticket:code}",
    "changed.ticket-head": "{count:n=change} for ticket {ticket:code}",
    "changed.ticket-none": "no change names the ticket {ticket:code}",
    "changed.values": "{instance}: {was:value} → {now:value}",
    "changed.more": "there are older ones; ask for a shorter time",
    "changed.outside": "{at:day} outside any change, on {instance}: {told}",
    "changed.between": "between {since:at} and {seen_at:at}",
    "changed.edited": "{name:code} was edited (sha256 {was:sha} → {now:sha})",
    "changed.appeared": "{name:code} is new (sha256 {now:sha})",
    "changed.gone": "{name:code} is gone (it had sha256 {was:sha})",
    "changed.restarted": "the process was restarted ({was} → {now})",
    "changed.auto-restarted": "systemd restarted the process by itself ({was} → {now})",
    "changed.stopped": "the process ended ({was})",
    "changed.started": "the process was started ({now})",
    "changed.build": "the build changed from {was} to {now}",
    "changed.posted": (
        "found outside any change on {instance}, {between}: {told}; `/deploy log since 2h` lists what changed"
    ),
    "changed.watched": "watched: files, processes and builds of {instances}, last looked at {at:day}",
    "changed.unwatched": "not looked at yet: {instances}",
    "changed.no-build": "builds are not read of {services}: they have no `server_info` in the fleet file",
    "changed.not-covered": (
        "not covered, because the fleet file does not name it: everything in front of and beside these units, such as "
        "proxies, load balancers, clients and test harnesses, other units, drivers, kernel and network"
    ),
    "changed.history-head": "what is recorded of {knob:code}",
    "changed.history-none": "nothing is recorded of {knob:code} yet",
    "changed.evidence": (
        "{at:day} evidence {record} for {value:value} against {baseline:value}: {klass:words}, recorded by {by:who}"
    ),
    "changed.suspicion": "left suspicion {suspicion}, which is {standing}",
}
