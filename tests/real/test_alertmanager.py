"""Silences around a change, at a real Alertmanager: made, prolonged and ended as the ledger says, and only ours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import httpx
import pytest

from bot.cards.silences import silence_line
from bot.doctor import store as doctor
from policies import events as e
from policies.change import Change
from policies.errors import StoreUnavailable
from policies.finding import Finding
from policies.silences import Matcher, matchers, silences_id
from tests.conftest import Store
from tests.policies import builders as b
from tests.policies.change_events import standing
from tests.real.alertmanager_server import AlertmanagerServer
from workers.alertmanager import Alertmanager
from workers.ledger import Ledger
from workers.silences import Silences

pytestmark = pytest.mark.real

NOTE = Finding(code="x.y", effect="note")
MATCH = {"decode": {"service": "decode", "instance": "{address}:30001"}, "router": {"service": "router"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AlertmanagerServer]:
    server = AlertmanagerServer(tmp_path_factory.mktemp("am")).start()
    yield server
    server.stop()


class Room:
    """A change of decode in an empty ledger, and turns of the keeper of silences."""

    def __init__(self, store: Store, server: AlertmanagerServer) -> None:
        self.server = server
        self.ahead_s = 0.0
        self.redis = store.redis
        self.ledger = Ledger(store.redis, self.clock)
        entry = {"url": server.url, "match": MATCH, "margin_s": 60.0}
        self.fleet = b.fleet(hosts=("gpu1",), alertmanager=entry, timing={"bake_s": 30.0})
        self.change = f"C-{int(time.monotonic() * 1000)}"  # the server is shared, what it keeps is told apart
        self.rung: list[str] = []
        self.said = b.asked(ticket="INC-7")
        self.record(self.said, b.planned(b.plans()))
        plan = b.plans()[1]
        self.record(e.ApprovalGiven(actor=b.BEN, order=plan.order, digest=plan.digest, complete=True))

    def clock(self) -> float:
        return time.time() + self.ahead_s

    def record(self, *events: e.Event) -> Change:
        for event in events:
            version = len(self.ledger.entries(self.change))
            self.ledger.append(self.change, event, expect_version=version)
        return self.ledger.load(self.change)

    def begin(self) -> None:
        self.record(e.Started(worker="w1", tokens={"decode@gpu1": 1}))

    def keeper(self, ledger: Ledger | None = None, timeout_s: float = 5.0) -> Silences:
        server = Alertmanager(self.server.url, timeout_s=timeout_s)
        return Silences(self.redis, ledger or self.ledger, self.fleet, server, self.clock, self.rung.append)

    def told(self) -> list[e.Event]:
        return [entry.event for entry in self.ledger.entries(silences_id(self.change))]

    def line(self) -> str:
        return silence_line(self.ledger.entries(silences_id(self.change))[-1])

    def ours(self) -> list[dict[str, object]]:
        return [one for one in self.server.silences() if self.change in str(one["comment"])]


class Broken(Ledger):
    """Its process ends before it writes."""

    def append(self, subject: str, event: e.Event, *, expect_version: int, nonce: str | None = None) -> e.Entry:
        """Nothing is written."""
        raise StoreUnavailable("gone", hint="")


@pytest.fixture
def room(store: Store, server: AlertmanagerServer) -> Room:
    return Room(store, server)


def test_alerts_of_a_change_are_silenced_from_its_start_to_its_end_and_no_others(room: Room) -> None:
    for service in ("decode", "prefill", "router"):
        room.server.alert(service=service, instance="127.0.0.1:30001")
    theirs = Alertmanager(room.server.url)
    now = time.time()
    foreign = httpx.post(
        f"{room.server.url}/api/v2/silences",
        json={
            "matchers": [{"name": "service", "value": "prefill", "isRegex": False}],
            "startsAt": "2020-01-01T00:00:00Z",
            "endsAt": "2099-01-01T00:00:00Z",
            "createdBy": "clawback",
            "comment": f"maintenance, see {room.change}",
        },
        timeout=10.0,
    ).json()["silenceID"]
    keeper = room.keeper()
    keeper.round()
    assert room.server.heard() == {"decode", "router"}
    room.begin()
    for _ in range(3):
        keeper.round()
    assert room.server.heard() == {"router"}
    (made,) = room.told()
    assert isinstance(made, e.SilenceMade)
    assert made.matchers == ('service="decode"', 'instance="127.0.0.1:30001"')
    assert made.until == pytest.approx(now + 900 + 60, abs=30)  # no restart of decode was recorded
    (there,) = [one for one in room.ours() if one["id"] == made.silence]
    assert (
        str(there["comment"]) == f"[clawback dsv4 {room.change} decode], ticket INC-7, set TARGET_CTAS=512 asked by ana"
    )
    room.record(e.Succeeded(knob="TARGET_CTAS", order="decode-only", was={}, now={}, took_s=1.0))
    keeper.round()
    assert room.server.heard() == {"decode", "router"}
    assert [event.kind for event in room.told()] == ["silence_made", "silence_ended"]
    assert set(room.rung) == {silences_id(room.change)}
    assert theirs.get(foreign) is not None
    assert foreign in {one["id"] for one in room.server.silences()}
    theirs.end(foreign)


def test_a_keeper_that_ended_between_the_silence_and_its_record_leaves_one_that_the_next_one_takes_over(
    room: Room,
) -> None:
    room.begin()
    with pytest.raises(StoreUnavailable):
        room.keeper(Broken(room.redis, room.clock)).round()
    (left,) = room.ours()
    assert room.told() == []
    room.keeper().round()
    (made,) = room.told()
    assert isinstance(made, e.SilenceMade)
    assert [one["id"] for one in room.ours()] == [made.silence] == [left["id"]]


def test_what_was_made_and_never_recorded_is_ended_when_the_change_is_over(room: Room) -> None:
    room.begin()
    with pytest.raises(StoreUnavailable):
        room.keeper(Broken(room.redis, room.clock)).round()
    (left,) = room.ours()
    room.record(e.Succeeded(knob="TARGET_CTAS", order="decode-only", was={}, now={}, took_s=1.0))
    room.keeper().round()
    assert room.ours() == []
    assert room.told() == [e.SilenceEnded(service="decode", silence=str(left["id"]), why="ended")]
    assert room.redis.scard("clawback:silenced") == 0


def test_while_it_works_the_silence_is_prolonged_and_on_hold_it_ends_until_work_goes_on(room: Room) -> None:
    room.begin()
    room.keeper().round()
    room.ahead_s = 935.0  # less than half of the margin is left
    room.keeper().round()
    made, prolonged = room.told()
    assert isinstance(made, e.SilenceMade)
    assert isinstance(prolonged, e.SilenceProlonged)
    assert prolonged.until == pytest.approx(made.until + 935.0, abs=30)
    assert [one["id"] for one in room.ours()] == [prolonged.silence]
    room.record(e.Held(findings=(NOTE,)))
    room.keeper().round()
    assert room.ours() == []
    ended = room.told()[-1]
    assert isinstance(ended, e.SilenceEnded)
    assert ended.why == "held"
    assert "held and waits for a person" in room.line()
    room.record(e.UndoAsked(actor=b.ANA))
    room.keeper().round()
    assert [event.kind for event in room.told()][2:] == ["silence_ended", "silence_made"]
    assert len(room.ours()) == 1


def test_who_ends_our_silence_has_the_last_word_for_this_change(room: Room) -> None:
    room.begin()
    keeper = room.keeper()
    keeper.round()
    made = room.told()[0]
    assert isinstance(made, e.SilenceMade)
    Alertmanager(room.server.url).end(made.silence)
    room.ahead_s = 935.0
    for _ in range(3):
        keeper.round()
    assert [getattr(event, "why", None) for event in room.told()] == [None, "gone"]
    assert room.ours() == []


def test_a_silence_that_the_alertmanager_has_forgotten_is_made_again_and_nobody_is_blamed(room: Room) -> None:
    room.begin()
    unknown = "00000000-0000-4000-8000-000000000000"
    before = e.SilenceMade(service="decode", silence=unknown, until=room.clock() + 20.0, matchers=())
    room.ledger.append(silences_id(room.change), before, expect_version=0)
    for _ in range(2):
        room.keeper().round()
    lost, made = room.told()[1:]
    assert lost == e.SilenceEnded(service="decode", silence=unknown, why="lost")
    assert isinstance(made, e.SilenceMade)
    assert [one["id"] for one in room.ours()] == [made.silence]


def test_an_alertmanager_that_does_not_answer_is_told_once_and_silences_when_it_is_back(room: Room) -> None:
    room.begin()
    keeper = room.keeper(timeout_s=0.3)
    room.server.freeze()
    try:
        for _ in range(3):
            keeper.round()
            room.ahead_s += 6.0
        (failed,) = room.told()
        assert failed == e.SilenceFailed(doing="make", services=("decode",), error="no answer in time")
        assert "work goes on" in room.line()
        silent = list(doctor.alertmanager(SimpleNamespace(fleet=room.fleet)))  # type: ignore[arg-type]
        assert [(check.name, check.ok) for check in silent] == [("alertmanager", False)]
    finally:
        room.server.thaw()
    room.keeper().round()
    assert [event.kind for event in room.told()] == ["silence_failed", "silence_made"]
    well = list(doctor.alertmanager(SimpleNamespace(fleet=room.fleet)))  # type: ignore[arg-type]
    assert [(check.name, check.ok) for check in well] == [("alertmanager", True)]


def test_what_cannot_be_ended_ends_by_itself_and_is_told(room: Room) -> None:
    room.begin()
    room.keeper().round()
    room.record(e.Succeeded(knob="TARGET_CTAS", order="decode-only", was={}, now={}, took_s=1.0))
    keeper = room.keeper(timeout_s=0.3)
    room.server.freeze()
    try:
        keeper.round()
        failed = room.told()[-1]
        assert isinstance(failed, e.SilenceFailed)
        assert "ends by itself at" in room.line()
        room.ahead_s = 2000.0
        keeper.round()  # its time is over: nobody has to be asked
    finally:
        room.server.thaw()
    ended = room.told()[-1]
    assert isinstance(ended, e.SilenceEnded)
    assert ended.why == "over"
    assert room.redis.scard("clawback:silenced") == 0


def test_one_silence_covers_the_instances_of_a_service_and_none_else() -> None:
    fleet = b.fleet(hosts=("gpu1", "gpu2"), alertmanager={"url": "http://am", "match": MATCH})
    hosts = {name: host.model_copy(update={"address": f"{name}.example.org"}) for name, host in fleet.hosts.items()}
    fleet = fleet.model_copy(update={"hosts": hosts})
    change = standing("running")
    assert change.plan is not None
    steps = tuple(step.model_copy(update={"host": host}) for host in ("gpu1", "gpu2") for step in change.plan.steps)
    assert change.planned is not None
    plan = change.plan.model_copy(update={"steps": steps})
    change = replace(change, planned=change.planned.model_copy(update={"plans": (plan,)}), order=plan.order)
    found = matchers(fleet, change, "decode")
    assert found[0] == Matcher(name="service", value="decode")
    assert found[1].regex
    assert found[1].value == r"gpu1\.example\.org:30001|gpu2\.example\.org:30001"
