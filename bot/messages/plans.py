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
    "plan.place-uncertain": (
        "{instance}: written to {path:code}, {variable:code} would seem to be {wanted:value}, and that is not certain"
        " ({why:files}); nothing is written in hope: make what is named readable, then ask again"
    ),
    "plan.would-not-start": (
        "{instance} would not start as its files are, whatever is written to {path:code}"
        " ({why:files}); put right what is named, then ask again"
    ),
    "plan.unit-not-loaded": "{instance}: systemd says {load_state:code} of {unit:code}, expected `loaded`",
    "plan.not-active-now": (
        "{instance} is {state} ({result}) already before the change; what fails there is not the change's doing"
    ),
    "plan.crash-looping": (
        "{instance} was started again {restarts:n=time} by systemd already before the change; look at its journal first"
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
    "plan.headline-bare": "*{verb} {what}*",
    "plan.headline-bare-value": "*{verb} {knob} = {value}*",
    "plan.asked-by": "asked by {actor:who} · change {change}",
    "plan.because": "because {reason:code}",
    "plan.ticket": "ticket {ticket:code}",
    "plan.citing": "they cite {cited:code}",
    "plan.citing-unread": "they cite {cited:code}, which was not checked",
    "plan.dry-run": "dry run: shown, never carried out",
    "plan.now-then": "now {now:value} → then {then:value}",
    "plan.now-then-all": "now {now:value} → then {then:value} on {n:n=instance}",
    "plan.now-then-one": "{instance}: now {now:value} → then {then:value}",
    "plan.more-instances": "... {n:n=more instance}",
    "plan.brought-set": "set {age_s:s} ago by {actor:who} ({change})",
    "plan.brought-restore": "restored {age_s:s} ago by {actor:who} ({change})",
    "plan.brought-revert": "reverted {age_s:s} ago by {actor:who} ({change})",
    "plan.brought-unset": "unset {age_s:s} ago by {actor:who} ({change})",
    "plan.brought-because": "in their words: {reason:code}",
    "plan.brought-other": "since {change}, the last change here, it was altered by something else",
    "plan.brought-none": "no change of it is recorded",
    "plan.order": "*{order}*: {path}",
    "plan.restarts": "restarts *{path}*",
    "plan.order-takes": "about {median_s:s} (p90 {p90_s:s}, n={n} recorded)",
    "plan.load": "would cut the requests in flight: {said} (metrics, {at:at})",
    "plan.load-on": "{running} running and {queued} queued on {instance}",
    "plan.load-many": "and those of {n:n=more instance}",
    "plan.load-oldest": "the oldest over {older_than_s:s}",
    "plan.stop-all": "what has not stopped after {timeout_s:s} is killed",
    "plan.stop-each": "what has not stopped is killed after: {said}",
    "plan.stop-one": "{instance} {timeout_s:s}",
    "plan.stop-never": "{instance} never",
    "plan.stop-never-any": "a stop that hangs is never killed",
    "plan.warning": "⚠ {said}",
    "plan.policy": "policy: {said}",
    "plan.needs": "needs {count} of {role:code}, not {actor:who}",
    "plan.no-approval": "no approval is needed by the rules that match",
    "plan.until": "until {until:at}",
    "plan.undo": "undo: {undo}, same restart, without a new approval",
    "plan.undo-none": "no value changes, so there is nothing to undo",
    "plan.undo-back-to": "back to {value:value}",
    "plan.undo-mixed": "each instance back to the value that it has now",
    "plan.gives-up": "given up: {said}",
    "plan.please": "{who} please decide until {until:at}",
    "plan.confirm-title": "Confirm {change}?",
    "plan.confirm-text-restart": "this restarts {path} and changes no value",
    "plan.confirm-text": "this restarts {path} and changes {knob:code} from {now:value} to {then:value}",
    "plan.confirm-text-mixed": "this restarts {path} and changes {knob:code} to {then:value}",
    "plan.abort-title": "Abort {change}?",
    "plan.abort-text": "it stops after the gate of the restart that runs, then undoes what was changed",
    "plan.abort-text-restart": "it stops after the gate of the restart that runs; what was restarted stays so",
    "plan.more-lines": "... {n:n=more line}",
    "plan.more-characters": "... cut, {n:n=more character}",
    "plan.more-details": "... {n} more under Details",
}
