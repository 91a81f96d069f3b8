"""The acts of a deploy on a host: switch the link, run the command, take old releases away; each done once."""

from __future__ import annotations

import time

from policies import events as e
from policies.errors import HostRefused
from policies.finding import Finding
from policies.plan import CommandStep, PruneStep, SwitchStep
from workers.executors.releases import Act, Ran, VersionedHost
from workers.executors.systemd import SystemdHost

Values = dict[str, str | int | float | None]


class CommandFailed(Exception):  # not an error of ours: a person has to decide, and `finding` says about what
    """The declared command did not end well."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.code)
        self.finding = finding


def act(
    step: SwitchStep | CommandStep | PruneStep, part: e.Part, index: int, host: SystemdHost, who: Act, first: int
) -> e.StepDone:
    """Do one of them. first: the change's first token on this instance.

    Raises: HostUnreachable, HostRefused, HostAnswerLost, CommandFailed.
    """
    at = VersionedHost(host)
    if isinstance(step, SwitchStep):
        switched = _switch(step, part, at, who, host, first)
        return _done(step, part, index, switched)
    if isinstance(step, CommandStep):
        ran = at.command(step.unit, step.argv, who, first=first, user=step.user, limit_s=step.limit_s)
        if ran.status != 0:
            raise CommandFailed(_failed(step, ran))
        said: Values = {"lines": "; ".join(ran.lines) or None, "ref": step.ref}
        return _done(step, part, index, ran.at, Finding(code="deploy.command-said", effect="note", values=said))
    pruned = at.prune(step.unit, step.releases, who, protect=step.protect)
    values: Values = {"removed": ", ".join(pruned.removed) or None, "kept": ", ".join(pruned.kept) or None}
    return _done(step, part, index, pruned.at, Finding(code="deploy.pruned", effect="note", values=values))


def not_pruned(step: PruneStep, index: int, findings: tuple[Finding, ...]) -> e.StepDone:
    """Old releases stay: that is said, and nothing is held for it."""
    told = tuple(finding.model_copy(update={"effect": "note"}) for finding in findings)
    return _done(step, "do", index, time.time(), *told)


def _switch(step: SwitchStep, part: e.Part, at: VersionedHost, who: Act, host: SystemdHost, first: int) -> float:
    """When it was done, by the host's clock.

    An undo meets a link that names neither when the way forward was never gone, or was gone back by somebody already.
    """
    releases, sha = step.releases, step.manifest_sha256
    try:
        return at.switch(step.unit, releases, who, expect=step.before, to=step.to, manifest_sha256=sha).at
    except HostRefused as error:
        if part == "do" or error.code != "link-changed":
            raise
    known = host.fence(step.unit, token=who.token).records
    if not any((r.verb, r.change) == ("switch", who.change) and r.token >= first for r in known):
        return time.time()
    return at.switch(step.unit, releases, who, expect=step.to, to=step.to, manifest_sha256=sha).at


def _failed(step: CommandStep, ran: Ran) -> Finding:
    values: Values = {
        "instance": f"{step.service}@{step.host}",
        "program": step.argv[0],
        "ref": step.ref,
        "how": ran.error or f"it ended with {ran.status}",
        "lines": "; ".join(ran.lines) or None,
    }
    return Finding(code="hold.command-failed", effect="refuse", values=values)


def _done(
    step: SwitchStep | CommandStep | PruneStep, part: e.Part, index: int, at: float, *findings: Finding
) -> e.StepDone:
    instance = f"{step.service}@{step.host}"
    return e.StepDone(part=part, index=index, step=step.kind, instance=instance, host_at=at, findings=findings)
