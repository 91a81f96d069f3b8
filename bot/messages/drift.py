"""What is not as it was left on an instance."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "drift.head": "{instance} is not as it was left",
    "drift.next": "`clawback fleet drift` and `/knob list` show it whole; it is said again only when it changes",
    "drift.over": "{instance} is as it was left again",
    "drift.configured": (
        "{instance}: {knob} should be {desired:value} by its last change, its unit would start with {configured:value} "
        "({place:or=nothing sets it})"
    ),
    "drift.live": "{instance}: {knob} is {live:value} in the process, its unit would start with {configured:value}",
    "drift.live-unknown": "{instance}: {knob} in the process cannot be told, its environment is {answer}",
    "drift.not-active": "{instance}: {unit} is {state}",
    "drift.other-process": "{instance}: pid {pid} runs, the last restart of ours left pid {was}",
    "drift.not-loaded": "{instance}: files of {unit} were changed and systemd has not read them",
    "drift.builds": "{instance}: build {build} answers, and {other_build} on {other}",
    "drift.version-configured": ("{instance}: version {desired} was deployed last, and {configured} would be started"),
    "drift.version-live": "{instance}: version {live} runs, and {configured} would be started",
    "drift.version-unknown": "{instance}: its version cannot be told: {why}",
}
