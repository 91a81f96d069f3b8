"""What each replica of a service has, as one look read it: a value or a version, never what was planned.

Instances are told one by one. Nothing is averaged, and what could not be read is said and is no agreement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from policies.facts import UnitFacts
from policies.model import Model
from policies.plan import Plan

Word = Literal["has", "unset", "down", "unknown"]


class Stand(Model):
    """One instance. value: only with `has`. why: only with `unknown`. down: nothing runs there."""

    instance: str
    word: Word
    value: str | None = None
    why: str | None = None


class Standing(Model):
    """One look at the replicas of the services whose value or version a change is about. at: epoch seconds."""

    of: Literal["value", "version"]
    at: float
    stands: tuple[Stand, ...]

    @property
    def mixed(self) -> bool:
        """Instances that could be read differ."""
        return len({(one.word, one.value) for one in self.stands if one.word != "unknown"}) > 1

    @property
    def unsure(self) -> bool:
        """Some could not be read, so that nobody can say that all are alike."""
        return any(one.word == "unknown" for one in self.stands)


def value_of(instance: str, unit: UnitFacts, variable: str) -> Stand:
    """The value of a variable in the main process of an instance."""
    if unit.incarnation.main_pid == 0:
        return Stand(instance=instance, word="down")
    main = next((p for p in unit.processes if p.main and p.variable == variable), None)
    if main is None or main.answer not in {"present", "absent"}:
        why = "no process told it" if main is None else f"its environment is {main.answer}"
        return Stand(instance=instance, word="unknown", why=why)
    if main.answer == "absent":
        return Stand(instance=instance, word="unset")
    return Stand(instance=instance, word="has", value=main.value)


def differing(plan: Plan, standing: Standing) -> tuple[Stand, ...]:
    """Instances that were to have something else than they have; those that could not be read are left to the proof."""
    aims: Mapping[str, str | None] = {t.instance: t.then for t in plan.targets}
    if plan.deploy is not None:
        aims = {v.instance: v.then for v in plan.deploy.versions}
    return tuple(
        one
        for one in standing.stands
        if one.word != "unknown"
        and one.instance in aims
        and (one.word == "down" or (one.value if one.word == "has" else None) != aims[one.instance])
    )


def spread(standing: Standing) -> tuple[tuple[Stand, tuple[str, ...]], ...]:
    """Instances by what they have, in order of the first: one of them, and all of them by name."""
    found: dict[tuple[Word, str | None, str | None], list[Stand]] = {}
    for one in standing.stands:
        found.setdefault((one.word, one.value, one.why), []).append(one)
    return tuple((group[0], tuple(one.instance for one in group)) for group in found.values())
