"""Planning: why there is no plan, what a plan warns of, and the lines of the plan card."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "plan.no-such-knob": "no knob {knob:code} in the fleet file, expected one of: {known}",
    "plan.no-such-order": "{knob:code} has no restart order {order:code}, expected one of: {orders}",
    "plan.not-made": "no plan could be made: {error}; {hint:or=look at the log of the worker}",
    "plan.scope-is-two-things": "{scope:code} is a service and a host, expected service@host",
    "plan.scope-without-knob": "{knob:code} is not set on {scope:code}, expected one of: {instances}",
    "plan.restore-is-a-set": (
        "no record says that {knob:code} = {value:value} was live before, so this is planned and judged as a set"
    ),
    "plan.nothing-to-restore": (
        "no record says which value of {knob:code} was taken away last; name it: `restore NAME=VALUE`"
    ),
    "plan.reverts-to-two-values": (
        "{knob:code} had different values before ({found}), so there is no one value to go back to; name a scope, or"
        " restore one value"
    ),
    "plan.nothing-to-do": (
        "{knob:code} is {value:value} already on {instances}, in the files and in the running process; nothing to do"
    ),
    "plan.dropin-unreadable": "{instance}: {path:code} cannot be read ({why}), so it cannot be changed safely",
    "plan.dropin-foreign": (
        "{instance}: {path:code} holds something that clawback did not write ({found}); move it to a drop-in of its own"
    ),
    "plan.place-loses": (
        "{instance}: written to {path:code}, {variable:code} would still be {effective:value} instead of"
        " {wanted:value}, because {decided_by:or=nothing that was read} decides; change it there"
    ),
    "plan.unit-not-loaded": "{instance}: systemd says {load_state:code} of {unit:code}, expected `loaded`",
    "plan.not-active-now": (
        "{instance} is {state} ({result}) already before the change; what fails there is not the change's doing"
    ),
    "plan.crash-looping": (
        "{instance} was started again {restarts} times by systemd already before the change; look at its journal first"
    ),
    "plan.start-timeout-short": (
        "{instance}: systemd stops waiting for the start after {timeout_start_s:s}, a boot may take {boot_s:s};"
        " raise TimeoutStartSec in {unit:code}"
    ),
    "plan.fleet-file-changed": (
        "the fleet file changed since this was asked (from {asked:sha} to {now:sha}); nothing was started, ask again"
    ),
    "replan.file": "{path:code} on {host} changed",
    "replan.incarnation": "{instance} runs as pid {pid:or=none}, planned was pid {planned_pid}",
    "replan.value": "{instance}: the value now is {now:value}, planned was {before:value}",
    "replan.fleet-file": "the fleet file changed (from {before} to {now})",
    "replan.policy": "the policy result changed ({codes})",
    "replan.steps": "the steps changed (from plan {before} to {now})",
    # lines of the card
    "plan.headline-value": "*{verb} {knob} = {value}* on {services}",
    "plan.headline-unset": "*{verb} {knob}* (to unset) on {services}",
    "plan.headline-bare": "*{verb} {knob}*",
    "plan.headline-bare-value": "*{verb} {knob} = {value}*",
    "plan.asked-by": "asked by {actor:who} · change {change}",
    "plan.because": "because {reason:code}",
    "plan.dry-run": "dry run: shown, never carried out",
    "plan.target": (
        "{instance}: now {now:value} ({now_by:or=nothing sets it}) → then {then:value} ({then_by:or=nothing sets it})"
    ),
    "plan.more-targets": "... {n} more instances",
    "plan.order": "*{order}*: {path}",
    "plan.order-estimated": "*{order}*: {path}, about {median_s:s} (p90 {p90_s:s}, n={n} recorded)",
    "plan.warning": "⚠ {said}",
    "plan.load": "restart now: {said}",
    "plan.policy": "policy: {said}",
    "plan.until": "can be confirmed until {until:at}",
    "plan.no-approval": "no approval is needed by the rules that match",
    "plan.undo": "undo: {undo}, same restart, without a new approval",
    "plan.undo-back-to": "back to {value:value}",
    "plan.undo-mixed": "each instance back to the value that it has now",
    "plan.please": "please decide: {who}",
    "plan.confirm-title": "Confirm {change}?",
    "plan.confirm-text": "this restarts {path} and changes {knob:code} from {now:value} to {then:value}",
    "plan.confirm-text-mixed": "this restarts {path} and changes {knob:code} to {then:value}",
    "plan.more-lines": "... {n} more lines",
    "plan.more-characters": "... cut, {n} more characters",
    "plan.digest": "plan {digest:sha}",
}
