"""How a unit's last process ended, in systemd's own words and with what they mean. Nothing is concluded from them."""

from __future__ import annotations

from policies.finding import Finding, Verdict

SIGTERM = 15


def ending(
    instance: str, *, result: str, code: int | None, status: int | None, n_restarts: int | None
) -> Finding | None:
    """The finding that quotes result, status and NRestarts; None when nothing ended badly.

    code: ExecMainCode, 1 for exited and 2 or 3 for ended by a signal; None where it was not read.
    """
    if result in {"", "success"}:
        return None
    values: dict[str, str | int | float | None] = {
        "instance": instance,
        "result": result,
        "status": status,
        "restarts": n_restarts,
    }
    if result == "timeout":
        # Source: systemd stops a start that takes too long with SIGTERM, which ExecMainStatus then shows as 15
        own = status == SIGTERM and code in {None, 2}
        found = "gate.ended.timeout-sigterm" if own else "gate.ended.timeout"
    elif result == "oom-kill":
        found = "gate.ended.out-of-memory"
    elif result == "exit-code" or (result == "start-limit-hit" and code == 1):
        found = "gate.ended.exit"
    elif result in {"signal", "core-dump"} or (result == "start-limit-hit" and code in {2, 3}):
        found = "gate.ended.signal"
    else:
        found = "gate.ended.other"
    return Finding(code=found, effect="note", values=values)


def with_end(
    verdict: Verdict, instance: str, result: str, code: int | None, status: int | None, n_restarts: int | None
) -> Verdict:
    """The verdict, with how the first life ended behind its own findings."""
    found = ending(instance, result=result, code=code, status=status, n_restarts=n_restarts)
    return verdict if found is None else verdict.model_copy(update={"findings": (*verdict.findings, found)})
