"""What `clawback doctor` looks at, in this order. A check is a function of the patient; add one by copying a small one.

Every check says what was read and, where it is not well, what to do. None changes anything, none prints a secret.
"""

from __future__ import annotations

from bot.doctor import hosts, machine, slack, store

CHECKS = (
    machine.python,
    machine.packages,
    machine.settings,
    machine.data_folder,
    machine.login_keys,
    machine.fleet_file,
    slack.token,
    slack.listening,
    slack.channels,
    slack.people,
    store.reachable,
    store.ledger,
    store.roles,
    store.endpoints,
    store.prometheus,
    store.alertmanager,
    hosts.hosts,
)
