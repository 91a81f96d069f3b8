"""Typed text -> words. Outside quotes dashes and blanks become plain; inside quotes what can be seen stays."""

from __future__ import annotations

from dataclasses import dataclass

from bot.escape import named
from bot.normalise import EM_DASHES, Unreadable, blank_or_none, plain_dash, refuse_control

# which characters end a text that began with the key; keyboards make these pairs of " and ' in different languages
_CLOSERS = {
    '"': '"',
    "\u201c": "\u201d",
    "\u201d": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u201f": "\u201d",
    "\u00ab": "\u00bb",
    "'": "'",
    "\u2018": "\u2019",
    "\u2019": "\u2019",
    "\u201a": "\u2018\u2019",
}
_SINGLE = frozenset("'\u2018\u2019\u201a")  # these are apostrophes too
_OTHERWISE = {
    '"': "\u201d",
    "\u201c": '"',
    "\u201d": '"',
    "\u201e": '"',
    "\u2018": "'",
    "\u2019": "'",
}  # half converted


@dataclass(frozen=True, slots=True)
class Word:
    """`bare` text, then perhaps a `quoted` one: `on`, `NAME=512`, `"a reason"`, `NAME="a b"`.

    `at` counts from 0 in the typed text. `glued`: no blank before it (after a quote, only a comma can follow so).
    """

    bare: str
    quoted: str | None = None
    at: int = 0
    glued: bool = False

    @property
    def text(self) -> str:
        """The word in its plain spelling."""
        return self.bare if self.quoted is None else f"{self.bare}{quote(self.quoted)}"


def quote(text: str) -> str:
    """`text` in straight quotes, so that it reads back as exactly this."""
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    if "'" not in text:
        return f"'{text}'"
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


def joined(words: tuple[Word, ...]) -> str:
    """The plain spelling of all words."""
    return "".join(("" if word.glued or not index else " ") + word.text for index, word in enumerate(words))


def split(text: str) -> tuple[Word, ...]:
    """Words of a typed text.

    Raises:
        Unreadable: control characters, a quote that does not end, text right behind a quote.
    """
    words: list[Word] = []
    bare, quoted, start, at = "", None, 0, 0
    pending_glue = False
    while at < len(text):
        char = text[at]
        refuse = blank_or_none(char)
        if refuse is None:
            refuse_control(char, at)
        if refuse == " ":
            if bare or quoted is not None:
                words.append(Word(bare, quoted, start, pending_glue))
            bare, quoted, pending_glue = "", None, False
        elif refuse == "":
            pass
        elif quoted is not None:  # right behind a closing quote
            words.append(Word(bare, quoted, start, pending_glue))
            bare, quoted, start, pending_glue = char, None, at, True
        elif char in _CLOSERS and (not bare or bare[-1] in "=,"):
            start = start if bare else at
            quoted, at = _quoted(text, at)
            continue
        else:
            start = start if bare else at
            bare += _plain(text, at, bare)
        at += 1
    if bare or quoted is not None:
        words.append(Word(bare, quoted, start, pending_glue))
    return tuple(words)


def _plain(text: str, at: int, bare: str) -> str:
    char = plain_dash(text[at])
    if char not in EM_DASHES:
        return char
    between = bool(bare) and bare[-1].isalnum() and text[at + 1 : at + 2].isalnum()
    if not between:
        return "--"  # at the start of a word or value this is what a keyboard makes of two hyphens
    if "=" in bare:
        raise Unreadable(
            "dash-unclear",
            f"the long dash at character {at + 1} may stand for - or for --",
            hint='put the value in quotes, as in NAME="a-b"',
        )
    return "-"


def _quoted(text: str, opened: int) -> tuple[str, int]:
    """The text of the quote that opens at `opened`, and the index behind its end."""
    opener = text[opened]
    closers = _CLOSERS[opener]
    end = _end(text, opened, closers)
    if end is None:
        end = _end(text, opened, _OTHERWISE.get(opener, closers))
    if end is None:
        raise Unreadable(
            "unclosed-quote",
            f"the quote at character {opened + 1} does not end: {named(text[opened + 1 :])}",
            hint=f"add {chr(34)} at the end of the text",
        )
    if end + 1 < len(text) and not _ends_word(text, end + 1):
        raise Unreadable(
            "text-after-quote",
            f"a blank is missing after the quote that ends at character {end + 1}, before {named(text[end + 1 :])}",
            hint='a quoted text stands alone; inside "..." write \\" for a quote, or use \'...\' around it',
        )
    return _content(text[opened + 1 : end], opened + 1, escapes=opener == '"'), end + 1


def _ends_word(text: str, at: int) -> bool:
    while at < len(text) and blank_or_none(text[at]) == "":
        at += 1
    return at >= len(text) or text[at] == "," or blank_or_none(text[at]) == " "


def _end(text: str, opened: int, closers: str) -> int | None:
    """Index of the closing quote. An apostrophe inside a word does not close."""
    single = text[opened] in _SINGLE
    at = opened + 1
    while at < len(text):
        if text[at] == "\\" and text[opened] == '"' and text[at + 1 : at + 2] in {'"', "\\"}:
            at += 2
            continue
        if text[at] in closers and (not single or _ends_word(text, at + 1)):
            return at
        at += 1
    return None


def _content(raw: str, offset: int, *, escapes: bool) -> str:
    out: list[str] = []
    at = 0
    while at < len(raw):
        char = raw[at]
        if escapes and char == "\\" and raw[at + 1 : at + 2] in {'"', "\\"}:
            out.append(raw[at + 1])
            at += 2
            continue
        stands_for = blank_or_none(char)
        if stands_for is None:
            refuse_control(char, offset + at)
        out.append(char if stands_for is None else stands_for)
        at += 1
    return "".join(out)
