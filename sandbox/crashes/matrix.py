"""Plays cells on one rig after the other: a rig is used again as long as its changes end as they should."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from sandbox.crashes.play import Cell, Player
from sandbox.crashes.rig import AWAY_S, FAULTS, Fault, Rig
from sandbox.crashes.stories import WORDS, Story
from sandbox.crashes.verdict import Outcome, Peace, judge, peace
from sandbox.stage import StageError

# nobody holds a lease then: there is no worker that could be stopped
UNLEASED = frozenset({"asked", "planned", "approval_given", "succeeded", "rolled_back"})


class Matrix:
    """Always `close()` it. tell: gets a line a cell.

    away_s: how long Valkey is silent where that is the fault.
    """

    def __init__(
        self, folder: Path, tell: Callable[[str], None], *, story: Story = "succeeds", away_s: float = AWAY_S
    ) -> None:
        self._away_s = away_s
        self._words = WORDS[story]
        self._folder = folder / self._words[0][0]
        self._tell = tell
        self._numbers = count(1)
        self._player: Player | None = None
        self._word = self._words[0]
        self._peace: dict[str, Peace] = {}

    def calm(self) -> tuple[str, ...]:
        """Play one change of each direction in peace; the moments of one.

        Raises: SettingsError where it cannot run, or when an undisturbed change does not succeed.
        """
        player = self._ready()
        for word in self._words:
            played = player.play(word, None)
            self._peace[word] = peace(player, played)
            end = "rolled_back" if word == "undo" else "succeeded"
            if played.problem or self._peace[word].moments[-1:] != (end,):
                raise StageError(f"an undisturbed {word} ended otherwise: {played.problem or played.entries[-1]}")
            self._tell(f"in peace: {word} with {len(played.entries)} events in {played.took_s:.1f} s")
        return self._peace[self._words[-1]].moments

    def strike(self, cell: Cell) -> Outcome:
        """Play one cell.

        Raises: SettingsError where it cannot run.
        """
        player = self._ready()
        calm = self._peace[self._word]
        played = player.play(self._word, cell, calm.lined)
        outcome = judge(player, played, cell, calm)
        told = "; ".join([*outcome.lost, *outcome.doubled, *outcome.false]) or "ok"
        over = "" if outcome.takeover_s is None else f", taken over after {outcome.takeover_s:.1f} s"
        met = "" if outcome.struck else " (nobody to strike)"
        self._tell(f"{cell.fault} at {cell.moment}{met}: {told}{over} [{outcome.took_s:.1f} s]")
        if outcome.good:
            self._word = self._words[1 - self._words.index(self._word)] if len(self._words) > 1 else self._word
        else:
            self.close()  # the next one begins on fresh ground
        return outcome

    @property
    def player(self) -> Player:
        """Whoever plays on the present rig.

        Raises: SettingsError where it cannot run.
        """
        return self._ready()

    def close(self) -> list[str]:
        """End the rig; what could not be ended, in words."""
        player, self._player = self._player, None
        return player.rig.close() if player is not None else []

    def _ready(self) -> Player:
        if self._player is None:
            folder = self._folder / str(next(self._numbers))
            folder.mkdir(parents=True)
            replicas = "roll" in self._words
            rig = Rig(folder, doomed="undo" in self._words, replicas=replicas, away_s=self._away_s)
            self._player = Player(rig)
            self._word = self._words[0]
            rig.open()
        return self._player


def all_cells(moments: Sequence[str], faults: Sequence[Fault] = FAULTS, holding: str = "") -> list[Cell]:
    """Every fault at every moment, so that the same process is not struck twice in a row."""
    return [
        Cell(fault, name)
        for name in moments
        if holding in name
        for fault in faults
        if fault != "stop" or name not in UNLEASED
    ]


def later(cells: Sequence[Cell], most_ms: float, chance: random.Random) -> list[Cell]:
    """The same cells, each struck a little after its moment."""
    return [Cell(cell.fault, cell.moment, round(chance.uniform(0, most_ms / 1000), 3)) for cell in cells]


def some_cells(cells: Sequence[Cell], number: int, chance: random.Random) -> list[Cell]:
    """A choice: each fault once as long as there is room, then any."""
    shuffled = list(cells)
    chance.shuffle(shuffled)
    first = {cell.fault: cell for cell in reversed(shuffled)}
    chosen = [first[fault] for fault in FAULTS if fault in first]
    return [*chosen, *(cell for cell in shuffled if cell not in chosen)][:number]
