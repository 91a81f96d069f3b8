"""Metrics, causes, rules, freezes and timing of a fleet file."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal
from zoneinfo import available_timezones

import yaml
from croniter import CroniterBadDateError, croniter

from policies.fleet import CauseEntry, EvidenceNeed, Freeze, Match, MetricQuery, Rule, Timing
from policies.fleet_checks.problems import quote, suggestion
from policies.fleet_checks.table import Table
from policies.fleet_checks.tickets import read_ticket
from policies.fleet_checks.values import Form

metric_form = Form(
    r"[A-Za-z_][A-Za-z0-9_]{0,63}",
    "name.form",
    "letters, digits and '_', at most 64, not beginning with a digit",
    "write e.g. queue_reqs or output_throughput",
)
kinds: tuple[Literal["knob", "deploy", "restart"], ...] = ("knob", "deploy", "restart")
intents: tuple[Literal["set", "restore", "revert", "unset", "deploy", "rollback", "restart"], ...] = (
    "set",
    "restore",
    "revert",
    "unset",
    "deploy",
    "rollback",
    "restart",
)
grades: tuple[Literal["improves", "no_worse", "weak", "observed"], ...] = (
    "improves",
    "no_worse",
    "weak",
    "observed",
)
levels: tuple[Literal[1, 2, 3], ...] = (1, 2, 3)
most_compared = 1_000_000
rule_keys = ("match", "ask", "approvals", "by", "expires", "evidence", "ticket")
timing_keys = (
    *("approval", "lease", "wait_slice", "poll", "bake", "reach", "review", "scrape", "keep", "watch", "drift"),
    "health_confirmations",
)
# another worker follows a silent one within 15 s: the lease to its end, the next sweep, and the first look at the hosts
lease_most_s = 10.0
lease_least_s = 1.0  # it is renewed three times in it, each time with an append-only server's answer
cron_pattern = r"[0-9A-Za-z*/,#?-]+( +[0-9A-Za-z*/,#?-]+){4}"
cron_words = frozenset(
    (
        *("sun", "mon", "tue", "wed", "thu", "fri", "sat", "l"),
        *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    )
)


def read_metrics(top: Table) -> dict[str, MetricQuery]:
    """`metrics:`."""
    metrics = {}
    for entry in top.named("metrics", "metric", metric_form):
        table = entry.table(top.reader, ("on", "query", "unit"))
        table.need("on", "on: SERVICE")
        table.need("query", 'query: "sum(...)"')
        table.need("unit", "unit: requests")
        metrics[entry.name] = MetricQuery(
            name=entry.name,
            on=table.name("on") or "",
            query=table.text("query") or "",
            unit=table.text("unit") or "",
        )
    return metrics


def read_causes(top: Table) -> dict[str, CauseEntry]:
    """`causes:`. The expressions stay text; `policies.causes` reads them."""
    causes = {}
    for entry in top.named("causes", "cause"):
        table = entry.table(top.reader, ("about", "needs", "refuted_by"))
        table.need("about", 'about: "what a person would read"')
        table.need("needs", "needs: METRIC > 0")
        causes[entry.name] = CauseEntry(
            name=entry.name,
            about=table.text("about") or "",
            needs=table.text("needs") or "",
            refuted_by=table.text("refuted_by"),
        )
    return causes


def read_rules(top: Table) -> tuple[Rule, ...]:
    """`rules:`. The line of each is kept, so that a refusal can name it."""
    if "rules" not in top:
        return ()
    rules = []
    for i, node in enumerate(top.reader.items(top.at("rules"), top.nodes["rules"])):
        table = Table(top.reader, (*top.at("rules"), i), node, rule_keys)
        table.need("match", "match: {kind: knob}")
        match = table.table("match", ("kind", "intent", "knob", "service"))
        rule = Rule(
            match=_match(match) if match is not None else Match(),
            ask=table.name("ask"),
            approvals=table.whole("approvals", 0, 20, 1) if "approvals" in table else None,
            by=table.name("by"),
            expires_s=table.duration("expires", 1800.0, 1.0) if "expires" in table else None,
            evidence=_evidence(table),
            ticket=read_ticket(table),
            line=table.line,
        )
        if rule.approvals and "by" not in table:
            table.reader.problems.add(
                table.at("approvals"),
                "rule.no_by",
                f"{rule.approvals} approvals are asked for and nobody can give them, expected `by`",
                "add by: ROLE",
            )
        if "by" in table and not rule.approvals:
            table.reader.problems.add(
                table.at("by"),
                "rule.no_approvals",
                "`by` says nothing alone, expected `approvals` with it",
                "add approvals: 1",
            )
        if isinstance(node, yaml.MappingNode) and not (set(table.nodes) - {"match", "expires"}):
            table.reader.problems.add(
                table.path,
                "rule.empty",
                "the rule demands nothing, so it would allow what it matches, expected ask, approvals, evidence",
                "add e.g. ask: ROLE",
            )
        rules.append(rule)
    return tuple(rules)


def _match(table: Table) -> Match:
    return Match(
        kind=table.word("kind", kinds, "rule.kind"),
        intent=table.word("intent", intents, "rule.intent"),
        knob=table.name("knob"),
        service=table.name("service"),
    )


def _evidence(rule: Table) -> EvidenceNeed | None:
    table = rule.table("evidence", ("metric", "at_least", "max_age", "repeats", "correctness", "override"))
    if table is None:
        return None
    table.need("metric", "metric: output_throughput")
    table.need("at_least", "at_least: no_worse")
    compared, level = _correctness(table)
    return EvidenceNeed(
        metric=table.matching("metric", metric_form) or "",
        at_least=table.word("at_least", grades, "evidence.at_least") or "improves",
        max_age_s=table.duration("max_age", 90 * 86400.0, 1.0) if "max_age" in table else None,
        repeats=table.whole("repeats", 1, 1000, 1),
        correctness=compared,
        correctness_level=level,
        override=table.name("override"),
    )


def _correctness(evidence: Table) -> tuple[int, Literal[0, 1, 2, 3]]:
    """(compared, level) of `correctness: 200`, or of `correctness: {level: 2, compared: 200}`."""
    if not isinstance(evidence.nodes.get("correctness"), yaml.MappingNode):
        return evidence.whole("correctness", 0, most_compared, 0), 0
    table = evidence.table("correctness", ("level", "compared"))
    if table is None or not table.need("level", "level: 2"):
        return 0, 0
    found = table.whole("level", 1, 3, 1)
    return table.whole("compared", 0, most_compared, 0), next(level for level in levels if level == found)


def read_freezes(top: Table) -> tuple[Freeze, ...]:
    """`freezes:`. Whether one is in force is not judged here: that needs the time."""
    if "freezes" not in top:
        return ()
    freezes: list[Freeze] = []
    for i, node in enumerate(top.reader.items(top.at("freezes"), top.nodes["freezes"])):
        table = Table(top.reader, (*top.at("freezes"), i), node, ("name", "cron", "for", "tz"))
        table.need("name", "name: weekend")
        table.need("cron", 'cron: "0 18 * * FRI"')
        table.need("for", "for: 62h")
        name = table.name("name") or ""
        if name and any(freeze.name == name for freeze in freezes):
            message = f"{quote(name)} names two freezes, expected one"
            table.reader.problems.add(table.at("name"), "name.duplicate", message, "rename one of them")
        zone = table.text("tz")
        if zone and zone not in zones():
            table.reader.problems.add(
                table.at("tz"),
                "freeze.zone",
                f"{quote(zone)} is not a time zone, expected an IANA name such as Europe/Berlin",
                suggestion(zone, sorted(z for z in zones() if z[:1].lower() == zone[:1].lower())),
            )
        freezes.append(
            Freeze(name=name, cron=_cron(table), for_s=table.duration("for", 3600.0, 60.0), tz=zone or "UTC")
        )
    return tuple(freezes)


@lru_cache(maxsize=1)
def zones() -> frozenset[str]:
    """Names of all time zones: the one table that is read from the Python installation, once."""
    return frozenset(available_timezones())


def _cron(table: Table) -> str:
    text = table.text("cron")
    if not text:
        return ""
    hint = 'write minute hour day month weekday, e.g. "0 18 * * FRI"'
    words = {word.lower() for word in re.findall(r"[A-Za-z]+", text)}
    reason = ""
    if not re.fullmatch(cron_pattern, text) or len(text) > 100 or words - cron_words:
        reason = "is not a cron expression"
    else:
        try:
            # any fixed moment does: the question is whether a next one exists at all
            croniter(text, datetime(2024, 1, 1, tzinfo=UTC)).get_next(datetime)
        except CroniterBadDateError:
            reason = "names a moment that never comes"
        except (ValueError, KeyError, TypeError, IndexError):
            reason = "is not a cron expression"
    if reason:
        message = f"{quote(text)} {reason}, expected five fields"
        table.reader.problems.add(table.at("cron"), "freeze.cron", message, hint)
        return ""
    return text


def read_timing(top: Table) -> Timing:
    """`timing:`, every key optional."""
    table = top.table("timing", timing_keys)
    default = Timing()
    if table is None:
        return default
    return Timing(
        approval_s=table.duration("approval", default.approval_s, 1.0),
        lease_s=table.duration("lease", default.lease_s, lease_least_s, lease_most_s),
        wait_slice_s=table.duration("wait_slice", default.wait_slice_s, 0.1),
        poll_s=table.duration("poll", default.poll_s, 0.01),
        bake_s=table.duration("bake", default.bake_s, 0.0),
        health_confirmations=table.whole("health_confirmations", 1, 100, default.health_confirmations),
        reach_s=table.duration("reach", default.reach_s, 0.1),
        scrape_s=table.duration("scrape", default.scrape_s, 1.0),
        drift_s=table.duration("drift", default.drift_s, 1.0),
        watch_s=table.duration("watch", default.watch_s, 1.0),
        keep_s=table.duration("keep", default.keep_s, 60.0),
        review_s=table.duration("review", default.review_s, 1.0),
    )
