"""A file of policy cases -> trials with what is expected of them, or every error with its line.

fleet: fleet.yaml
cases:
  - name: an engineer gives back what was measured
    change: /knob restore TARGET_CTAS=512
    actor: {id: U01, roles: [engineers]}
    live: unset
    history: [{was: unset, now: 512}, {was: 512, now: unset, word: revert}]
    evidence: [{value: 512, class: observed, age: 2d}]
    now: 2026-12-01T10:00:00Z
    expect: {decision: needs_approval, approvals: 1, by: approvers, codes: [evidence.enough]}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import yaml

from policies.events import Succeeded
from policies.fleet import Fleet
from policies.fleet_checks.nodes import compose
from policies.fleet_checks.problems import FleetError, Problems, quote
from policies.fleet_checks.table import Table
from policies.fleet_checks.values import Form, Reader
from policies.intents import Actor, Intent, KnobIntent, Restart
from policies.trials.evidence import KEYS, read_holds, read_record
from policies.trials.trial import Outcome, Ruling, Trial

CASE_KEYS = ("name", "change", "actor", "live", "history", "evidence", "now", "expect")
OUTCOMES: tuple[Outcome, ...] = ("allowed", "needs_approval", "refused")
WORDS = ("set", "restore", "revert", "unset")
CODE = Form(r"[a-z]+\.[a-z0-9.-]+", "code.form", "the code of a finding", "write e.g. codes: [evidence.none]")
USER = Form(r"[A-Za-z0-9_.-]{1,64}", "actor.id", "a user id", "write e.g. id: U01ANA")
ROLE = Form(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", "actor.role", "the name of a role", "write e.g. roles: [engineers]")
# what a text of the chat was read as, or why it was not read
Read = Callable[[str], Intent | str]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a case expects. approvals and by: None where the case does not say. codes: all of them must be told."""

    outcome: Outcome
    approvals: int | None
    by: str | None
    codes: tuple[str, ...]

    def fits(self, got: Ruling) -> bool:
        """Whether a ruling is as expected."""
        told = {finding.code for finding in got.findings}
        return (
            self.outcome == got.outcome
            and self.approvals in {None, got.approvals}
            and self.by in {None, got.by}
            and told.issuperset(self.codes)
        )


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """One case of the file."""

    name: str
    line: int
    trial: Trial
    expected: Expected


def named_fleet(text: str, file: str) -> tuple[str | None, tuple[FleetError, ...]]:
    """The fleet file that a case file names, or None."""
    problems = Problems(file)
    root = compose(text, problems)
    if root is None:
        return None, problems.sorted()
    fleet = Table(Reader(problems), (), root, ("fleet", "cases")).text("fleet")
    return fleet or None, problems.sorted()


def read_cases(
    text: str, file: str, fleet: Fleet, read: Read, now: float
) -> tuple[tuple[PolicyCase, ...], tuple[FleetError, ...]]:
    """The cases, or the errors. read: a text of the chat -> an intent, or why not. now: where a case says nothing."""
    problems = Problems(file)
    root = compose(text, problems)
    if root is None:
        return (), problems.sorted()
    reader = Reader(problems)
    top = Table(reader, (), root, ("fleet", "cases"))
    top.need("cases", "cases: with one case or more")
    node = top.nodes.get("cases")
    items = reader.items(top.at("cases"), node) if node is not None else []
    if node is not None and not items:
        problems.add(top.at("cases"), "list.empty", "no cases, expected one or more", "add one below `cases:`")
    found = [
        _case(Table(reader, (*top.at("cases"), number), item, CASE_KEYS), fleet, read, now)
        for number, item in enumerate(items)
    ]
    return (() if problems.errors else tuple(found)), problems.sorted()


def _case(table: Table, fleet: Fleet, read: Read, now: float) -> PolicyCase:
    for key, example in (("name", "name: what it shows"), ("change", "change: /knob set X=1"), ("expect", "expect:")):
        table.need(key, example)
    intent = _intent(table, read)
    at = _moment(table, now)
    knob = intent.knob if isinstance(intent, KnobIntent) else None
    here = fleet.knobs.get(knob or "")
    instances = tuple(i for service in (here.on if here else ()) for i in fleet.instances(service))
    entries = _tables(table, "evidence")
    records = tuple(read_record(entry, knob or "", at, number) for number, entry in enumerate(entries, start=1))
    trial = Trial(
        intent=intent,
        actor=_actor(table, fleet),
        now=at,
        live=_live(table, instances),
        history=_history(table, knob or "", instances),
        evidence=records,
        holds={record.id: read_holds(entry) for record, entry in zip(records, entries, strict=True)},
    )
    return PolicyCase(table.text("name") or "", table.line, trial, _expected(table))


def _intent(table: Table, read: Read) -> Intent:
    nothing = Restart(scope="-")
    text = table.text("change")
    if not text:
        return nothing
    found = read(text)
    if not isinstance(found, str):
        return found
    table.reader.problems.add(table.at("change"), "case.change", found, "write it as in chat: /knob set NAME=VALUE")
    return nothing


def _actor(table: Table, fleet: Fleet) -> Actor:
    """Roles as the case says, else those in which the fleet file lists the user."""
    given = table.table("actor", ("id", "roles"))
    user = (given.matching("id", USER) if given else None) or "U0"
    listed = tuple(role.name for role in fleet.roles.values() if user in role.users)
    node = given.nodes.get("roles") if given else None
    nobody = isinstance(node, yaml.SequenceNode) and not node.value  # `roles: []` says so
    roles = () if nobody else given.texts("roles", ROLE) if given and node is not None else listed
    for name in roles:
        if given is not None and name not in fleet.roles:
            table.reader.problems.unknown(given.at("roles"), "actor.role", "role", name, fleet.roles)
    return Actor(id=user, roles=roles)


def _moment(table: Table, now: float) -> float:
    node = table.nodes.get("now")
    if node is None:
        return now
    text = table.reader.text(table.at("now"), node, raw=True)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = "write e.g. now: 2026-12-01T10:00:00Z"
        table.reader.problems.add(table.at("now"), "case.now", f"{quote(text)} is no moment, expected ISO 8601", hint)
        return now
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _live(table: Table, instances: tuple[str, ...]) -> dict[str, str | None]:
    """One value for all, or one for each instance."""
    node = table.nodes.get("live")
    if not isinstance(node, yaml.MappingNode):
        return dict.fromkeys(instances, _value(table, "live") if node is not None else None)
    found: dict[str, str | None] = {}
    for key, value in node.value:
        name = str(key.value)
        if name not in instances:
            table.reader.problems.unknown(table.at("live"), "case.live", "place of this knob", name, instances)
        found[name] = _plain(table.reader.text((*table.at("live"), name), value, raw=True))
    return {instance: found.get(instance) for instance in instances}


def _history(table: Table, knob: str, instances: tuple[str, ...]) -> tuple[Succeeded, ...]:
    return tuple(
        Succeeded(
            knob=knob,
            order="",
            word=entry.word("word", WORDS, "case.word") or "set",
            was=dict.fromkeys(instances, _value(entry, "was")),
            now=dict.fromkeys(instances, _value(entry, "now")),
            took_s=0.0,
        )
        for entry in _tables(table, "history", ("was", "now", "word"))
    )


def _expected(table: Table) -> Expected:
    given = table.table("expect", ("decision", "approvals", "by", "codes"))
    if given is None:
        return Expected("refused", None, None, ())
    given.need("decision", f"decision: {OUTCOMES[1]}")
    return Expected(
        outcome=given.word("decision", OUTCOMES, "case.decision") or "refused",
        approvals=given.whole("approvals", 0, 99, 0) if "approvals" in given else None,
        by=given.name("by"),
        codes=given.texts("codes", CODE),
    )


def _tables(table: Table, key: str, known: tuple[str, ...] | None = None) -> list[Table]:
    node = table.nodes.get(key)
    items = table.reader.items(table.at(key), node) if node is not None else []
    return [Table(table.reader, (*table.at(key), i), item, known or KEYS) for i, item in enumerate(items)]


def _value(table: Table, key: str) -> str | None:
    if key not in table:
        return None
    return _plain(table.reader.text(table.at(key), table.nodes[key], raw=True))


def _plain(text: str) -> str | None:
    return None if text == "unset" else text
