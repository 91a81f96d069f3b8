"""The watch after the last gate, and restarts that change no value."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "bake.started": "all gates passed; watched until {until:at}",
    "bake.done": "watch ended: {why}",
    "bake.counters": "no failure was counted ({what})",
    "bake.no-counters": "nothing restarted; no failure counter is exported, so failures were not watched",
    "bake.failures-rose": "{instance}: {what} rose by {rise} while it was watched, expected 0",
    "bake.out-of-memory": "{instance} was killed for lack of memory while it was watched (result {result})",
    "bake.not-active": "{instance} is {state} while it is watched (result {result}), expected active",
    "bake.restarted": (
        "{instance} was restarted while it was watched: pid {old_pid} is now {new_pid} (result {result});"
        " clawback did not do that"
    ),
    "bake.crashed": (
        "{instance} ended while it was watched and systemd started it again: pid {old_pid} is now {new_pid}"
        " (result {result}, {restarts} automatic restarts)"
    ),
    "bake.not-observed": "the last look of the watch failed: {error}; nothing is known of the end of it",
    "plan.no-such-restart-order": "there is no restart order {order:code}, expected one of {orders}",
    "plan.scope-not-in-order": "{scope:code} is not restarted by {order:code}, which restarts {services}",
    "plan.no-such-scope": "{scope:code} is no service, host or service@host, expected one of {known}",
    "click.nothing-to-undo": "{change} changed no value, so there is nothing to undo; keep or retry is left",
}
