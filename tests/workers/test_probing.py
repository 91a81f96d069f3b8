"""A canary is told with the load of its moment; a slow one is judged, once, and never with a cause that is made up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.cards.probe import probe_line
from bot.cards.statement import statement_lines
from policies import events as e
from policies.finding import Finding, Verdict
from policies.fleet import Canary, Service
from policies.gates import failed, passed
from policies.metrics.samples import Scrape
from tests.bot import stories
from tests.bot.suspected import record
from tests.conftest import Store
from tests.workers.truths import World, fleet, texts
from workers.generations import Generations
from workers.hosts import Hosts
from workers.probing import Probing
from workers.statements import told


@dataclass
class Gates:
    """Canaries that answer from memory, after as long as they take."""

    world: World
    took_s: float = 0.1
    wrong: bool = False
    asked: list[str] = field(default_factory=list)

    def reaching(self, touched: Sequence[str]) -> Iterator[tuple[Service, str]]:
        return Generations(self.world.fleet, Hosts.__new__(Hosts), lambda: None).reaching(touched)

    def ask(self, service: Any, _: Canary, instance: str | None = None) -> Verdict:
        self.asked.append(service.name)
        asked_at = self.world.now
        self.world.wait(self.took_s)
        values: dict[str, str | int | float | None] = {"service": service.name, "expected": "abc", "status": 200}
        values |= {"took_s": self.took_s, "at": asked_at, "text": "abc", "error": None}
        return failed("gate.canary.wrong-text", values) if self.wrong else passed("gate.canary.text", values)


class Room:
    """A co-restart whose gates are through."""

    def __init__(self, store: Store) -> None:
        known = fleet()
        canary = Canary(url="http://127.0.0.1:30080/v1/completions", body={}, expect_text="{nonce}")
        router = known.services["router"].model_copy(update={"canary": canary})
        self.world = World(store, known.model_copy(update={"services": {**known.services, "router": router}}))
        self.gates = Gates(self.world)
        self.probing = Probing(self.world, self.gates)  # type: ignore[arg-type]  # as much of both as it needs
        started: list[e.Event] = [stories.asked(), stories.planned(), stories.confirmed(), stories.started()]
        record(self.world.ledger, "C-9", started)

    def idle_before(self, took_s: float = 0.1, n: int = 3) -> None:
        """So many canaries were recorded while nothing ran, and the time before the change was measured."""
        self.world.past(500, 300, 100)
        for _ in range(n):
            self.append(self.probe(took_s))
        self.gates.asked.clear()

    def probe(self, took_s: float) -> e.Probed:
        """A canary that took so long."""
        self.gates.took_s = took_s
        router = self.world.fleet.services["router"]
        assert router.canary is not None
        found = self.probing.read(self.gates.ask(router, router.canary))
        assert found is not None
        return e.Probed(probe=found)

    def append(self, event: e.Event, change: str = "C-9") -> None:
        self.world.ledger.append(change, event, expect_version=self.world.ledger.load(change).version)

    def busy(self) -> None:
        self.world.said = texts(decode={"running": 53, "queued": 11, "tokens": 9_000_000}, in_flight=64)


@pytest.fixture
def room(store: Store) -> Room:
    return Room(store)


def slow(room: Room) -> e.Probed:
    """A probe of 17.9 s under load, recorded."""
    room.idle_before()
    room.world.wait(60)
    room.busy()
    event = room.probe(17.9)
    room.append(event)
    return event


def test_a_probe_is_read_with_the_load_of_its_moment_and_what_is_usual(room: Room) -> None:
    probe = slow(room).probe
    assert (probe.took_s, probe.usual_s, probe.n, probe.slow) == (17.9, 0.1, 3, True)
    assert [(c.name, c.value) for c in probe.load] == [("running_reqs", 53.0), ("queue_reqs", 11.0)]
    assert abs(probe.load[0].time - probe.at) < 2.0
    said = probe_line(probe)
    for part in ("took 17.9 s", "usual is 0.1 s (median, n=3 recorded)", "running_reqs=53 requests", "queue_reqs=11"):
        assert part in said
    assert said.endswith("cause: not established")


def test_a_look_that_a_busy_engine_answers_late_is_still_of_the_probe(room: Room) -> None:
    room.idle_before()
    room.world.wait(60)
    room.busy()
    at_once = room.world.metrics.take

    def late(instances: Sequence[str]) -> dict[str, Scrape | Finding]:
        room.world.wait(4.0)
        return at_once(instances)

    room.world.metrics.take = late  # type: ignore[method-assign]  # a slow engine
    room.append(room.probe(17.9))
    room.probing.state_slow(room.world.ledger.load("C-9"))
    said = "\n".join(statement_lines(told(room.world.ledger, "st-1")))
    assert "*queued-behind-load*" in said
    assert "running_reqs=53 requests, queue_reqs=11 requests" in said


def test_a_quick_probe_says_nothing_of_causes_and_still_has_its_load(room: Room) -> None:
    room.idle_before()
    (entry, *_) = [x for x in room.world.ledger.entries("C-9") if isinstance(x.event, e.Probed)]
    assert isinstance(entry.event, e.Probed)
    said = probe_line(entry.event.probe)
    assert "none is recorded before to compare it with" in said
    assert "running_reqs=0 requests" in said
    assert "cause" not in said
    room.probing.state_slow(room.world.ledger.load("C-9"))
    assert room.world.client.asides(9) == []


def test_a_slow_probe_is_stated_as_consistent_with_what_was_measured_once(room: Room) -> None:
    slow(room)
    for _ in range(3):  # a successor that goes on finds it stated
        room.probing.state_slow(room.world.ledger.load("C-9"))
    (entry,) = room.world.client.asides(9)
    found = told(room.world.ledger, entry.subject)
    assert (found.statement.actor, found.statement.about) == (None, "C-9")
    said = "\n".join(statement_lines(found))
    assert "a slow probe, 17.9 s where 0.1 s is usual (median, n=3 recorded)" in said
    assert "*queued-behind-load*" in said
    assert "running_reqs=53 requests, queue_reqs=11 requests" in said
    assert "refuted by readings: cold-start" in said
    assert "*cold-start*" not in said


def test_a_slow_probe_of_which_nothing_is_measured_has_no_cause(room: Room) -> None:
    room.idle_before()
    room.world.said = {}
    room.world.wait(60)
    event = room.probe(17.9)
    assert event.probe.load == ()
    room.append(event)
    room.probing.state_slow(room.world.ledger.load("C-9"))
    (entry,) = room.world.client.asides(9)
    said = "\n".join(statement_lines(told(room.world.ledger, entry.subject)))
    assert "cause: not established" in said
    assert "consistent with" not in said


def test_after_the_watch_one_canary_is_asked_through_what_was_touched(room: Room) -> None:
    baked = e.Baked(findings=())
    probed, outcome = room.probing.after_watch(room.world.ledger.load("C-9"), baked)
    assert (room.gates.asked, outcome) == (["router"], baked)
    room.append(probed[0])
    again, outcome = room.probing.after_watch(room.world.ledger.load("C-9"), baked)
    assert (again, outcome, room.gates.asked) == ([], baked, ["router"])


def test_a_canary_that_does_not_come_back_ends_the_watch_with_its_reading(room: Room) -> None:
    room.gates.wrong = True
    probed, outcome = room.probing.after_watch(room.world.ledger.load("C-9"), e.Baked(findings=()))
    assert probed == []
    assert isinstance(outcome, tuple)
    assert [finding.code for finding in outcome] == ["gate.canary.wrong-text"]


def test_another_gate_is_no_probe(room: Room) -> None:
    note = Finding(code="gate.health.ok", effect="allow")
    assert room.probing.read(Verdict(answer="pass", findings=(note,))) is None
