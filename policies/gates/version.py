"""Is the running version, as it is read back, the wanted one?"""

from __future__ import annotations

from policies.deploys.seen import VersionSeen
from policies.finding import Verdict
from policies.gates import Values, failed, passed, undecided


def judge(instance: str, seen: VersionSeen, wanted: str) -> Verdict:
    """Pass when exactly `wanted` was read. Nothing read is no pass and no failure."""
    values: Values = {"instance": instance, "version": seen.text, "wanted": wanted, "source": seen.source}
    if seen.text is None:
        return undecided("gate.version.not-read", {**values, "error": seen.error})
    if seen.text != wanted:
        return failed("gate.version.differs", values)
    return passed("gate.version.same", values)
