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
from sandbox.eyes import Eyes, Json, digests
from sandbox.fleet.document import BOOT_FACTOR, KNOB
from sandbox.fleet.load import Load
from sandbox.judge import Judge, Mark, Verdict
from sandbox.kernel import words_of
from sandbox.stage import ANA, BEN, KNOB_VALUE, ROLES, Stage, StageError, fetch

CONCURRENCY = 53  # Source: the incident
TOKENS = 120  # a request, which takes 2 to 3 s
BUSY_S = 20.0
WRONG_START_S = 0.5  # time enough for a wrong execution to show itself
SLACK_S = 60.0
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
        "reverted",
        "plan-shown",
        "self-approval-refused",
        "one-execution",
        "order",
        "timestamps",
        "knob-live",
        "healthy",
        "canary",
        "concluded",
        "audit-clean",
        "calls-accepted",
    )

    def __post_init__(self) -> None:
        """Give the story its eyes and its judge."""
        self.eyes = Eyes(self.stage)
        self.judge = Judge(self.stage)
        self._given_back: Mark | None = None

    def play(self) -> bool:
        """Play everything; true when every check held."""
        problem = ""
        for scene in (self._evidence, self._revert, self._restore):
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
    def _evidence(self) -> None:
        self.tell("\n1. somebody has measured the knob: the numbers are typed into a file and recorded")
        path = self.stage.folder / "ab-1.yaml"
        path.write_text(SUMMARY, encoding="utf-8")
        done = self.stage.clawback("evidence", "record", str(path), "--knob", KNOB, "--as", "ana")
        listed = self.stage.clawback("evidence", "list")
        records = listed.stdout.strip().splitlines()
        ok = done.returncode == 0 and len(records) == 1 and all(f"C{c}" in records[0] for c in (64, 80, 96))
        said = records[0] if ok else f"{done.stdout}{done.stderr} / the list: {listed.stdout}{listed.stderr}"
        self._judge("evidence-recorded", lambda: (ok, said[:400]))

    # scenes 2 and 3
    def _revert(self) -> None:
        self.tell("\n2. the harness hangs; the knob is suspected, and taken away")
        since = self.judge.mark()
        change = self._types(ANA, f'/knob revert {KNOB} because "multi-round hang"')
        card = self.eyes.card(change)
        clicked_at = time.time()
        self._clicks(BEN, card, "decode-only")
        state = self.eyes.ended(change, self._longest_s(("decode",)), lambda: self.judge.renewed("decode", since))
        self._judge("reverted", lambda: self.judge.reverted(since, clicked_at))
        if not self.checks[-1].ok:
            raise StageError(f"there is nothing to restore: {change} is {state.replace('_', ' ')}")

    # scenes 6 to 10
    def _restore(self) -> None:
        self.tell(f"\n3. the real cause was elsewhere; with {CONCURRENCY} requests running, the knob is given back")
        with Load(self.stage.demo_fleet.url("router"), CONCURRENCY, TOKENS):
            self.stage.wait(lambda: self._running() >= CONCURRENCY, BUSY_S, f"{CONCURRENCY} requests run")
            self.pause("plan")
            loads = [self._running()]
            change = self._types(ANA, f"/knob restore {KNOB}={KNOB_VALUE}")
            card = self.eyes.card(change)
            loads.append(self._running())
            for line in self.eyes.text(card).splitlines():
                self.tell(f"  | {line}")
            self._judge("plan-shown", lambda: self._plan_shown(card, loads))
            self._given_back = since = self.judge.mark()
            self._self_approval(card, since)
            self.pause("confirm")
            clicked_at = time.time()
            self._confirm_twice(card)
            state = self.eyes.ended(change, self._longest_s(ROLES), lambda: self.judge.renewed("router", since))
        if state != "succeeded":
            self.tell(f"  {change} is {state.replace('_', ' ')}")
        self._judge("one-execution", lambda: self.judge.one_execution(since, clicked_at))
        self._judge("order", lambda: self.judge.order(since))
        self._judge("timestamps", lambda: self.judge.timestamps(since, change))
        self._judge("concluded", lambda: self.judge.concluded(change))

    def _plan_shown(self, card: Json, loads: Iterable[float]) -> Verdict:
        text = self.eyes.text(card)
        offered = "".join(digests(card))
        wanted = {
            "the knob and its value": KNOB in text and KNOB_VALUE in text,
            "the evidence": all(part in text for part in ("+12.8 %", "+5.7 %", "+1.2 %", "n=1")),
            "who decides": "@ben" in text or "approvers" in text,
            "the undo": "undo" in text.lower(),
            "a button with a digest for each restart order": all(
                f'"{o}"' in offered for o in ("co-restart", "decode-only")
            ),
            f"the {max(loads):g} requests that run": any(_names_load(line, loads) for line in text.splitlines()),
        }
        missing = [name for name, there in wanted.items() if not there]
        return not missing, f"missing: {', '.join(missing)}" if missing else f"shows {', '.join(wanted)}"

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
        self.tell("\n4. what can be seen in the end")
        for name, look in (
            ("knob-live", lambda: self.judge.knob_live(self._given_back)),
            ("healthy", self.judge.healthy),
            ("canary", self.judge.canary),
            ("audit-clean", self.judge.audit_clean),
            ("calls-accepted", self.judge.calls_accepted),
        ):
            self._judge(name, look)

    # people

    def _types(self, user: str, text: str) -> str:
        self.tell(f"  @{self._name(user)} types {text}")
        return self.eyes.command(user, text)

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


def _names_load(line: str, loads: Iterable[float]) -> bool:
    return any(re.search(rf"\b{load:g}\b", line) for load in loads) and re.search(r"request|running", line) is not None
