"""What became of a struck change, beside one that was left in peace. Judged by clocks, kernel, host and workspace."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sandbox.audit_judge import chain_problems
from sandbox.crashes.moments import Json, moment
from sandbox.crashes.play import Cell, Played, Player
from sandbox.crashes.stories import VERSIONS, knob_of
from sandbox.fleet.document import KNOB_ENV
from sandbox.fleet.fleet import Engines
from sandbox.fleet.releases import DEPLOYED
from sandbox.fleet.units import unit_name
from sandbox.kernel import environ_of
from sandbox.stage import fetch

# what a takeover may add to what an undisturbed run records
MORE = frozenset({"started resumed", "unknown"})
WANTED = frozenset({"succeeded", "rolled_back"})


@dataclass(frozen=True, slots=True)
class Peace:
    """An undisturbed run: its moments in order, those that have a line or card, and how often each role was started."""

    moments: tuple[str, ...]
    lined: frozenset[str]
    starts: Mapping[str, int]


@dataclass(slots=True)
class Outcome:
    """Problems by kind, in words, and the times.

    Units: seconds; struck_at: epoch seconds. None where nobody had to take over, or nobody was struck.
    """

    cell: Cell
    word: str
    struck: bool
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    takeover_s: float | None = None
    took_s: float = 0.0
    struck_at: float | None = None

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
    counts = played.began.counts if played.began is not None else {}
    starts = {place: len(player.judge.lives(place)) - counts.get(place, 0) for place in player.rig.places}
    return Peace(tuple(names.values()), lined, starts)


def judge(player: Player, played: Played, cell: Cell, calm: Peace) -> Outcome:
    """Compare with the undisturbed run."""
    struck = played.struck_at is not None
    outcome = Outcome(cell, played.word, struck=struck, took_s=played.took_s, struck_at=played.struck_at)
    if played.problem:
        outcome.lost.append(played.problem)
    _ledger(player, played, calm, outcome)
    if played.change:
        _thread(player, played, calm, outcome)
        _hosts(player, played, calm, outcome)
        _claims(player, played, outcome)
        _silence(player, played, cell, outcome)
    outcome.takeover_s = _takeover(played, cell)
    return outcome


def _ledger(player: Player, played: Played, calm: Peace, outcome: Outcome) -> None:
    found = Counter(moment(entry["event"]) for entry in played.entries)
    wanted = Counter(calm.moments)
    outcome.lost += [f"not recorded: {name}" for name in wanted if not found[name]]
    outcome.doubled += [f"recorded {n} times: {name}" for name, n in found.items() if name in wanted and n > 1]
    more = MORE | ({"click_refused"} if played.clicks > 1 else set())  # who clicks again hears that it was done
    strange = [name for name in found if name not in wanted and name not in more]
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


def _hosts(player: Player, played: Played, calm: Peace, outcome: Outcome) -> None:
    if played.began is None:
        return
    for role in player.rig.places:
        known = player.judge.lives(role)[played.began.counts[role] - 1 :]
        started, wanted = len(known) - 1, calm.starts[role]
        if started > wanted:
            outcome.doubled.append(f"{role} was started {started} times, expected {wanted}")
        if started < wanted:
            outcome.lost.append(f"{role} was started {started} times, expected {wanted}")
        cut = [life.pid for life in known[:-1] if life.told_to_stop is None]
        outcome.false += [f"{role}'s process {pid} ended without being told to stop" for pid in cut]
        issued = Counter(
            (record["step"], record["before"]["main_pid"])
            for record in records(player, role)
            if (record["change"], record["verb"], record["phase"]) == (played.change, "restart", "issued")
        )
        outcome.doubled += [f"the host restarted {role} {n} times as {key[0]}" for key, n in issued.items() if n > 1]
        steps = Counter(step for step, _ in issued)
        outcome.doubled += [f"{role} was restarted {n} times as {step}" for step, n in steps.items() if n > 1]


def records(player: Player, role: str) -> list[Json]:
    """What the host itself keeps about acts on a service."""
    host = player.rig.demo_fleet.host(role).manager
    path = host.home / ".local" / "state" / "clawback" / f"{unit_name(role.split('@', maxsplit=1)[0])}.json"
    found: list[Json] = json.loads(path.read_text(encoding="utf-8"))["records"] if path.exists() else []
    return found


def _claims(player: Player, played: Played, outcome: Outcome) -> None:
    """Nobody is called healthy before its own clock says so, and an end is one for the kernel too."""
    for entry in played.entries:
        event = entry["event"]
        if event["kind"] == "gate_passed" and event["gate"] == "health":
            role, pid = player.rig.place(str(event["instance"])), (event.get("incarnation") or {}).get("main_pid")
            if role not in player.rig.places:
                continue
            life = next((life for life in reversed(player.judge.lives(role)) if life.pid == pid), None)
            if life is None or life.answered is None or entry["at"] < life.answered:
                outcome.false.append(f"{role} pid {pid} was called healthy before its own clock says so")
    end = played.entries[-1]["event"]["kind"] if played.entries else ""
    if end in WANTED:
        for place in player.rig.places:
            if place.split("@")[0] == DEPLOYED:
                outcome.false += _value(player, played.word, place, end) + _version(player, played.word, place)


def _value(player: Player, word: str, place: str, end: str) -> list[str]:
    """The variable is in the environment of the process that the engine's own clock knows last, as it should be."""
    wanted = knob_of(word)
    pid = player.judge.pid(place)
    value = environ_of(pid, KNOB_ENV) if pid else "no process"
    if value == wanted and player.judge.lives(place)[-1].pid == pid:
        return []
    return [f"said to be {end}, and {place} pid {pid} has {KNOB_ENV}={value}, expected {wanted}"]


def _version(player: Player, word: str, place: str) -> list[str]:
    """After a deploy: the link names the version and the engine says it; before one: nobody has touched it."""
    ref = VERSIONS.get(word, Engines().version)
    fleet = player.rig.demo_fleet
    _, said = fetch(fleet.url(place, "/server_info"))
    found = (fleet.host(place).releases.names, json.loads(said).get("version"))
    return [] if found == (ref, ref) else [f"{place}'s link names {found[0]}, it says {found[1]}, expected {ref}"]


def _silence(player: Player, played: Played, cell: Cell, outcome: Outcome) -> None:
    """While the store answers nobody, no service is told to stop whose step was not recorded before."""
    if cell.fault != "away" or played.struck_at is None:
        return
    begun = {
        player.rig.place(str(entry["event"]["instance"]))
        for entry in played.entries
        if entry["event"]["kind"] == "step_started" and entry["at"] <= played.struck_at
    }
    for role in player.rig.places:
        for life in player.judge.lives(role):
            at_s = (life.told_to_stop or 0.0) - played.struck_at
            if 0.0 < at_s < player.rig.away_s and role not in begun:
                outcome.false.append(f"{role} was told to stop {at_s:.1f} s after the store fell silent")


def _takeover(played: Played, cell: Cell) -> float | None:
    """From the strike to the first word of whoever goes on."""
    if played.struck_at is None or cell.fault not in {"act", "stop", "root", "valkey", "away"}:
        return None
    for entry in played.entries:
        if moment(entry["event"]) == "started resumed" and entry["at"] > played.struck_at:
            return round(float(entry["at"]) - played.struck_at, 2)
    return None
