"""The proof ladder: how far "live" is proven for one instance."""

from __future__ import annotations

from typing import Literal

from policies.facts import ProcessEnv
from policies.finding import Finding
from policies.model import Model

Rung = Literal["none", "configured", "effective", "environment", "reported", "behaviour"]


class Proof(Model):
    """What is proven about one variable of one instance. `wanted` None: the variable shall be absent."""

    instance: str
    variable: str
    wanted: str | None
    verdict: Literal["live", "not_live", "mixed", "unproven"]
    rung: Rung  # the highest rung reached without a gap
    processes: tuple[ProcessEnv, ...] = ()
    reported: str | None = None
    findings: tuple[Finding, ...] = ()
