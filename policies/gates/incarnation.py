"""Did this restart give a new life to the unit, and does that life go on?"""

from __future__ import annotations

from policies.facts import Incarnation
from policies.finding import Verdict
from policies.gates import Values, failed, passed, undecided

# With Restart= systemd starts a dying unit again and again; three lives within one gate are a crash loop.
CRASH_LOOP = 3
OTHER = "gate.incarnation.other"


def judge(
    instance: str,
    before: Incarnation,
    now: Incarnation,
    *,
    active_state: str,
    sub_state: str,
    result: str,
    n_restarts: int | None,
    waited_s: float,
    other: bool = False,
    first: str = "",
) -> Verdict:
    """Pass only when pid, start time and InvocationID all differ from before and the unit is active.

    `first`: the result of the first life since then that ended badly; systemd forgets it with the next try.
    `other`: a further life was begun that systemd's own Restart= does not explain, so somebody else did it.
    """
    values: Values = {
        "instance": instance,
        "old_pid": before.main_pid,
        "new_pid": now.main_pid,
        "state": f"{active_state} ({sub_state})",
        "result": result,
        "restarts": n_restarts,
        "waited_s": waited_s,
    }
    if other:
        return failed(OTHER, values)
    looping = crash_loop(before, now, n_restarts)
    if result == "timeout" or (first == "timeout" and (looping or active_state != "active")):
        values["result"] = "timeout"
        return failed("gate.incarnation.start-timeout", values)  # ended by systemd: no crash, however often
    if looping:
        return failed("gate.incarnation.crash-loop", values)
    if result == "start-limit-hit":
        return failed("gate.incarnation.start-limit", values)
    if active_state == "failed":
        return failed("gate.incarnation.failed", values)
    if now.main_pid == 0:
        return failed("gate.incarnation.no-process", values)
    if now.invocation_id == "" or (before.invocation_id == "" and before.main_pid != 0):
        return undecided("gate.incarnation.no-invocation-id", values)
    same = now.main_pid == before.main_pid or now.started == before.started or now.invocation_id == before.invocation_id
    if same:
        return failed("gate.incarnation.old-process", values)
    if active_state != "active":
        return undecided("gate.incarnation.not-active", values)
    return passed("gate.incarnation.new", values)


def crash_loop(before: Incarnation, now: Incarnation, n_restarts: int | None) -> bool:
    """Started again too often since this restart; what the life before it counted is not its."""
    return n_restarts is not None and n_restarts >= CRASH_LOOP and now.invocation_id != before.invocation_id
