"""Evidence in chat: what is recorded of a knob, the form to record more, and what becomes of a form that was sent.

Who may not ask for a change of a knob, or approve one, records nothing for it. A record of bad news is kept as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slack_sdk import WebClient

from bot.answering import Answerer
from bot.cards import answers, evidences, form
from bot.cards.kit import Card
from bot.downloading import Downloader
from bot.exhibits import Exhibit
from bot.heard import AnyHeard, HeardAction, HeardCommand, HeardForm, HeardMention
from bot.markup import Markup
from bot.messages import say, sentence
from bot.places import trouble
from bot.posting import permalink
from bot.slack import SlackRefused, call
from policies.applicability import Standing
from policies.errors import OpsError
from policies.fleet import Fleet, Knob
from policies.intents import Actor
from policies.recording import Given, Terms, already, from_results, may_record
from workers.client import Client
from workers.drawn import Drawn

MOST_SHOWN = 2
TRIGGERS = frozenset({"expired_trigger_id", "exchanged_trigger_id", "invalid_trigger_id"})


class EvidenceDesk:
    """`show` has an exhibit drawn, by its name. `clock` gives epoch seconds."""

    def __init__(
        self,
        client: Client,
        drawn: Drawn,
        web: WebClient,
        downloader: Downloader,
        show: Callable[[str], object],
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._drawn = drawn
        self._web = web
        self._answerer = Answerer(web)
        self._downloader = downloader
        self._show = show
        self._clock = clock

    def about(self, knob: str, heard: AnyHeard, standings: Sequence[Standing] | Markup = ()) -> Card:
        """All records of a knob; pictures of the newest ones are linked, or shown where they were asked for.

        standings: what the records are worth today, or why that is not known.
        """
        records = self._client.evidence(knob)
        thread_ts = None if isinstance(heard, HeardCommand) else heard.thread_ts
        drawable = [r for r in reversed(records) if r.judgement is not None and r.judgement.points][:MOST_SHOWN]
        shown: dict[str, Markup] = {}
        if drawable and trouble(self._answerer, heard.channel) is None:
            shown = {r.id: self._pictures(Exhibit(r.id, heard.channel, thread_ts)) for r in drawable}
        return evidences.about(knob, records, self._clock(), shown, standings)

    def _pictures(self, place: Exhibit) -> Markup:
        pointer = self._drawn.get(place.name)
        if pointer is not None and pointer.card_ts is not None:
            link = permalink(self._web, place.channel, pointer.card_ts)
            if link is not None:
                return say("evidence.pictures-at", link=Markup(link))
            self._drawn.forget(place.name)  # somebody deleted it: it is shown again
        self._show(place.name)
        return say("evidence.pictures-follow")

    def _place_problem(self, channel: str) -> Markup | None:
        match trouble(self._answerer, channel):
            case "not-here":
                return say("form.not-here")
            case "archived":
                return say("form.archived")
            case "shared":
                return say("form.shared")
        return None

    def open(self, heard: AnyHeard, actor: Actor) -> Card | None:
        """Open the form, or show the button that does; None: it is open and speaks for itself."""
        fleet = self._client.fleet
        may = {knob.name: may_record(fleet, knob, actor) for knob in fleet.knobs.values()}
        knobs = [fleet.knobs[name] for name, finding in may.items() if finding.effect != "refuse"]
        if not knobs:
            refusal = next(iter(may.values()), None)
            return answers.told(sentence(refusal) if refusal is not None else say("form.no-knob", known="none"))
        if (problem := self._place_problem(heard.channel)) is not None:
            return answers.told(problem)
        if isinstance(heard, HeardMention):
            dropped = tuple(form.Dropped(id=file.id, name=file.name[:60]) for file in heard.files)
            return form.opener(form.Opener(thread_ts=heard.thread_ts, files=dropped))
        carried = form.carried(heard.value) if isinstance(heard, HeardAction) else form.Opener()
        if carried is None or isinstance(heard, HeardForm):
            return answers.told(say("click.unreadable"))
        return self._opened(heard, knobs, carried)

    def _opened(self, heard: HeardCommand | HeardAction, knobs: list[Knob], carried: form.Opener) -> Card | None:
        view = form.view(knobs, form.Place(channel=heard.channel, thread_ts=carried.thread_ts), carried.files)
        try:
            call("views.open", self._web.views_open, trigger_id=heard.trigger_id or "none", view=view)
        except SlackRefused as error:
            if error.error in TRIGGERS:
                return answers.told(say("form.late"))
            raise
        return None

    def record(self, heard: HeardForm, actor: Actor) -> Card:
        """Judge the files of a form and record what came of it.

        Raises: StoreUnavailable.
        """
        fleet = self._client.fleet
        knob = fleet.knobs.get(heard.knob)
        if knob is None:
            return answers.told(say("form.no-knob", known=", ".join(fleet.knobs)))
        may = may_record(fleet, knob, actor)
        if may.effect == "refuse":
            return answers.told(sentence(may))
        try:
            a, b = ([self._given(file) for file in arm] for arm in (heard.a, heard.b))
            draft = from_results(a, b, _terms(fleet, knob, heard))
        except OpsError as error:
            return answers.told(say("form.refused", message=error.message, hint=error.hint))
        known = already(draft, self._client.evidence(knob.name))
        record = known or self._client.record_evidence(draft, by=actor.id)
        if (problem := self._place_problem(heard.channel)) is not None:
            return answers.told(say("form.recorded-silently", record=record.id, klass=record.klass, why=problem))
        self._show(Exhibit(record.id, heard.channel, heard.thread_ts).name)
        code = "form.recorded" if known is None else "form.already"
        return answers.told(say(code, record=record.id, klass=record.klass))

    def _given(self, file_id: str) -> Given:
        found = self._downloader.fetch(file_id)
        return Given(found.name, found.data)


def _terms(fleet: Fleet, knob: Knob, heard: HeardForm) -> Terms:
    return Terms(
        knob=knob.name,
        value=heard.value,
        variable=knob.env,
        knobs=frozenset(other.env for other in fleet.knobs.values() if other.name != knob.name),
        baseline=heard.baseline,
        metric=heard.metric,
        interleaved=heard.interleaved,
        correctness=heard.correctness,
        note=heard.note,
    )
