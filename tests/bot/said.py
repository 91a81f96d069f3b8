"""What somebody says, played through grammar, ledger, planner and policy, on hosts that answer as a test says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.grammar import parse
from bot.names import Names
from policies import events as e
from policies.change import Change
from policies.evidence import Draft, Record
from policies.facts import UnitFacts
from policies.fleet import Fleet
from policies.intents import Actor, RestoreKnob, RevertKnob, SetKnob, UnsetKnob, Where
from tests.conftest import Store
from tests.policies import builders as b
from workers.executors.answers import HttpAsk, LogAsk
from workers.hosts import Hosts, Seen
from workers.prepare import prepare
from workers.wiring import Wiring

REPORTED = f"internal_states.0.env_vars.{b.ENV}"
# what b.measured() tells, as a server says it
INFO: dict[str, Any] = {
    "version": "0.5.23", "git_commit": "4f2a91c77d0e", "model_path": "openai/m", "tp_size": 8, "quantization": "fp8",
    "max_running_requests": 256, "internal_states": [{"env_vars": {b.ENV: 256}}],
}  # fmt: skip
LOADS = {"accelerator": "H200", "num_accelerators": 8}
ENDPOINT = {"url": "http://127.0.0.1:30001/x"}


class Looked(Hosts):
    """Hosts that answer with the same facts, whatever is asked. `asked` keeps how."""

    def __init__(self, fleet: Fleet, facts: Mapping[str, UnitFacts]) -> None:
        self._fleet = fleet
        self.facts = dict(facts)
        self.asked: list[tuple[tuple[str, ...], bool]] = []

    def observe(
        self,
        instances: Sequence[str],
        variables: Sequence[str],
        probes: Mapping[str, Sequence[HttpAsk]] | None = None,
        log: LogAsk | None = None,
        *,
        context: bool = False,
    ) -> Seen:
        """All of them at once."""
        self.asked.append((tuple(variables), context))
        return Seen({instance: self.facts[instance] for instance in instances}, {})


def decode(*, running: int | None = 64, value: str | None = None, **info: Any) -> UnitFacts:
    """A decode as b.today() tells it; `running` requests run."""
    bodies: dict[str, object] = {"server_info": {**INFO, **info}, "loads": LOADS}
    answers = [b.answer(200, json.dumps(body), id=name) for name, body in bodies.items()]
    if running is not None:
        answers.append(b.answer(200, f'sglang:num_running_reqs{{tp_rank="0"}} {running}\n', id="metrics"))
    return b.unit(running=value, http=tuple(answers))


def fleet_of(*rules: Mapping[str, Any]) -> Fleet:
    """The plain fleet with a server_info, a reported knob, and these evidence rules beside the plain one."""
    made = b.fleet(server_info=True, rules=(b.RULE, *rules), knobs=())
    knob = b.knob(reported={"path": REPORTED})
    return made.model_copy(update={"knobs": {"TARGET_CTAS": knob}})


class Table:
    """Somebody's place: a ledger, a fleet, and hosts."""

    def __init__(self, store: Store, fleet: Fleet, facts: UnitFacts | None = None) -> None:
        self.now = b.NOW
        self.w = Wiring(fleet, store.redis, lambda: None, clock=lambda: self.now)  # type: ignore[arg-type, return-value]  # no shell
        self.hosts = Looked(fleet, b.facts(fleet, decode=facts or decode()))
        self.w.__dict__["hosts"] = self.hosts

    def keep(self, record: Record | Draft) -> Record:
        """Have it recorded, under the next id."""
        draft = Draft(**{name: getattr(record, name) for name in Draft.model_fields})
        return self.w.client.record_evidence(draft, by="U0BEN")

    def was_live(self, value: str) -> None:
        """The value was given once and taken away again."""
        self._lived({"decode@gpu1": None}, {"decode@gpu1": value}, "set")
        self._lived({"decode@gpu1": value}, {"decode@gpu1": None}, "revert")

    def _lived(self, was: dict[str, str | None], now: dict[str, str | None], word: str) -> None:
        """A whole life of a change that ended so."""
        plan = b.plans()[1]
        life: tuple[e.Event, ...] = (
            b.asked(),
            b.planned(b.plans()),
            e.ApprovalGiven(actor=b.BEN, order=plan.order, digest=plan.digest, complete=True),
            e.Started(worker="w1", tokens={"decode@gpu1": 1}),
            e.Succeeded(knob="TARGET_CTAS", order=plan.order, word=word, was=was, now=now, took_s=1.0),
        )
        change = self.w.ledger.new_id("C")
        for version, event in enumerate(life):
            self.w.ledger.append(change, event, expect_version=version)

    def say(self, text: str, *, roles: Sequence[str] = ("engineers",)) -> Change:
        """Say it, and have it prepared."""
        reading = parse(text, names=Names.of(self.w.fleet))
        assert reading.command is not None, reading.error
        actor = Actor(id="U0ANA", name="ana", roles=tuple(roles))
        intent = reading.command
        assert isinstance(intent, SetKnob | RestoreKnob | RevertKnob | UnsetKnob)
        change = self.w.client.request(intent, actor, Where(channel="C0PERF"), said=text, normalised=reading.normalised)
        prepare(self.w, change)
        return self.w.client.change(change)
