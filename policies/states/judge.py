"""The state of one engine, from two scrapes of it and of the routers before it.

idle: no reading tells of work, in both, and no counter of progress moved in between.
busy: a counter of progress moved; saturated: and requests wait in both, not fewer in the second.
hung: the engine has work in both, they are far enough apart, and no counter of progress moved.
Whatever the readings leave open stays possible, and what they do not say is named. Requests that only a router tells of
may be another engine's: they keep an engine from being proven idle, and do not prove it hung.
Source: FACTS-serving 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.causes.statement import StateWord, state_words
from policies.citation import Citation
from policies.finding import Finding
from policies.metrics.engine import Engine, Progress, Role, progress
from policies.metrics.samples import Scrape
from policies.states.state import Moved, State
from policies.states.work import Work, bounds, name_of, work_of

HUNG_S = 30.0
"""Source: FACTS-serving 3.1, a gauge may be up to 30 s old: what still tells of work after that has it."""
IDLE_S = 1.0
WORK: set[StateWord] = {"busy", "hung", "saturated"}
MOST_COUNTERS = 4
FIRST = ("generation_tokens_total", "prompt_tokens_total", "realtime_tokens_total")  # of counters, the ones people know

Routers = Sequence[Scrape | None] | None


@dataclass(frozen=True, slots=True)
class Look:
    """One moment: the engine, and the routers before it (None: there is none; None among them: it did not answer)."""

    engine: Scrape
    routers: Routers = None


def judge_state(earlier: Look | None, later: Look, *, role: Role | None = None, hung_s: float = HUNG_S) -> State:
    """What the engine was doing between two looks; one look alone leaves most of it open.

    Units: hung_s is how far apart two looks without progress must be. Times are epoch seconds.
    """
    now = work_of(later.engine, later.routers, role)
    if earlier is None:
        return _one(now, "state.one-sample")
    gap_s = later.engine.at - earlier.engine.at
    if gap_s <= 0:
        return _one(now, "state.one-sample")
    made = progress(earlier.engine, later.engine)
    if made.restarted:
        return _one(now, "state.restarted")
    return _Between(work_of(earlier.engine, earlier.routers, role), now, made, gap_s, hung_s).state()


def _one(now: Work, code: str) -> State:
    """One moment: work is not idle, and no work is not hung; more it does not say."""
    if code == "state.one-sample" and not now.has_own:
        code = "state.one-sample-idle"
    finding = Finding(code=code, effect="note", values={"instance": now.scrape.instance, "at": now.scrape.at})
    open_: set[StateWord] = {"idle", "busy", "hung", "saturated"}
    if now.has_own:
        open_ -= {"idle"}
    elif not now.unknown() and now.at_router == "none":
        open_ -= {"hung", "saturated"}
    return _state(open_, now.citations() + _started(now.scrape), now, [finding], now.unknown())


@dataclass(frozen=True, slots=True)
class _Between:
    before: Work
    now: Work
    made: Progress
    gap_s: float
    hung_s: float

    def state(self) -> State:
        unknown = tuple(dict.fromkeys((*self.before.unknown(), *self.now.unknown())))
        open_, findings = self.open(unknown)
        cited = (*self.before.citations(), *self.now.citations(), *self.counters(), *_started(self.now.scrape))
        return _state(open_, cited, self.now, findings, unknown if len(open_) > 1 else (), self.progressed())

    def open(self, unknown: tuple[str, ...]) -> tuple[set[StateWord], list[Finding]]:
        """What stays possible, and why it is more than one."""
        if self.made.moved:
            return self.moved()
        lacks = None
        if not self.made.still:
            lacks = "state.no-counters"
        elif self.made.restarted is None and not self.counted():
            lacks = "state.start-unknown"
        if lacks is not None:
            return (WORK if self.now.has_own else {"idle", *WORK}), [self.finding(lacks)]
        possible = {
            word
            for before in self.before.own_options
            for now in self.now.own_options
            for router in self.router_options
            for word in self.still(before=before, now=now, router=router)
        }
        return possible, self.why(unknown) if len(possible) > 1 else []

    def still(self, *, before: bool, now: bool, router: bool) -> set[StateWord]:
        """No counter moved; whether the engine had work at each end, and a router at some, is taken as given."""
        if before and now:
            return {"hung"} if self.gap_s >= self.hung_s else WORK
        if now:
            return WORK  # it may have come a moment ago
        if before or router:
            return {"idle", "hung"}
        return {"idle"} if self.gap_s >= IDLE_S else {"idle", "busy"}

    @property
    def router_options(self) -> tuple[bool, ...]:
        """Whether a router has requests at some end, as far as that is left open."""
        said = {self.before.at_router, self.now.at_router}
        return (True,) if "some" in said else (False,) if said == {"none"} else (True, False)

    def why(self, unknown: tuple[str, ...]) -> list[Finding]:
        """The first thing that leaves a still engine open."""
        work = (self.before.has_own, self.now.has_own)
        if all(work):
            return [self.finding("state.too-close", gap_s=self.gap_s, needed_s=self.hung_s)]
        if any(work):
            return [self.finding("state.work-once")]
        if unknown:
            return [self.finding("state.unread", readings=", ".join(unknown))]
        if self.router_options == (True,):
            return [self.finding("state.router-busy")]
        return [self.finding("state.too-close", gap_s=self.gap_s, needed_s=IDLE_S)]

    def moved(self) -> tuple[set[StateWord], list[Finding]]:
        """Progress was made: busy, and saturated where requests wait at both ends and do not get fewer."""
        was, is_ = (bounds(work.own["queued"]) for work in (self.before, self.now))
        if was is None or is_ is None:
            none = (was is not None and was[1] == 0) or (is_ is not None and is_[1] == 0)
            return ({"busy"}, []) if none else ({"busy", "saturated"}, [self.finding("state.queue-unknown")])
        if was[1] == 0 or is_[1] == 0 or is_[1] < was[0]:
            return {"busy"}, []
        if was[0] > 0 and is_[0] > 0 and is_[0] >= was[1]:
            return {"saturated"}, []
        return {"busy", "saturated"}, [self.finding("state.queue-unknown")]

    def counted(self) -> bool:
        """Whether some counter that stands still is above 0: a new process would have begun at 0."""
        return any(value > 0 for value in Engine(self.now.scrape).counters(self.made.still).values())

    def finding(self, code: str, **values: str | float | None) -> Finding:
        told: dict[str, str | int | float | None] = {"instance": self.now.scrape.instance, "at": self.now.scrape.at}
        return Finding(code=code, effect="note", values=told | values)

    def progressed(self) -> tuple[Moved, ...]:
        names = sorted(self.made.moved, key=_known)[:MOST_COUNTERS]
        return tuple(
            Moved(name=name_of(name, name), by=self.made.moved[name], unit=_unit(name), over_s=self.gap_s)
            for name in names
        )

    def counters(self) -> tuple[Citation, ...]:
        """Those that moved, or those that stand still, at both ends."""
        names = sorted(self.made.moved or self.made.still, key=_known)[:MOST_COUNTERS]
        return tuple(
            Citation(
                query=name,
                value=value,
                unit=_unit(name),
                time=scrape.at,
                source=scrape.source,
                name=name_of(name, name),
            )
            for scrape in (self.before.scrape, self.now.scrape)
            for name, value in Engine(scrape).counters(names).items()
        )


def _known(name: str) -> tuple[int, str]:
    short = name_of(name, name)
    return (FIRST.index(short) if short in FIRST else len(FIRST), name)


def _unit(counter: str) -> str:
    return next(
        (unit for word, unit in (("token", "tokens"), ("second", "s"), ("req", "requests")) if word in counter), ""
    )


def _started(scrape: Scrape) -> tuple[Citation, ...]:
    started = Engine(scrape).started
    if started is None:
        return ()
    name = "process_start_time_seconds"
    return (Citation(query=name, value=started, unit="s", time=scrape.at, source=scrape.source, name=name),)


def _state(
    open_: set[StateWord],
    cited: tuple[Citation, ...],
    now: Work,
    findings: list[Finding],
    unknown: tuple[str, ...],
    moved: tuple[Moved, ...] = (),
) -> State:
    return State(
        possible=tuple(word for word in state_words if word in open_),
        citations=cited,
        unknown=unknown,
        findings=tuple(findings),
        has_work=now.own_options[0] if len(now.own_options) == 1 else None,
        moved=moved,
        started_at=Engine(now.scrape).started,
    )
