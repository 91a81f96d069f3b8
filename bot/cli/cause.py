"""`clawback cause check`: a claim about a cause, judged on metrics texts."""

from __future__ import annotations

import sys
from collections.abc import Set
from pathlib import Path

import click

from bot.cli.cause_files import INSTANCE, Moment, moments_of
from bot.cli.cause_lines import document, lines
from bot.cli.fleet import read_file
from bot.cli.output import emit
from bot.messages import sentence
from bot.terminal import plain
from policies.causes.claim import Claim, catalogue, catalogued, free, metrics_needed, named_in
from policies.causes.judge import judge
from policies.causes.statement import InState, Metric
from policies.causes.window import Window, key
from policies.errors import SettingsError
from policies.finding import Finding
from policies.fleet import Fleet
from policies.metrics.engine import Engine
from policies.metrics.measured import Measured
from policies.metrics.window import Asked, measure
from policies.statement import state_named
from policies.states.judge import Look, judge_state
from policies.states.work import is_engine

FILES = "FILE[@TIME]"
GOOD = frozenset({"verified", "consistent"})


@click.group(name="cause")
def command() -> None:
    """Judge a claim about a cause."""


@command.command(name="check")
@click.option("--fleet", type=click.Path(path_type=Path), help="The fleet file with its metrics and causes.")
@click.option(
    "--cause", "text", required=True, metavar="NAME|EXPR", help="A cause of the fleet file, or what must hold."
)
@click.option("--at", multiple=True, required=True, metavar=FILES, help="While the effect was there.")
@click.option("--then", multiple=True, metavar=FILES, help="Later, while it was still there.")
@click.option("--baseline", multiple=True, metavar=FILES, help="Before it was there.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: verdict, citations, reason and more.")
def check(
    fleet: Path | None,
    text: str,
    at: tuple[str, ...],
    then: tuple[str, ...],
    baseline: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    """Judge a cause on metrics texts: verified, consistent, refuted or unverified.

    NAME is a cause of the fleet file. EXPR is e.g. "queue_reqs > 0", "state == hung" or a PromQL query against a
    number; names of metrics need --fleet, those of series do not. TIME is epoch seconds or ISO 8601; without one it is
    the newest time of the file's lines, else when the file was written. Each option of files may be given again: files
    less than two seconds apart are read as one (an engine's and its router's), others are further samples. A state
    needs two samples, a trend three.

    Exits 0 for verified and consistent, 1 for refuted and unverified, 2 when something cannot be read.
    """
    known = read_file(fleet) if fleet is not None else None
    before, effect = moments_of(baseline), _effect(at, then)
    claim = claim_of(text, known, {sample.name for moment in effect for sample in moment.scrape.samples})
    rivals = catalogue(known) if known is not None else ()
    needed = metrics_needed(claim, rivals)
    everything = (*before, *effect)
    window = window_of(effect, everything, needed, known)
    earlier = window_of(before, everything, needed, known) if before else None
    verdict = judge(claim, window, earlier, rivals, window.end)
    emit(document(verdict, window.state, everything), as_json, lines(verdict, window.state, everything))
    sys.exit(0 if verdict.word in GOOD else 1)


def claim_of(text: str, fleet: Fleet | None, families: Set[str]) -> Claim:
    """What is asked about: a cause by its name or in a person's words, a state by its word, or a statement.

    Raises: SettingsError where it is none of them.
    """
    causes = fleet.causes if fleet is not None else {}
    state = state_named(text)
    named = (text,) if text in causes else named_in(text, causes.values())
    if len(named) == 1:
        found = catalogued(causes[named[0]])
    elif state is not None:
        found = Claim(InState(state))
    else:
        found = free([text], fleet, families)
    if isinstance(found, Finding):
        raise SettingsError(plain(sentence(found), str), hint=_hint(fleet))
    return found


def _hint(fleet: Fleet | None) -> str:
    if fleet is None:
        return "names of causes and metrics need --fleet FILE"
    return f"causes of this fleet: {', '.join(fleet.causes) or 'none'}; metrics: {', '.join(fleet.metrics) or 'none'}"


def _effect(at: tuple[str, ...], then: tuple[str, ...]) -> tuple[Moment, ...]:
    first, later = moments_of(at), moments_of(then)
    if later and later[0].at <= first[-1].at:
        raise SettingsError(
            f"`{later[0].source}` (its time is {later[0].dumps[0].said}) is not later than `{first[-1].source}`",
            hint="give the times: FILE@2026-12-01T10:00:00Z",
        )
    return (*first, *later)


def window_of(
    moments: tuple[Moment, ...], everything: tuple[Moment, ...], needed: tuple[Metric, ...], fleet: Fleet | None
) -> Window:
    """What these moments say; `everything` may hold earlier ones, which a rate looks back to."""
    start, end = moments[0].at, moments[-1].at
    scrapes = [moment.scrape for moment in everything if moment.at <= end]
    measured: dict[str, Measured] = {
        key(metric): measure(_asked(metric, fleet), scrapes, instances=[INSTANCE], start=start, end=end)
        for metric in needed
    }
    looks = [Look(moment.scrape, (moment.scrape,) if _has_router(fleet) else None) for moment in moments]
    state = judge_state(looks[0] if len(looks) > 1 else None, looks[-1]) if is_engine(looks[-1].engine) else None
    starts = [found for moment in moments if (found := Engine(moment.scrape).started) is not None]
    return Window(start, end, measured, state, max(starts, default=None))


def _asked(metric: Metric, fleet: Fleet | None) -> Asked:
    known = fleet.metrics.get(metric.text) if fleet is not None and not metric.free else None
    if known is None:
        return Asked(metric.text, metric.text, "")
    return Asked(known.name, known.query, known.unit)


def _has_router(fleet: Fleet | None) -> bool:
    """Something may stand before the engine, unless the fleet says that no service needs another."""
    return fleet is None or any(service.needs for service in fleet.services.values())
