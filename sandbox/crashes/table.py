"""The matrix as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from sandbox.crashes.rig import FAULTS, SAID
from sandbox.crashes.stories import STORIES, TITLES, story_of
from sandbox.crashes.verdict import Outcome

HEAD = """\
# Crash matrix

Written by `make crashes`. Each cell is one co-restart of three services on real systemd over real SSH, asked for and
confirmed in the local Slack workspace and carried out by a real `clawback up`. When the ledger shows the event of the
row, the process of the column is struck. What came of it is compared with a run that was left in peace: the end, how
often each service was started and told to stop by its own clock, what the host recorded, every line of the thread, the
hash chain, and every claim of health against the service's own clock and /proc.

`ok` with a time: a worker took over so many seconds after the strike. `ok` without: nobody had to, because the one
that acts was not struck, or could wait for the store. `-`: there was nobody to strike at that moment. A worker that is
stopped keeps its lease of 10 s to the end, because nobody can know that it will not go on; one that was killed is
followed at once. In the column `away` the store is silent for 12 s, and those are counted. Times: two busy cores.
"""


def totals(outcomes: Sequence[Outcome]) -> Mapping[str, int | float | None]:
    """Counts over all cells that were struck, and the takeover times in seconds."""
    struck = [o for o in outcomes if o.struck]
    times = sorted(o.takeover_s for o in struck if o.takeover_s is not None)
    killed = sorted(o.takeover_s for o in struck if o.takeover_s is not None and o.cell.fault == "act")
    return {
        "cells": len(struck),
        "good": sum(o.good for o in struck),
        "lost": sum(len(o.lost) for o in struck),
        "doubled": sum(len(o.doubled) for o in struck),
        "false": sum(len(o.false) for o in struck),
        "takeovers": len(times),
        "takeover_median_s": round(median(times), 2) if times else None,
        "takeover_worst_s": times[-1] if times else None,
        "killed_takeover_median_s": round(median(killed), 2) if killed else None,
        "killed_takeover_worst_s": killed[-1] if killed else None,
    }


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    faults = [fault for fault in FAULTS if any(o.cell.fault == fault for o in outcomes)]
    told = totals(outcomes)
    lines = [HEAD, "| | |", "| --- | --- |"]
    lines += [f"| {name.replace('_', ' ')} | {'-' if value is None else value} |" for name, value in told.items()]
    lines += ["", *(f"- **{fault}**: {SAID[fault]}" for fault in faults), ""]
    for which in STORIES:
        story = [o for o in outcomes if story_of(o.word) == which]
        if story:
            lines += [
                f"## {TITLES[which]}",
                "",
                f"| moment | {' | '.join(faults)} |",
                f"| --- |{' --- |' * len(faults)}",
            ]
        for name in dict.fromkeys(o.cell.moment for o in story):
            cells = [[o for o in story if (o.cell.fault, o.cell.moment) == (fault, name)] for fault in faults]
            lines.append(f"| {name} | {' | '.join(_short(found) for found in cells)} |")
        lines += [""] * bool(story)
    bad = [o for o in outcomes if o.struck and not o.good]
    if bad:
        lines += ["## What went wrong", ""]
        lines += [
            f"- {o.cell.fault} at {o.cell.moment}: {'; '.join([*o.lost, *o.doubled, *o.false])[:400]}" for o in bad
        ]
    return "\n".join(lines) + "\n"


def _short(found: Sequence[Outcome]) -> str:
    struck = [o for o in found if o.struck]
    if not struck:
        return "-" if found else ""
    if any(not o.good for o in struck):
        return "**" + ", ".join(k for k in ("lost", "doubled", "false") if any(getattr(o, k) for o in struck)) + "**"
    times = [o.takeover_s for o in struck if o.takeover_s is not None]
    return f"ok {max(times):.1f} s" if times else "ok"
