"""The bot's own jobs, by the names that a queue entry can call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from bot.answering import Answerer
from bot.asides import Asides
from bot.downloading import Downloader
from bot.evidence_desk import EvidenceDesk
from bot.exhibits import Exhibits, is_exhibit
from bot.hearing import Hearing
from bot.identity import Identity
from bot.narrator import Narrator
from bot.permalinks import Permalinks
from bot.posting import Poster
from bot.settings import Settings
from bot.slack import make_client
from bot.uploading import Uploader
from workers.drawn import Drawn
from workers.wiring import Wiring

HEAR_AGAIN_S = 5.0  # what waits for longer in the inbox lost its bell
SWEEP_EVERY = 20  # ticks


@dataclass(frozen=True)
class Jobs:
    """`hear` and `draw` on one wiring, with one Slack client."""

    wiring: Wiring
    settings: Settings

    @cached_property
    def hearing(self) -> Hearing:
        """The job `hear`."""
        client = make_client(self.settings.secret("SLACK_BOT_TOKEN"), self.settings.api_url)
        drawn = Drawn(self.wiring.redis)
        return Hearing(
            self.wiring.client,
            self.wiring.inbox,
            drawn,
            Identity(client, self.wiring.fleet),
            Answerer(client),
            lambda: self.wiring.looks,
            self.wiring.clock,
            EvidenceDesk(
                self.wiring.client,
                drawn,
                client,
                Downloader(client),
                self.ring_exhibit,
                self.wiring.clock,
            ),
            Permalinks(client, drawn).of,
        )

    @cached_property
    def narrator(self) -> Narrator:
        """The job `draw`."""
        client = make_client(self.settings.secret("SLACK_BOT_TOKEN"), self.settings.api_url)
        return Narrator(self.wiring.client, Drawn(self.wiring.redis), Poster(client), self.wiring.clock, self.ring_draw)

    @cached_property
    def asides(self) -> Asides:
        """The job `draw` of what is recorded beside changes."""
        client = make_client(self.settings.secret("SLACK_BOT_TOKEN"), self.settings.api_url)
        return Asides(self.wiring.client, Drawn(self.wiring.redis), Poster(client), self.wiring.clock, self.ring_draw)

    @cached_property
    def exhibits(self) -> Exhibits:
        """The job `draw` of a record of evidence at a place."""
        client = make_client(self.settings.secret("SLACK_BOT_TOKEN"), self.settings.api_url)
        drawn = Drawn(self.wiring.redis)
        return Exhibits(self.wiring.client, drawn, Poster(client), Uploader(client), self.wiring.clock)

    def draw(self, subject: str) -> None:
        """The job `draw`: a record at a place, a change by the narrator, anything else beside it."""
        if is_exhibit(subject):
            self.exhibits.draw(subject)
        else:
            (self.narrator if subject.startswith("C-") else self.asides).draw(subject)

    def ring_draw(self, change_id: str) -> None:
        """Have a change drawn."""
        self.wiring.doorbell.ring("narrate", "draw", change_id)

    def ring_exhibit(self, name: str) -> None:
        """Have a record shown; it is due even if its bell gets lost."""
        Drawn(self.wiring.redis).later(name, self.wiring.clock())
        self.ring_draw(name)

    @property
    def table(self) -> dict[str, Callable[[str], object]]:
        """Name -> function of one id.

        Raises: SettingsError when SLACK_BOT_TOKEN is missing.
        """
        return {"hear": self.hearing.hear, "draw": self.draw}

    def hear_again(self) -> None:
        """Ring for what was acknowledged and not heard."""
        for item in self.wiring.inbox.waiting(HEAR_AGAIN_S):
            self.wiring.doorbell.ring("ask", "hear", item)


class NarratorTick:
    """What the narrator's process does besides drawing: due drawings at once, forgotten ones now and then."""

    def __init__(self, narrator: Narrator, asides: Asides) -> None:
        self._narrator = narrator
        self._asides = asides
        self._count = 0

    def __call__(self) -> None:
        """One tick."""
        self._narrator.tick()
        if self._count % SWEEP_EVERY == 0:
            self._narrator.sweep()
            self._asides.sweep()
        self._count += 1
