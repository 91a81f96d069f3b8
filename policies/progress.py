"""How far one part of a change has come."""

from __future__ import annotations

from dataclasses import dataclass

from policies.facts import Incarnation


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one part (do or undo) has come. Indices are into plan.steps or plan.undo."""

    started: int | None = None  # started, not done
    done: tuple[int, ...] = ()
    gates: tuple[tuple[int, str], ...] = ()  # passed, since the step was done
    issued: tuple[tuple[int, float], ...] = ()  # host clock of each step done
    replaced: tuple[tuple[int, Incarnation], ...] = ()  # incarnation that each restart replaced

    def issued_at(self, index: int) -> float | None:
        """When a step was done, by its host's clock; None while it is not."""
        return dict(self.issued).get(index)

    def before(self, index: int) -> Incarnation | None:
        """The incarnation that a restart replaced, where its host said so."""
        return dict(self.replaced).get(index)
