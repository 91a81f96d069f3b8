"""The archive, and rebuilding from it."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "archive.repaired": (
        "the last line of {file:code} was cut off in the middle: {size:n=byte} of it were taken away, its entry is "
        "written again"
    ),
    "archive.torn": "the last line of {file:code} is not finished ({size:n=byte}): it is being written, or was cut off",
    "archive.unreadable-line": "line {line} of {file:code} in the archive cannot be read",
    "archive.edited-entry": "entry {seq} in the archive (line {line} of {file:code}) was edited: its hash does not fit",
    "archive.broken-link": "entry {seq} in the archive (line {line} of {file:code}) does not follow the one before",
    "archive.missing-entry": "the archive lacks the entries {seq} to {until}, before those of {file:code}",
    "archive.misplaced-entry": "entry {seq} stands in the wrong place of the archive, line {line} of {file:code}",
    "archive.broken-anchor": (
        "{file:code} of the archive does not go on where the one before ended: "
        "it names entry {found}, expected {expected}"
    ),
    "archive.other-chain": "from entry {seq} on, the ledger and the archive say different things, and both are whole",
    "archive.ledger-shorter": (
        "the ledger ends at entry {seq}, the archive at {until}: entries of the ledger were lost. "
        "`clawback audit rebuild --from-archive` brings them back"
    ),
    "archive.behind": "the archive ends before entry {seq}, {n} are still to come: no error while it is being written",
    "rebuild.nothing": "there is nothing to rebuild from: the ledger is empty, and so is the archive",
    "rebuild.broken-ledger": (
        "the ledger itself is damaged ({code:code}, entry {seq:or=unknown}), so nothing was rebuilt from it. "
        "`clawback audit rebuild --from-archive` takes the damaged entries from the archive"
    ),
    "rebuild.broken-archive": (
        "the archive is damaged ({code:code}, entry {seq:or=unknown}), so nothing was taken from it"
    ),
    "rebuild.other-chain": (
        "entry {seq} is whole in the ledger and in the archive, and says different things: nothing was written over"
    ),
    "rebuild.no-archive": "there is no archive in {folder:code}, so nothing was taken from it",
    "rebuild.still-broken": (
        "with what the archive has, the ledger would still be damaged ({code:code}, entry {seq:or=unknown}): "
        "nothing was written"
    ),
    "rebuild.moved": "the ledger went on while it was rebuilt: end clawback first, then try again",
    "rebuild.entries": "{n} of the {all} entries of the ledger were taken from the archive",
    "rebuild.kept": "the ledger has {n} whole entries; none was touched",
    "rebuild.lists": "{n:n=list} made anew from the entries; {wrong} were wrong",
    "rebuild.sets": "{open} of the changes are open, {waiting} of them wait for approval",
    "rebuild.drawn": "where {n:n=thread} of earlier changes stand is looked up when they are next drawn",
}
