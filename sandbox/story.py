"""The story, played on a stage, with the checks that its judge makes of it.

A scene that cannot go on fails the checks that it should have led to; what can be seen of the services and the ledger
is judged in any case.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from policies.errors import OpsError
from sandbox.audit_judge import AuditJudge
from sandbox.eyes import Eyes, Json
from sandbox.fleet.document import BOOT_FACTOR, KNOB
from sandbox.fleet.load import Load
from sandbox.judge import Judge, Mark, Verdict
from sandbox.kernel import words_of
from sandbox.stage import ANA, BEN, KNOB_VALUE, ROLES, Stage, StageError, fetch
from sandbox.truth_judge import TruthJudge
from sandbox.witness import Witness

CONCURRENCY = 53  # Source: the incident, what runs at once
WAITING = 60  # that find no slot: more than one batch, so that a probe waits for a whole one
ORDERS = ("co-restart", "decode-only")
SHOWN_S = 15.0  # until what was recorded stands in the channel
TOKENS = 80  # a request, which takes 1 to 2 s
BUSY_S = 20.0
WRONG_START_S = 0.5  # time enough for a wrong execution to show itself
SLACK_S = 60.0
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


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the story."""

    name: str
    ok: bool
    detail: str


@dataclass
class Story:
    """Plays the scenes in order. `tell` gets lines for people, `pause` the points at which a person may interfere."""

    stage: Stage
    tell: Callable[[str], None]
    pause: Callable[[str], None]
    pauses_at: str | None = None
    checks: list[Check] = field(default_factory=list)

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
        """Give the story its eyes and its judge."""
        self.eyes = Eyes(self.stage)
        self.judge = Judge(self.stage)
        self.truth = TruthJudge(self.stage)
        self.audit = AuditJudge(self.stage)
        self._given_back: Mark | None = None
        self._change = ""  # that gives the value back
        self._statement = ""  # that ana makes up

    def play(self) -> bool:
        """Play everything; true when every check held."""
        problem = ""
        for scene in (self._setup, self._revert, self._under_load, self._dispute):
            try:
                scene()
            except Exception as error:  # noqa: BLE001 - whatever stopped a scene, the checks it led to did not hold
                problem = in_words(error)
                self.tell(f"  !! {problem}")
                break
        self._world()
        self.fail_rest(f"not reached: {problem}" if problem else "not judged")
        return all(check.ok for check in self.checks)

    def fail_rest(self, why: str) -> None:
        """Every check that was not judged did not hold."""
        done = {check.name for check in self.checks}
        for name in self.NAMES:
            if name not in done:
                self._judge(name, lambda: (False, why))

    def sorted_checks(self) -> list[Check]:
        """The checks in the order of the story."""
        return sorted(self.checks, key=lambda check: self.NAMES.index(check.name))

    def _judge(self, name: str, look: Callable[[], Verdict]) -> None:
        try:
            ok, detail = look()
        except Exception as error:  # noqa: BLE001 - a check that cannot be judged did not hold
            ok, detail = False, in_words(error)
        self.checks.append(Check(name, ok, " ".join(detail.split())))
        self.tell(f"  {'ok  ' if ok else 'FAIL'}  {name}: {self.checks[-1].detail}")

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
        self._judge("evidence-recorded", lambda: (recorded and all(boots), f"{said[:400]}; {self._orders(boots)}"))

    def _restarts(self, order: str) -> str:
        change = self._types(ANA, f"/deploy restart decode via {order}")
        self._clicks(BEN, self.eyes.card(change), order)
        return change

    def _restarted(self, change: str, roles: Iterable[str]) -> bool:
        return self.eyes.done(change, self._longest_s(roles))

    def _orders(self, boots: Iterable[bool]) -> str:
        words = ("did not come through", "was used once")
        return ", ".join(f"{order} {words[ok]}" for order, ok in zip(ORDERS, boots, strict=True))

    # scenes 2 and 3
    def _revert(self) -> None:
        self.tell("\n2. the harness hangs; the knob is suspected, and taken away")
        since, before = self.judge.mark(), self.truth.calm()
        change = self._types(ANA, f'/knob revert {KNOB} because "multi-round hang"')
        card = self.eyes.card(change)
        after = self.truth.calm()
        clicked_at = time.time()
        self._clicks(BEN, card, "decode-only")
        done = self.eyes.done(change, self._longest_s(("decode",)))
        self._judge("suspicion-opened", lambda: self.truth.suspicion_opened(change, before, after))
        self._judge("reverted", lambda: self.judge.reverted(since, clicked_at))
        if not done or not self.checks[-1].ok:
            raise StageError(f"there is nothing to restore: {self.eyes.state(change).replace('_', ' ')}")

    # scenes 4 to 11
    def _under_load(self) -> None:
        self.tell(f"\n3. {CONCURRENCY} requests run, {WAITING} wait, and a probe is slow: somebody makes up why")
        with Load(self.stage.demo_fleet.url("router"), CONCURRENCY + WAITING, TOKENS), Witness(self.stage) as witness:
            self.stage.wait(lambda: self._running() >= CONCURRENCY, BUSY_S, f"{CONCURRENCY} requests run")
            self._make_up(witness)
            self._reclaim()
            self._restore(witness)

    def _make_up(self, witness: Witness) -> None:
        since, known = time.time(), set(self.eyes.statements())
        took_s = self.judge.probe()
        self.tell(f"  a probe of ana's takes {took_s:.1f} s")
        self._says(ANA, f'/cause "{MADE_UP}"')
        self.eyes.until(lambda: set(self.eyes.statements()) - known, SHOWN_S)
        self._statement = min(set(self.eyes.statements()) - known, default="")
        judged = self.truth.made_up_cause_refused
        self._judge("made-up-cause-refused", lambda: judged(self._statement, witness, since))

    def _reclaim(self) -> None:
        told = self._says(ANA, "/knob reclaim")
        self._judge("reclaim-lists", lambda: self.truth.reclaim_lists(told))

    def _restore(self, witness: Witness) -> None:
        self.tell("\n4. the real cause was elsewhere, and the knob is given back under that load")
        self.pause("plan")
        loads = [self._running()]
        change = self._change = self._types(ANA, f"/knob restore {KNOB}={KNOB_VALUE}")
        card = self.eyes.card(change)
        loads.append(self._running())
        for line in self.eyes.text(card).splitlines():
            self.tell(f"  | {line}")
        self._judge("plan-shown", lambda: self.judge.plan_shown(card, loads))
        self._given_back = since = self.judge.mark()
        self._self_approval(card, since)
        self.pause("confirm")
        clicked_at = time.time()
        self._confirm_twice(card)
        state = self.eyes.ended(change, self._longest_s(ROLES), lambda: self.eyes.asks_nothing(change))
        if state != "succeeded":
            self.tell(f"  {change} is {state.replace('_', ' ')}")
        self._judge("one-execution", lambda: self.judge.one_execution(since, clicked_at))
        self._judge("order", lambda: self.judge.order(since))
        self._judge("timestamps", lambda: self.judge.timestamps(since, change))
        self._judge("concluded", lambda: self.judge.concluded(change))
        self._judge("cause-cited", lambda: self.truth.cause_cited(change, witness, clicked_at))

    # scene 12
    def _dispute(self) -> None:
        self.tell("\n5. what was made up is contested")
        before = self.eyes.text(self.eyes.statements().get(self._statement) or {})
        self._says(ANA, f'/cause dispute {self._statement} because "{CONTESTED}"')
        self.eyes.until(lambda: CONTESTED in self.eyes.text(self.eyes.statements()[self._statement]), SHOWN_S)
        self._judge("dispute-kept", lambda: self.truth.dispute_kept(self._statement, before, CONTESTED))

    def _self_approval(self, card: Json, since: Mark) -> None:
        seen = len(self.eyes.ephemerals(ANA))
        self._clicks(ANA, card, "co-restart")
        told = self.eyes.ephemeral(ANA, seen)
        time.sleep(WRONG_START_S)
        moved = [what for role in ROLES if (what := self.judge.untouched(role, since))]
        answer = f"only ana was told: {told}" if told else "ana got no answer"
        self._judge("self-approval-refused", lambda: (bool(told) and not moved, "; ".join([answer, *moved])[:400]))

    def _confirm_twice(self, card: Json) -> None:
        # stopped while a person changes something: the approval is recorded, and nobody has begun to act on it
        held = self.stage.product_pids("worker", "act") if self.pauses_at == "execute" else []
        self.stage.signal(held, signal.SIGSTOP)
        self._clicks(BEN, card, "co-restart")
        self._clicks(BEN, card, "co-restart")
        if held:
            self.pause("execute")
            self.stage.signal([pid for pid in held if "act" in words_of(pid)], signal.SIGCONT)

    # what can be seen in any case
    def _world(self) -> None:
        self.tell("\n6. what can be seen in the end")
        for name, look in (
            ("knob-live", lambda: self.judge.knob_live(self._given_back)),
            ("healthy", self.judge.healthy),
            ("canary", self.judge.canary),
            ("audit-clean", self.audit.audit_clean),
            ("audit-catches-edit", lambda: self.audit.audit_catches_edit(self._change)),
            ("calls-accepted", self.judge.calls_accepted),
        ):
            self._judge(name, look)

    # people

    def _types(self, user: str, text: str) -> str:
        self.tell(f"  @{self._name(user)} types {text}")
        return self.eyes.command(user, text)

    def _says(self, user: str, text: str) -> str:
        self.tell(f"  @{self._name(user)} types {text}")
        told = self.eyes.say(user, text)
        for line in told.splitlines():
            self.tell(f"  | {line}")
        return told

    def _clicks(self, user: str, card: Json, order: str) -> None:
        self.tell(f"  @{self._name(user)} clicks [Confirm {order}]")
        self.eyes.click(user, card, order)

    def _name(self, user: str) -> str:
        return self.stage.slack.workspace.users[user].name

    def _running(self) -> float:
        """Requests that decode says are running."""
        _, text = fetch(self.stage.demo_fleet.url("decode", "/metrics"))
        found = re.search(r"^sglang:num_running_reqs\{[^}]*\} ([0-9.]+)", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def _longest_s(self, roles: Iterable[str]) -> float:
        """Every boot at its limit, there and back, the watch after it, and a minute for all the rest."""
        limits_s = [max(30.0, BOOT_FACTOR * self.stage.boot_s[role]) for role in roles]
        return SLACK_S + self.stage.bake_s + 2 * sum(limits_s)


def in_words(error: Exception) -> str:
    """An error for people: its own words where it has some for them, and the hint."""
    if isinstance(error, OpsError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{type(error).__name__}: {error}"
