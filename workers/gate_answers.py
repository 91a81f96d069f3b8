"""What a gate answers, and the answers that are not its own: the host was not heard, or the life has ended since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from policies.errors import OpsError
from policies.events import GatePassed
from policies.facts import Incarnation, UnitFacts
from policies.finding import Finding, Verdict
from policies.gates import failed
from policies.plan import GateKind
from policies.probe import Probe


@dataclass(frozen=True, slots=True)
class Answer:
    """What one gate said. `waited_s` and `host_at` (readiness) are by the host's own clock.

    restarts_shown: systemd's own count of automatic restarts then, with those from before our restart.
    """

    gate: GateKind
    verdict: Verdict
    incarnation: Incarnation | None = None
    waited_s: float | None = None
    host_at: float | None = None
    restarts_shown: int | None = None

    def passed(self, common: Mapping[str, object], probe: Probe | None) -> GatePassed:
        """The event of a gate that passed. common: part, index, instance and gate; probe: of a canary."""
        readings = {"incarnation": self.incarnation, "waited_s": self.waited_s, "host_at": self.host_at}
        return GatePassed.model_validate({**common, "verdict": self.verdict, **readings, "probe": probe})


def not_asked(host: str, error: OpsError) -> Finding:
    """A gate's host did not answer."""
    values: dict[str, str | int | float | None] = {"host": host, "error": error.message}
    return Finding(code="gate.host-not-answering", effect="refuse", values=values)


def ended_since(instance: str, life: Answer, facts: UnitFacts) -> Verdict:
    """The life that was well has ended between two gates: by itself, or because somebody restarted the unit."""
    seen = life.verdict.findings[0].values
    values = {**seen, "instance": instance, "old_pid": seen["new_pid"], "new_pid": facts.incarnation.main_pid}
    values |= {"state": f"{facts.active_state} ({facts.sub_state})", "restarts": facts.n_restarts}
    if facts.incarnation.main_pid == 0:
        return failed("gate.incarnation.no-process", values)
    counted = seen["restarts"] if life.restarts_shown is None else life.restarts_shown
    if facts.n_restarts is not None and isinstance(counted, int) and facts.n_restarts > counted:
        return failed("gate.incarnation.crash-loop", values)
    return failed("gate.incarnation.other", values)
