"""A cursor over typed words. What is not understood is refused, nothing is skipped."""

from __future__ import annotations

from dataclasses import replace

from bot import spelling
from bot.escape import named, shown
from bot.names import Names
from bot.normalise import Unreadable
from bot.words import Word


class Cursor:
    """Takes the words of one command one after the other. What takes a word may raise `Unreadable`."""

    def __init__(self, words: tuple[Word, ...], *, usage: str, names: Names | None) -> None:
        self.words = list(words)
        self.usage = usage
        self.names = names
        self._next = 0

    def rest(self) -> bool:
        """Whether words are left."""
        return self._next < len(self.words)

    def end(self) -> None:
        """Nothing may be left."""
        if self.rest():
            word = self._take()
            self._plain(word)
            raise Unreadable("unexpected-word", f"{named(word.text)} is not expected here", hint=f"usage: {self.usage}")

    def word(self) -> str | None:
        """One plain word in lower case, or None at the end."""
        if not self.rest():
            return None
        word = self._take()
        self._plain(word)
        return self._fold(word.bare)

    def keyword(self, word: str) -> bool:
        """Whether the next word is this one, in any case; it is taken then."""
        if self._peek() != word:
            return False
        self._plain(self._take())
        self._fold(word)
        return True

    def _take(self) -> Word:
        self._next += 1
        return self.words[self._next - 1]

    def _peek(self) -> str:
        """The next word in lower case when it is a plain one; `""` at the end."""
        return self.words[self._next].text.lower() if self.rest() else ""

    def _peek_is_equals(self) -> bool:
        return self.rest() and self.words[self._next].bare.startswith("=")

    def _replace(self, word: Word, bare: str) -> None:
        """Note how the word just taken was read, for the normalised text."""
        self.words[self._next - 1] = replace(word, bare=bare)

    def _fold(self, bare: str) -> str:
        self._replace(self.words[self._next - 1], bare.lower())
        return bare.lower()

    def _plain(self, word: Word) -> None:
        """The word has neither quotes nor characters from other alphabets."""
        spelling.refuse_odd(word)
        if word.quoted is not None:
            raise Unreadable(
                "quote-not-here",
                f"a quoted text is not expected here: {shown(word.text)}",
                hint=f"usage: {self.usage}",
            )
