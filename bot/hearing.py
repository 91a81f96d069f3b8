"""The job `hear`: what Slack sent becomes a request, an act or an answer, and everybody who said something hears back.

Heard twice is answered once: the request is noted before the answer, and an answer is given by its first sayer only.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

import structlog

from bot.answering import Answerer
from bot.cards import answers, buttons, form
from bot.cards.contract import on_all
from bot.cards.kit import Card
from bot.cards.locks import answered
from bot.cards.suspicion import settled
from bot.evidence_desk import EvidenceDesk
from bot.grammar import ParseError, Reading, parse, parse_slash, render
from bot.heard import HEARD, AnyHeard, Heard, HeardAction, HeardCommand, HeardForm, HeardMention
from bot.identity import Identity
from bot.markup import Markup
from bot.messages import say, sentence
from bot.names import Names
from bot.places import trouble
from bot.questions import Asked, Looking, Questions
from bot.stating import Said, Stating, receipt
from policies.errors import NotFound, OpsError, StoreUnavailable
from policies.finding import Finding
from policies.intents import (
    Act,
    Actor,
    Command,
    EvidenceAdd,
    EvidenceOf,
    Intent,
    LockScope,
    StateCause,
    UnlockScope,
    Where,
)
from workers.client import Client
from workers.drawn import Drawn
from workers.inbox import Inbox

log = structlog.get_logger(__name__)

STALE_S = 60.0  # a word that starts, ends or undoes work says something about what the person saw then
STARTING = frozenset({"confirm", "keep", "undo", "retry"})


class Hearing:
    """`looks` is called when a question first needs hosts. `clock` gives epoch seconds.

    address: where a change is told; None where that is not known.
    """

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        drawn: Drawn,
        identity: Identity,
        answerer: Answerer,
        looks: Callable[[], Looking],
        clock: Callable[[], float],
        desk: EvidenceDesk,
        address: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._desk = desk
        self._client = client
        self._inbox = inbox
        self._drawn = drawn
        self._identity = identity
        self._answerer = answerer
        self._clock = clock
        self._questions = Questions(client, looks, clock, address)
        self._stating = Stating(looks)
        self._names = Names.of(client.fleet)
        self._people = 0  # as `workers.inbox` counts what Slack said about people

    def hear(self, inbox_id: str) -> None:
        """Do what was asked and answer.

        Raises: StoreUnavailable; it is heard again when Redis is back.
        """
        with self._drawn.lock(f"hear-{inbox_id}") as lock:
            if lock is None:
                return  # another worker hears it now
            try:
                heard = HEARD.validate_python(self._inbox.get(inbox_id))
            except NotFound:
                return
            if self._drawn.noted(f"heard-{inbox_id}") is None:
                card = self._card(inbox_id, heard)
                if card is not None and self._drawn.once(f"answer-{inbox_id}"):
                    self._answerer.answer(heard, card)
                self._drawn.note(f"heard-{inbox_id}", "1")
            self._inbox.done(inbox_id)

    def _card(self, inbox_id: str, heard: AnyHeard) -> Card | None:
        """The answer; None: what was done shows itself."""
        try:
            return self._answer(inbox_id, heard)
        except StoreUnavailable:
            raise
        except OpsError as error:
            return answers.told(_told(error.message, error.hint))
        except Exception:
            reference = uuid.uuid4().hex[:10]
            change_id = self._client.requested(inbox_id)
            log.exception("hearing failed", reference=reference, inbox=inbox_id, kind=heard.kind, change=change_id)
            if change_id is not None:
                return answers.told(say("error.late", change=change_id, reference=reference))
            return answers.told(say("error.unexpected", reference=reference))

    def _answer(self, inbox_id: str, heard: AnyHeard) -> Card | None:
        if isinstance(heard, HeardForm):
            self._forget()
            sender = self._identity.identify(heard.user, heard.team, deciding=True)
            return answers.told(sentence(sender)) if isinstance(sender, Finding) else self._desk.record(heard, sender)
        reading: Reading | None = None
        if isinstance(heard, HeardAction):
            command: Command | buttons.Clicked | None = buttons.read(heard.action_id, heard.value)
            if heard.action_id == form.OPEN:
                command = EvidenceAdd()
            if command is None:
                return answers.told(say("click.unreadable"))
        else:
            reading = self._read(heard)
            command = reading.command
            if command is None:
                return answers.told(*self._echo(reading), _error(reading.error))
        self._forget()
        question = isinstance(command, Asked | buttons.Details)
        actor = self._identity.identify(heard.user, heard.team, deciding=isinstance(command, Act), roles=not question)
        if isinstance(actor, Finding):
            return answers.told(sentence(actor))
        if isinstance(command, Act):
            return self._act(command, actor, reading, inbox_id, self._age_s(heard))
        if isinstance(command, buttons.Details):
            return self._questions.details(command.change, command.digest)
        if isinstance(command, buttons.GiveBack):
            return self._give_back(inbox_id, command.suspicion, actor, heard)
        if isinstance(command, buttons.Together):
            return self._together(inbox_id, command.change, actor, heard)
        if isinstance(command, LockScope | UnlockScope):
            return self._lock(command, actor, heard, inbox_id)
        if isinstance(command, EvidenceAdd):
            return self._desk.open(heard, actor)
        if isinstance(command, EvidenceOf):
            return self._desk.about(command.knob, heard, self._questions.standings(command.knob))
        if isinstance(command, Asked):
            return self._questions.answer(command, actor)
        if isinstance(command, Said):
            return self._say(inbox_id, command, actor, heard, reading)
        return self._ask(inbox_id, command, actor, heard, reading)

    def _forget(self) -> None:
        """Slack said since the last time that a group or a person changed: what is kept about them is dropped."""
        version = self._inbox.people_version()
        if version != self._people:
            self._identity.forget()
            self._people = version

    def _read(self, heard: HeardCommand | HeardMention) -> Reading:
        if isinstance(heard, HeardCommand):
            return parse_slash(heard.command, heard.text, names=self._names)
        return parse(heard.text, names=self._names)

    def _ask(
        self,
        inbox_id: str,
        intent: Intent,
        actor: Actor,
        heard: HeardCommand | HeardAction | HeardMention,
        reading: Reading | None,
    ) -> Card:
        change_id = self._client.requested(inbox_id)
        if change_id is None:
            problem = self._channel_problem(heard.channel)
            if problem is not None:
                return answers.told(problem)
            thread_ts = heard.thread_ts if isinstance(heard, HeardMention) else None
            typed = heard.text if not isinstance(heard, HeardAction) else ""
            change_id = self._client.request(
                intent,
                actor,
                Where(channel=heard.channel, thread_ts=thread_ts),
                said=typed,
                normalised=reading.normalised if reading else typed,
                key=inbox_id,
            )
        return answers.told(*self._echo(reading), say("asked.receipt", change=change_id))

    def _say(
        self,
        inbox_id: str,
        said: Said,
        actor: Actor,
        heard: HeardCommand | HeardAction | HeardMention,
        reading: Reading | None,
    ) -> Card:
        """A statement about a cause, or a word against one. In a thread it is about the change that is told there."""
        echo = self._echo(reading)
        where = Where(channel=heard.channel)
        if isinstance(said, StateCause):
            problem = self._channel_problem(heard.channel)
            if problem is not None:
                return answers.told(problem)
            thread_ts = heard.thread_ts if isinstance(heard, HeardMention) else None
            change = self._drawn.change_in(heard.channel, thread_ts) if thread_ts is not None else None
            if said.of is None and change is not None and change.startswith("C-"):
                said = said.model_copy(update={"of": change})
                echo.append(say("statement.of-thread", change=change))
            where = Where(channel=heard.channel, thread_ts=thread_ts)
        return receipt(said, self._stating.said(said, actor, where, inbox_id), echo)

    def _give_back(
        self, inbox_id: str, suspicion_id: str, actor: Actor, heard: HeardCommand | HeardAction | HeardMention
    ) -> Card:
        """Plan what gives back a value, unless the suspicion was settled since the button was drawn."""
        kept = self._client.suspicion(suspicion_id)
        if kept is None:
            return answers.told(say("suspicion.unknown", suspicion=suspicion_id))
        asked_already = self._client.requested(inbox_id) is not None
        if kept.standing.word in {"reclaimed", "confirmed"} and not asked_already:
            return answers.told(settled(kept.suspicion, kept.standing))
        intent = kept.suspicion.gives_back
        if intent is None:
            return answers.told(say("suspicion.by-name"))
        return self._ask(inbox_id, intent, actor, heard, Reading(intent, f"/knob {render(intent)}", False, None))

    def _together(
        self, inbox_id: str, change_id: str, actor: Actor, heard: HeardCommand | HeardAction | HeardMention
    ) -> Card:
        """Plan as one change what was refused for one side of a contract, in the name of who clicked."""
        try:
            intent = on_all(self._client.change(change_id))
        except NotFound:
            intent = None
        if intent is None:
            return answers.told(say("click.unreadable"))
        return self._ask(inbox_id, intent, actor, heard, Reading(intent, f"/knob {render(intent)}", False, None))

    def _lock(self, word: LockScope | UnlockScope, actor: Actor, heard: AnyHeard, inbox_id: str) -> Card:
        thread_ts = heard.thread_ts if isinstance(heard, HeardMention) else None
        where = Where(channel=heard.channel, thread_ts=thread_ts)
        if isinstance(word, LockScope):
            answer = self._client.locks.lock(word, actor, where, inbox_id)
        else:
            answer = self._client.locks.unlock(word, actor, inbox_id)
        if answer.lock is not None and answer.finding.effect == "allow":
            self._client.doorbell.ring("narrate", "draw", answer.lock.id)
        return answers.told(answered(answer.finding))

    def _channel_problem(self, channel: str) -> Markup | None:
        """Why a plan cannot be shown where it is asked for; None when it can, or when Slack does not say."""
        match trouble(self._answerer, channel):
            case "not-here":
                return say("asked.not-here")
            case "archived":
                return say("asked.archived")
            case "shared":
                return say("asked.shared-channel")
        return None

    def _age_s(self, heard: Heard) -> float:
        return 0.0 if heard.put_at is None else self._clock() - heard.put_at

    def _act(self, act: Act, actor: Actor, reading: Reading | None, inbox_id: str, age_s: float) -> Card:
        # one that is recorded already only lacks its answer, however late that comes
        if act.kind in STARTING and age_s > STALE_S and self._client.ledger.written(act.change, inbox_id) is None:
            if reading is None:
                return answers.told(say("click.stale", age_s=age_s))
            return answers.told(*self._echo(reading), say("click.stale-word", age_s=age_s, act=act.kind))
        try:
            answer = self._client.act(act, actor, key=inbox_id)
        except NotFound:
            return answers.told(say("click.no-such-change", change=act.change))
        return answers.told(*self._echo(reading), sentence(answer.finding))

    @staticmethod
    def _echo(reading: Reading | None) -> list[Markup]:
        if reading is None or not reading.changed or not reading.normalised:
            return []
        return [say("asked.read-as", normalised=reading.normalised)]


def _error(error: ParseError | None) -> Markup:
    return say("click.unreadable") if error is None else _told(error.message, error.hint)


def _told(message: str, hint: str) -> Markup:
    return say("error.told-with-hint", message=message, hint=hint) if hint else say("error.told", message=message)
