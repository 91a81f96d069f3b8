"""One change from the typed command to the drawn end, struck at one moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sandbox.crashes.moments import ENDED, Json, moment
from sandbox.crashes.rig import Fault, Rig
from sandbox.crashes.stories import ORDERS, TYPED
from sandbox.eyes import Eyes, digests, payload_of, questions
from sandbox.judge import Judge, Mark
from sandbox.stage import ANA, BEN, CHANNEL, StageError

ORDER = "co-restart"
LONGEST_S = 120.0
CLICK_S = 6.0
DRAWN_S = 75.0
WOKEN_S = 1.5  # time enough for a wrong act of one that woke up
NOT_HEARD = ("nothing was recorded", "it is not known")  # in the answer to a click
AGAIN_S = 3.0  # a person who is told so says it again after so long


@dataclass(frozen=True, slots=True)
class Cell:
    """A fault at a moment, and how long after it. Units: delay in seconds."""

    fault: Fault
    moment: str
    delay_s: float = 0.0


@dataclass(slots=True)
class Played:
    """What happened. `struck_at`: epoch seconds; None: the moment did not come, or there was nobody to strike."""

    word: str
    change: str = ""
    began: Mark | None = None
    entries: list[Json] = field(default_factory=list)
    struck_at: float | None = None
    pids: list[int] = field(default_factory=list)
    clicks: int = 0
    after_end: list[str] = field(default_factory=list)
    problem: str = ""
    took_s: float = 0.0


class Player:
    """Plays changes on one rig, one after the other."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.eyes = Eyes(rig)
        self.judge = Judge(rig)

    def play(self, word: str, cell: Cell | None, lined: frozenset[str] = frozenset()) -> Played:
        """Type, click, strike, and wait until it is over and drawn. lined: moments whose lines are waited for."""
        played = Played(word)
        begun = time.monotonic()
        try:
            self.rig.ready()
            while self.rig.watch.pull():
                pass
            played.began = self.judge.mark()
            self.rig.slack.people.command(ANA, CHANNEL, TYPED[word])
            self._follow(played, cell)
            self._wake(played)
            self._drawn(played, lined)
        except StageError as error:
            played.problem = error.message
        finally:
            self.rig.wake()
        played.took_s = time.monotonic() - begun
        return played

    def _follow(self, played: Played, cell: Cell | None) -> None:
        deadline = time.monotonic() + LONGEST_S
        person: threading.Thread | None = None
        ending = threading.Event()
        try:
            while time.monotonic() < deadline:
                self.rig.check_alive()
                for entry in self.rig.watch.pull():
                    event = entry["event"]
                    if not played.change and event["kind"] == "asked":
                        played.change = entry["subject"]
                    if entry["subject"] != played.change:
                        continue
                    played.entries.append(entry)
                    if cell is not None and played.struck_at is None and moment(event) == cell.moment:
                        time.sleep(cell.delay_s)
                        played.pids = self.rig.strike(cell.fault)
                        played.struck_at = time.time() if played.pids else None
                    if event["kind"] == "planned" and person is None:
                        person = threading.Thread(target=self._clicks, args=(played, ending), name="ben")
                        person.start()
                    if event["kind"] == "approval_given":
                        ending.set()
                    if event["kind"] in ENDED:
                        return
            last = moment(played.entries[-1]["event"]) if played.entries else "nothing"
            raise StageError(f"no end within {LONGEST_S:g} s; the last that was recorded: {last}")
        finally:
            ending.set()
            if person is not None:
                person.join()

    def _clicks(self, played: Played, ending: threading.Event) -> None:
        """A person who waits for the buttons, clicks, and clicks again when the client shows a failure."""
        people = self.rig.slack.people
        while not ending.is_set():
            card = self.eyes.message(played.change)
            if not card or not digests(card) or not self.rig.slack.sockets.connected:
                ending.wait(0.02)
                continue
            seen, told = len(people.envelopes), len(self.eyes.ephemerals(BEN))
            self.eyes.click(BEN, card, ORDERS.get(played.word, ORDER))
            played.clicks += 1
            if all(envelope.wait(CLICK_S) for envelope in people.envelopes[seen:]):
                while not ending.wait(0.1) and not self._unheard(told):
                    pass
            ending.wait(AGAIN_S)

    def _unheard(self, told: int) -> bool:
        """Ben was told that his click may not have been recorded."""
        return any(words in text for text in self.eyes.ephemerals(BEN)[told:] for words in NOT_HEARD)

    def _wake(self, played: Played) -> None:
        """Those who were stopped wake up, and should do nothing more."""
        if not self.rig.stopped:
            return
        self.rig.wake()
        until = time.monotonic() + WOKEN_S
        while time.monotonic() < until:
            for entry in self.rig.watch.pull():
                if entry["subject"] == played.change:
                    played.entries.append(entry)
                    played.after_end.append(moment(entry["event"]))

    def _drawn(self, played: Played, lined: frozenset[str]) -> None:
        """Wait until every line that has to stand in the thread does, and the card asks nobody any more."""
        wanted = {entry["seq"] for entry in played.entries if moment(entry["event"]) in lined}

        def is_drawn() -> bool:
            self.rig.check_alive()
            if wanted - self.eyes.drawn(played.change):
                return False
            return not questions(self.eyes.message(played.change) or {})

        self._until(is_drawn, DRAWN_S)
        time.sleep(0.3 if lined else 3.0)  # without a list of lines: until nothing more comes

    @staticmethod
    def _until(holds: Callable[[], bool], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while not (done := holds()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return done

    def lines(self, change: str) -> list[Json]:
        """What the messages about a change draw, in the order in which they stand."""
        return [payload_of(m) for m in self.eyes.transcript() if payload_of(m).get("change") == change]
