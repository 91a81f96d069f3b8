"""`clawback say "TEXT"`: a chat command from a terminal. It works while Slack is down; the thread catches up."""

from __future__ import annotations

import sys
from typing import NoReturn

import click
from pydantic import JsonValue

from bot.cards.answers import verified
from bot.cards.locks import answered
from bot.cards.statement import statement_lines
from bot.cli import talk
from bot.cli.output import emit
from bot.following import decided
from bot.grammar import Reading, parse
from bot.messages import say
from bot.names import Names
from bot.questions import Asked
from bot.stating import Said, Stating
from bot.terminal import lines_of, plain
from policies.errors import NotFound
from policies.finding import Finding
from policies.intents import Act, DisputeStatement, EvidenceAdd, Intent, LockScope, UnlockScope, Verify, Where


@click.command(name="say")
@click.argument("text")
@talk.options
def command(text: str, pose: str | None, *, wait: bool, yes: bool, as_json: bool) -> None:
    """Say TEXT as you would in chat, for example "restore TARGET_CTAS=512" or "status C-7".

    You are the Slack user to whom `people` of the fleet file maps your user name. Exits 0 when it was accepted (with
    --wait: when it came to a good end), 1 when the answer is no or TEXT is no command.
    """
    terminal = talk.open_terminal(pose, as_json=as_json)
    reading = parse(text, names=Names.of(terminal.wiring.fleet))
    if reading.command is None:
        _unreadable(reading, as_json=as_json)
    if reading.changed:
        terminal.told([f"I read this as {reading.normalised}"])
    if isinstance(reading.command, Act):
        talk.act(terminal, reading.command, wait=wait, yes=yes)
    if isinstance(reading.command, Asked):
        _answer(terminal, reading.command)
    if isinstance(reading.command, LockScope | UnlockScope):
        _lock(terminal, reading.command, reading.normalised, yes=yes)
    if isinstance(reading.command, EvidenceAdd):
        _only_in_slack(as_json=as_json)
    if isinstance(reading.command, Said):
        _state(terminal, reading.command, reading.normalised, yes=yes)
    _ask(terminal, reading.command, text, reading.normalised, wait=wait, yes=yes)


def _unreadable(reading: Reading, *, as_json: bool) -> NoReturn:
    error = reading.error
    message, hint, code = (error.message, error.hint, error.code) if error else ("nothing was said", "", "empty")
    emit({"error": {"code": code, "message": message, "hint": hint}}, as_json, [])
    click.echo(f"clawback: {message}\n  {hint}", err=True)
    sys.exit(1)


def _only_in_slack(*, as_json: bool) -> NoReturn:
    """A form: a terminal has a command of its own for it."""
    said = plain(say("form.only-in-slack"), str)
    emit({"error": {"code": "only-in-slack", "message": said, "hint": ""}}, as_json, [])
    click.echo(f"clawback: {said}", err=True)
    sys.exit(1)


def _lock(terminal: talk.Terminal, word: LockScope | UnlockScope, normalised: str, *, yes: bool) -> NoReturn:
    person = terminal.person(deciding=False)
    terminal.ask_first(f"say `{normalised}` as {person.actor.name}?", yes=yes)
    client = terminal.wiring.client
    if isinstance(word, LockScope):
        answer = client.locks.lock(word, person.actor, Where(channel=terminal.wiring.fleet.channel or ""))
    else:
        answer = client.locks.unlock(word, person.actor)
    if answer.finding.effect == "refuse":
        terminal.refuse(answer.finding)
    if answer.lock is not None:
        client.doorbell.ring("narrate", "draw", answer.lock.id)
    said = plain(answered(answer.finding), terminal.name_of)
    emit(_document(said) | {"lock": answer.lock.id if answer.lock else None}, terminal.as_json, [said])
    sys.exit(0)


def _answer(terminal: talk.Terminal, question: Asked) -> NoReturn:
    """A question; exits 1 when a proof that was asked for does not hold."""
    person = terminal.person(deciding=False, roles=False)
    code = 0
    try:
        if isinstance(question, Verify):
            look = terminal.wiring.looks.verify(question.knob)
            code = 0 if look.proofs and all(proof.verdict == "live" for proof in look.proofs) else 1
            card = verified(look)
        else:
            card = terminal.questions.answer(question, person.actor)
    except NotFound as error:
        emit(_document(error.message), terminal.as_json, [str(error)])
        sys.exit(1)
    lines = lines_of(card, terminal.name_of)
    emit(_document("\n".join(lines)), terminal.as_json, lines)
    sys.exit(code)


def _state(terminal: talk.Terminal, said: Said, normalised: str, *, yes: bool) -> NoReturn:
    """A statement about a cause, or a word against one; exits 1 where the readings do not carry what is stated."""
    person = terminal.person(deciding=False, roles=False)
    terminal.ask_first(f"say `{normalised}` as {person.actor.name}?", yes=yes)
    where = Where(channel=terminal.wiring.fleet.channel or "")
    found = Stating(lambda: terminal.wiring.looks).said(said, person.actor, where, None)
    if isinstance(found, Finding):
        terminal.refuse(found)
    lines = [plain(line, terminal.name_of) for line in statement_lines(found)]
    word = found.standing.judged.verdict.word
    events: list[JsonValue] = [
        {"seq": x.seq, "at": x.at, "kind": x.event.kind, "event": x.event.model_dump(mode="json")}
        for x in found.entries
    ]
    document: dict[str, JsonValue] = {"change": found.statement.about, "decision": {"answer": word}, "events": events}
    text = "\n".join(lines)
    emit({**document, "statement": found.statement.id, "text": text}, terminal.as_json, lines)
    sys.exit(0 if isinstance(said, DisputeStatement) or word in {"verified", "consistent"} else 1)


def _document(text: str) -> dict[str, JsonValue]:
    return {"change": None, "decision": None, "events": [], "text": text}


def _ask(terminal: talk.Terminal, intent: Intent, said: str, normalised: str, *, wait: bool, yes: bool) -> NoReturn:
    person = terminal.person(deciding=False)
    terminal.ask_first(f"ask for `{normalised}` as {person.actor.name}?", yes=yes)
    fleet, client = terminal.wiring.fleet, terminal.wiring.client
    where = Where(channel=fleet.channel or "")
    change_id = client.request(intent, person.actor, where, said=said, normalised=normalised)
    terminal.told([f"{change_id} asked"])
    follower = terminal.follower(change_id)
    story = talk.until_planned(terminal, follower)
    terminal.told(terminal.card(story))
    change = story.change
    if decided(change) and change.planned is not None and change.state == "planned" and not change.planned.dry:
        terminal.told([f"waits for {change.planned.by or 'nobody'}: clawback confirm {change_id}"])
    if not wait:
        terminal.finish(follower, story, None, 1 if change.state == "refused" else 0)
    seq = story.entry.seq
    story = talk.until_settled(terminal, follower, seq)
    if story.entry.seq != seq:
        terminal.told(terminal.card(story))
    terminal.finish(follower, story, None, talk.exit_code(story.change))
