"""The proof ladder: how far "live" is proven for one instance.

Values are compared byte for byte: `512  # tuned` is not `512`. A process whose environment cannot be read is never
counted as one that lacks the variable, and configuration alone never gives live.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from policies.facts import ProcessEnv
from policies.finding import Finding
from policies.model import Model
from policies.systemd.effective import Effective
from policies.wrapper import Wrapped, counted

Rung = Literal["none", "configured", "effective", "environment", "process", "reported", "behaviour"]
ProofVerdict = Literal["live", "not_live", "mixed", "unproven"]
Answer = Literal["present", "absent", "unreadable", "forbidden", "vanished"]


class Proof(Model):
    """What is proven about one variable, or the version, of one instance. `wanted` None: it shall be absent."""

    instance: str
    variable: str
    wanted: str | None
    verdict: ProofVerdict
    rung: Rung  # the highest rung reached without a gap; rungs that were not looked at are no gap
    processes: tuple[ProcessEnv, ...] = ()
    reported: str | None = None
    findings: tuple[Finding, ...] = ()
    of: Literal["value", "version"] = "value"


def prove(
    *,
    instance: str,
    variable: str,
    wanted: str | None,
    processes: Iterable[ProcessEnv],
    effective: Effective | str | None,
    configured: bool | None = None,
    reported: str | None = None,
    report_asked: bool = False,
    behaviour: bool | None = None,
    wraps: Wrapped | None = None,
) -> Proof:
    """The proof for one instance.

    `effective`: what the unit would start with, as a value (None: unset) or with the line that decides it.
    `configured`, `behaviour`: None when not looked at. `reported`: what the engine says of itself; None with
    `report_asked` when it does not say. `wraps`: the main process only starts what does the work; its environment
    says nothing then, and in a container no process of the unit does.
    """
    seen = tuple(p for p in processes if p.variable == variable)
    heard = counted(seen, wraps)
    environment = environment_verdict(wanted, heard) if wraps is None else children_verdict(wanted, heard)
    verdict = environment
    findings = _children(wanted, heard)
    if wraps is not None:
        code = "container" if wraps.kind == "container" else "starter"
        findings.append(_finding(code, "warn", program=wraps.program, variable=variable, counted=len(heard)))
    if not seen:
        findings.append(_finding("no-process", "warn"))
    effective_holds, said = _effective(variable, wanted, effective)
    findings += said
    if report_asked and reported is None:
        findings.append(_finding("not-reported", "note", variable=variable))
    elif wanted is not None and reported is not None and reported != wanted:
        findings.append(_finding("reported-other", "warn", variable=variable, value=reported, wanted=wanted))
        verdict = "mixed" if verdict == "live" else verdict
    rungs: tuple[tuple[Rung, bool | None], ...] = (
        ("configured", configured),
        ("effective", effective_holds),
        ("environment", None if environment == "unproven" and wraps is not None else environment == "live"),
        ("reported", None if reported is None or wanted is None else reported == wanted),
        ("behaviour", behaviour),
    )
    return Proof(
        instance=instance,
        variable=variable,
        wanted=wanted,
        verdict=verdict,
        rung=highest(rungs),
        processes=seen,
        reported=reported,
        findings=tuple(findings),
    )


def environment_verdict(wanted: str | None, processes: Sequence[ProcessEnv]) -> ProofVerdict:
    """The environment rung alone, from the answers of the main process and the others about one variable.

    live: the main process agrees and no process that could be read disagrees.
    mixed: some agree and some do not.
    not_live: none agrees, and the main process disagrees or some process has another value.
    unproven: the main process gave no answer, and nothing that was read contradicts.
    """
    readable = [p for p in processes if p.answer in ("present", "absent")]
    agree = [p for p in readable if agrees(p, wanted)]
    disagree = [p for p in readable if not agrees(p, wanted)]
    if agree and disagree:
        return "mixed"
    if disagree:
        # one child that lacks a variable cannot speak for a main process that did not answer
        sure = any(p.main or p.answer == "present" for p in disagree)
        return "not_live" if sure else "unproven"
    return "live" if any(p.main for p in agree) else "unproven"


def children_verdict(wanted: str | None, processes: Sequence[ProcessEnv]) -> ProofVerdict:
    """The environment rung of a unit that only starts others: they alone are asked, and each of them counts."""
    readable = [agrees(p, wanted) for p in processes if p.answer in ("present", "absent")]
    if not readable:
        return "unproven"
    if all(readable):
        return "live"
    return "mixed" if any(readable) else "not_live"


def agrees(process: ProcessEnv, wanted: str | None) -> bool:
    """Whether a process that could be read has exactly what is wanted."""
    return (process.value if process.answer == "present" else None) == wanted


def answer_of(environ: bytes, variable: str) -> tuple[Answer, str | None]:
    """What a /proc/PID/environ says about a variable.

    A process that renames itself writes NULs over this area, perhaps after its title: "unreadable" then.
    """
    values: dict[bytes, bytes] = {}
    for entry in environ.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals:
            values.setdefault(name, value)  # as getenv: the first one counts
    found = values.get(variable.encode("utf-8", "surrogateescape"))
    if found is not None:
        return "present", found.decode("utf-8", "surrogateescape")
    wiped = bool(environ) and (not values or b"\0" * 8 in environ)
    return ("unreadable" if wiped else "absent"), None


def highest(rungs: Iterable[tuple[Rung, bool | None]]) -> Rung:
    """The last rung that holds before the first that does not; None is no gap."""
    reached: Rung = "none"
    for rung, holds in rungs:
        if holds is False:
            break
        reached = rung if holds else reached
    return reached


def _effective(
    variable: str, wanted: str | None, effective: Effective | str | None
) -> tuple[bool | None, list[Finding]]:
    """Whether the next start would have the value (None: not certain), and what to say about it."""
    if not isinstance(effective, Effective):
        values: dict[str, str | int | float | None] = {"variable": variable, "value": effective, "wanted": wanted}
        values["decided_by"] = None
        holds = effective == wanted
        return holds, [] if holds else [Finding(code="proof.effective-other", effect="warn", values=values)]
    place = f"{effective.decided_by.file}:{effective.decided_by.line}" if effective.decided_by else None
    values = {"variable": variable, "value": effective.value, "wanted": wanted, "decided_by": place}
    if not effective.starts:
        return False, [Finding(code="proof.will-not-start", effect="warn", values=values)]
    if not effective.certain:
        return None, [Finding(code="proof.effective-uncertain", effect="warn", values=values)]
    holds = effective.value == wanted
    return holds, [] if holds else [Finding(code="proof.effective-other", effect="warn", values=values)]


def _children(wanted: str | None, processes: Iterable[ProcessEnv]) -> list[Finding]:
    """Each process beside the main one that could be read and does not agree, by name."""
    found: list[Finding] = []
    for p in processes:
        if p.main or p.answer not in ("present", "absent") or agrees(p, wanted):
            continue
        if p.answer == "absent":
            found.append(_finding("absent", "warn", pid=p.pid, name=p.name))
        elif wanted is None:
            found.append(_finding("present-unwanted", "warn", pid=p.pid, name=p.name, value=p.value))
        else:
            found.append(_finding("other-value", "warn", pid=p.pid, name=p.name, value=p.value, wanted=wanted))
    return found


def _finding(code: str, effect: Literal["warn", "note"], **values: str | int | None) -> Finding:
    return Finding(code=f"proof.{code}", effect=effect, values={**values})
