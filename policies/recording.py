"""From the bytes of files to a record that only has to be stored: the same for a terminal and for a chat.

Nothing here reads a disk. Files are known by their sha256; a record of bad news is made as well as one of good news.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from policies.abtest.judge import Question, judge
from policies.abtest.judgement import Judgement, Margins, SourceFile
from policies.abtest.prefix_cache import CacheUse, read_cache_use
from policies.bench import sglang
from policies.bench.reading import read_runs
from policies.bench.run import Problem, Run
from policies.context import Context, LoadRange, everywhere, field_of, from_arguments, joined, told
from policies.correctness import Correctness
from policies.correctness_file import read_correctness, read_pair
from policies.errors import OpsError
from policies.evidence import Draft, Record, Summary, of_summary
from policies.finding import Finding
from policies.fleet import Fleet, Knob, Match
from policies.intents import Actor
from policies.summary_file import read_summary

MOST_RUNS = 400
MOST_POINTS = 64
DAY = re.compile(r"(?P<y>20[0-9]{2})-?(?P<m>[01][0-9])-?(?P<d>[0-3][0-9])")


class RecordingError(OpsError):
    """The files make no record."""


@dataclass(frozen=True, slots=True)
class Given:
    """A file as somebody gave it. `arm`: only the runs that the file itself names so."""

    name: str
    data: bytes
    arm: str | None = None

    @property
    def sha256(self) -> str:
        """Of the bytes."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Terms:
    """What a person says beside the files: which knob, B's value and A's (None: unset), and how the runs were made.

    context: see `policies.context.told`. correctness: a file, or `0/200`. today: highest concurrency of today's load.
    variable: the knob's own. knobs: the variables of the other knobs, of which a context is made.
    """

    knob: str
    value: str
    variable: str | None = None
    knobs: frozenset[str] = frozenset()
    baseline: str | None = None
    metric: str = "output_throughput"
    interleaved: bool = False
    today: int | None = None
    margins: Margins = field(default_factory=Margins)
    scrapes: Given | None = None
    correctness: Given | str | None = None
    context: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def from_summary(given: Given, knob: str) -> Draft:
    """The record of a summary that a person typed; class `observed`.

    Raises: OpsError that names the field.
    """
    try:
        text = given.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordingError(f"`{given.name}` is not utf-8", hint="save it as utf-8") from error
    return typed(read_summary(text, given.name, knob), given.name, given.sha256)


def typed(summary: Summary, source: str, sha256: str) -> Draft:
    """The record of a summary that was read already."""
    file = SourceFile(file=source, sha256=sha256, arm="typed")
    return Draft(source=source, files=(file,), **of_summary(summary))


def from_results(a: Sequence[Given], b: Sequence[Given], terms: Terms) -> Draft:
    """The record of result files of two arms, judged, whatever the verdict is.

    Raises: OpsError for a file that gives no run, for a context that contradicts the files, for too many runs.
    """
    left, unread_a = runs_of(a)
    right, unread_b = runs_of(b)
    _same_values(left, terms.baseline, "A", terms)
    _same_values(right, terms.value, "B", terms)
    cache = cache_of(terms.scrapes)
    question = Question(terms.metric, terms.interleaved, terms.margins, terms.today, cache)
    judged = judge(left, right, question, unread=[*unread_a, *unread_b])
    if len(left) + len(right) > MOST_RUNS or len(judged.points) > MOST_POINTS:
        found = f"{len(left) + len(right)} runs at {len(judged.points)} loads"
        raise RecordingError(
            f"{found}, expected at most {MOST_RUNS} at {MOST_POINTS}", hint="record one sweep at a time"
        )
    return Draft(
        knob=terms.knob,
        klass=judged.verdict,
        value=terms.value,
        baseline=terms.baseline,
        metric=judged.metric,
        better=judged.better,
        judgement=judged,
        context=_context([*left, *right], judged, terms),
        correctness=_correctness(terms.correctness),
        measured_on=_day([*left, *right]),
        source=", ".join(dict.fromkeys(given.name for given in (*a, *b)))[:300],
        files=(*judged.files, *_beside(terms)),
        note=terms.note[:1000],
    )


def runs_of(files: Sequence[Given]) -> tuple[list[Run], list[Problem]]:
    """The runs of an arm's files in their order, and what of them could not be read.

    Raises: RecordingError for a file that gives no run.
    """
    runs: list[Run] = []
    unread: list[Problem] = []
    for given in files:
        one = read_runs(given.data, given.name)
        if one.problems and not one.runs:
            raise RecordingError(str(one.problems[0]), hint="`clawback evidence read` tells what a file holds")
        if one.skipped:
            raise RecordingError(f"{one.file}: {one.skipped}", hint="give result files for A and B")
        kept = [run for run in one.runs if given.arm is None or run.arm == given.arm]
        if not kept:
            named = sorted({run.arm for run in one.runs if run.arm is not None})
            raise RecordingError(
                f"{given.name}: no arm `{given.arm}`", hint=f"arms of the file: {', '.join(named) or 'none'}"
            )
        runs += kept
        unread += one.problems
    return runs, unread


def may_record(fleet: Fleet, knob: Knob, actor: Actor) -> Finding:
    """Whether somebody may record evidence for a knob: who may ask for a change of it, or approve one.

    What is recorded lets changes through, so it is bound to the same people.
    """
    rules = [rule for rule in fleet.rules if _about(rule.match, knob)]
    roles = tuple(dict.fromkeys(role for rule in rules for role in (rule.ask, rule.by) if role is not None))
    may = any(role in actor.roles for role in roles)
    values: dict[str, str | int | float | None] = {"actor": actor.id, "knob": knob.name, "roles": " or ".join(roles)}
    code = "evidence.may-record" if may else "evidence.may-not-record"
    return Finding(code=code, effect="allow" if may else "refuse", values=values)


def _about(match: Match, knob: Knob) -> bool:
    return (
        match.kind in {None, "knob"}
        and match.intent in {None, "set", "restore", "revert", "unset"}
        and match.knob in {None, knob.name}
        and (match.service is None or match.service in knob.on)
    )


def already(draft: Draft, records: Iterable[Record]) -> Record | None:
    """The record that was made of the very same files for the same value and metric."""
    return next((r for r in records if _key(r) == _key(draft)), None)


def _key(draft: Draft) -> tuple[object, ...]:
    files = frozenset((file.arm, file.sha256) for file in draft.files if file.arm in {"A", "B", "typed"})
    return draft.knob, draft.value, draft.metric, files


def _context(runs: Sequence[Run], judged: Judgement, terms: Terms) -> Context:
    """What the files tell of where they were measured, what the person tells beside it, and the loads."""
    context = joined(everywhere([_of_run(run, terms) for run in runs]), told(terms.context))
    sizes = [p.load.concurrency for p in judged.points if p.load.concurrency is not None]
    if not sizes:
        return context
    high = max(sizes) if judged.today is None else min(judged.today, max(sizes))
    return context.model_copy(update={"load": LoadRange(low=min(*sizes, high), high=high)})


def _of_run(run: Run, terms: Terms) -> Context:
    identity = run.identity
    if run.format == sglang.NAME:
        found = from_arguments(identity.args, identity.server_version, identity.model)
        others = {n: v for n, v in identity.env.items() if n in terms.knobs}
        return found.model_copy(update={"knobs": others})
    # the others tell no arguments of a server, but what somebody wrote beside the run
    beside = {name: value for name, value in identity.args.items() if field_of(name) is not None}
    found = told(beside, strict=False).model_copy(update={"other": {}})
    update: dict[str, str] = {}
    if identity.model is not None:
        update["model"] = identity.model
    if identity.server_version is not None and found.version is None:
        update["version"] = identity.server_version
    return found.model_copy(update=update)


def _same_values(runs: Sequence[Run], value: str | None, arm: str, terms: Terms) -> None:
    """Raises: RecordingError where a server reported its environment, and the knob had another value than is said."""
    for run in runs:
        said = run.identity.env.get(terms.variable or "")
        if None not in (said, value) and said != value:  # an unset one may be told as the server's default
            message = f"{run.file}: the server had `{terms.variable}={said}`, you say `{value}` for {arm}"
            raise RecordingError(message, hint="swap --a and --b, or correct --value and --baseline")


def cache_of(scrapes: Given | None) -> CacheUse | None:
    """What the prefix cache did, from counters scraped before A, between and after B.

    Raises: CacheError.
    """
    return None if scrapes is None else read_cache_use(scrapes.data.decode("utf-8", "replace"), scrapes.name)


def _correctness(told_of: Given | str | None) -> Correctness | None:
    if told_of is None:
        return None
    return read_pair(told_of) if isinstance(told_of, str) else read_correctness(told_of.data, told_of.name)


def _beside(terms: Terms) -> tuple[SourceFile, ...]:
    found: list[SourceFile] = []
    if terms.scrapes is not None:
        found.append(SourceFile(file=terms.scrapes.name, sha256=terms.scrapes.sha256, arm="scrapes"))
    if isinstance(terms.correctness, Given):
        found.append(SourceFile(file=terms.correctness.name, sha256=terms.correctness.sha256, arm="correctness"))
    return tuple(found)


def _day(runs: Sequence[Run]) -> str | None:
    """The day of the oldest run, where every file tells one: a record is as old as the oldest thing it stands on."""
    found = [DAY.search(run.identity.date or "") for run in runs]
    days = [f"{one['y']}-{one['m']}-{one['d']}" for one in found if one is not None]
    return min(days) if days and len(days) == len(runs) else None
