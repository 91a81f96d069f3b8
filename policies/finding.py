"""Findings: what a rule, a check or a gate has to say, as a stable code and values. The words are in `bot.messages`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from policies.model import Model

Effect = Literal["allow", "needs", "refuse", "warn", "note"]


class Finding(Model):
    """One reason. `code` is `noun.detail` in lower-case and never changes its meaning.

    `values` fills the sentence of that code in `bot.messages`; numbers are rendered there, with their unit.
    """

    code: str
    effect: Effect
    values: dict[str, str | int | float | None] = Field(default_factory=dict)


class Verdict(Model):
    """The answer of a gate or proof. No data is never pass: it is inconclusive, or error when it could not be asked."""

    answer: Literal["pass", "fail", "inconclusive", "error"]
    findings: tuple[Finding, ...] = ()
