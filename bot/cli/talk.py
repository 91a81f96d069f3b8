"""What `say`, `confirm` and its like share: who is there, what is asked before it is done, and how it is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, TypeVar

import click
from pydantic import JsonValue

from bot.cards.answers import status_one
from bot.cards.story import Story
from bot.cli.output import emit
from bot.cli.store import open_from_terminal
from bot.following import GOOD, Follower, decided, settled
from bot.messages import sentence
from bot.person import Person, identify, may_pose, os_user, posed
from bot.questions import Questions
from bot.settings import Settings, read_settings
from bot.terminal import lines_of, names_of, plain
from policies.change import Change, State
from policies.errors import NotFound, SettingsError
from policies.finding import Finding
from policies.intents import Act
from workers.health import alive
from workers.wiring import Wiring

PLAN_S = 60.0  # to read every host once; a host that is away takes up to `timing.reach`
ENDS: dict[str, frozenset[State]] = {
    "confirm": frozenset({"succeeded"}),
    "deny": frozenset({"denied"}),
    "abort": frozenset({"aborted", "rolled_back"}),
    "undo": frozenset({"rolled_back"}),
    "keep": frozenset({"failed"}),
    "retry": frozenset({"succeeded", "rolled_back"}),
    "ratify": frozenset({"succeeded"}),
}
F = TypeVar("F", bound=Callable[..., Any])


def options(function: F) -> F:
    """--wait, --yes, --as and --json."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="One JSON document: change, decision, events."),
        click.option("--as", "pose", metavar="USER", help="Rehearse as somebody else; only on a sandbox."),
        click.option("--yes", is_flag=True, help="Do not ask here first. This is never an approval."),
        click.option("--wait", is_flag=True, help="Wait for the end; exits 0 only if it is the wanted one."),
    ):
        function = option(function)
    return function


@dataclass(frozen=True)
class Terminal:
    """One command's view of everything. `pose`: the user of `--as`."""

    settings: Settings
    wiring: Wiring
    pose: str | None
    as_json: bool

    @cached_property
    def questions(self) -> Questions:
        """Answers."""
        return Questions(self.wiring.client, lambda: self.wiring.looks, self.wiring.clock)

    @cached_property
    def name_of(self) -> Callable[[str], str]:
        """A name for a Slack user id."""
        return names_of(self.wiring.fleet.people)

    def follower(self, change_id: str) -> Follower:
        """Reads one change."""
        return Follower(self.questions, change_id, self.name_of)

    def person(self, *, deciding: bool, roles: bool = True) -> Person:
        """Who is there; ends the command when that is nobody who may speak.

        Raises: SettingsError.
        """
        user = os_user()
        if self.pose is not None:
            if not may_pose(self.settings, self.wiring.redis):
                raise SettingsError(
                    f"`--as {self.pose}` is for a sandbox only, this is none: expected SLACK_API_URL on this machine,"
                    " the embedded store, and a bot that listens there",
                    hint="leave --as out; you are who the operating system says",
                )
            user = posed(self.pose, self.wiring.fleet)
        found = identify(user, self.wiring.fleet, self.settings, deciding=deciding, roles=roles)
        if isinstance(found, Finding):
            self.refuse(found)
        if not found.checked:
            click.echo("slack was not asked who you are: roles by user group do not count now", err=True)
        return found

    def told(self, lines: Iterable[str]) -> None:
        """Print for people."""
        if not self.as_json:
            for line in lines:
                click.echo(line)

    def refuse(self, finding: Finding, change_id: str | None = None) -> NoReturn:
        """The answer is no."""
        message = plain(sentence(finding), self.name_of)
        said: JsonValue = {"code": finding.code, "effect": finding.effect, "message": message}
        decision: JsonValue = {"answer": "refused", "state": None, "findings": [said]}
        emit({"change": change_id, "decision": decision, "events": []}, self.as_json, [message])
        sys.exit(1)

    def ask_first(self, question: str, *, yes: bool) -> None:
        """Ask the person at this terminal; ends the command when they do not want it.

        Raises: UsageError when nobody can be asked.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            raise click.UsageError("this asks before it acts and stdin is no terminal, expected --yes")
        if not click.confirm(question, err=self.as_json):
            click.echo("nothing was done", err=True)
            sys.exit(1)

    def finish(self, follower: Follower, story: Story, answer: Finding | None = None, code: int = 0) -> NoReturn:
        """The document of a change, where one is wanted, and the end of the command."""
        document: dict[str, JsonValue] = {
            "change": story.change.id,
            "decision": follower.decision(story, answer),
            "events": follower.events(story),
        }
        emit(document, self.as_json, [])
        sys.exit(code)

    def card(self, story: Story) -> list[str]:
        """A change as its card tells it."""
        return lines_of(status_one(story), self.name_of)


def open_terminal(pose: str | None, *, as_json: bool) -> Terminal:
    """Raises: SettingsError, FleetFileError, StoreUnavailable."""
    return Terminal(read_settings(), open_from_terminal(), pose, as_json)


class Told:
    """Prints each line of a change once."""

    def __init__(self, terminal: Terminal, follower: Follower, seq: int = 0) -> None:
        self._terminal = terminal
        self._follower = follower
        self._seq = seq

    def __call__(self, story: Story) -> None:
        """What is new in this state of the story."""
        lines = [one for one in self._follower.lines(story) if one.seq > self._seq]
        self._seq = story.entry.seq
        self._terminal.told(one.text for one in lines if one.text)


def until_planned(terminal: Terminal, follower: Follower) -> Story:
    """Wait for the plan, where a worker is there to make one."""
    if not alive(terminal.wiring.redis, "ask"):
        click.echo("no worker serves the queue `ask`: it is recorded and waits for one", err=True)
        return follower.story()
    return follower.until(decided, lambda _: None, PLAN_S)


def until_settled(terminal: Terminal, follower: Follower, seq: int) -> Story:
    """Wait for the end, or until a person is needed who is not expected to come by: a change that is held."""
    return follower.until(settled, Told(terminal, follower, seq))


def exit_code(change: Change, wanted: frozenset[State] = GOOD) -> int:
    """0 when it came to the wanted end."""
    dry = change.state == "planned" and change.planned is not None and change.planned.dry
    return 0 if change.state in wanted or dry else 1


def act(terminal: Terminal, word: Act, *, wait: bool, yes: bool) -> NoReturn:
    """Say a word about a change: what `confirm C-1` does in chat.

    Raises: SettingsError, StoreUnavailable.
    """
    person = terminal.person(deciding=True)
    follower = terminal.follower(word.change)
    try:
        story = follower.story()
    except NotFound:
        terminal.refuse(Finding(code="click.no-such-change", effect="refuse", values={"change": word.change}))
    word = _as_seen(word, story)
    if not yes:
        terminal.told(terminal.card(story))
    order = f" via {word.order}" if word.order else ""
    terminal.ask_first(f"{word.kind} {word.change}{order} as {person.actor.name}?", yes=yes)
    seen = story.entry.seq
    answer = terminal.wiring.client.act(word, person.actor)
    terminal.told([plain(sentence(answer.finding), terminal.name_of)])
    if answer.finding.effect == "refuse":
        terminal.finish(follower, follower.story(), answer.finding, 1)
    if not wait:
        terminal.finish(follower, follower.story(), answer.finding)
    story = until_settled(terminal, follower, seen)
    terminal.told(terminal.card(story))
    terminal.finish(follower, story, answer.finding, exit_code(story.change, ENDS[word.kind]))


def _as_seen(word: Act, story: Story) -> Act:
    """Carry the plan that is shown here, so that another one that is made meanwhile is not what is confirmed."""
    planned = story.change.planned
    if word.kind != "confirm" or planned is None or story.change.state != "planned":
        return word
    plan = next((p for p in planned.plans if p.order == word.order), planned.plans[0] if not word.order else None)
    return word if plan is None else word.model_copy(update={"order": plan.order, "digest": plan.digest})
