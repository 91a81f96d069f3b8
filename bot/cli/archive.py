"""`clawback archive`: put every entry of the ledger away into files, one a day, until SIGTERM."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import suppress

import click
import structlog

from bot.cli.evidence_lines import plain
from bot.cli.roles import Child, begin
from policies.errors import StoreUnavailable

log = structlog.get_logger("clawback")


@click.command(name="archive")
@click.option("--once", is_flag=True, help="Put away what there is, and end.")
@Child
def archive(parent: int | None, *, once: bool) -> None:
    """Copy the ledger into JSON lines, one file a day (UTC), each line on the disk before the next is read.

    The files are in CLAWBACK_ARCHIVE, or in the folder `archive` of CLAWBACK_DATA. `clawback audit verify` compares
    them with the ledger, `clawback audit rebuild` brings the ledger back from them.
    """
    from workers.archive.follow import ROLE, catch_up, follow
    from workers.archive.writer import Archive
    from workers.health import leave
    from workers.store import connect
    from workers.stores import opened_store, store_url

    settings = begin("archive", parent)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    with Archive(settings.archive_folder) as files:
        if files.repaired is not None:
            log.warning("archive repaired", said=plain(files.repaired))
        log.info("archive goes on", folder=str(files.folder), after_entry=files.seq)
        if once:
            with opened_store(settings.redis_url, settings.clawback_data) as url, connect(url) as client:
                count = catch_up(files, client)
            click.echo(f"{count} entries put away, {files.seq} in all, in {files.folder}")
            return
        with connect(store_url(settings.redis_url, settings.clawback_data)) as client:
            away = False
            name = f"{socket.gethostname()}:{os.getpid()}"
            for news in follow(files, client, ending, name):
                if isinstance(news, StoreUnavailable) and not away:
                    log.warning("store is away", error=news.message)
                away = isinstance(news, StoreUnavailable)
            with suppress(StoreUnavailable):  # then the beat fades by itself
                leave(client, (ROLE,), name)
