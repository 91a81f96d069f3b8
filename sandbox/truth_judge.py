"""The judge of what is said about causes: held against what services export, what people typed, and the workspace.

It reads metrics itself. What the product cites has to be what the services said at that moment.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sandbox.eyes import Eyes, is_reply, payload_of
from sandbox.fleet.document import KNOB
from sandbox.judge import Judge, Verdict
from sandbox.stage import KNOB_VALUE, ROLES, Stage, fetch
from sandbox.witness import Sight, Witness, number

ACTIVE = "sglang:http_requests_active"
IN_FLIGHT = "smg_http_inflight_request_age_count"
QUEUES = ("num_decode_prealloc_queue_reqs", "num_decode_transfer_queue_reqs")
COUNTERS = ("sglang:generation_tokens_total", "sglang:num_requests_total")
POINTS = ("+12.8 %", "+5.7 %", "+1.2 %")
MADE_UP = "cold start"
CITED_S = 2.0  # a reading is of the moment that it states, and the witness looks several times a second
ETA_OFF_S = 2.0  # how far a median of boots may be from what the services' own clocks give


@dataclass(frozen=True, slots=True)
class Calm:
    """What decode and the router exported at one moment: work by name, and counters. Units: at is epoch seconds."""

    at: float
    work: Mapping[str, float | None]
    counters: Mapping[str, float | None]


class TruthJudge:
    """Looks at one stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.eyes = Eyes(stage)
        self._judge = Judge(stage)

    def calm(self) -> Calm:
        """How much work there is now, by what the services export."""
        _, decode = fetch(self.stage.demo_fleet.url("decode", "/metrics"))
        _, router = fetch(self.stage.demo_fleet.url("router", "/metrics"))
        work = {
            "num_running_reqs": number(decode, "sglang:num_running_reqs"),
            "num_queue_reqs": number(decode, "sglang:num_queue_reqs"),
            "http_requests_active": number(decode, ACTIVE, "/generate"),
            **{name: number(decode, f"sglang:{name}") for name in QUEUES},
            "router_in_flight": number(router, IN_FLIGHT),
        }
        return Calm(time.time(), work, {name: number(decode, name) for name in COUNTERS})

    def suspicion_opened(self, change: str, before: Calm, after: Calm) -> Verdict:
        """Decode was idle, the thread cites every reading of it and that it speaks against the knob, and the cost."""
        said = "\n".join(line.text for line in self.eyes.thread(change))
        problems = [
            f"{name} was {value}" for calm in (before, after) for name, value in calm.work.items() if value != 0
        ]
        if before.counters != after.counters:
            problems.append("decode worked meanwhile")
        cited = next((line for line in said.splitlines() if "the engine was idle" in line), "")
        problems += [
            f"{name} is not cited as 0" for name in before.work if not re.search(rf"\b{name}[^,)]* 0\b", cited)
        ]
        wanted = {
            "the counters that stood still": "counters still" in cited,
            "that it speaks against the knob": "speaks against it" in cited and KNOB in cited,
            "a suspicion": re.search(r"suspicion su-\d+ is open", said) is not None,
            "the cost": all(point in said for point in POINTS) and "n=1" in said and "no interval" in said,
            "that no cause is established": "cause: not established" in said,
        }
        problems += [f"missing: {name}" for name, there in wanted.items() if not there]
        if stated := self._stated():
            problems.append(f"a cause is stated: {stated[0]}")
        seen = f"idle by all {len(before.work)} readings of decode and router, each cited; {', '.join(wanted)}"
        return not problems, "; ".join(problems) or seen

    def made_up_cause_refused(self, statement: str, witness: Witness, since: float) -> Verdict:
        """The words are quoted as ana's; the rival is named with the load that decode itself told of."""
        message = self.eyes.statements().get(statement)
        if message is None:
            return False, "the channel shows no statement"
        text = self.eyes.text(message)
        problems = [] if "cause: not established" in text.splitlines()[1] else ["it does not say: not established"]
        problems += self._load_cited(text, witness, since)
        if "queued-behind-load" not in text:
            problems.append("the rival is not named")
        quoted = [line for line in text.splitlines() if MADE_UP in line.lower()]
        if len(quoted) != 1 or "@ana says" not in quoted[0]:
            problems.append(f"the words stand elsewhere than in ana's own: {quoted}")
        problems += [f"stated as a cause: {line}" for line in self._stated() if "cold-start" in line]
        return not problems, "; ".join(
            problems
        ) or f"{statement} quotes ana, states nothing, and names the rival with {_load(text)}"

    def reclaim_lists(self, text: str) -> Verdict:
        """The knob with what it brought, and both orders with times that the services' own clocks agree with."""
        missing = [part for part in (KNOB, KNOB_VALUE, *POINTS, "n=1") if part not in text]
        problems = [f"missing: {', '.join(missing)}"] if missing else []
        took = {role: self._boots(role) for role in ROLES}
        for order, roles in (("co-restart", ROLES), ("decode-only", ("decode",))):
            found = re.search(rf"{order}\*?: .*?about (.+?) \(p90 .+?, n=(\d+) recorded\)", text)
            if found is None:
                problems.append(f"{order} has no time with n")
                continue
            own_s = sum(_median(took[role]) for role in roles)
            if not abs(_seconds(found[1]) - own_s) <= ETA_OFF_S:  # what is no time is not near either
                problems.append(f"{order}: about {found[1]}, the services' own clocks give {own_s:.1f} s")
        return not problems, "; ".join(problems) or f"{KNOB} with {', '.join(POINTS)}, and both orders with their times"

    def cause_cited(self, change: str, witness: Witness, since: float) -> Verdict:
        """A slow probe is told in the thread with the load that decode itself told of, as consistent with queueing."""
        line = next((said for said in self.eyes.thread(change) if "probe through router took" in said.text), None)
        if line is None:
            return False, "no line of the thread tells of a probe"
        problems = [f"line: {told}" for told in self._load_cited(line.text, witness, since)]
        found = re.search(r"took ([0-9.]+) s", line.text)
        if found is None or float(found[1]) < 0.5:
            problems.append(f"the probe was not slow: {line.text}")
        about = [
            self.eyes.text(m)
            for m in self.eyes.statements().values()
            if is_reply(m) and "slow probe" in self.eyes.text(m)
        ]
        text = about[-1] if about else ""
        if not re.search(r"consistent with \*?queued-behind-load", text):
            problems.append(f"nobody says that it is consistent with queueing: {text[:200] or line.text}")
        problems += [f"statement: {told}" for told in self._load_cited(text, witness, since)]
        if stated := [said for said in self._stated() if "cold-start" in said]:
            problems.append(f"stated as a cause: {stated[0]}")
        return not problems, "; ".join(problems) or f"{line.text}; {text.splitlines()[1]}"

    def dispute_kept(self, statement: str, before: str, reason: str) -> Verdict:
        """The words still stand, struck through, with who contested them and why; the thread has the trail."""
        message = self.eyes.statements().get(statement)
        lines = self.eyes.text(message).splitlines() if message is not None else []
        was = [line for line in before.splitlines() if not line.startswith("[")]
        trail = [m for m in self.eyes.transcript() if payload_of(m).get("change") == statement and is_reply(m)]
        wanted = {
            "all its words, struck through": lines[: len(was)] == [f"~{line.replace('~', '-')}~" for line in was],
            "who contests it and why": any("@ana disputes" in line and reason in line for line in lines),
            "a line of its own in the thread": any(reason in self.eyes.text(m) for m in trail),
        }
        missing = [name for name, there in wanted.items() if not there]
        return not missing, f"missing: {', '.join(missing)}" if missing else f"{statement} has {', '.join(wanted)}"

    def _boots(self, role: str) -> list[float]:
        """How long a service took from being told to stop to its first answer, every time, by its own clock."""
        known = self._judge.lives(role)
        pairs = pairwise(known)
        return [new.answered - old.told_to_stop for old, new in pairs if new.answered and old.told_to_stop]

    def _stated(self) -> list[str]:
        """Lines anywhere in the workspace that state a cause."""
        lines = [line for message in self.eyes.transcript() for line in self.eyes.text(message).splitlines()]
        return [line for line in lines if re.search(r"\bcause: (?!not established)", line)]

    def _load_cited(self, text: str, witness: Witness, since: float) -> list[str]:
        """What is wrong with the load that a text cites: not there, or not what decode told of then."""
        found = re.search(r"running_reqs=(\d+) requests, queue_reqs=(\d+) requests", text)
        if found is None:
            return ["running_reqs and queue_reqs are not cited"]
        running, queued = float(found[1]), float(found[2])
        seen = [sight for sight in list(witness.seen) if sight.at >= since - CITED_S]
        problems = [] if running > 0 and queued > 0 else [f"running_reqs={running:g}, queue_reqs={queued:g} is no load"]
        if not any(_near(sight, running, queued) for sight in seen):
            problems.append(f"decode never told of running {running:g} and queued {queued:g}")
        return problems


def _near(sight: Sight, running: float, queued: float) -> bool:
    """As good as the same: the batch changes between two looks."""
    return abs(sight.running - running) <= 8 and abs(sight.queued - queued) <= 12


def _load(text: str) -> str:
    found = re.search(r"running_reqs=\d+ requests, queue_reqs=\d+ requests", text)
    return found[0] if found else "no load"


def _seconds(told: str) -> float:
    """`8.9 s`, `2 min 40 s`."""
    found = re.fullmatch(r"(?:(\d+) min )?([0-9.]+) s", told)
    return 60.0 * int(found[1] or 0) + float(found[2]) if found is not None else float("nan")


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[~middle]) / 2 if ordered else 0.0
