"""All that is recorded of a knob, newest first, for a question; and one record for everybody in a channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.cards.evidence import one
from bot.cards.kit import Block, Card, context, made, section
from bot.escape import code
from bot.markup import Markup, joined
from bot.messages import say
from policies.applicability import Standing
from policies.evidence import Record

MOST_FILES = 8
MOST_NOTE = 300


def about(
    knob: str,
    records: Sequence[Record],
    at: float,
    shown: Mapping[str, Markup],
    standings: Sequence[Standing] | Markup = (),
) -> Card:
    """The answer to `evidence NAME`. shown: record -> a line about its pictures.

    standings: what the records are worth today, or why that is not known.
    """
    if not records:
        return made(say("evidence.nothing", knob=knob), [section(say("evidence.nothing", knob=knob))])
    head = say("evidence.about", knob=knob, n=len(records))
    body: list[Block] = [section(f"*{head}*")]
    texts: list[str] = [head]
    if isinstance(standings, Markup):
        body.append(section(standings))
        texts.append(standings)
        standings = ()
    for record in sorted(records, key=lambda r: (r.at, r.id), reverse=True):
        main, small = _told(record, at, standings)
        if record.id in shown:
            small.append(shown[record.id])
        body += [section(*main), context(*small)]
        texts += [*main, *small]
    return made("\n".join(texts), body)


def exhibit(record: Record, at: float, problem: str = "") -> Card:
    """One record for a channel; its pictures stand below. problem: why they do not."""
    main, small = _told(record, at)
    small += [say("exhibit.no-pictures", why=problem)] if problem else []
    return made("\n".join([*main, *small]), [section(*main), context(*small)])


def _told(record: Record, at: float, standings: Sequence[Standing] = ()) -> tuple[list[str], list[str]]:
    """What is known of a record, and the small print."""
    head = say("exhibit.heading", knob=record.knob, value=record.value, klass=record.klass)
    small: list[str] = [_files(record)]
    if record.note:
        small.append(say("evidence.note", by=record.by, note=record.note[:MOST_NOTE]))
    return [head, *one(record, at, standings)], small


def _files(record: Record) -> Markup:
    """Their names by arm; `clawback evidence show` has their digests."""
    arms: dict[str, list[Markup]] = {}
    for file in record.files:
        arms.setdefault(file.arm, []).append(Markup(code(file.file)))
    told = [say("evidence.files", arm=arm, files=_some(names)) for arm, names in arms.items()]
    return joined(told) or say("evidence.no-files")


def _some(names: list[Markup]) -> Markup:
    left = len(names) - MOST_FILES
    return joined([*names[:MOST_FILES], *([say("plan.more-lines", n=left)] if left > 0 else [])], by=", ")
