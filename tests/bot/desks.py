"""The desk for evidence that a hearing needs, for tests: on the store and Slack of the test."""

from __future__ import annotations

from collections.abc import Callable

from slack_sdk import WebClient

from bot.downloading import Downloader
from bot.evidence_desk import EvidenceDesk
from tests.conftest import Store
from workers.client import Client
from workers.drawn import Drawn


def desk(
    client: Client, store: Store, web: WebClient, clock: Callable[[], float], shown: list[str] | None = None
) -> EvidenceDesk:
    """What is to be shown in a channel is listed in `shown`."""
    names = [] if shown is None else shown
    return EvidenceDesk(client, Drawn(store.redis), web, Downloader(web, lambda _: None), names.append, clock)
