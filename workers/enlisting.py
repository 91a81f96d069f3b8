"""Changing a router's list of workers, under the token of the router's unit, and looking before and after.

What a router knew of a worker is kept by its host before it is asked to forget it, and by the ledger after.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping

from pydantic import JsonValue, ValidationError

from policies import events as e
from policies.finding import Effect, Finding
from policies.plan import AdmitStep, DrainStep, Registration
from policies.routers.listed import Listed, is_ranked, matching, same_worker
from policies.states.judge import IDLE_S
from workers.executors.answers import ActRecord
from workers.executors.releases import Act
from workers.executors.routers import Changed, add_worker, remove_worker
from workers.executors.systemd import SystemdHost
from workers.hosts import Hosts
from workers.lease import Held as Lease
from workers.routers import Routers, Seen, taken_of

# Source: sglang-router 0.3.2 takes a worker out within 5 ms, lists a new one within 50 ms, and gives one up that does
# not answer after 4 s; a loaded machine takes longer
SETTLED_S = 10.0
LISTED_S = 60.0  # how long registering is tried
PAUSE_S = 0.05
AGAIN_S = 2.0  # a removal that shows no effect is asked for again
OUT = "-out-"  # in the names under which a host keeps removals
NO_ANSWER_S = 15.0  # a router that does not answer is asked again for so long
Values = dict[str, str | int | float | None]
Step = DrainStep | AdmitStep


class NotDone(Exception):  # not an error of ours: a person has to decide, and `findings` say about what
    """A router did not do it, or the instance did not get empty in time."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(findings[0].code)
        self.findings = findings


class Enlisting:
    """Of one change under one lease.

    first: tokens of the change's first lease; what a host remembers under lower ones was another change.
    Raises everywhere: NotDone, LeaseLost, HostUnreachable, HostRefused, HostAnswerLost.
    """

    def __init__(
        self,
        routers: Routers,
        hosts: Hosts,
        lease: Lease,
        change: str,
        first: Mapping[str, int],
        entries: Callable[[], Iterable[e.Entry]],
    ) -> None:
        self.routers = routers
        self.hosts = hosts
        self.check = lease.check
        self._tokens = lease.tokens
        self._change = change
        self._first = first
        self._entries = entries

    def fence(self, step: Step) -> None:
        """Raise the token of every router of the step: an older worker's calls are refused there from here on."""
        for router in dict.fromkeys(at.router for at in step.at):
            self._host(router).fence(self.routers.unit(router), token=self._tokens[router])

    def look(self, at: Registration) -> Seen:
        """The router as it is now, asked again for a while where it does not answer."""
        deadline = time.monotonic() + NO_ANSWER_S
        while True:
            self.check()
            seen = self.routers.look(at)
            silent = isinstance(seen.listed, Finding) and seen.listed.code == "router.no-answer"
            if not silent or time.monotonic() > deadline:
                return seen
            time.sleep(IDLE_S)

    def registered(self, at: Registration, seen: Seen | None = None) -> tuple[Listed, ...]:
        """The entries of the instance at a router."""
        listed = (seen or self.look(at)).listed
        if isinstance(listed, Finding):
            raise NotDone(listed)
        return matching(listed, at.worker)

    def take_out(self, step: Step, at: Registration, name: str, found: tuple[Listed, ...]) -> tuple[Listed, ...]:
        """Have the router send nothing there any more; gives what it knew. found: its entries now."""
        if not found:
            return self.taken_before(step, at)
        if any(is_ranked(one.url) for one in found):
            raise NotDone(about("hold.ranked-worker", "refuse", step, router=at.router, worker=at.worker))
        listed, deadline = found, time.monotonic() + SETTLED_S
        while listed:
            if time.monotonic() > deadline:
                raise NotDone(about("hold.not-taken-out", "refuse", step, router=at.router, worker=at.worker))
            for number, one in enumerate(listed):
                note = json.dumps({"worker": at.worker, "found": one.model_dump(mode="json")})
                act = self._act(at.router, f"{name}{OUT}{number}")
                host, unit = self._host(at.router), self.routers.unit(at.router)
                self._refused(at, remove_worker(host, unit, at.api, act, one.id, note))
            again = time.monotonic() + AGAIN_S
            while (listed := self.registered(at)) and time.monotonic() < again:
                time.sleep(PAUSE_S)
        return once(found)

    def out_for_s(self, at: Registration, name: str, now: float | None) -> float:
        """How long ago this very step took the instance out, by the router's host; 0.0 where it did not yet.

        now: that host's epoch seconds. A person's word to look again begins the time anew.
        """
        turns = (e.StepStarted, e.RetryAsked, e.UndoAsked)
        begun = [entry.event for entry in self._entries() if isinstance(entry.event, turns)]
        if now is None or (begun and not isinstance(begun[-1], e.StepStarted)):
            return 0.0
        times = [r.at for r in self._mine(at) if r.step.startswith(f"{name}{OUT}") and _noted(r.note, at)]
        return max(0.0, now - min(times)) if times else 0.0

    def is_aborted(self) -> bool:
        """Somebody asked to abort the change."""
        return any(isinstance(entry.event, e.AbortAsked) for entry in self._entries())

    def to_look_again(self) -> bool:
        """A person said to look again, and nothing was begun since."""
        turns = (e.StepStarted, e.RetryAsked, e.UndoAsked)
        last = [entry.event for entry in self._entries() if isinstance(entry.event, turns)][-1:]
        return any(isinstance(event, e.RetryAsked) for event in last)

    def taken_before(self, step: Step, at: Registration) -> tuple[Listed, ...]:
        """What this change itself took out and did not give back yet, by the ledger, else by the router's host."""
        taken, admitted_at = taken_of(self._entries(), step)
        mine = [t.found for t in taken if t.router == at.router and same_worker(t.worker, at.worker)]
        if any(mine) and not admitted_at:
            return tuple(one for one in mine if one is not None)
        return once(one for r in self._mine(at) if r.at > admitted_at for one in _noted(r.note, at))

    def _mine(self, at: Registration) -> list[ActRecord]:
        """What the router's host remembers that this change did at its router."""
        fenced = self._host(at.router).fence(self.routers.unit(at.router), token=self._tokens[at.router])
        first = self._first[at.router]
        return [r for r in fenced.records if (r.verb, r.change) == ("workers", self._change) and r.token >= first]

    def is_out(self, step: Step) -> bool:
        """This change took the instance out everywhere, waited then, and did not give it back since."""
        taken, admitted_at = taken_of(self._entries(), step)
        return bool(taken) and not admitted_at

    def recorded(self, step: Step, at: Registration) -> tuple[Listed, ...]:
        """As the router knew the instance: from the last drain, done or only begun."""
        taken, _ = taken_of(self._entries(), step)
        mine = [t.found for t in taken if t.router == at.router and same_worker(t.worker, at.worker)]
        return tuple(one for one in mine if one is not None) if mine else self.taken_before(step, at)

    def register(self, step: Step, at: Registration, name: str, one: Listed) -> None:
        """Ask until it is listed: a router tries once, and gives up what does not answer it then."""
        deadline = time.monotonic() + LISTED_S
        host, unit, act = self._host(at.router), self.routers.unit(at.router), self._act(at.router, f"{name}-in")
        said: str | None = None
        while time.monotonic() < deadline:
            self.check()
            answer = add_worker(host, unit, at.api, act, one.body)
            self._refused(at, answer)
            settled = min(deadline, time.monotonic() + SETTLED_S)
            gave_up: str | None = None
            while gave_up is None and time.monotonic() < settled:
                if self.registered(at):
                    return
                time.sleep(PAUSE_S)
                gave_up = self._gave_up(at, answer)
            said = gave_up or said
            time.sleep(IDLE_S)
        raise NotDone(about("hold.not-listed", "refuse", step, router=at.router, worker=one.url, said=said))

    def _gave_up(self, at: Registration, answer: Changed) -> str | None:
        """Why the router gave up, where it did."""
        try:
            job = self.routers.job(at, str(json.loads(answer.body)["worker_id"]))
            status: dict[str, JsonValue] = json.loads(job.body)["job_status"] if job is not None else {}
        except (ValueError, KeyError, TypeError):
            return None
        return str(status.get("message"))[:300] if status.get("status") == "failed" else None

    @staticmethod
    def _refused(at: Registration, answer: Changed) -> None:
        """A change that the router refuses is a matter for a person; after no answer it is looked how it stands."""
        if answer.status is not None and answer.status >= 400 and answer.status != 404:  # 404: somebody was faster
            values: Values = {"router": at.router, "worker": at.worker, "status": answer.status}
            values["said"] = answer.body[:200] or None
            raise NotDone(Finding(code="hold.router-refused", effect="refuse", values=values))

    def _host(self, router: str) -> SystemdHost:
        return self.hosts.at(router.partition("@")[2])

    def _act(self, router: str, name: str) -> Act:
        return Act(token=self._tokens[router], change=self._change, step=name)


def about(code: str, effect: Effect, step: Step, **values: str | int | float | None) -> Finding:
    """A finding about the instance of a step."""
    return Finding(code=code, effect=effect, values={"instance": f"{step.service}@{step.host}", **values})


def once(found: Iterable[Listed]) -> tuple[Listed, ...]:
    """Those that are registered by themselves: of the ranks of one worker the first."""
    kept: dict[str, Listed] = {}
    for one in found:
        kept.setdefault(str(one.body["url"]), one)
    return tuple(kept.values())


def _noted(note: str | None, at: Registration) -> list[Listed]:
    """What stands in a record of the router's host about this worker."""
    try:
        kept = json.loads(note or "{}")
        return [Listed.model_validate(kept["found"])] if same_worker(kept["worker"], at.worker) else []
    except (ValueError, KeyError, TypeError, ValidationError):
        return []
