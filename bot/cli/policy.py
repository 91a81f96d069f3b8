"""`clawback policy test FILE` and `clawback policy replay --fleet NEW`: what policy says, before it is in force."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from pydantic import JsonValue

from bot.cli.output import emit
from bot.grammar import parse
from bot.messages import sentence
from bot.settings import read_settings
from bot.terminal import plain as without_markup
from policies.errors import OpsError
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import DeployIntent, Intent, KnobIntent, Restart
from policies.trials.casefile import Expected, PolicyCase, named_fleet, read_cases
from policies.trials.replay import Replayed, Skipped, replay
from policies.trials.trial import Ruling, rule_on

FLEET = click.Path(path_type=Path)


class CaseFileError(OpsError):
    """The file of cases cannot be read or holds errors."""


@click.group(name="policy")
def command() -> None:
    """Try out the policy of a fleet file."""


@command.command(name="test")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--fleet", type=FLEET, help="The fleet file; default: the one that FILE names, else CLAWBACK_FLEET.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: cases.")
def test(file: Path, fleet: Path | None, *, as_json: bool) -> None:
    """Judge every case of FILE (YAML or JSON) and compare with what it expects.

    A case has a change as it is said in chat, an actor, what is live, the knob's history, evidence, a moment, and what
    is expected: a decision (allowed, needs_approval, refused), approvals, by, codes. See policy.example.yaml.
    Exits 0 when every case is as expected, 1 when one is not, 2 when the file has errors, each with its line.
    """
    text = _text(file)
    named, errors = named_fleet(text, str(file))
    path = fleet or (file.parent / named if named else read_settings().fleet_file())
    found = _fleet(path)
    cases, more = read_cases(text, str(file), found, intent_of, time.time())
    wrong = tuple(dict.fromkeys((*errors, *more)))
    if wrong:
        lines = "\n".join(f"{e.file}:{e.line}: {e.message}\n    hint: {e.hint}" for e in wrong)
        raise CaseFileError(lines, hint="`clawback policy test --help` tells what a case has")
    judged = [(case, rule_on(case.trial, found)) for case in cases]
    bad = [case for case, got in judged if not case.expected.fits(got)]
    lines_ = [line for case, got in judged for line in _case_lines(file, case, got)]
    tail = f"{len(judged)} cases, {len(bad)} not as expected"
    emit({"ok": not bad, "cases": [_case_document(case, got) for case, got in judged]}, as_json, [*lines_, tail])
    sys.exit(1 if bad else 0)


@command.command(name="replay")
@click.option("--fleet", type=FLEET, required=True, help="The new fleet file.")
@click.option("--change", "changes", multiple=True, metavar="CHANGE", help="Only this change; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: cases, skipped.")
def replay_(fleet: Path, changes: tuple[str, ...], *, as_json: bool) -> None:
    """Show which changes of the ledger the policy of another fleet file would have decided otherwise, and why.

    Each is judged at the time of its plan, with the roles that were recorded and the evidence that there was then.
    Exits 0 when all would have been decided alike, 1 when one would not.
    """
    from workers import audit  # only this command pays for the client of Redis

    new = _fleet(fleet)
    settings = read_settings()
    with audit.copies(settings.redis_url, settings.clawback_data) as copies:
        found = replay(copies.entries(), new)
    chosen = [one for one in found if not changes or _name(one) in changes]
    judged = [one for one in chosen if isinstance(one, Replayed)]
    skipped = [one for one in chosen if isinstance(one, Skipped)]
    bad = [one for one in judged if not one.same]
    document: dict[str, JsonValue] = {
        "ok": not bad,
        "cases": [_replay_document(one) for one in judged],
        "skipped": [{"name": one.change, "why": plain(one.why)} for one in skipped],
    }
    lines = [line for one in bad for line in _replay_lines(one)]
    lines += [f"{one.change}: not judged, policy had no word: {plain(one.why)}" for one in skipped]
    lines.append(f"{len(judged)} changes judged again, {len(bad)} would have been decided otherwise")
    emit(document, as_json, lines)
    sys.exit(1 if bad else 0)


def plain(finding: Finding) -> str:
    """What a finding says."""
    return without_markup(sentence(finding), lambda user: user)


def intent_of(text: str) -> Intent | str:
    """What a chat text asks for, or why it asks for nothing."""
    reading = parse(text)
    if reading.error is not None:
        return f"{reading.error.message} ({reading.error.hint})"
    if isinstance(reading.command, KnobIntent | DeployIntent | Restart):
        return reading.command
    return f"`{text[:80]}` changes nothing, expected a command that policy decides on"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not utf-8"
        raise CaseFileError(f"`{file}` cannot be read: {why.lower()}", hint="give a file of policy cases") from error


def _fleet(path: Path) -> Fleet:
    from workers.wiring import load_fleet

    return load_fleet(path)


def _case_document(case: PolicyCase, got: Ruling) -> JsonValue:
    fits = case.expected.fits(got)
    return {"name": case.name, "ok": fits, "expected": _expected_document(case.expected), "got": _got_document(got)}


def _expected_document(expected: Expected) -> JsonValue:
    codes: list[JsonValue] = list(expected.codes)
    return {"decision": expected.outcome, "approvals": expected.approvals, "by": expected.by, "codes": codes}


def _got_document(got: Ruling) -> JsonValue:
    codes: list[JsonValue] = [finding.code for finding in got.findings]
    return {"decision": got.outcome, "approvals": got.approvals, "by": got.by, "codes": codes}


def _replay_document(one: Replayed) -> JsonValue:
    return {
        "name": one.past.change,
        "ok": one.same,
        "expected": _got_document(one.past.decided),
        "got": _got_document(one.got),
        "why": [plain(finding) for finding in one.got.findings if not one.same],
        "live_assumed": one.past.assumed,
    }


def _case_lines(file: Path, case: PolicyCase, got: Ruling) -> list[str]:
    if case.expected.fits(got):
        return [f"ok   {case.name}: {_said(got)}"]
    expected = case.expected
    wanted = _said(Ruling(expected.outcome, (), expected.approvals or 0, expected.by))
    lacking = [code for code in expected.codes if code not in {finding.code for finding in got.findings}]
    told = f", with {', '.join(lacking)}" if lacking else ""
    head = f"NOT  {case.name} ({file}:{case.line}): expected {wanted}{told}, got {_said(got)}"
    return [head, *(f"       {finding.code}: {plain(finding)}" for finding in got.findings)]


def _replay_lines(one: Replayed) -> list[str]:
    head = f"{one.past.change}: was {_said(one.past.decided)}, would be {_said(one.got)}"
    if one.past.assumed:
        head += " (the value before is that of the last success, hosts were not recorded)"
    return [head, *(f"       {plain(finding)}" for finding in one.got.findings if finding.effect != "allow")]


def _said(ruling: Ruling) -> str:
    if ruling.outcome != "needs_approval":
        return ruling.outcome
    return f"needs_approval ({ruling.approvals or 'any number'} of {ruling.by or 'any role'})"


def _name(one: Replayed | Skipped) -> str:
    return one.change if isinstance(one, Skipped) else one.past.change
