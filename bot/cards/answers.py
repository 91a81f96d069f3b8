"""Answers to questions: status, list, show, verify, help; and single sentences as a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from bot.cards.evidence import lines as evidence_lines
from bot.cards.kit import Block, Card, made, section
from bot.cards.progress import card
from bot.cards.standing import mixed_values, standing_line
from bot.cards.story import Story
from bot.cards.verdict import one, verdict
from bot.cards.waiting import line_told
from bot.commands import HelpLine
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.change import Change
from policies.line import Place
from workers.look import InstanceValue, KnobLook, VerifyLook

MOST_LISTED = 60


def told(*lines: str) -> Card:
    """Sentences, one a line."""
    wanted = [line for line in lines if line]
    return made("\n".join(wanted), [section(*wanted)])


def status_one(story: Story) -> Card:
    """The card of one change, without its buttons: those are on the card in the channel."""
    drawn = card(story)
    return Card(drawn.text, tuple(block for block in drawn.blocks if block["type"] != "actions"))


def status_all(changes: Sequence[Change], line: Mapping[str, Place] = MappingProxyType({})) -> Card:
    """The last changes, newest first, then those that wait for others, in their order."""
    if not changes:
        return told(say("talk.status-none"))
    head = say("talk.status-head", n=len(changes)) if len(changes) > 1 else say("talk.status-head-one")
    return listed_lines(head, [*(_status(change) for change in changes), *line_told(line)])


def _status(change: Change) -> Markup:
    state = change.state.replace("_", " ")
    if change.asked is None:
        return say("talk.status-one", change=change.id, state=state)
    line = say(
        "talk.status-line",
        change=change.id,
        state=state,
        said=change.asked.normalised[:120],
        actor=change.asked.actor.id,
        at=change.asked_at,
    )
    mixed = None if change.standing is None else standing_line(change.standing)
    return line if mixed is None else joined([line, mixed])


def listed(looks: Sequence[KnobLook]) -> Card:
    """Desired, configured and live values of knobs; what does not agree is marked."""
    values = [[_value(look.knob.name, value) for value in look.values] for look in looks]
    if not any(values):
        return told(say("talk.nothing-listed"))
    n = sum(map(len, values))
    head = say("talk.list-head", n=n) if n > 1 else say("talk.list-head-one")
    mixed = [[*(sentence(one) for one in look.contracts), *mixed_values(look)] for look in looks]
    return listed_lines(head, [line for each, said in zip(values, mixed, strict=True) for line in (*said, *each)])


def shown(look: KnobLook, at: float) -> Card:
    """A knob's definition, its values and its evidence."""
    knob = look.knob
    head = [
        say(
            "talk.knob", knob=knob.name, variable=", ".join(knob.variables), services=", ".join(knob.on), type=knob.type
        )
    ]
    if knob.about:
        head.append(say("talk.about", about=knob.about))
    if knob.range is not None:
        head.append(say("talk.range", low=knob.range[0], high=knob.range[1]))
    if knob.values:
        head.append(say("talk.values", values=", ".join(knob.values)))
    head.append(say("talk.orders", orders=", ".join(knob.restarts)))
    broken = [sentence(one) for one in look.contracts]
    values = [*broken, *mixed_values(look), *(_value(knob.name, value) for value in look.values)]
    wanted = dict.fromkeys(record.value for record in look.evidence)
    evidence = [
        line for value in wanted for line in evidence_lines(look.evidence, knob.name, value, at, look.standings)
    ]
    body = [section(*part) for part in (head, values, evidence) if part]
    return made(head[0], body)


def verified(look: VerifyLook) -> Card:
    """The proof ladder of a knob on every instance, with the status of each health check."""
    head = say("talk.verify-head", knob=look.knob.name, at=look.at)
    # health holds the instances in the order of the proofs
    lines = [
        joined([verdict(instance, proof), one(instance, proof), _health(look, instance)])
        for instance, proof in zip(look.health, look.proofs, strict=True)
    ]
    return listed_lines(head, lines)


def helped(lines: Sequence[HelpLine]) -> Card:
    """What this person may type."""
    told_lines = [say("talk.help-line", usage=h.usage, about=h.about, example=h.example) for h in lines]
    return listed_lines(say("talk.help-head"), told_lines)


def _health(look: VerifyLook, instance: str) -> Markup:
    status = look.health.get(instance)
    return say("talk.health", status=status) if status is not None else say("talk.no-health")


def _value(knob: str, value: InstanceValue) -> Markup:
    desired = say("talk.value", value=value.desired) if value.managed else say("talk.unmanaged")
    live = say("talk.value", value=value.live) if value.live_answer in {"present", "absent"} else None
    line = say(
        "talk.listed",
        knob=knob,
        instance=value.instance,
        desired=desired,
        configured=value.configured,
        live=live or say("talk.not-read", answer=value.live_answer),
    )
    return joined([line, say("talk.drift")]) if value.drift else line


def listed_lines(head: Markup, lines: Sequence[Markup]) -> Card:
    """A head line and many lines, a few in each section."""
    kept = list(lines[:MOST_LISTED])
    if len(lines) > MOST_LISTED:
        kept.append(say("plan.more-lines", n=len(lines) - MOST_LISTED))
    body: list[Block] = [section(f"*{head}*")]
    body += [section(*kept[start : start + 10]) for start in range(0, len(kept), 10)]
    return made("\n".join([head, *kept]), body)
