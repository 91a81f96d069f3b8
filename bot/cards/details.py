"""What [Details] answers, to the asker alone: diffs, argument lists, gates, undo, and what the digest covers."""

from __future__ import annotations

from difflib import unified_diff

from bot.cards import deploys, drains, evidence
from bot.cards.kit import Block, Card, fenced, made, section
from bot.cards.plan import undo_line, unique
from bot.cards.story import Story, instance
from bot.cards.waves import rolling_lines, wave_head
from bot.markup import Markup
from bot.messages import say, sentence
from policies.plan import AdmitStep, DrainStep, Plan, RestartStep, Step, WriteStep

MOST_DIFF = 2500
PART = 10  # lines a section


def details_card(story: Story, digest: str | None = None) -> Card:
    """The plans of a change in full. digest: of the plan that was seen; said when that is another one now."""
    change = story.change
    planned = change.planned
    if planned is None or not planned.plans:
        said = say("details.no-plan", change=change.id, state=change.state)
        return made(said, [section(said)])
    plans = [p for p in planned.plans if change.order in {None, p.order}]
    head = [say("details.head", change=change.id)]
    if digest is not None and digest not in {p.digest for p in planned.plans}:
        head.append(say("details.old-plan"))
    body: list[Block] = [section(*head), *_files(plans)]
    for plan in plans:
        body += _sections(_order(plan))
    body += _sections(_covered(plans))
    body += _sections(_beside(story, plans))
    return made("\n".join(head), body)


def diff(step: WriteStep) -> str:
    """The unified diff of the file that a step writes."""
    old = (step.before or "").splitlines()
    new = (step.text or "").splitlines()
    path = step.path.lstrip("/")
    before = "/dev/null" if step.before is None else f"a/{path}"
    after = "/dev/null" if step.text is None else f"b/{path}"
    return "\n".join(unified_diff(old, new, before, after, lineterm=""))


def _files(plans: list[Plan]) -> list[Block]:
    """The diff of each file, once; the same change on several hosts is shown once for all of them."""
    hosts: dict[tuple[str, str], list[str]] = {}
    for step in (s for plan in plans for s in plan.steps if isinstance(s, WriteStep)):
        on = hosts.setdefault((step.path, diff(step)), [])
        if step.host not in on:
            on.append(step.host)
    blocks: list[Block] = []
    for (path, text), on in hosts.items():
        blocks += [section(say("details.file", path=path, host=", ".join(on))), fenced(text, MOST_DIFF)]
    return blocks


def _order(plan: Plan) -> list[Markup]:
    lines = [say("details.order", order=plan.order, digest=plan.digest)]
    lines += rolling_lines(plan)
    for number, step in enumerate(plan.steps, start=1):
        lines += wave_head(plan.steps, number - 1)
        lines += _step(number, step)
    no_way = say("details.no-undo") if plan.deploy is None else undo_line(plan)[0]
    lines.append(say("details.undo") if plan.undo else no_way)
    for number, step in enumerate(plan.undo, start=1):
        lines += wave_head(plan.undo, number - 1)
        lines += [say("details.undo-step", said=said) for said in _step(number, step)[:1]]
    return lines


def _step(number: int, step: Step) -> list[Markup]:
    if isinstance(step, WriteStep):
        code = "details.remove" if step.text is None else "details.write"
        return [say(code, n=number, instance=instance(step), path=step.path)]
    if isinstance(step, (DrainStep, AdmitStep)):
        return [*drains.details(number, step), *_gates(step)]
    if not isinstance(step, RestartStep):
        return [deploys.step(number, step)]
    pid = step.before.main_pid or None
    argv = " ".join(step.argv)
    return [say("details.restart", n=number, instance=instance(step), argv=argv, pid=pid), *_gates(step)]


def _gates(step: Step) -> list[Markup]:
    return [say("details.gates", gates=" → ".join(step.gates))] if step.gates else []


def _covered(plans: list[Plan]) -> list[Markup]:
    """What must be as it was; of several orders, everything that any of them covers."""
    lines = [say("details.covers"), say("details.covers-fleet", sha256=plans[0].fleet_sha256)]
    lines += [
        say(
            "details.target",
            instance=t.instance,
            variable=t.variable,
            now=t.now,
            now_by=t.now_decided_by,
            then=t.then,
            then_by=t.then_decided_by,
        )
        for t in dict.fromkeys(t for plan in plans for t in plan.targets)
    ]
    lines += deploys.covered(plans)
    for file in dict.fromkeys(f for plan in plans for f in plan.files):
        if file.sha256 is not None and file.mode is None:
            lines.append(say("details.covers-digest", path=file.path, host=file.host, sha256=file.sha256))
        elif file.sha256 is None:
            lines.append(say("details.covers-no-file", path=file.path, host=file.host))
        else:
            mode = f"{file.mode:04o}" if file.mode is not None else None
            lines.append(say("details.covers-file", path=file.path, host=file.host, sha256=file.sha256, mode=mode))
    for name, life in dict.fromkeys(pair for plan in plans for pair in plan.incarnations):
        pid, started, invocation = life.main_pid, life.started, life.invocation_id[:12]
        lines.append(say("details.covers-life", instance=name, pid=pid, started=started, invocation=invocation))
    return lines


def _beside(story: Story, plans: list[Plan]) -> list[Markup]:
    """Policy in full, the load as it was read, warnings, and evidence in full."""
    planned = story.change.planned
    lines = [say("details.policy", said=sentence(f)) for f in planned.findings] if planned else []
    lines += [say("details.load", said=sentence(f)) for f in unique(p.load for p in plans)]
    lines += [sentence(f) for f in unique(p.contents for p in plans)]
    lines += [say("plan.warning", said=sentence(f)) for f in unique(p.warnings for p in plans)]
    knob, at = plans[0].knob, story.change.planned_at
    stand = planned.standings if planned is not None else ()
    return lines if knob is None else [*lines, *evidence.lines(story.records, knob, plans[0].value, at, stand)]


def _sections(lines: list[Markup]) -> list[Block]:
    return [section(*lines[start : start + PART]) for start in range(0, len(lines), PART)]
