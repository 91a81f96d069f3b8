"""The story of a knob that is taken away on suspicion and given back, with the checks that its judge makes of it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import ClassVar

from sandbox.audit_judge import AuditJudge
from sandbox.eyes import Json
from sandbox.fleet.document import KNOB
from sandbox.fleet.load import Load
from sandbox.judge import Judge, Mark
from sandbox.kernel import words_of
from sandbox.stage import ANA, BEN, KNOB_VALUE, ROLES, StageError, fetch
from sandbox.telling import Telling
from sandbox.truth_judge import TruthJudge
from sandbox.witness import QUEUED, RUNNING, Witness, number

CONCURRENCY = 53  # Source: the incident, what runs at once
WAITING = 60  # that find no slot: more than one batch, so that a probe waits for a whole one
ORDERS = ("co-restart", "decode-only")
SHOWN_S = 15.0  # until what was recorded stands in the channel
TOKENS = 80  # a request, which takes 1 to 2 s
BUSY_S = 20.0
LOADED = f"{CONCURRENCY} requests run and others wait"
REST_S = 30.0  # Source: every request in flight and all that waited, on a machine that is busy with other things
WRONG_START_S = 0.5  # time enough for a wrong execution to show itself
MADE_UP = "cold start"
CONTESTED = "that is false: the probe queued behind live traffic"
SUMMARY = """\
value: 512
baseline: unset
metric: output_throughput
points: {C64: +12.8 %, C96: +5.7 %, C80: +1.2 %}
no_worse_up_to: 32
correctness: {compared: 200, differing: 0}
context: {gpu: RTX PRO 6000, gpus: 1, model: m, version: 0.5.23, commit: 4f2a91c77d0e}
note: three of the four things that one wants to know about a knob
"""


class Story(Telling):
    """Plays the incident: blamed while idle, reverted, a cause made up and refused, given back under load."""

    TITLE: ClassVar[str] = "a knob is taken away on suspicion, and given back behind gates"
    NAMES: ClassVar[tuple[str, ...]] = (
        "evidence-recorded",
        "suspicion-opened",
        "reverted",
        "made-up-cause-refused",
        "reclaim-lists",
        "plan-shown",
        "self-approval-refused",
        "one-execution",
        "order",
        "timestamps",
        "knob-live",
        "healthy",
        "canary",
        "cause-cited",
        "dispute-kept",
        "concluded",
        "audit-clean",
        "audit-catches-edit",
        "calls-accepted",
    )

    def __post_init__(self) -> None:
        """Give the story its judges."""
        super().__post_init__()
        self.judge = Judge(self.stage)
        self.judge.eyes = self.eyes  # what was seen to end is not asked for again
        self.truth = TruthJudge(self.stage)
        self.audit = AuditJudge(self.stage)
        self._load: Load | None = None
        self._given_back: Mark | None = None
        self._change = ""  # that gives the value back
        self._statement = ""  # that ana makes up

    def scenes(self) -> tuple[Callable[[], None], ...]:
        """What is played, in order."""
        return self._setup, self._revert, self._under_load, self._dispute

    # scene 1
    def _setup(self) -> None:
        self.tell("\n1. somebody has measured the knob, and each restart order was used once")
        first = self._restarts("co-restart")
        path = self.stage.folder / "ab-1.yaml"
        path.write_text(SUMMARY, encoding="utf-8")
        done = self.stage.clawback("evidence", "record", str(path), "--knob", KNOB, "--as", "ana")
        listed = self.stage.clawback("evidence", "list")
        records = listed.stdout.strip().splitlines()
        boots = [self._restarted(first, ROLES), self._restarted(self._restarts("decode-only"), ("decode",))]
        recorded = done.returncode == 0 and len(records) == 1 and all(f"C{c}" in records[0] for c in (64, 80, 96))
        said = records[0] if recorded else f"{done.stdout}{done.stderr} / the list: {listed.stdout}{listed.stderr}"
        self.judged("evidence-recorded", lambda: (recorded and all(boots), f"{said[:400]}; {self._orders(boots)}"))

    def _restarts(self, order: str) -> str:
        change = self.types(ANA, f"/deploy restart decode via {order}")
        self.clicks(BEN, self.eyes.card(change), order)
        return change

    def _restarted(self, change: str, roles: Iterable[str]) -> bool:
        return self.eyes.done(change, self.longest_s(roles))

    def _orders(self, boots: Iterable[bool]) -> str:
        words = ("did not come through", "was used once")
        return ", ".join(f"{order} {words[ok]}" for order, ok in zip(ORDERS, boots, strict=True))

    # scenes 2 and 3
    def _revert(self) -> None:
        self.tell("\n2. the harness hangs; the knob is suspected, and taken away")
        since, before = self.judge.mark(), self.truth.calm()
        change = self.types(ANA, f'/knob revert {KNOB} because "multi-round hang"')
        card = self.eyes.card(change)
        after = self.truth.calm()
        clicked_at = time.time()
        self.clicks(BEN, card, "decode-only")
        self._load = Load(self.stage.demo_fleet.url("router"), CONCURRENCY + WAITING, TOKENS, held=True)
        self._load.start()  # while decode restarts
        done = self.eyes.done(change, self.longest_s(("decode",)))
        self.judged("suspicion-opened", lambda: self.truth.suspicion_opened(change, before, after))
        self.judged("reverted", lambda: self.judge.reverted(since, clicked_at))
        if not done or not self.checks[-1].ok:
            raise StageError(f"there is nothing to restore: {self.eyes.state(change).replace('_', ' ')}")

    # scenes 4 to 11
    def _under_load(self) -> None:
        self.tell(f"\n3. {CONCURRENCY} requests run, {WAITING} wait, and a probe is slow: somebody makes up why")
        load = self._load
        if load is None:
            raise StageError("nobody can send")
        load.send()  # its end is waited for when the services are looked at
        with Witness(self.stage) as witness:
            self.stage.wait(lambda: (work := self._work())[0] >= CONCURRENCY and work[1] > 0, BUSY_S, LOADED)
            self._make_up(witness)
            self._reclaim()
            self._restore(witness, load)

    def _make_up(self, witness: Witness) -> None:
        since, known = time.time(), set(self.eyes.statements())
        took_s = self.judge.probe()
        self.tell(f"  a probe of ana's takes {took_s:.1f} s")
        self.says(ANA, f'/cause "{MADE_UP}"')
        self.eyes.until(lambda: set(self.eyes.statements()) - known, SHOWN_S)
        self._statement = min(set(self.eyes.statements()) - known, default="")
        judged = self.truth.made_up_cause_refused
        self.judged("made-up-cause-refused", lambda: judged(self._statement, witness, since))

    def _reclaim(self) -> None:
        told = self.says(ANA, "/knob reclaim")
        self.judged("reclaim-lists", lambda: self.truth.reclaim_lists(told))

    def _restore(self, witness: Witness, load: Load) -> None:
        self.tell("\n4. the real cause was elsewhere, and the knob is given back under that load")
        self.pause("plan")
        loads, asked_at = [self._running()], time.time()
        change = self._change = self.types(ANA, f"/knob restore {KNOB}={KNOB_VALUE}")
        card = self.eyes.card(change)
        loads += [self._running(), *(sight.running for sight in list(witness.seen) if sight.at >= asked_at)]
        for line in self.eyes.text(card).splitlines():
            self.tell(f"  | {line}")
        self.judged("plan-shown", lambda: self.judge.plan_shown(card, loads))
        self._given_back = since = self.judge.mark()
        self._self_approval(card, since)
        self.pause("confirm")
        clicked_at = time.time()
        self._confirm_twice(card)
        state = self.eyes.ended(change, self.longest_s(ROLES), lambda: self.eyes.asks_nothing(change))
        if state != "succeeded":
            self.tell(f"  {change} is {state.replace('_', ' ')}")
        load.finish()  # all that had to be seen under it is recorded; what is in flight ends while it is judged
        self.judged("one-execution", lambda: self.judge.one_execution(since, clicked_at))
        self.judged("order", lambda: self.judge.order(since))
        self.judged("timestamps", lambda: self.judge.timestamps(since, change))
        self.judged("concluded", lambda: self.judge.concluded(change))
        self.judged("cause-cited", lambda: self.truth.cause_cited(change, witness, clicked_at))

    # scene 12
    def _dispute(self) -> None:
        self.tell("\n5. what was made up is contested")
        before = self.eyes.text(self.eyes.statements().get(self._statement) or {})
        self.says(ANA, f'/cause dispute {self._statement} because "{CONTESTED}"')
        self.eyes.until(lambda: CONTESTED in self.eyes.text(self.eyes.statements()[self._statement]), SHOWN_S)
        self.judged("dispute-kept", lambda: self.truth.dispute_kept(self._statement, before, CONTESTED))

    def _self_approval(self, card: Json, since: Mark) -> None:
        seen = len(self.eyes.ephemerals(ANA))
        self.clicks(ANA, card, "co-restart")
        told = self.eyes.ephemeral(ANA, seen)
        time.sleep(WRONG_START_S)
        moved = [what for role in ROLES if (what := self.judge.untouched(role, since))]
        answer = f"only ana was told: {told}" if told else "ana got no answer"
        self.judged("self-approval-refused", lambda: (bool(told) and not moved, "; ".join([answer, *moved])[:400]))

    def _confirm_twice(self, card: Json) -> None:
        # stopped while a person changes something: the approval is recorded, and nobody has begun to act on it
        held = self.stage.product_pids("worker", "act") if self.pauses_at == "execute" else []
        self.stage.signal(held, signal.SIGSTOP)
        self.clicks(BEN, card, "co-restart")
        self.clicks(BEN, card, "co-restart")
        if held:
            self.pause("execute")
            self.stage.signal([pid for pid in held if "act" in words_of(pid)], signal.SIGCONT)

    def world(self) -> None:
        """Judge what can be seen in any case."""
        self.tell("\n6. what can be seen in the end")
        with ThreadPoolExecutor(1) as aside:
            clean = aside.submit(self.audit.audit_clean)  # in processes of its own, while services are looked at
            self._rest()
            self.judged("knob-live", lambda: self.judge.knob_live(self._given_back))
            self.judged("healthy", self.judge.healthy)
            self.judged("canary", self.judge.canary)
            self.judged("audit-clean", clean.result)
        self.judged("audit-catches-edit", lambda: self.audit.audit_catches_edit(self._change))
        self.judged("calls-accepted", self.judge.calls_accepted)

    def _rest(self) -> None:
        """Wait until nobody sends, and decode has nothing left to do; it need not be there any more."""
        if self._load is not None:
            self._load.stop()
            with suppress(StageError):  # what is still at work when this is over is seen by the checks
                self.stage.wait(lambda: self._work() == (0.0, 0.0), REST_S, "decode has nothing left to do")

    def _running(self) -> float:
        """Requests that decode says are running."""
        return self._work()[0]

    def _work(self) -> tuple[float, float]:
        """Requests that decode says are running, and wait; none of one that does not answer."""
        _, text = fetch(self.stage.demo_fleet.url("decode", "/metrics"))
        return number(text, RUNNING) or 0.0, number(text, QUEUED) or 0.0
