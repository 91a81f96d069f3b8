"""One thread against the ledger: every line is drawn again and compared with what stands there. Pure.

Codes: thread.edited-line, edited-card, deleted-line, deleted-card, added-message, unknown-entry, doubled, moved-line.
Notes, which are no problem: thread.pending, edited-back, other-words, picture, unheld.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Protocol

from bot.audit.message import Me, Message
from bot.cards.kit import Card
from bot.cards.shown import as_sent, digest
from bot.terminal import plain
from policies.events import Entry
from policies.finding import Effect, Finding
from workers.drawn import Pointer

MOST_QUOTED = 240
BEFORE = 40  # characters that are shown before the place where two texts part
Value = str | int | float | None


class Known(Protocol):
    """What of the ledger is asked here."""

    def known(self, seq: int) -> Entry | None:
        """The entry at this place."""

    def is_placed(self, subject: str) -> bool:
        """Whether it is known where the subject is told, or must be: a change is told in one thread."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One subject of the ledger and how it has to look: a change, or what is told beside changes.

    before, after: where and how far it was drawn, read before and after the thread was read.
    lines: ledger place -> how its message may look; places without one are left out. Empty: only `said` knows.
    said: ledger place -> digest of what was posted for it, as far as that is known.
    card: the one message that is edited as things go on, as it would be drawn now; None: there is none.
    """

    change: str
    first: Entry
    lines: Mapping[int, tuple[Card, ...]]
    said: Mapping[int, str]
    before: Pointer | None
    after: Pointer | None
    card: Callable[[], Card] | None

    @property
    def cards(self) -> set[str]:
        """Timestamps under which its card may stand."""
        return {one.card_ts for one in (self.before, self.after) if one is not None and one.card_ts is not None}

    def is_card(self, message: Message) -> bool:
        """The message is the one that is edited: it carries the first entry."""
        mine = message.claim is not None and message.claim.seq == self.first.seq
        return mine and (self.card is not None or message.ts in self.cards)

    @property
    def drawn_to(self) -> int:
        """Ledger place up to which it must be there."""
        return self.before.seq if self.before is not None else 0


@dataclass(slots=True)
class _Seen:
    lines: dict[int, Message] = field(default_factory=dict)
    card: Message | None = None


def judge(messages: Sequence[Message], drawings: Mapping[str, Drawing], me: Me, known: Known) -> list[Finding]:
    """What is wrong with a thread in which these changes are drawn; `messages` with the parent, oldest first."""
    found: list[Finding] = []
    seen = {name: _Seen() for name in drawings}
    for message in messages:
        found += _message(message, drawings, seen, me, known)
    for name, drawing in drawings.items():
        found += _order(drawing, seen[name]) + _missing(drawing, seen[name])
    return found


def stray(message: Message, me: Me, known: Known, cards: Mapping[str, set[str]]) -> list[Finding]:
    """What is wrong with a message that stands in the channel itself. cards: change -> timestamps of its card."""
    if not me.wrote(message):
        return _foreign(message, me)
    claim = message.claim
    if claim is None:
        return [] if message.has_files else [_added(message)]
    problem = _unknown(message, known)
    if problem is not None:
        return [problem]
    mine = cards.get(claim.change, set())
    return [] if message.ts in mine or not mine else [_out_of_place(message, claim.change, known)]


def _message(
    message: Message, drawings: Mapping[str, Drawing], seen: dict[str, _Seen], me: Me, known: Known
) -> list[Finding]:
    if not me.wrote(message):
        return _foreign(message, me)
    claim = message.claim
    if claim is None:
        return [_finding("picture", message, "note")] if message.has_files else [_added(message)]
    problem = _unknown(message, known)
    if problem is not None:
        return [problem]
    drawing = drawings.get(claim.change)
    if drawing is None:
        return [_out_of_place(message, claim.change, known)]
    if drawing.is_card(message):
        return _card(message, drawing, seen[claim.change])
    if claim.seq not in drawing.lines:
        return [_added(message)]
    if claim.seq in seen[claim.change].lines:
        return [_finding("doubled", message, change=claim.change, text=_quoted(message.text))]
    seen[claim.change].lines[claim.seq] = message
    return _line(message, drawing)


def _line(message: Message, drawing: Drawing) -> list[Finding]:
    claim = message.claim
    seq = claim.seq if claim is not None else 0
    wanted = drawing.lines[seq]
    as_now = any(_looks_like(message, card) for card in wanted)
    if not as_now and (_digest(message) != drawing.said.get(seq) or message.edited_by is not None):
        texts = (message.text, wanted[0].text if wanted else "what was posted")
        return [_edited("edited-line", message, *texts, change=drawing.change, seq=seq)]
    if message.edited_by is not None:
        return [_finding("edited-back", message, "note", change=drawing.change, seq=seq, by=message.edited_by)]
    if not as_now and wanted:
        return [_finding("other-words", message, "note", change=drawing.change, seq=seq)]
    return []


def _looks_like(message: Message, card: Card) -> bool:
    if card.blocks:
        return not message.has_attachments and digest(Card(message.text, message.blocks)) == digest(card)
    return as_sent(message.text) == as_sent(card.text) and not message.shows_more_than(card.text)


def _digest(message: Message) -> str:
    """Of what was posted, without what Slack lays out of a bare text."""
    if message.has_attachments:
        return ""
    bare = not message.shows_more_than(message.text)
    return digest(Card(message.text, () if bare else message.blocks))


def _card(message: Message, drawing: Drawing, seen: _Seen) -> list[Finding]:
    if seen.card is not None or (drawing.cards and message.ts not in drawing.cards):
        return [_finding("doubled", message, change=drawing.change, text=_quoted(message.text))]
    seen.card = message
    found = Card(message.text, message.blocks)
    looks = digest(found)
    drawn = {one.card for one in (drawing.before, drawing.after) if one is not None}
    now = drawing.card() if drawing.card is not None else None
    if not message.has_attachments and (looks in drawn or (now is not None and looks == digest(now))):
        return []
    wanted = _words(now) if now is not None else "what was posted"
    return [_edited("edited-card", message, _words(found), wanted, change=drawing.change)]


def _order(drawing: Drawing, seen: _Seen) -> list[Finding]:
    """Lines that stand behind a later one."""
    found: list[Finding] = []
    highest = 0
    for seq, message in sorted(seen.lines.items(), key=lambda one: one[1].at):
        if seq < highest:
            found.append(_finding("moved-line", message, change=drawing.change))
        highest = max(highest, seq)
    return found


def _missing(drawing: Drawing, seen: _Seen) -> list[Finding]:
    found: list[Finding] = []
    if drawing.cards and seen.card is None:
        found.append(_bare("deleted-card", change=drawing.change))
    missing = [seq for seq in drawing.lines if seq not in seen.lines]
    found += [
        _bare("deleted-line", change=drawing.change, seq=seq, text=_quoted(_text(drawing.lines[seq])))
        for seq in missing
        if seq <= drawing.drawn_to
    ]
    waiting = [seq for seq in missing if seq > drawing.drawn_to]
    if waiting:
        found.append(_bare("pending", "note", change=drawing.change, n=len(waiting), seq=waiting[0]))
    return found


def _text(cards: Sequence[Card]) -> str:
    return cards[0].text if cards else "what was posted"


def _foreign(message: Message, me: Me) -> list[Finding]:
    """A message of somebody else, who may speak here, but not as the bot."""
    return [_added(message)] if message.claim is not None or me.looks_like(message) else []


def _out_of_place(message: Message, subject: str, known: Known) -> Finding:
    """A problem, unless it is forgotten where the subject was told."""
    if known.is_placed(subject):
        return _finding("moved-line", message, change=subject)
    return _finding("unheld", message, "note", change=subject)


def _unknown(message: Message, known: Known) -> Finding | None:
    claim = message.claim
    if claim is None:
        return None
    entry = known.known(claim.seq)
    if entry is not None and (entry.subject, entry.hash) == (claim.change, claim.hash):
        return None
    return _finding("unknown-entry", message, change=claim.change, seq=claim.seq, text=_quoted(message.text))


def _added(message: Message) -> Finding:
    return _finding("added-message", message, by=message.user or message.bot, text=_quoted(message.text))


def _edited(name: str, message: Message, found: str, expected: str, **values: Value) -> Finding:
    """Both texts from shortly before the place where they part, so that a reader sees what is different."""
    texts = [_visible(text) for text in (found, expected)]
    same = next((i for i, pair in enumerate(zip(*texts, strict=False)) if pair[0] != pair[1]), min(map(len, texts)))
    start = max(0, same - BEFORE) if same > MOST_QUOTED // 2 else 0
    quoted = {"found": _from(texts[0], start), "expected": _from(texts[1], start)}
    return _finding(name, message, **{**values, **quoted, "by": message.edited_by})


def _from(text: str, start: int) -> str:
    return ("…" if start else "") + _cut(text[start:])


def _finding(name: str, message: Message, effect: Effect = "refuse", /, **values: Value) -> Finding:
    return Finding(code=f"thread.{name}", effect=effect, values={**values, "ts": message.ts, "at": message.at})


def _bare(name: str, effect: Effect = "refuse", /, **values: Value) -> Finding:
    return Finding(code=f"thread.{name}", effect=effect, values=values)


def _words(card: Card) -> str:
    """What a reader sees of a card."""
    texts = [text for block in card.blocks for text in _texts(block)]
    return " / ".join(texts) if texts else card.text


def _texts(block: Mapping[str, object]) -> list[str]:
    text = block.get("text")
    own = [str(text.get("text", ""))] if isinstance(text, dict) else [text] if isinstance(text, str) else []
    inner = block.get("elements")
    parts = [part for part in inner if isinstance(part, dict)] if isinstance(inner, list | tuple) else []
    return own + [found for part in parts for found in _texts(part)]


def _quoted(text: str) -> str:
    return _cut(_visible(text))


def _visible(text: str) -> str:
    """As a reader sees it, in universal time."""
    return plain(text, lambda user: user, UTC)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_QUOTED else text[:MOST_QUOTED] + "…"
