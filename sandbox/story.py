"""The story, played on a stage, and its checks.

Checks are judged from the services' own clock files, from the kernel's view of their processes, and from the stand-in
workspace; never from what the product says of itself. The product's ledger is read only to know when to go on.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import JsonValue

from policies.errors import OpsError
from sandbox.eyes import Eyes, digests
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.load import Load
from sandbox.slack.errors import PersonError
from sandbox.stage import ANA, BEN, KNOB_VALUE, ROLES, Stage, environ_of, fetch

CONCURRENCY = 53  # Source: the incident
SUMMARY = """\
value: 512
baseline: unset
metric: output_throughput
points: {C64: +12.8 %, C96: +5.7 %, C80: +1.2 %}
no_worse_up_to: 32
correctness: {compared: 200, differing: 0}
context: {accelerator: sm_120, engine: demo}
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
    """Plays the scenes in order; a scene that cannot go on fails its own checks and those after it."""

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
        "audit-clean",
        "calls-accepted",
    )

    @property
    def eyes(self) -> Eyes:
        """Hands and eyes on the stage."""
        return Eyes(self.stage)

    def play(self) -> bool:
        """Play everything; true when every check held."""
        scenes = (self._evidence, self._revert, self._restore, self._audit)
        problem = ""
        for scene in scenes:
            try:
                scene()
            except (OpsError, PersonError, OSError, ValueError, TypeError, LookupError) as error:
                problem = f"not reached: {error}"
                break
        self.fail_rest(problem or "not judged")
        return all(check.ok for check in self.checks)

    def fail_rest(self, why: str) -> None:
        """Every check that was not judged did not hold."""
        done = {check.name for check in self.checks}
        for name in self.NAMES:
            if name not in done:
                self._judge(name, ok=False, detail=why)

    def _judge(self, name: str, *, ok: bool, detail: str) -> None:
        self.checks.append(Check(name, ok, detail))
        self.tell(f"{'ok  ' if ok else 'FAIL'} {name}: {detail}")

    # scene 1
    def _evidence(self) -> None:
        self.tell("# somebody types the A/B of last week into a file and records it")
        path = self.stage.folder / "ab-1.yaml"
        path.write_text(SUMMARY, encoding="utf-8")
        done = self.stage.clawback("evidence", "record", str(path), "--knob", KNOB, "--json")
        listed = self.stage.clawback("evidence", "list", "--json")
        records = json.loads(listed.stdout)["records"] if listed.returncode == 0 else []
        ok = done.returncode == 0 and [r["klass"] for r in records] == ["observed"]
        self._judge("evidence-recorded", ok=ok, detail=(done.stdout + done.stderr).strip()[:300])

    # scenes 2 and 3
    def _revert(self) -> None:
        self.tell("# the harness hangs; the knob is suspected and taken away")
        before = self.eyes.pid("decode")
        change = self.eyes.command(ANA, f'/knob revert {KNOB} because "multi-round hang"')
        card = self.eyes.card(change)
        self.eyes.click(BEN, card, "decode-only")
        state = self.eyes.ended(change)
        pid = self.eyes.pid("decode")
        value = environ_of(pid, KNOB_ENV)
        said = self.eyes.events("decode", "started")[-1]
        ok = pid != before and value is None and said["knob"] is None and said["pid"] == pid
        detail = f"decode pid {before} -> {pid}, {KNOB_ENV} in its environment: {value}, engine read {said['read']}"
        self._judge("reverted", ok=ok, detail=f"{detail}; change {change} {state}")

    # scenes 6 to 10
    def _restore(self) -> None:
        self.tell(f"# the real cause was found elsewhere; under {CONCURRENCY} running requests the knob is given back")
        with Load(self.stage.demo_fleet.url("router"), CONCURRENCY):
            self.stage.wait(lambda: self.eyes.running() >= 1, 20.0, "requests are running")
            self.pause("plan")
            change = self.eyes.command(ANA, f"/knob restore {KNOB}={KNOB_VALUE}")
            card = self.eyes.card(change)
            self._plan_shown(card)
            counts = {role: len(self.eyes.events(role, "started")) for role in ROLES}
            self._self_approval(card, counts)
            self.pause("confirm")
            self._confirm_twice(card)
            state = self.eyes.ended(change)
        self._one_execution(counts, change, state)
        self._order(counts, change)
        self._live(change, state)

    def _plan_shown(self, card: dict[str, JsonValue]) -> None:
        text = self.eyes.text(card)
        wanted = {
            "the value": f"{KNOB}" in text and KNOB_VALUE in text,
            "the evidence": all(part in text for part in ("+12.8 %", "+5.7 %", "+1.2 %", "n=1")),
            "the policy": "@ben" in text or "approvers" in text,
            "requests in flight": re.search(r"[0-9]+ requests?", text) is not None,
            "a digest on each button": len(digests(card)) >= 2,
        }
        missing = [name for name, there in wanted.items() if not there]
        self._judge("plan-shown", ok=not missing, detail="missing: " + ", ".join(missing) if missing else "all there")

    def _self_approval(self, card: dict[str, JsonValue], counts: dict[str, int]) -> None:
        seen = len(self.eyes.ephemerals(ANA))
        self.eyes.click(ANA, card, "co-restart")
        told = self.eyes.ephemeral(ANA, seen)
        time.sleep(0.5)  # time enough for a wrong execution to show itself
        started = {role: len(self.eyes.events(role, "started")) for role in ROLES}
        self._judge("self-approval-refused", ok=bool(told) and started == counts, detail=told[:200] or "no answer")

    def _confirm_twice(self, card: dict[str, JsonValue]) -> None:
        workers = self.stage.product_pids("act") if self.pauses_at == "execute" else []
        self.stage.freeze(workers)
        self.eyes.click(BEN, card, "co-restart")
        self.eyes.click(BEN, card, "co-restart")
        if workers:
            self.pause("execute")
            self.stage.thaw(workers)

    def _one_execution(self, counts: dict[str, int], change: str, state: str) -> None:
        new = {role: len(self.eyes.events(role, "started")) - counts[role] for role in ROLES}
        ok = all(count == 1 for count in new.values())
        detail = ", ".join(f"{role} started {count} times" for role, count in new.items())
        self._judge("one-execution", ok=ok, detail=f"{detail} after two clicks; change {change} {state}")

    def _order(self, counts: dict[str, int], change: str) -> None:
        """From the services' own clocks: nobody is told to stop before the one before is healthy."""
        times: list[tuple[str, float, float]] = []
        for role in ROLES:
            started = self.eyes.events(role, "started")[counts[role] :]
            stopped = self.eyes.events(role, "sigterm")[-1:]
            healthy = [
                e for e in self.eyes.events(role, "health_answered") if started and e["pid"] == started[-1]["pid"]
            ]
            if not started or not stopped or not healthy:
                self._judge("order", ok=False, detail=f"{role} has no new life that answered a health check")
                return
            times.append((role, _number(stopped[0]["time"]), _number(healthy[0]["time"])))
        ok = all(times[i][2] <= times[i + 1][1] for i in range(len(times) - 1))
        detail = ", ".join(f"{role} stopped at {stop:.2f} healthy at {well:.2f}" for role, stop, well in times)
        self._judge("order", ok=ok, detail=detail)
        lines = self.eyes.thread_times(change)
        rising = lines == sorted(lines) and len(lines) >= len(ROLES)
        self._judge(
            "timestamps", ok=rising, detail=f"{len(lines)} lines in the thread carry a time, in order: {rising}"
        )

    def _live(self, change: str, state: str) -> None:
        pid = self.eyes.pid("decode")
        value = environ_of(pid, KNOB_ENV)
        status, body = fetch(self.stage.demo_fleet.url("decode", "/server_info"))
        reported = json.loads(body)["internal_states"][0]["env_vars"].get(KNOB_ENV) if status == 200 else None
        ok = value == KNOB_VALUE and str(reported) == KNOB_VALUE and state == "succeeded"
        detail = f"decode pid {pid}: environment {value}, engine reports {reported}; change {change} {state}"
        self._judge("knob-live", ok=ok, detail=detail)
        paths = {"prefill": "/health", "decode": "/health", "router": "/readiness"}
        answers = {role: fetch(self.stage.demo_fleet.url(role, path))[0] for role, path in paths.items()}
        well = all(code == 200 for code in answers.values())
        self._judge("healthy", ok=well, detail=", ".join(f"{role} {code}" for role, code in answers.items()))
        nonce = secrets.token_hex(6)
        url = self.stage.demo_fleet.url("router", "/v1/completions")
        status, body = fetch(url, {"model": "m", "prompt": f"echo {nonce}", "max_tokens": 4}, timeout_s=60)
        came = status == 200 and nonce in body
        self._judge("canary", ok=came, detail=f"status {status}, nonce {nonce} came back: {came}")

    # scene 13
    def _audit(self) -> None:
        done = self.stage.clawback("audit", "verify", "--json")
        self._judge("audit-clean", ok=done.returncode == 0, detail=(done.stdout + done.stderr).strip()[:300])
        wrong = [f"{v}" for v in self.stage.slack.workspace.violations]
        late = [e for e in self.stage.slack.people.envelopes if e.acked_ms is None]
        detail = f"{len(self.stage.slack.people.calls)} calls, {len(wrong)} wrong, {len(late)} unanswered envelopes"
        self._judge("calls-accepted", ok=not wrong and not late, detail="; ".join([detail, *wrong[:3]]))


def _number(value: JsonValue) -> float:
    if not isinstance(value, (int, float)):
        raise TypeError(f"expected a time, found {value!r}")
    return float(value)
