"""What every story has: scenes that are played in order, people who type and click, and checks that are judged.

A scene that cannot go on fails the checks that it should have led to; what can be seen of the services and the ledger
is judged in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from policies.errors import OpsError
from sandbox.eyes import Eyes, Json
from sandbox.fleet.document import BOOT_FACTOR
from sandbox.judge import Verdict
from sandbox.stage import Stage

SLACK_S = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a story."""

    name: str
    ok: bool
    detail: str


@dataclass
class Telling:
    """Plays scenes in order. `tell` gets lines for people, `pause` the points at which a person may interfere."""

    stage: Stage
    tell: Callable[[str], None]
    pause: Callable[[str], None]
    pauses_at: str | None = None
    checks: list[Check] = field(default_factory=list)

    NAMES: ClassVar[tuple[str, ...]] = ()
    TITLE: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Give the story its eyes."""
        self.eyes = Eyes(self.stage)

    def scenes(self) -> tuple[Callable[[], None], ...]:
        """What is played, in order."""
        return ()

    def world(self) -> None:
        """Judge what can be seen in any case."""

    def play(self) -> bool:
        """Play everything; true when every check held."""
        problem = ""
        for scene in self.scenes():
            try:
                scene()
            except Exception as error:  # noqa: BLE001 - whatever stopped a scene, the checks it led to did not hold
                problem = in_words(error)
                self.tell(f"  !! {problem}")
                break
        self.world()
        self.fail_rest(f"not reached: {problem}" if problem else "not judged")
        return all(check.ok for check in self.checks)

    def fail_rest(self, why: str) -> None:
        """Every check that was not judged did not hold."""
        done = {check.name for check in self.checks}
        for name in self.NAMES:
            if name not in done:
                self.judged(name, lambda: (False, why))

    def sorted_checks(self) -> list[Check]:
        """The checks in the order of the story."""
        return sorted(self.checks, key=lambda check: self.NAMES.index(check.name))

    def judged(self, name: str, look: Callable[[], Verdict]) -> bool:
        """Judge one check, once; whether it held."""
        try:
            ok, detail = look()
        except Exception as error:  # noqa: BLE001 - a check that cannot be judged did not hold
            ok, detail = False, in_words(error)
        self.checks.append(Check(name, ok, " ".join(detail.split())))
        self.tell(f"  {'ok  ' if ok else 'FAIL'}  {name}: {self.checks[-1].detail}")
        return ok

    # people

    def types(self, user: str, text: str) -> str:
        """Somebody asks for a change; its id."""
        self.tell(f"  @{self.name(user)} types {text}")
        return self.eyes.command(user, text)

    def says(self, user: str, text: str) -> str:
        """Somebody types what asks for no change; what only they are told."""
        self.tell(f"  @{self.name(user)} types {text}")
        told = self.eyes.say(user, text)
        for line in told.splitlines():
            self.tell(f"  | {line}")
        return told

    def clicks(self, user: str, card: Json, order: str) -> None:
        """Somebody confirms a restart order."""
        self.tell(f"  @{self.name(user)} clicks [Confirm {order}]")
        self.eyes.click(user, card, order)

    def name(self, user: str) -> str:
        """How somebody is called."""
        return self.stage.slack.workspace.users[user].name

    def longest_s(self, roles: Iterable[str]) -> float:
        """Every boot at its limit, there and back, the watch after it, and a minute for all the rest."""
        limits_s = [max(30.0, BOOT_FACTOR * self.stage.boot_s[role]) for role in roles]
        return SLACK_S + self.stage.bake_s + 2 * sum(limits_s)


def in_words(error: Exception) -> str:
    """An error for people: its own words where it has some for them, and the hint."""
    if isinstance(error, OpsError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{type(error).__name__}: {error}"
