"""Errors on the way to a host, or of our own, as findings that can be recorded and told."""

from __future__ import annotations

from policies.errors import HostAnswerLost, HostKeyRefused, HostRefused, HostUnreachable, OpsError
from policies.finding import Finding


def about_host(error: OpsError) -> bool:
    """The host could not be asked, said no, or gave what is no answer; everything else is about us."""
    return type(error) is OpsError or isinstance(error, (HostUnreachable, HostAnswerLost, HostRefused))


def host_finding(error: OpsError) -> Finding:
    """What could not be asked, as a finding: an unknown or changed key is told apart from a host that is away."""
    code = "host.bad-answer"
    if isinstance(error, HostKeyRefused):
        code = "host.key-refused"
    elif isinstance(error, HostUnreachable):
        code = "host.unreachable"
    elif isinstance(error, HostAnswerLost):
        code = "host.answer-lost"
    elif isinstance(error, HostRefused):
        code = "host.refused"
    return Finding(code=code, effect="refuse", values={"error": error.message, "hint": error.hint})


def no_plan(error: OpsError) -> Finding:
    """Why no plan could be made: a host's doing, or something of ours that is missing or wrong."""
    if about_host(error):
        return host_finding(error)
    return Finding(code="plan.not-made", effect="refuse", values={"error": error.message, "hint": error.hint})
