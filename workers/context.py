"""Today's context of a knob: asked of hosts in the same look that a plan is made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from policies.applicability import Standing, standing
from policies.case import Case
from policies.context import Context, LoadRange
from policies.facts import UnitFacts
from policies.fleet import Fleet, Knob
from policies.intents import KnobIntent
from policies.today import today as seen_today
from policies.today import variables
from workers.executors.answers import LogAsk
from workers.hosts import Hosts

LOG_LINES = 200  # an engine says in its log when it does not know a variable
MOST_STANDINGS = 8
GIVES = frozenset({"set", "restore"})  # what gives a value, so that evidence is asked for


def look(hosts: Hosts, fleet: Fleet, knob: Knob, intent: KnobIntent, instances: list[str]) -> dict[str, UnitFacts]:
    """One look at these instances that tells a plan and today's context.

    Raises: HostUnreachable, HostAnswerLost.
    """
    log = LogAsk(LOG_LINES) if intent.kind in GIVES else None
    return hosts.observe(instances, variables(fleet, knob), log=log, context=True).units


def today(fleet: Fleet, knob: Knob, units: Mapping[str, UnitFacts], load: LoadRange | None = None) -> Context:
    """What runs now. load: requests that ran when the change was planned; None: as many as run now."""
    return seen_today(fleet, knob, units, load)


def standings(case: Case, today: Context) -> dict[str, Standing]:
    """What every record of the case is worth today, by id. Rules that want newer ones than others say so themselves."""
    ages = [rule.evidence.max_age_s for rule in case.matching if rule.evidence is not None and rule.evidence.max_age_s]
    variable = case.knob.env if case.knob is not None else "the knob"
    found = (
        standing(record, today, case.now, max_age_s=max(ages, default=None), variable=variable)
        for record in case.evidence
    )
    return {one.record: one for one in found}


def told(case: Case, values: Iterable[str | None]) -> tuple[Standing, ...]:
    """The standings of the newest records of these values, for those who read the plan."""
    wanted = set(values) - {None}
    records = sorted((r for r in case.evidence if r.value in wanted), key=lambda r: r.at, reverse=True)
    return tuple(case.standings[r.id] for r in records[:MOST_STANDINGS] if r.id in case.standings)
