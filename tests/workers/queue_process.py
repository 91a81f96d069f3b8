"""A worker process for tests: python -m tests.workers.queue_process URL. Jobs leave their traces in Redis."""

from __future__ import annotations

import sys
import time

from workers.queue import QUEUES, serve
from workers.store import connect


def main() -> None:
    """Serve all queues with a few jobs."""
    client = connect(sys.argv[1])
    other = connect(sys.argv[1])  # jobs use a client of their own, like real ones

    def note(item: str) -> None:
        other.rpush("notes", item)

    def slow(item: str) -> None:
        other.rpush("notes", f"{item} begins")
        while not other.exists(f"go-{item}"):
            time.sleep(0.01)
        other.rpush("notes", f"{item} ends")

    def fail(item: str) -> None:
        other.rpush("notes", f"{item} fails")
        raise RuntimeError(item)

    table = {"note": note, "slow": slow, "fail": fail}
    serve(client, QUEUES, table, name="test", tick=lambda: other.incr("ticks"), tick_s=0.05)
    other.rpush("notes", "left")
    other.close()
    client.close()


if __name__ == "__main__":
    main()
