"""The judge of the story: looks at the services' own clocks, the kernel, systemd and the workspace.

It never asks the product how things went. Each look gives whether the check held and what was seen.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sandbox.clock import Life, lives
from sandbox.eyes import Eyes, Json, Said, digests, questions
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.kernel import environ_of, listeners, words_of
from sandbox.stage import KNOB_VALUE, ROLES, Stage, fetch

HEALTH = {"prefill": "/health", "decode": "/health", "router": "/readiness"}
CANARY_S = 40.0
SECOND = 1.0  # times in the thread are whole seconds
Verdict = tuple[bool, str]


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the services were at a moment: lives of each, and the time."""

    at: float
    counts: Mapping[str, int]


class Judge:
    """Looks at one stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.eyes = Eyes(stage)

    # the services

    def lives(self, role: str) -> list[Life]:
        """Every life of a service, by its own clock."""
        return lives(self.stage.demo_fleet.events(role))

    def mark(self) -> Mark:
        """Now."""
        return Mark(time.time(), {place: len(self.lives(place)) for place in self.stage.places})

    def renewed(self, role: str, since: Mark) -> bool:
        """True once a process that began after the mark has answered a health check."""
        return any(life.answered for life in self.lives(role)[since.counts[role] :])

    def pid(self, role: str) -> int:
        """MainPID, as systemd says; 0: nothing runs."""
        return int(self.stage.demo_fleet.show(role, "MainPID").get("MainPID") or 0)

    def owner_problem(self, role: str, pid: int) -> str:
        """Who answers on the service's port instead of its main process; empty when it does itself."""
        found = listeners(self.stage.demo_fleet.ports[role])
        others = [other for other in found if other != pid]
        if others:
            told = ", ".join(f"pid {other} ({' '.join(words_of(other))[:80]})" for other in others)
            mine = f"not by the unit's process {pid}" if pid else "and the unit runs no process"
            return f"its port {self.stage.demo_fleet.ports[role]} is held by {told}, {mine}"
        return "" if found else f"nobody listens on its port {self.stage.demo_fleet.ports[role]}"

    def untouched(self, role: str, since: Mark) -> str:
        """What happened to a service since the mark; empty: nothing."""
        known = self.lives(role)
        if len(known) != since.counts[role]:
            return f"{role} was started again"
        return f"{role} was told to stop" if (known[-1].told_to_stop or 0.0) > since.at else ""

    def probe(self) -> float:
        """How long one generation takes now, asked as a person would, in seconds."""
        began = time.monotonic()
        url = self.stage.demo_fleet.url("router", "/v1/completions")
        fetch(url, {"model": "m", "prompt": "2+2=", "max_tokens": 4}, timeout_s=CANARY_S)
        return time.monotonic() - began

    # the checks

    def plan_shown(self, card: Json, loads: Iterable[float]) -> Verdict:
        """The card shows all that an approver has to know."""
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

    def reverted(self, since: Mark, clicked_at: float) -> Verdict:
        """One restart of decode alone, and the variable is gone from its process."""
        problems = [told for role in ("prefill", "router") if (told := self.untouched(role, since))]
        problems += self._one_turn("decode", since, clicked_at)
        pid, last = self.pid("decode"), self.lives("decode")[-1]
        if pid != last.pid:
            return False, "; ".join(
                [*problems, f"decode's last process by its own clock is {last.pid}, systemd: {pid}"]
            )
        value = environ_of(pid, KNOB_ENV)
        if value is not None or last.knob is not None:
            problems.append(f"{KNOB_ENV} is still in the environment of decode pid {pid}: {value}")
        if told := self.owner_problem("decode", pid):
            problems.append(f"decode: {told}")
        seen = f"decode pid {pid} has no {KNOB_ENV} in its environment, and its engine runs with {last.read}"
        return not problems, "; ".join(problems) or f"{seen}; prefill and router were left alone"

    def one_execution(self, since: Mark, clicked_at: float) -> Verdict:
        """Each service was told to stop once, after the approver's click, and started once."""
        problems = [told for role in ROLES for told in self._one_turn(role, since, clicked_at)]
        return not problems, "; ".join(problems) or "each service was stopped once and started once after two clicks"

    def order(self, since: Mark) -> Verdict:
        """Nobody is told to stop before the new process of the one before answered a health check."""
        stops: list[float] = []
        wells: list[float] = []
        problems: list[str] = []
        for role in ROLES:
            known = self.lives(role)
            old, new = known[since.counts[role] - 1], known[since.counts[role] :]
            if not new or old.told_to_stop is None:
                problems.append(f"{role} was not restarted" if not new else f"{role} was not told to stop")
            elif new[-1].answered is None:
                problems.append(f"{role}'s new process {new[-1].pid} answered no health check with 200")
            else:
                stops.append(old.told_to_stop)
                wells.append(new[-1].answered)
        if problems:
            return False, "; ".join(problems)
        for index, role in enumerate(ROLES[1:], start=1):
            if (early := wells[index - 1] - stops[index]) > 0:
                problems.append(f"{role} was told to stop {early:.2f} s before {ROLES[index - 1]} was healthy")
        times = [
            f"{r} stop +{s - stops[0]:.1f} s, healthy +{w - stops[0]:.1f} s"
            for r, s, w in zip(ROLES, stops, wells, strict=True)
        ]
        return not problems, "; ".join(problems) or ", ".join(times)

    def timestamps(self, since: Mark, change: str) -> Verdict:
        """The thread's times rise, none is ahead of its message, and each service's agree with its own clock."""
        said = [line for line in self.eyes.thread(change) if line.at is not None]
        times = [line.at or 0 for line in said]
        problems: list[str] = []
        if times != sorted(times):
            problems.append("the times do not rise")
        problems += [f"a line of {line.ts:.0f} states a later time: {line.text[:60]}" for line in said if _ahead(line)]
        for role in ROLES:
            known = self.lives(role)
            new = known[since.counts[role] :]
            if not new or (answered := new[-1].answered) is None:
                problems.append(f"{role} has no new process that answered a health check")
                continue
            pid, port = new[-1].pid, self.stage.demo_fleet.ports[role]
            line = next((line for line in said if _names(line, pid) and _names(line, port)), None)
            if line is None:
                problems.append(f"no line of the thread names {role}'s new process {pid} and its port {port}")
            elif (line.at or 0) + SECOND < answered:
                problems.append(f"the thread has {role} healthy at {line.at}, its own clock at {answered:.1f}")
        ok = f"{len(said)} lines carry a time, in order; none calls a service healthy before its own clock does"
        return not problems, "; ".join(problems) or ok

    def knob_live(self, since: Mark | None) -> Verdict:
        """The value is in the kernel's copy of the new process's environment, in its engine's answer and its clock.

        since: when the value was asked for; None: it never was.
        """
        pid = self.pid("decode")
        if pid == 0:
            return False, "decode is not running"
        value = environ_of(pid, KNOB_ENV)
        last = self.lives("decode")[-1]
        if since is None or len(self.lives("decode")) == since.counts["decode"]:
            return False, f"decode pid {pid} is no new process; {KNOB_ENV} in its environment: {value}"
        status, body = fetch(self.stage.demo_fleet.url("decode", "/server_info"))
        reported = (
            json.loads(body)["internal_states"][0]["env_vars"].get(KNOB_ENV) if status == 200 else f"status {status}"
        )
        ok = value == KNOB_VALUE and str(reported) == KNOB_VALUE and (last.pid, last.read) == (pid, int(KNOB_VALUE))
        owner = self.owner_problem("decode", pid)
        seen = f"decode pid {pid}: {KNOB_ENV} in its environment: {value}, its engine reports {reported}"
        if last.pid != pid:
            seen += f", but the engine's own clock knows of no process after {last.pid}"
        return ok and not owner, f"{seen}; {owner}" if owner else seen

    def healthy(self) -> Verdict:
        """Three endpoints answer 200, each from the main process of its unit, which systemd calls active."""
        seen: list[str] = []
        problems: list[str] = []
        for role, path in HEALTH.items():
            shown = self.stage.demo_fleet.show(role, "MainPID", "ActiveState", "SubState")
            pid = int(shown.get("MainPID") or 0)
            status, _ = fetch(self.stage.demo_fleet.url(role, path))
            seen.append(f"{role} {status} from pid {pid}")
            if status != 200:
                problems.append(f"{role} answers {status or 'nothing'}")
            if shown.get("ActiveState") != "active" or pid == 0:
                problems.append(f"systemd calls {role} {shown.get('ActiveState')} ({shown.get('SubState')})")
            if told := self.owner_problem(role, pid):
                problems.append(f"{role}: {told}")
        return not problems, "; ".join(problems) or ", ".join(seen)

    def canary(self) -> Verdict:
        """A fresh nonce comes back through the router, and prefill and decode each worked for it."""
        began = time.time()
        nonce = secrets.token_hex(6)
        url = self.stage.demo_fleet.url("router", "/v1/completions")
        status, body = fetch(url, {"model": "m", "prompt": f"echo {nonce}", "max_tokens": 4}, timeout_s=CANARY_S)
        problems = [] if status == 200 and nonce in body else [f"status {status}: {body[:120]}"]
        if told := self.owner_problem("router", self.pid("router")):
            problems.append(f"router: {told}")
        for role in ("prefill", "decode"):
            pid = self.pid(role)
            done = [e for e in self.stage.demo_fleet.events(role) if e["event"] == "request_done" and e["pid"] == pid]
            if not any(float(str(e["time"])) >= began for e in done):
                problems.append(f"by its own clock {role} pid {pid} did nothing for it")
        took_s = time.time() - began
        return not problems, "; ".join(problems) or f"nonce {nonce} came back in {took_s:.1f} s through all three"

    def concluded(self, change: str) -> Verdict:
        """The channel shows the last that was recorded of the change, and its card asks nobody for a decision."""
        asked = questions(self.eyes.message(change) or {})
        last = next((line.text for line in reversed(self.eyes.thread(change))), "nothing")
        told = f"the last line of the thread: {last}"
        end = self.eyes.ends.get(change) or self.eyes.about(change)[-1]["seq"]
        if end not in self.eyes.drawn(change):
            return False, f"the end of {change} is recorded, and nobody was told; {told}"
        return not asked, f"the card still asks: {', '.join(asked)}; {told}" if asked else told

    def calls_accepted(self) -> Verdict:
        """The workspace found nothing wrong with any call, and every envelope was acknowledged in time."""
        people = self.stage.slack.people
        wrong = [f"{v.method} {v.code}: {v.message}" for v in self.stage.slack.workspace.violations]
        unheard = [e for e in people.envelopes if e.acked_ms is None]
        late = [e for e in people.envelopes if e.late or e.expired]
        slowest = max((e.acked_ms or 0.0 for e in people.envelopes), default=0.0)
        seen = [
            f"{len(people.calls)} calls, {len(wrong)} wrong",
            f"{len(people.envelopes)} commands and clicks, {len(unheard)} unanswered, {len(late)} late",
            f"slowest answer {slowest:.0f} ms",
        ]
        return not wrong and not unheard and not late, "; ".join([*seen, *wrong[:3]])

    def _one_turn(self, role: str, since: Mark, clicked_at: float) -> list[str]:
        """What is not as it would be after exactly one restart that followed the click."""
        known = self.lives(role)
        old, new = known[since.counts[role] - 1], known[since.counts[role] :]
        problems: list[str] = []
        if len(new) != 1:
            problems.append(f"{role} was started {len(new)} times")
        if new and old.told_to_stop is None:
            problems.append(f"{role}'s process {old.pid} ended without being told to stop")
        if old.told_to_stop is not None and old.told_to_stop < clicked_at:
            problems.append(
                f"{role} was told to stop {clicked_at - old.told_to_stop:.1f} s before the approver's click"
            )
        return problems


def _names(line: Said, number: int) -> bool:
    return re.search(rf"\b{number}\b", line.text) is not None


def _ahead(line: Said) -> bool:
    return line.at is not None and line.at > line.ts + SECOND


def _names_load(line: str, loads: Iterable[float]) -> bool:
    return any(re.search(rf"\b{load:g}\b", line) for load in loads) and re.search(r"request|running", line) is not None
