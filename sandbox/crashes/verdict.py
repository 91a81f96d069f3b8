"""What became of a struck change, beside one that was left in peace. Judged by clocks, kernel, host and workspace."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from sandbox.crashes.moments import Json, moment
from sandbox.crashes.play import Cell, Played, Player
from sandbox.fleet.document import KNOB_ENV
from sandbox.fleet.units import unit_name
from sandbox.judge import chain_problems
from sandbox.kernel import environ_of
from sandbox.stage import KNOB_VALUE, ROLES

# what a takeover may add to what an undisturbed run records
MORE = frozenset({"started resumed", "unknown"})


@dataclass(frozen=True, slots=True)
class Peace:
    """An undisturbed run: its moments in order, and those that have a line or card in the channel."""

    moments: tuple[str, ...]
    lined: frozenset[str]


@dataclass(slots=True)
class Outcome:
    """Problems by kind, in words, and the times. Units: seconds; None where nobody had to take over."""

    cell: Cell
    word: str
    struck: bool
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    takeover_s: float | None = None
    took_s: float = 0.0

    @classmethod
    def of(cls, told: Json) -> Outcome:
        """One that was written down."""
        return cls(**{**told, "cell": Cell(**told["cell"])})

    @property
    def good(self) -> bool:
        """Nothing was lost, done twice or claimed falsely."""
        return not (self.lost or self.doubled or self.false)


def peace(player: Player, played: Played) -> Peace:
    """What an undisturbed run looks like."""
    names = {entry["seq"]: moment(entry["event"]) for entry in played.entries}
    lined = frozenset(names[int(str(line["seq"]))] for line in player.lines(played.change))
    return Peace(tuple(names.values()), lined)


def judge(player: Player, played: Played, cell: Cell, calm: Peace) -> Outcome:
    """Compare with the undisturbed run."""
    outcome = Outcome(cell, played.word, struck=played.struck_at is not None, took_s=played.took_s)
    if played.problem:
        outcome.lost.append(played.problem)
    _ledger(player, played, calm, outcome)
    if played.change:
        _thread(player, played, calm, outcome)
        _hosts(player, played, outcome)
        _claims(player, played, outcome)
    outcome.takeover_s = _takeover(played, cell)
    return outcome


def _ledger(player: Player, played: Played, calm: Peace, outcome: Outcome) -> None:
    found = Counter(moment(entry["event"]) for entry in played.entries)
    wanted = Counter(calm.moments)
    outcome.lost += [f"not recorded: {name}" for name in wanted if not found[name]]
    outcome.doubled += [f"recorded {n} times: {name}" for name, n in found.items() if name in wanted and n > 1]
    strange = [name for name in found if name not in wanted and name not in MORE]
    outcome.false += [f"recorded beside what an undisturbed run records: {name}" for name in strange]
    outcome.doubled += [f"recorded by one that woke up late: {name}" for name in played.after_end]
    outcome.false += chain_problems(player.rig.watch.everything())[:3]


def _thread(player: Player, played: Played, calm: Peace, outcome: Outcome) -> None:
    entries = {entry["seq"]: entry for entry in played.entries}
    drawn = [int(str(line["seq"])) for line in player.lines(played.change)]
    for seq, times in Counter(drawn).items():
        if times > 1:
            outcome.doubled.append(f"drawn {times} times: entry {seq}")
    if drawn != sorted(drawn):
        outcome.false.append(f"lines stand in the order {drawn}")
    for line in player.lines(played.change):
        entry = entries.get(int(str(line["seq"])))
        if entry is None or entry["hash"] != line["hash"]:
            outcome.false.append(f"a line draws entry {line['seq']}, which the ledger does not have like that")
    for seq, entry in entries.items():
        if moment(entry["event"]) in calm.lined and seq not in drawn:
            outcome.lost.append(f"no line: {moment(entry['event'])}")
    ok, told = player.judge.concluded(played.change)
    if not ok:
        outcome.lost.append(told)


def _hosts(player: Player, played: Played, outcome: Outcome) -> None:
    if played.began is None:
        return
    for role in ROLES:
        known = player.judge.lives(role)
        count = played.began.counts[role]
        old, new = known[count - 1], known[count:]
        if len(new) > 1:
            outcome.doubled.append(f"{role} was started {len(new)} times")
        if not new:
            outcome.lost.append(f"{role} was not restarted")
        elif old.told_to_stop is None:
            outcome.false.append(f"{role}'s process {old.pid} ended without being told to stop")
        issued = [r for r in records(player, role) if r["change"] == played.change and r["verb"] == "restart"]
        if len({r["token"] for r in issued if r["phase"] == "issued"}) > 1:
            outcome.doubled.append(f"the host restarted {role} under {len(issued)} tokens")


def records(player: Player, role: str) -> list[Json]:
    """What the host itself keeps about acts on a service."""
    host = player.rig.demo_fleet.host(role).manager
    path = host.home / ".local" / "state" / "clawback" / f"{unit_name(role)}.json"
    found: list[Json] = json.loads(path.read_text(encoding="utf-8"))["records"] if path.exists() else []
    return found


def _claims(player: Player, played: Played, outcome: Outcome) -> None:
    """Nobody is called healthy before its own clock says so, and a success is one for the kernel too."""
    for entry in played.entries:
        event = entry["event"]
        if event["kind"] == "gate_passed" and event["gate"] == "health":
            role = str(event["instance"]).split("@")[0]
            life = player.judge.lives(role)[-1]
            if life.answered is None or entry["at"] < life.answered:
                outcome.false.append(f"{role} was called healthy before its own clock says so")
            if (event.get("incarnation") or {}).get("main_pid") != life.pid:
                outcome.false.append(f"{role} was called healthy with a process other than {life.pid}")
    if played.entries and played.entries[-1]["event"]["kind"] == "succeeded":
        wanted = KNOB_VALUE if played.word == "restore" else None
        pid = player.judge.pid("decode")
        value = environ_of(pid, KNOB_ENV) if pid else "no process"
        if value != wanted or player.judge.lives("decode")[-1].pid != pid:
            outcome.false.append(f"said to be done, and decode pid {pid} has {KNOB_ENV}={value}, expected {wanted}")


def _takeover(played: Played, cell: Cell) -> float | None:
    """From the strike to the first word of whoever goes on."""
    if played.struck_at is None or cell.fault not in {"act", "stop", "root", "valkey", "away"}:
        return None
    for entry in played.entries:
        if moment(entry["event"]) == "started resumed" and entry["at"] > played.struck_at:
            return round(float(entry["at"]) - played.struck_at, 2)
    return None
