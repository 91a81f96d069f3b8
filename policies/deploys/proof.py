"""The proof ladder for a version: named by the files, whole on the disk, run by the process, said by the service.

A version that is only read from a file is what the disk says, and gives no more than that rung.
"""

from __future__ import annotations

from policies.deploys.seen import Seen
from policies.deploys.strategy import CommandLine, DeployEntry, Releases, Strategy
from policies.finding import Finding
from policies.proof import Proof, ProofVerdict, Rung, highest


def prove_version(entry: DeployEntry, seen: Seen, ref: str, wanted: str, value: Proof | None = None) -> Proof:
    """How far it is proven that one instance runs `ref`.

    wanted: what must be read back. value: where the version is a variable, the ladder of that variable.
    live: it was read back, and nothing that was read contradicts. mixed: one thing agrees and another does not.
    """
    said = seen.version
    read = None if said.text is None else said.text == wanted
    process = _process(entry.strategy, seen, ref, value)
    verdict: ProofVerdict = "unproven" if read is None else "live" if read else "not_live"
    if (read and process is False) or (read is False and process):
        verdict = "mixed"
    findings: list[Finding] = []
    if said.text is None:
        values: dict[str, str | int | float | None] = {"source": said.source, "error": said.error}
        findings.append(Finding(code="proof.version-unread", effect="warn", values=values))
    if process is False:
        where = sorted({one.release for one in seen.releases.runs}) if seen.releases is not None else []
        values = {"found": ", ".join(where) or None, "ref": ref}
        findings.append(Finding(code="proof.runs-from-another", effect="warn", values=values))
    on_disk = entry.version.file is not None
    named = None if isinstance(entry.strategy, CommandLine) else seen.now == ref
    if named is False:
        findings.append(Finding(code="proof.named-other", effect="warn", values={"found": seen.now, "ref": ref}))
    whole = seen.of(ref)
    rungs: tuple[tuple[Rung, bool | None], ...] = (
        ("configured", named),
        ("effective", read if on_disk else None if whole is None else whole.whole),
        ("environment" if value is not None else "process", process),
        ("reported", None if on_disk else read),
    )
    return Proof(
        instance=seen.instance,
        variable="version" if value is None else value.variable,
        wanted=wanted,
        verdict=verdict,
        rung=highest(rungs),
        processes=value.processes if value is not None else (),
        reported=said.text,
        findings=tuple(findings),
        of="version",
    )


def _process(strategy: Strategy, seen: Seen, ref: str, value: Proof | None) -> bool | None:
    """Whether the main process runs it; None where no process says anything about it."""
    if value is not None:
        return {"live": True, "not_live": False, "mixed": False}.get(value.verdict)
    if not isinstance(strategy, Releases) or seen.releases is None:
        return None
    stands = {one.release for one in seen.releases.runs if one.main}
    return stands == {ref} if stands else None
