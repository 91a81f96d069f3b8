"""The archive follows the ledger: what is appended there is put away here, within a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice

import redis

from policies.errors import ArchiveBroken, StoreUnavailable
from workers.archive.segment import entry_line
from workers.archive.writer import Archive
from workers.health import beat
from workers.ledger import BATCH, HEAD, STREAM, stored
from workers.store import translated

ROLE = "archive"  # among the queues of those who are alive
WAIT_MS = 1000
AWAY_S = 1.0


def catch_up(archive: Archive, client: redis.Redis) -> int:
    """Put away everything that the ledger has and the archive has not; how many entries that were.

    Raises: StoreUnavailable; ArchiveBroken when the two are not of one chain, before anything is written.
    """
    _same_chain(archive, client)
    count = 0
    rest = stored(client, after=archive.seq)
    while batch := list(islice(rest, BATCH)):
        count += archive.append(batch)
    return count


def follow(
    archive: Archive, client: redis.Redis, ending: threading.Event, name: str = ""
) -> Iterator[int | StoreUnavailable]:
    """Catch up again and again until `ending`; gives how many entries came, or why the store cannot be read.

    name: of this process, which says that it is alive.

    Raises: ArchiveBroken.
    """
    while not ending.is_set():
        try:
            count = catch_up(archive, client)
            if name:
                beat(client, (ROLE,), name)
            if count:
                yield count
            with translated():
                client.xread({STREAM: f"{archive.seq}-0"}, count=1, block=WAIT_MS)
        except StoreUnavailable as error:
            yield error
            ending.wait(AWAY_S)


def _same_chain(archive: Archive, client: redis.Redis) -> None:
    problem = other_chain(archive.seq, archive.hash, client)
    if problem is not None:
        raise problem


def other_chain(seq: int, digest: str, client: redis.Redis) -> ArchiveBroken | None:
    """Why an archive that ends with this entry cannot go on with the ledger; None when it can.

    Raises: StoreUnavailable.
    """
    with translated():
        head = client.hget(HEAD, "seq")
    if seq == 0:
        return None
    last = int(head or 0)
    if last < seq:
        message = f"the archive has {seq} entries and the ledger has {last}: entries of the ledger were lost"
        return ArchiveBroken(message, hint="stop clawback and run `clawback audit rebuild --from-archive`")
    number, text = next(stored(client, after=seq - 1), (0, ""))
    line = entry_line("the ledger", 0, text)
    if number == seq and line is not None and line.hash == digest:
        return None
    message = f"entry {seq} of the archive is not the one of the ledger: they are not of one chain"
    return ArchiveBroken(message, hint="see that REDIS_URL, CLAWBACK_DATA and CLAWBACK_ARCHIVE belong together")
