"""The only door for the bot: ask for a change, say a word about one, read what is recorded.

Everything here is one or two Redis round trips; nothing reaches a host. Looking at hosts is `workers.look`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from policies import approvals
from policies import events as e
from policies.change import Change, fold
from policies.emergency import overridden
from policies.errors import LedgerConflict
from policies.evidence import Draft, Record
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Act, Actor, Intent, Where
from policies.line import Place
from policies.suspicion import Standing, Suspicion
from workers.changed import Changed, changed, of_knob, of_ticket
from workers.ledger import Ledger
from workers.line import in_line
from workers.locks import Locks
from workers.queue import Doorbell
from workers.reserved import known, reserved
from workers.statements import Told, told_about
from workers.suspicions import Kept, Suspicions
from workers.watch import Seen


@dataclass(frozen=True, slots=True)
class ActAnswer:
    """What became of a word about a change: the finding to say, and the change after it."""

    finding: Finding
    change: Change


class Client:
    """One per process. `clock` gives epoch seconds."""

    def __init__(self, ledger: Ledger, doorbell: Doorbell, fleet: Fleet, clock: Callable[[], float]) -> None:
        self.ledger = ledger
        self.doorbell = doorbell
        self.fleet = fleet
        self._clock = clock
        self._suspicions = Suspicions(ledger, fleet)
        self.locks = Locks(ledger, fleet, clock)

    def request(
        self, intent: Intent, actor: Actor, where: Where, *, said: str, normalised: str, key: str | None = None
    ) -> str:
        """Record what was asked and have it prepared; the new change's id.

        key: asked again under the same key within a day, it is the same change. Its id is reserved before anything
        is recorded, so that a process that ends in between leaves nothing that could be asked twice.
        """
        change_id = self.ledger.new_id("C") if key is None else reserved(self.ledger, "C", key)
        asked = e.Asked(
            intent=intent,
            actor=actor,
            where=where,
            said=said,
            normalised=normalised,
            fleet_sha256=self.fleet.sha256,
        )
        try:
            self.ledger.append(change_id, asked, expect_version=0)
        except LedgerConflict:
            if key is None:
                raise
        self.doorbell.ring("ask", "prepare", change_id)
        return change_id

    def requested(self, key: str) -> str | None:
        """The change that was recorded under this key; None when there is none yet."""
        return known(self.ledger, key)

    def act(self, act: Act, actor: Actor, *, key: str | None = None) -> ActAnswer:
        """Judge a word or click and record it, in one compare-and-set; judged again when somebody else was first.

        key: said again under the same key, because whoever heard it ended before the answer, it is the same word.
        Raises: NotFound when there is no such change.
        """
        entry = self.ledger.written(act.change, key) if key is not None else None
        while True:
            change = self.ledger.load(act.change)
            if entry is None:
                finding = approvals.judge(change, act, actor, self.fleet, self._clock())
                event = _event(change, act, actor, finding)
                try:
                    entry = self.ledger.append(change.id, event, expect_version=change.version, nonce=key)
                except LedgerConflict:
                    continue
            else:
                finding = self._found(entry, act, actor)
            self.doorbell.ring("narrate", "draw", change.id)
            after = self.ledger.load(change.id)
            if isinstance(entry.event, (e.ApprovalGiven, e.RetryAsked, e.UndoAsked)) and not after.ended:
                self.doorbell.ring("act", "execute", change.id)
            return ActAnswer(finding, after)

    def _found(self, entry: e.Entry, act: Act, actor: Actor) -> Finding:
        """What was found when this entry was recorded."""
        if isinstance(entry.event, e.ClickRefused):
            return entry.event.finding
        before = fold(entry.subject, self.ledger.entries(entry.subject)[: entry.version - 1])
        return approvals.judge(before, act, actor, self.fleet, entry.at)

    def change(self, change_id: str) -> Change:
        """The change as recorded.

        Raises: NotFound.
        """
        return self.ledger.load(change_id)

    def entries(self, change_id: str) -> list[e.Entry]:
        """Every event of the change, in order."""
        return self.ledger.entries(change_id)

    def brought(self, knob: str, before_seq: int) -> tuple[e.Entry, e.Entry] | None:
        """The knob's last change that succeeded before that place in the ledger: how it was asked, and how it ended."""
        return self._last(f"knob:{knob}", before_seq)

    def deployed(self, service: str, before_seq: int) -> tuple[e.Entry, e.Entry] | None:
        """The same of a service's version."""
        return self._last(f"version:{service}", before_seq)

    def _last(self, index: str, before_seq: int) -> tuple[e.Entry, e.Entry] | None:
        ends = [entry for entry in self.ledger.index(index) if entry.seq < before_seq]
        return (self.ledger.entries(ends[-1].subject)[0], ends[-1]) if ends else None

    def remind(self, change_id: str) -> bool:
        """Record that those who may approve are reminded, if it is time and was not done; True when it is recorded."""
        change = self.ledger.load(change_id)
        at = approvals.reminder_at(change)
        if at is None or change.planned is None or not at <= self._clock() < change.planned.expires_at:
            return False
        try:
            self.ledger.append(change_id, e.Reminded(), expect_version=change.version)
        except LedgerConflict:
            return False  # somebody decided, or another process was first
        return True

    def recent(self, count: int) -> list[Change]:
        """The last changes asked for, newest first."""
        asked = self.ledger.index("changes")[-count:]
        return [self.ledger.load(entry.subject) for entry in reversed(asked)]

    def line(self) -> dict[str, Place]:
        """The place of every approved change, in the order of the line."""
        return in_line(self.ledger, self.fleet.timing.bake_s, self._clock())

    def suspicions(self) -> list[Kept]:
        """What was taken away on suspicion and neither given back nor settled, oldest first."""
        found = [(suspicion, standing) for suspicion, standing in self._suspicions.all() if standing.is_lost]
        return [self._suspicions.kept(suspicion, standing) for suspicion, standing in found]

    def suspicion(self, name: str) -> Kept | None:
        """One by its id, whatever became of it; None when there is none."""
        found = self._suspicions.find(name)
        return None if found is None else self._suspicions.kept(*found)

    def blamed(self, knob: str) -> list[tuple[Suspicion, Standing]]:
        """Every suspicion about a knob, oldest first, with what became of it."""
        return [found for found in self._suspicions.all() if found[0].knob == knob]

    def stated(self, change_id: str) -> tuple[Told, ...]:
        """What was stated about a change, oldest first."""
        return told_about(self.ledger, change_id)

    def changed(self, since: float) -> Changed:
        """What changed since that moment, by changes and outside of them. Units: epoch seconds."""
        return changed(self.ledger, Seen(self.ledger.redis, self.fleet), since)

    def of_ticket(self, ticket: str, since: float = 0.0) -> tuple[Change, ...]:
        """The changes that name an incident or ticket, asked for since that moment, oldest first."""
        return of_ticket(self.ledger, ticket, since)

    def of_knob(self, knob: str) -> tuple[e.Entry, ...]:
        """What is recorded about a knob, oldest first."""
        return of_knob(self.ledger, self.fleet, knob)

    def locked(self, count: int) -> list[e.Entry]:
        """The last entries about locks, oldest first."""
        return self.ledger.index("locks")[-count:]

    def drift(self, count: int) -> list[e.Entry]:
        """The last things that were not as they were left, oldest first."""
        return self.ledger.index("drift")[-count:]

    def outside(self, count: int) -> list[e.Entry]:
        """The last things that the watch found outside of changes, oldest first."""
        return self.ledger.index("outside")[-count:]

    def asides(self, count: int) -> list[e.Entry]:
        """The last entries that are drawn beside changes: reminders, statements and disputes; oldest first."""
        return self.ledger.index("asides")[-count:]

    def remind_of_suspicions(self) -> list[str]:
        """Record that owners are reminded of the review dates that have come; the suspicions that are new in this."""
        return self._suspicions.remind(self._clock())

    def evidence(self, knob: str | None = None) -> list[Record]:
        """Evidence records, oldest first; of one knob, or all."""
        entries = self.ledger.index("evidence" if knob is None else f"evidence:{knob}")
        return [entry.event.record for entry in entries if isinstance(entry.event, e.EvidenceRecorded)]

    def record_evidence(self, draft: Draft, *, by: str) -> Record:
        """Store what `policies.recording` made of files. by: who recorded it, a Slack user id."""
        record = draft.recorded(self.ledger.new_id("ab"), by, self._clock())
        self.ledger.append(record.id, e.EvidenceRecorded(record=record), expect_version=0)
        return record


def _event(change: Change, act: Act, actor: Actor, finding: Finding) -> e.Event:
    if finding.effect == "refuse":
        return e.ClickRefused(actor=actor, what=act.kind, finding=finding)
    if act.kind == "confirm":
        plans = {plan.order: plan for plan in change.planned.plans} if change.planned else {}
        plan = plans[act.order] if act.order else next(iter(plans.values()))
        complete = finding.code == "click.ok"
        override = overridden(change, actor) if complete else None
        return e.ApprovalGiven(actor=actor, order=plan.order, digest=plan.digest, complete=complete, override=override)
    if act.kind == "ratify":
        return e.Ratified(actor=actor)
    if act.kind == "deny":
        return e.Denied(actor=actor)
    if act.kind == "abort":
        if change.state == "planned":
            note = Finding(code="aborted.before-start", effect="note", values={"actor": actor.id})
            return e.Aborted(findings=(note,))
        return e.AbortAsked(actor=actor)
    if act.kind == "keep":
        return e.KeepChosen(actor=actor, standing=change.standing)
    return e.RetryAsked(actor=actor) if act.kind == "retry" else e.UndoAsked(actor=actor)
