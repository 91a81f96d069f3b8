"""Questions and their answers as cards, for Slack and for a terminal. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, assert_never

from bot.cards import answers, evidences
from bot.cards.changed import Link, history_card, log_card, ticket_card
from bot.cards.details import details_card
from bot.cards.kit import Card
from bot.cards.story import Story
from bot.cards.suspicion import reclaim_card
from bot.cards.why import why_card
from bot.cards.why_knob import why_knob_card
from bot.commands import help_lines
from bot.markup import Markup
from bot.messages import say
from bot.telling import story_of
from policies.applicability import Standing
from policies.errors import HostAnswerLost, HostRefused, HostUnreachable, SettingsError
from policies.finding import Finding
from policies.intents import (
    Actor,
    DisputeStatement,
    EvidenceOf,
    Help,
    History,
    ListKnobs,
    Log,
    Reclaim,
    ShowKnob,
    StateCause,
    Status,
    Verify,
    Where,
    WhyCause,
    WhyKnob,
)
from workers.client import Client
from workers.look import KnobLook, VerifyLook
from workers.statements import Told
from workers.truth import Why

RECENT = 10
LOG_S = 7200.0  # how far back a log goes that does not say
# words that ask for a change -> kinds of rules that are about it
ASKING = {
    **dict.fromkeys(("set", "restore", "revert", "unset"), frozenset({None, "knob"})),
    **dict.fromkeys(("deploy", "rollback"), frozenset({None, "deploy"})),
    "restart": frozenset({None, "deploy", "restart"}),
}
DECIDING = frozenset({"confirm", "keep"})
Asked = Verify | ListKnobs | ShowKnob | EvidenceOf | Status | History | Log | Reclaim | WhyKnob | WhyCause | Help


class Truths(Protocol):
    """Statements about causes, as `workers.truth` judges them."""

    def state(self, said: StateCause, actor: Actor, where: Where, *, key: str | None = None) -> Told | Finding:
        """Judge and record what somebody states."""

    def dispute(self, said: DisputeStatement, actor: Actor, *, key: str | None = None) -> Told:
        """Judge a statement once more, and record it."""

    def why(self, about: str) -> Why:
        """What is known about a change or a service."""


class Looking(Protocol):
    """Questions about hosts, as `workers.look` answers them."""

    def verify(self, name: str) -> VerifyLook:
        """The proof ladder of a knob."""

    def list_knobs(self, scope: str | None = None) -> tuple[KnobLook, ...]:
        """Every knob of a scope."""

    def show(self, name: str) -> KnobLook:
        """One knob."""

    def standings(self, name: str) -> tuple[Standing, ...]:
        """What the records of a knob are worth today."""

    @property
    def truth(self) -> Truths:
        """Statements about causes."""


class Questions:
    """`looks` is called when a question first needs hosts. `clock` gives epoch seconds.

    address: where a change is told, in Slack; None where that is not known.
    """

    def __init__(
        self,
        client: Client,
        looks: Callable[[], Looking],
        clock: Callable[[], float],
        address: Link = lambda _: None,
    ) -> None:
        self._client = client
        self._looks = looks
        self._clock = clock
        self._address = address

    def answer(self, question: Asked, actor: Actor) -> Card:
        """The answer.

        Raises: NotFound, HostUnreachable, HostAnswerLost, StoreUnavailable.
        """
        match question:
            case Verify():
                return answers.verified(self._looks().verify(question.knob))
            case ListKnobs():
                return answers.listed(self._looks().list_knobs(question.scope))
            case ShowKnob():
                return answers.shown(self._looks().show(question.knob), self._clock())
            case EvidenceOf():
                found = self._client.evidence(question.knob)
                return evidences.about(question.knob, found, self._clock(), {}, self.standings(question.knob))
            case Status():
                return self._status(question)
            case WhyKnob():
                return self._why(question.knob)
            case History():
                return self._history(question.knob)
            case Log():
                return self._log(question)
            case Reclaim():
                return reclaim_card(self._client.suspicions(), self._clock())
            case WhyCause():
                return why_card(self._looks().truth.why(question.about))
            case Help():
                return answers.helped(help_lines(question.command, lambda word: self._may(word, actor)))
            case _:
                assert_never(question)

    def standings(self, knob: str) -> tuple[Standing, ...] | Markup:
        """What the records of a knob are worth today; why that is not known when its hosts cannot be asked.

        Raises: NotFound, StoreUnavailable.
        """
        if not self._client.evidence(knob):
            return ()
        try:
            return self._looks().standings(knob)
        except (HostUnreachable, HostAnswerLost, HostRefused, SettingsError) as error:
            # whoever has no login to the hosts may read all the same what is recorded
            return say("applies.not-asked", error=error.message)

    def story(self, change_id: str) -> Story | None:
        """A change with everything that is told about it; None when there is no such change."""
        entries = self._client.entries(change_id)
        if not entries or entries[0].event.kind != "asked":
            return None
        return story_of(self._client, entries)

    def details(self, change_id: str, digest: str | None) -> Card:
        """The plans of a change in full. digest: of the plan that was seen."""
        story = self.story(change_id)
        if story is None:
            return answers.told(say("click.no-such-change", change=change_id))
        return details_card(story, digest)

    def _log(self, question: Log) -> Card:
        now = self._clock()
        if question.ticket is not None:
            since = now - question.since_s if question.since_s is not None else 0.0
            return ticket_card(question.ticket, self._client.of_ticket(question.ticket, since), self._address)
        since = now - (question.since_s if question.since_s is not None else LOG_S)
        return log_card(self._client.changed(since), self._client.fleet, now, self._address)

    def _why(self, knob: str) -> Card:
        client = self._client
        return why_knob_card(
            knob,
            client.of_knob(knob),
            client.change,
            tuple(client.evidence(knob)),
            self.standings(knob),
            client.blamed(knob),
            client.stated,
            self._clock(),
            self._address,
        )

    def _history(self, knob: str) -> Card:
        entries = self._client.of_knob(knob)
        return history_card(knob, entries, self._client.change, self._standing, self._address)

    def _standing(self, suspicion: str) -> str | None:
        kept = self._client.suspicion(suspicion)
        return kept.standing.word if kept is not None else None

    def _status(self, status: Status) -> Card:
        if status.change is None:
            return answers.status_all(self._client.recent(RECENT), self._client.line())
        story = self.story(status.change)
        if story is None:
            return answers.told(say("click.no-such-change", change=status.change))
        return answers.status_one(story)

    def _may(self, word: str, actor: Actor) -> bool:
        """Whether help shows a word: the ones that change something only to those whom a rule lets."""
        rules = self._client.fleet.rules
        if word in ASKING:
            about = [r for r in rules if r.match.kind in ASKING[word] and r.match.intent in {None, word}]
            return any(rule.ask in actor.roles for rule in about if rule.ask)
        if word == "ratify":
            emergency = self._client.fleet.emergency
            return emergency is not None and emergency.ratify_by in actor.roles
        if word in DECIDING:
            return any(rule.by in actor.roles for rule in rules if rule.by)
        return True
