"""`clawback status [CHANGE]`: the last changes, or one of them step by step, live with --follow."""

from __future__ import annotations

import sys
from typing import NoReturn

import click
from pydantic import JsonValue
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bot.cards.plan import headline
from bot.cards.progress import progress
from bot.cards.story import Story
from bot.cards.waiting import place_told
from bot.cli import talk
from bot.cli.output import emit
from bot.following import Follower
from bot.messages import say
from bot.questions import RECENT
from bot.spelling import change_id
from bot.terminal import plain
from bot.times import day_clock
from bot.words import Word
from policies.change import Change
from policies.errors import NotFound
from policies.finding import Finding

COLOURS = {"succeeded": "green", "nothing_to_do": "green", "running": "cyan", "undoing": "yellow", "held": "yellow"}


@click.command(name="status")
@click.argument("change", required=False)
@click.option("--follow", is_flag=True, help="Go on until the change ends; exits 0 only if it ended well.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: change, decision, events; or changes.")
def command(change: str | None, *, follow: bool, as_json: bool) -> None:
    """Show where CHANGE is, for example C-7, with the time of every step; without CHANGE the last ones."""
    terminal = talk.open_terminal(None, as_json=as_json)
    if change is None:
        if follow:
            raise click.UsageError("--follow needs a change, for example: clawback status C-7 --follow")
        _recent(terminal)
    follower = terminal.follower(change_id(Word(change)))
    try:
        story = follower.story()
    except NotFound:
        terminal.refuse(Finding(code="click.no-such-change", effect="refuse", values={"change": change}))
    if not follow:
        terminal.told([*terminal.card(story), "", *(one.text for one in follower.lines(story) if one.text)])
        terminal.finish(follower, story)
    story = _followed(terminal, follower)
    terminal.finish(follower, story, None, talk.exit_code(story.change))


def _recent(terminal: talk.Terminal) -> NoReturn:
    changes = terminal.wiring.client.recent(RECENT)
    document: list[JsonValue] = [
        {
            "change": one.id,
            "state": one.state,
            "mixed": one.standing is not None and one.standing.mixed,
            "said": one.asked.normalised if one.asked else None,
            "ticket": one.asked.intent.ticket if one.asked else None,
            "by": one.asked.actor.id if one.asked else None,
            "at": one.asked_at,
        }
        for one in changes
    ]
    line = [place for place in terminal.wiring.client.line().values() if place.position > 1]
    queue: list[JsonValue] = [
        {
            "change": place.change,
            "position": place.position,
            "behind": list(place.behind),
            "on": list(place.on),
            "held": place.held,
            "left_s": place.eta.left_s if place.eta is not None else None,
            "n": place.eta.n if place.eta is not None else None,
        }
        for place in line
    ]
    if terminal.as_json:
        emit({"changes": document, "queue": queue}, as_json=True, lines=[])
    elif not changes:
        click.echo("no change was asked yet")
    else:
        _console().print(_table(terminal, changes))
        for place in line:
            click.echo(plain(say("queue.one", change=place.change, said=place_told(place)), terminal.name_of))
    sys.exit(0)


def _table(terminal: talk.Terminal, changes: list[Change]) -> Table:
    table = Table(box=None, pad_edge=False)
    for head in ("change", "state", "asked", "by", "what"):
        table.add_column(head, overflow="fold")
    for one in changes:
        asked = one.asked
        table.add_row(
            one.id,
            _state(one),
            plain(day_clock(one.asked_at), terminal.name_of),
            Text(terminal.name_of(asked.actor.id) if asked else ""),
            Text(plain(asked.normalised, terminal.name_of)[:120] if asked else ""),
        )
    return table


def _followed(terminal: talk.Terminal, follower: Follower) -> Story:
    def over(change: Change) -> bool:
        return change.ended or (change.planned is not None and change.planned.dry)

    console = _console()
    if terminal.as_json or not console.is_terminal:
        return follower.until(over, talk.Told(terminal, follower))
    with Live(console=console, auto_refresh=False) as live:

        def draw(story: Story) -> None:
            live.update(_drawn(terminal, follower, story), refresh=True)

        return follower.until(over, draw)


def _drawn(terminal: talk.Terminal, follower: Follower, story: Story) -> Group:
    """Headline, the lines so far, and the bar below them where new lines push it down."""
    change = story.change
    parts = [Text(plain(headline(story), terminal.name_of), style="bold")]
    parts += [Text(one.text) for one in follower.lines(story) if one.text]
    parts.append(Text.assemble(_state(change), "  ", plain(progress(change), terminal.name_of)))
    return Group(*parts)


def _state(change: Change) -> Text:
    mixed = " (mixed)" if change.standing is not None and change.standing.mixed else ""
    return Text(change.state.replace("_", " ") + mixed, style=COLOURS.get(change.state, "red" if change.ended else ""))


def _console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)
