"""Redis, and what is wrong with the ledger."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "store.volatile": "redis has {setting:code} = {found:or=unreadable}, expected {expected:code}: it may lose entries",
    "store.evicts": "redis has {setting:code} = {found:or=unreadable}, expected {expected:code}: it may drop entries",
    "store.persistent": "redis keeps what it acknowledged (appendonly {appendonly}, appendfsync {appendfsync})",
    "ledger.broken-link": "entry {seq} does not follow the one before: it names {found:sha}, expected {expected:sha}",
    "ledger.edited-entry": "entry {seq} ({kind} of {subject}) was edited: its hash does not fit",
    "ledger.misplaced-entry": "an entry stands in the wrong place ({seq})",
    "ledger.missing-entry": "entry {seq} is missing",
    "ledger.unreadable-entry": "entry {seq} cannot be read",
    "ledger.wrong-version": "entry {seq} is number {found} of {subject}, expected {expected}",
    "ledger.illegal-event": "entry {seq}: {kind} of {subject} could not happen then",
    "ledger.wrong-head": "the ledger ends at entry {seq}, its head says otherwise",
    "ledger.wrong-list": "the list {list:code} does not agree with the entries, from entry {seq:or=none}",
    "ledger.wrong-set": "{subject} is wrongly in or out of the set {list:code}",
}
