"""One act on a host, done once: sent under the lease's token, and when its answer is lost the host is asked first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from policies import events as e
from policies.devices import strangers, told
from policies.errors import HostAnswerLost, HostKeyRefused, HostRefused, HostUnreachable, LeaseLost
from policies.facts import Incarnation
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import AdmitStep, CommandStep, DrainStep, Plan, PruneStep, RestartStep, Step, WriteStep
from policies.replan import moved_files
from workers.aims import text_sha256
from workers.drains import Drains
from workers.enlisting import NotDone
from workers.executors.answers import ActRecord, Fenced, UnitAsk
from workers.executors.releases import Act
from workers.hosts import Hosts
from workers.lease import Held as Lease
from workers.trouble import host_finding
from workers.version_acts import CommandFailed, act, not_pruned

# Pauses before asking a host again what became of a step, in seconds; then a person is asked.
ASK_AGAIN_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
# refusals of a host that have words of their own
REFUSALS = {
    "file-changed": "hold.file-changed",
    "link-changed": "hold.link-changed",
    "no-release": "hold.release-broken",
    "release-broken": "hold.release-broken",
}
T = TypeVar("T")


class Undecided(Exception):  # not an error: a person has to decide, and `finding` says about what
    """The act cannot be done or its outcome cannot be learned."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(findings[0].code)
        self.findings = findings


class Acts:
    """Acts of one change under one lease.

    first: the tokens of the change's first lease. What a host remembers under lower ones was done by another change,
    even under the same name: a Redis that was lost gives names again, and tokens never.
    unknown: called once when an answer was lost, before asking again.
    """

    def __init__(
        self,
        hosts: Hosts,
        lease: Lease,
        change: str,
        first: Mapping[str, int],
        unknown: Callable[[Finding], None],
        drains: Drains,
    ) -> None:
        self._hosts = hosts
        self._lease = lease
        self._change = change
        self._first = first
        self._unknown = unknown
        self._drains = drains

    def do(self, step: Step, part: e.Part, index: int, *, again: bool) -> e.StepDone:
        """Do the step. `again`: it was begun before, so the host is asked first whether it was done.

        Raises: Undecided, LeaseLost.
        """
        ask_first = again

        def attempt() -> e.StepDone:
            done = self._was_done(step, part, index) if ask_first else None
            return done or self._send(step, part, index)

        def lost(error: HostAnswerLost) -> None:
            nonlocal ask_first
            if not ask_first:
                values: dict[str, str | int | float | None] = {"instance": instance(step), "error": error.message}
                self._unknown(Finding(code="host.step-unknown", effect="warn", values=values))
            ask_first = True

        if not isinstance(step, PruneStep):
            return self._patiently(step, attempt, lost)
        try:
            return self._patiently(step, attempt, lost)
        except Undecided as undecided:  # what is deployed is live and was watched: old folders hold nobody up
            return not_pruned(step, index, undecided.findings)

    def must_be_free(self, fleet: Fleet, plan: Plan, step: Step) -> None:
        """Nobody else restarted the unit or touched its files since the plan, and nobody else holds its devices.

        Asked before its file is written and before its restart. Raises: Undecided, LeaseLost.
        """
        if isinstance(step, (PruneStep, AdmitStep)):
            return  # behind the restart
        for later in plan.steps:
            if isinstance(later, RestartStep) and instance(later) == instance(step):
                must_be(later, self.incarnation(later))
                self._must_be_as_planned(fleet, plan, later)

    def _must_be_as_planned(self, fleet: Fleet, plan: Plan, step: RestartStep) -> None:
        service = fleet.services[step.service]
        ask = UnitAsk(service=step.service, unit=step.unit, devices=service.devices)
        unit = self.ask(step, lambda: self._hosts.at(step.host).observe([ask])).facts.units[0]
        commanded = any(isinstance(s, CommandStep) and instance(s) == instance(step) for s in plan.steps)
        moved = () if commanded else moved_files(plan, unit)  # a command may bring another unit file
        if moved:
            values: dict[str, str | int | float | None] = {"instance": instance(step), "paths": ", ".join(moved)}
            raise Undecided(Finding(code="hold.files-moved", effect="refuse", values=values))
        held = told("hold.device-held", "refuse", unit, strangers(fleet, unit))
        if held:
            raise Undecided(*held)

    def incarnation(self, step: Step) -> Incarnation:
        """The unit's life now, raising the token on the way: an older worker's calls are refused from here on.

        Raises: Undecided, LeaseLost.
        """
        token = self._lease.tokens[instance(step)]
        return self.ask(step, lambda: self._hosts.at(step.host).fence(step.unit, token=token).incarnation)

    def fence_routers(self, step: DrainStep | AdmitStep) -> None:
        """Shut out older workers at the routers of a step.

        Raises: Undecided, LeaseLost.
        """
        self.ask(step, lambda: self._drains.fence(step))

    def ask(self, step: Step, question: Callable[[], T]) -> T:
        """A question that changes nothing, asked again with growing pauses.

        Raises: Undecided, LeaseLost.
        """
        return self._patiently(step, question, lambda _: None)

    def still_drained(self, step: DrainStep, part: e.Part, index: int) -> None:
        """Nothing is sent to the instance since its drain, or it is drained again. Raises: Undecided, LeaseLost."""
        self.ask(step, lambda: self._drains.still_out(step, part, index))

    def _patiently(self, step: Step, attempt: Callable[[], T], lost: Callable[[HostAnswerLost], None]) -> T:
        """Try again while the host is away, busy or its answers are lost; then a person is asked."""
        said = ""
        for pause_s in (0.0, *ASK_AGAIN_S):
            time.sleep(pause_s)
            self._lease.check()
            try:
                return attempt()
            except NotDone as not_done:
                raise Undecided(*not_done.findings) from not_done
            except HostKeyRefused as error:
                raise Undecided(host_finding(error)) from error
            except HostRefused as error:
                if error.code != "busy":
                    raise self._refusal(step, error) from error
            except HostUnreachable as error:
                said = error.message  # nothing was sent: trying again is safe
            except HostAnswerLost as error:
                said = error.message
                lost(error)
        silent: dict[str, str | int | float | None] = {"instance": instance(step), "host": step.host}
        if isinstance(step, (DrainStep, AdmitStep)):  # its own host or that of a router
            values: dict[str, str | int | float | None] = {"instance": instance(step), "error": said}
            raise Undecided(Finding(code="hold.router-unreached", effect="refuse", values=values))
        raise Undecided(Finding(code="hold.host-silent", effect="refuse", values=silent))

    def _send(self, step: Step, part: e.Part, index: int) -> e.StepDone:
        token = self._lease.tokens[instance(step)]
        host, name = self._hosts.at(step.host), f"{part}-{index}"
        if isinstance(step, WriteStep):
            try:
                return self._write(step, part, index, name, step.before)
            except HostRefused as error:
                if part == "do" or error.code != "file-changed":
                    raise
                return self._undo_write(step, index, name)
        if isinstance(step, (DrainStep, AdmitStep)):
            return self._drains.do(step, part, index)
        if not isinstance(step, RestartStep):
            who = Act(token=token, change=self._change, step=name)
            try:
                return act(step, part, index, host, who, self._first[instance(step)])
            except CommandFailed as failed:
                raise Undecided(failed.finding) from failed
        issued = host.restart(step.unit, token=token, change=self._change, step=name)
        return _done(step, part, index, issued.at, before=issued.before)

    def _write(self, step: WriteStep, part: e.Part, index: int, name: str, expected: str | None) -> e.StepDone:
        written = self._hosts.at(step.host).write(
            step.unit,
            token=self._lease.tokens[instance(step)],
            change=self._change,
            step=name,
            text=step.text,
            expect_sha256=text_sha256(expected),
        )
        return _done(step, part, index, written.at, sha256=written.sha256_after)

    def _undo_write(self, step: WriteStep, index: int, name: str) -> e.StepDone:
        """Undo a write whose file is not as the write leaves it: nothing to do where the write was never made."""
        fenced = self._hosts.at(step.host).fence(step.unit, token=self._lease.tokens[instance(step)])
        if not self._mine(step, fenced, "write"):
            return _done(step, "undo", index, time.time())
        return self._write(step, "undo", index, name, step.text)  # written, but put back by somebody already

    def _was_done(self, step: Step, part: e.Part, index: int) -> e.StepDone | None:
        """What the host's own record says of a restart; None: it was not done.

        The others need no question, a host does them once. A restart whose intent is recorded counts as done when the
        incarnation is another one now. Without a record the unit must still be as it was planned.

        Raises: Undecided when somebody else restarted the unit.
        """
        if not isinstance(step, RestartStep):
            return None
        fenced = self._hosts.at(step.host).fence(step.unit, token=self._lease.tokens[instance(step)])
        name = f"{part}-{index}"
        mine = [r for r in self._mine(step, fenced, "restart") if r.step == name]
        if not mine:
            if part == "do":
                must_be(step, fenced.incarnation)
            return None
        record = mine[-1]
        if record.before is None or (record.state != "issued" and fenced.incarnation == record.before):
            return None
        return _done(step, part, index, record.at, before=record.before)

    def _mine(self, step: Step, fenced: Fenced, verb: str) -> list[ActRecord]:
        first = self._first[instance(step)]
        return [r for r in fenced.records if (r.verb, r.change) == (verb, self._change) and r.token >= first]

    @staticmethod
    def _refusal(step: Step, error: HostRefused) -> Undecided | LeaseLost:
        if error.code == "stale-token":
            return LeaseLost(error.message, hint=error.hint)
        values: dict[str, str | int | float | None] = {
            "instance": instance(step),
            "refusal": error.code,
            "message": error.message,
            "hint": error.hint,
        }
        return Undecided(Finding(code=REFUSALS.get(error.code, "hold.host-refused"), effect="refuse", values=values))


def must_be(step: RestartStep, now: Incarnation) -> None:
    """A restart replaces the life that was planned for and no other. Where there was none, any may be replaced.

    Raises: Undecided.
    """
    if step.before.main_pid == 0 or now == step.before:
        return
    values: dict[str, str | int | float | None] = {
        "instance": instance(step),
        "planned_pid": step.before.main_pid,
        "pid": now.main_pid,
    }
    raise Undecided(Finding(code="hold.other-incarnation", effect="refuse", values=values))


def instance(step: Step) -> str:
    """service@host."""
    return f"{step.service}@{step.host}"


def _done(
    step: Step,
    part: e.Part,
    index: int,
    at: float,
    *,
    before: Incarnation | None = None,
    sha256: str | None = None,
) -> e.StepDone:
    return e.StepDone(
        part=part,
        index=index,
        step=step.kind,
        instance=instance(step),
        host_at=at,
        before=before,
        sha256=sha256,
    )
