"""The story of replicas: a release that one host cannot start is undone everywhere, and a good one goes through."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sandbox.audit_judge import AuditJudge
from sandbox.fleet.load import Load
from sandbox.fleet.releases import GOOD
from sandbox.fleet.units import unit_name
from sandbox.judge import Judge, Verdict
from sandbox.replica_judge import DEPLOYED, ReplicaJudge, kept
from sandbox.stage import ANA, BEN, CANARY_WATCH_S, StageError
from sandbox.telling import Telling

ORDER = "decode-only"
UNABLE = "decode@gpu2"  # the one whose host cannot start the good release at first
UNABLE_KIND = "dead-on-good"
BY_HAND = "decode@gpu3"
SENDERS, TOKENS = 3, 8  # short requests, so that a drain is short
SHOWN_S = 15.0


class Rolling(Telling):
    """Plays a deploy over replicas that fails in its second wave, the same that succeeds, and a mixed fleet."""

    TITLE: ClassVar[str] = "three replicas get a release in waves; one host cannot start it, and all go back"
    NAMES: ClassVar[tuple[str, ...]] = (
        "plan-in-waves",
        "canary-first",
        "second-wave-failed",
        "third-untouched",
        "undone-exactly",
        "capacity-kept",
        "no-request-cut",
        "told-where",
        "rolled-exactly",
        "rolled-in-waves",
        "capacity-kept-again",
        "no-request-cut-again",
        "mixed-told",
        "registered",
        "canary",
        "concluded",
        "audit-clean",
        "calls-accepted",
    )

    def __post_init__(self) -> None:
        """Give the story its judges."""
        super().__post_init__()
        self.replicas = ReplicaJudge(self.stage)
        self.judge = Judge(self.stage)
        self.audit = AuditJudge(self.stage)
        self._first = ""  # the version that runs at first

    def scenes(self) -> tuple[Callable[[], None], ...]:
        """What is played, in order."""
        return self._fails, self._goes_through, self._mixed

    # scene 1
    def _fails(self) -> None:
        fleet, judge = self.stage.demo_fleet, self.replicas
        self._first = fleet.releases.first
        self.tell(f"\n1. {DEPLOYED} on three hosts gets {GOOD}, which gpu2 cannot start: its driver is too old")
        fleet.misbehave(UNABLE, UNABLE_KIND)
        before = judge.counts()
        with self._traffic() as load:
            change = self.types(ANA, f"/deploy {DEPLOYED} {GOOD} via {ORDER}")
            card = self.eyes.card(change)
            text = self.eyes.text(card)
            for line in text.splitlines():
                self.tell(f"  | {line}")
            self.judged("plan-in-waves", lambda: judge.shown(text, PLAN))
            self.pause("confirm")
            self.clicks(BEN, card, ORDER)
            state = self.eyes.ended(change, self.longest_s((DEPLOYED,) * 3), lambda: self.eyes.asks_nothing(change))
            sent = load.stop()
        self.tell(f"  {change} is {state.replace('_', ' ')}")
        away = judge.away(before)
        self.judged("canary-first", lambda: judge.canary_first(away, CANARY_WATCH_S))
        self.judged("second-wave-failed", lambda: self._failed_there(before))
        self.judged("third-untouched", lambda: self._untouched(before))
        self.judged("undone-exactly", lambda: judge.exact(dict.fromkeys(judge.instances, self._first)))
        self.judged("capacity-kept", lambda: kept(away))
        self.judged("no-request-cut", lambda: judge.uncut(before, sent))
        self.judged("told-where", lambda: self._told_where(change))
        self.pause("again")

    def _failed_there(self, before: dict[str, int]) -> Verdict:
        """The host's own log says that the release ended there, and its old one answers again."""
        log = self.stage.demo_fleet.log(UNABLE).read_text(encoding="utf-8")
        tries = log.count(f"version {GOOD} needs a newer driver")
        lives = self.replicas.lives(UNABLE)[before[UNABLE] :]
        told = f"{UNABLE} tried {GOOD} {tries} times and ended each time; then {len(lives)} life of the old release"
        return tries > 0 and len(lives) == 1 and lives[0].answered is not None, told

    def _untouched(self, before: dict[str, int]) -> Verdict:
        """The replica of the third wave has the process that it had."""
        last = self.replicas.instances[-1]
        known = self.replicas.lives(last)
        same = len(known) == before[last] and known[-1].told_to_stop is None
        return same, f"{last} {'still runs' if same else 'does not run'} as pid {known[-1].pid}"

    def _told_where(self, change: str) -> Verdict:
        """Thread and card name the replica that failed and never call the change done."""
        said = "\n".join(line.text for line in self.eyes.thread(change))
        text = f"{said}\n{self.eyes.text(self.eyes.message(change) or {})}"
        ok, told = self.replicas.shown(
            text, {"where it failed": UNABLE, "that it was undone": "undone|rolled back|back on"}
        )
        claimed = "done in" in text
        return ok and not claimed, f"{told}{'; it is called done' if claimed else ''}"

    # scene 2
    def _goes_through(self) -> None:
        fleet, judge = self.stage.demo_fleet, self.replicas
        self.tell("\n2. somebody puts gpu2 right, and the same release is asked for again")
        fleet.behave(UNABLE)
        before = judge.counts()
        with self._traffic() as load:
            change = self.types(ANA, f"/deploy {DEPLOYED} {GOOD} via {ORDER}")
            self.clicks(BEN, self.eyes.card(change), ORDER)
            state = self.eyes.ended(change, self.longest_s((DEPLOYED,) * 3), lambda: self.eyes.asks_nothing(change))
            sent = load.stop()
        self.tell(f"  {change} is {state.replace('_', ' ')}")
        away = judge.away(before)
        self.judged("rolled-exactly", lambda: judge.exact(dict.fromkeys(judge.instances, GOOD)))
        self.judged("rolled-in-waves", lambda: judge.canary_first(away, CANARY_WATCH_S))
        self.judged("capacity-kept-again", lambda: kept(away))
        self.judged("no-request-cut-again", lambda: judge.uncut(before, sent))
        self.judged("concluded", lambda: self.judge.concluded(change))
        if state != "succeeded":
            raise StageError(f"the deploy of a good release ended as {state.replace('_', ' ')}")

    # scene 3
    def _mixed(self) -> None:
        self.tell(f"\n3. somebody takes {BY_HAND} back by hand, and {DEPLOYED} is mixed")
        host = self.stage.demo_fleet.host(BY_HAND)
        host.releases.point(self._first)
        host.manager.systemctl("restart", unit_name(DEPLOYED))
        self.stage.demo_fleet.wait_healthy()
        change = self.types(ANA, f"/deploy {DEPLOYED} {GOOD} via {ORDER} dry")
        self.eyes.until(lambda: "mixed" in self._card(change), SHOWN_S)
        text = self._card(change)
        for line in text.splitlines():
            self.tell(f"  | {line}")
        wanted = {"that it is mixed": "mixed", "the odd one": BY_HAND, "its version": self._first, "the others'": GOOD}
        self.judged("mixed-told", lambda: self.replicas.shown(text, wanted))

    def _card(self, change: str) -> str:
        return self.eyes.text(self.eyes.message(change) or {})

    def world(self) -> None:
        """Judge what can be seen in any case."""
        self.tell("\n4. what can be seen in the end")
        for name, look in (
            ("registered", self.replicas.registered),
            ("canary", self.replicas.generation),
            ("audit-clean", self.audit.audit_clean),
            ("calls-accepted", self.judge.calls_accepted),
        ):
            self.judged(name, look)

    def _traffic(self) -> Load:
        return Load(self.stage.demo_fleet.url("router"), SENDERS, TOKENS)


PLAN = {
    "three waves": r"wave 1 of 3|3 waves",
    "the canary and that it is watched": r"canary decode@gpu1, watched",
    "the second and the third": r"decode@gpu2[\s\S]*decode@gpu3",
    "how many stay in service": r"at least 2 of 3",
    "the drain at the router": r"taken out at router@gpu1 first",
    "the undo": r"undo",
}
