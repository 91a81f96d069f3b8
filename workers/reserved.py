"""Names that are reserved before anything is recorded under them, so that what is asked twice is one."""

from __future__ import annotations

from workers.ledger import Ledger, text_of
from workers.store import translated

RESERVED = "clawback:asked-as:"
RESERVED_S = 2 * 86_400  # longer than the inbox keeps what was heard


def reserved(ledger: Ledger, prefix: str, key: str) -> str:
    """The name `PREFIX-N` for this key: asked again under it within a day, it is the same.

    A process that ends between this and the recording leaves nothing that could be asked twice.
    Raises: StoreUnavailable.
    """
    with translated():
        found = ledger.redis.get(RESERVED + key)
    if found is not None:
        return text_of(found)
    name = ledger.new_id(prefix)
    with translated():
        first = ledger.redis.set(RESERVED + key, name, nx=True, ex=RESERVED_S)
    return name if first else reserved(ledger, prefix, key)


def known(ledger: Ledger, key: str) -> str | None:
    """The name that is reserved for this key and recorded already; None when there is none yet."""
    with translated():
        found = ledger.redis.get(RESERVED + key)
    name = text_of(found)
    return name if name and ledger.entries(name) else None
