"""Block Kit within its limits: whatever goes in, what comes out is a message that Slack takes.

Limits, each from Slack's block reference but the sum: 50 blocks a message, 3000 characters a section, 25 elements an
actions block, 75 characters a button; about 13,200 characters in all blocks together (bolt-js#2509).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.escape import mrkdwn
from bot.markup import Markup
from bot.messages import say

Block = dict[str, Any]

MOST_BLOCKS = 50
MOST_SECTION = 3000
MOST_TEXT = 3000  # of the plain text beside the blocks; chat.update refuses more than 4,000
MOST_ALL = 12_000
MOST_BUTTONS = 25
MOST_CONTEXT = 2000
MOST_LINE = 400  # of preformatted text


@dataclass(frozen=True, slots=True)
class Card:
    """A message: `text` for notifications and screen readers, `blocks` for everybody else."""

    text: str
    blocks: tuple[Block, ...] = ()


def section(*lines: str) -> Block:
    """Lines of mrkdwn, as many as a section takes."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": fitted(lines, MOST_SECTION)}}


def context(*lines: str) -> Block:
    """Small print."""
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": fitted(lines, MOST_CONTEXT)}]}


def fenced(text: str, most: int = MOST_SECTION) -> Block:
    """Preformatted text of people or machines, whole lines as far as they go."""
    room = most - 60  # for the fence and the note
    kept: list[str] = []
    wanted = [mrkdwn(line).replace("`", "'") for line in text.split("\n")]
    for line in wanted:
        short = cut(line, MOST_LINE)
        if sum(len(k) + 1 for k in kept) + len(short) > room:
            break
        kept.append(short)
    left = len(wanted) - len(kept)
    note = f"\n{say('plan.more-lines', n=left)}" if left else ""
    body = "\n".join(kept)
    return {"type": "section", "text": {"type": "mrkdwn", "text": f"```{body}```{note}"}}


def actions(buttons: Sequence[Block]) -> Block:
    """A row of buttons."""
    return {"type": "actions", "elements": list(buttons[:MOST_BUTTONS])}


def fitted(lines: Iterable[str], most: int) -> str:
    """Lines joined, at most `most` characters: whole lines as far as they go, then how many more there are."""
    kept: list[str] = []
    wanted = [line for line in lines if line]
    room = most - 40  # for the note
    for index, line in enumerate(wanted):
        if sum(len(k) + 1 for k in kept) + len(line) > room:
            if not kept:
                kept.append(cut(line, room))
                wanted = wanted[: index + 1] + wanted[index + 1 :]
                left = len(wanted) - index - 1
            else:
                left = len(wanted) - index
            if left:
                kept.append(say("plan.more-lines", n=left))
            break
        kept.append(line)
    return "\n".join(kept) or "-"


def cut(text: str, most: int) -> Markup:
    """Markup of at most `most` characters, never cut inside a token, an entity or a code span."""
    if len(text) <= most:
        return Markup(text)
    short = text[: most - 40]
    for opening, closing in (("<", ">"), ("&", ";")):
        at = short.rfind(opening)
        if at >= 0 and closing not in short[at:]:
            short = short[:at]
    if short.count("`") % 2:
        short += "`"
    return Markup(short + say("plan.more-characters", n=len(text) - len(short)))


def made(text: str, body: Sequence[Block], tail: Sequence[Block] = ()) -> Card:
    """A card: the tail (buttons, small print) stays whole, of the body as much as fits."""
    room_blocks = MOST_BLOCKS - len(tail) - 1
    room = MOST_ALL - sum(map(length, tail))
    kept: list[Block] = []
    for index, block in enumerate(body):
        room -= length(block)
        if index >= room_blocks or room < 0:
            kept.append(context(say("plan.more-lines", n=sum(map(lines, body[index:])))))
            break
        kept.append(block)
    return Card(plain(text), (*kept, *tail))


def plain(text: str) -> str:
    """The text beside the blocks, cut to what can be updated later."""
    return cut(re.sub(r"[*`]", "", text), MOST_TEXT)


def length(block: Block) -> int:
    """Characters that a reader sees."""
    if "text" in block:
        text = block["text"]
        return len(text["text"] if isinstance(text, dict) else text)
    return sum(length(element) for element in block.get("elements", ()))


def lines(block: Block) -> int:
    """Lines of a block."""
    return str(block.get("text", {}).get("text", "")).count("\n") + 1
