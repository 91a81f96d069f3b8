"""A reading that a sentence stands on: what was asked, what came back, when, and of whom."""

from __future__ import annotations

from policies.metrics.measured import Measured, Reading
from policies.model import Model


class Citation(Model):
    """One reading. `most` and `beyond` as in `Reading`: known only in part.

    Units: time is epoch seconds; value has `unit`.
    """

    query: str
    value: float
    unit: str
    time: float
    source: str
    name: str = ""  # of the fleet file's metric, or of an engine's reading; empty for a free query
    most: float | None = None
    beyond: bool = False


def cited(measured: Measured, reading: Reading) -> Citation:
    """The citation of one reading of a query."""
    return Citation(
        query=measured.query,
        value=reading.value,
        unit=measured.unit,
        time=reading.at,
        source=measured.source,
        name=measured.name if measured.name != measured.query else "",
        most=reading.most,
        beyond=reading.beyond,
    )
