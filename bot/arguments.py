"""The words behind a command word, taken one after the other. What is not understood is refused, nothing is skipped."""

from __future__ import annotations

from bot import spelling
from bot.citing import expressions
from bot.cursor import Cursor
from bot.escape import named, shown
from bot.names import did_you_mean, near
from bot.normalise import Unreadable
from bot.options import OPTIONS, Option, Options
from bot.words import Word


class Arguments(Cursor):
    """The words behind one command word. Every method that takes a word may raise `Unreadable`."""

    def knob(self) -> str:
        """NAME, without a value."""
        word = self._name_word()
        name, equals, _ = word.bare.partition("=")
        checked = spelling.knob_name(name, word, self.names, self.usage)
        if equals or self._peek_is_equals():
            raise Unreadable("value-not-here", "no value is expected behind the name", hint=f"usage: {self.usage}")
        return checked

    def assignment(self, *, value_required: bool) -> tuple[str, str | None]:
        """NAME=VALUE, or NAME alone where the value may be left out."""
        word = self._name_word()
        name, equals, value = word.bare.partition("=")
        checked = spelling.knob_name(name, word, self.names, self.usage)
        following = self._peek()
        if self._peek_is_equals() or (equals and not value and word.quoted is None and following not in {"", *OPTIONS}):
            raise Unreadable(
                "spaced-equals",
                "there is a blank beside =",
                hint=f"write {checked}=VALUE without blanks around =",
            )
        if not equals:
            if self.rest():
                spelling.refuse_odd(self.words[self._next])
            if value_required or not (following in {"", *OPTIONS} or near(following, OPTIONS)):
                example = self._example(checked)
                raise Unreadable("missing-value", f'"{checked}" has no value', hint=f"write {example}")
            return checked, None
        return checked, spelling.value(checked, value, word)

    def scope(self) -> str:
        """SCOPE: a service, a host or service@host."""
        if not self.rest() or self._peek() in OPTIONS:
            raise Unreadable("missing-scope", "what to restart is missing", hint=f"usage: {self.usage}")
        word = self._take()
        self._plain(word)
        return spelling.scope(word, self.names)

    def service(self) -> str:
        """SERVICE: its name in the fleet file."""
        if not self.rest() or self._peek() in OPTIONS:
            raise Unreadable("missing-service", "the service is missing", hint=f"usage: {self.usage}")
        word = self._take()
        self._plain(word)
        return spelling.service(word, self.names)

    def ref(self) -> str:
        """REF: the version that is wanted, as the fleet file's strategy names it."""
        if not self.rest() or self._peek() in OPTIONS:
            raise Unreadable("missing-ref", "the version is missing", hint=f"usage: {self.usage}")
        word = self._take()
        self._plain(word)
        return spelling.ref(word)

    def change(self, *, required: bool) -> str | None:
        """A change id like `C-142`, in capital letters."""
        if not self.rest():
            if required:
                raise Unreadable("missing-change", "the change is missing", hint=f"usage: {self.usage}")
            return None
        word = self._take()
        self._plain(word)
        change = spelling.change_id(word)
        self._replace(word, change)
        return change

    def since(self) -> float | None:
        """`since DURATION`, as in `since 2h`; None where it is left out. Units: seconds."""
        if not self.rest() or self._peek() == "ticket":
            return None
        word = self._take()
        self._plain(word)
        if word.bare.lower() != "since":
            hint = f"usage: {self.usage}"
            raise Unreadable("unexpected-word", f"{named(word.text)} is not expected here", hint=hint)
        self._fold(word.bare)
        if not self.rest():
            raise Unreadable("missing-option-value", 'a time is missing behind "since"', hint="write since 2h")
        word = self._take()
        self._plain(word)
        return spelling.duration(self._fold(word.bare), word)

    def ticket(self) -> str | None:
        """`ticket ID`, as in `ticket INC-123`; None where it is left out."""
        return self._ticket() if self.keyword("ticket") else None

    def statement(self) -> str:
        """A statement's id like `st-3`."""
        if not self.rest():
            raise Unreadable("missing-statement", "the statement is missing", hint=f"usage: {self.usage}")
        word = self._take()
        self._plain(word)
        statement = spelling.statement_id(word)
        self._replace(word, statement)
        return statement

    def change_or_service(self) -> str:
        """A change id, or a service of the fleet."""
        if not self.rest():
            raise Unreadable("missing-change", "what it is about is missing", hint=f"usage: {self.usage}")
        word = self._take()
        self._plain(word)
        about = spelling.change_or_service(word, self.names)
        self._replace(word, about)
        return about

    def cause(self) -> tuple[str | None, str | None]:
        """(NAME of a catalogued cause, None), or (None, the words in quotes)."""
        if not self.rest() or self._peek() in OPTIONS:
            raise Unreadable("missing-cause", "the cause is missing", hint=f"usage: {self.usage}")
        word = self._take()
        if word.quoted is not None and not word.bare:
            if not word.quoted.strip():
                raise Unreadable("cause-empty", "the cause is empty", hint=f"usage: {self.usage}")
            return None, word.quoted
        self._plain(word)
        return spelling.cause_name(word, self.names), None

    def options(self, *allowed: Option) -> Options:
        """Options in any order, up to the end of the text."""
        found: dict[Option, str | tuple[str, ...] | float | bool] = {}
        while self.rest():
            option = self._option(allowed, found)
            match option:
                case "on":
                    found[option] = self._scope()
                case "via":
                    found[option] = self._order()
                case "of":
                    found[option] = self._of()
                case "because":
                    found[option] = self._because()
                case "citing":
                    found[option] = self._citing()
                case "ticket":
                    found[option] = self._ticket()
                case "for":
                    found[option] = self._for()
                case "anyway" | "emergency" | "dry":
                    found[option] = True
        if "emergency" in found and "because" not in found:
            hint = 'write emergency because "..." with the reason in quotes'
            raise Unreadable("emergency-needs-because", "an emergency needs its reason", hint=hint)
        return Options(
            scope=_text(found.get("on")),
            order=_text(found.get("via")),
            of=_text(found.get("of")),
            because=_text(found.get("because")),
            citing=citing if isinstance(citing := found.get("citing"), tuple) else (),
            ticket=_text(found.get("ticket")),
            for_s=for_s if isinstance(for_s := found.get("for"), float) else None,
            anyway="anyway" in found,
            emergency="emergency" in found,
            dry="dry" in found,
        )

    def _name_word(self) -> Word:
        if not self.rest():
            raise Unreadable("missing-name", "the name of the knob is missing", hint=f"usage: {self.usage}")
        return self._take()

    def _example(self, name: str) -> str:
        """NAME=VALUE with the value that seems to be meant."""
        following = self.words[self._next] if self.rest() else None
        if following is None or following.quoted is not None or not spelling.is_plain_value(following.bare):
            return f"{name}=VALUE"
        return f"{name}=VALUE" if following.bare.lower() in {*OPTIONS, "to"} else f"{name}={shown(following.bare)}"

    def _option(self, allowed: tuple[Option, ...], found: dict[Option, str | tuple[str, ...] | float | bool]) -> Option:
        word = self._take()
        self._plain(word)
        option = next((one for one in OPTIONS if one == word.bare.lower()), None)
        if option is None:
            hint = did_you_mean(near(word.bare.lstrip("-"), allowed)) or f"usage: {self.usage}"
            raise Unreadable("unexpected-word", f"{named(word.text)} is not expected here", hint=hint)
        if option not in allowed:
            raise Unreadable(
                "option-not-here", f'"{option}" does not go with this command', hint=f"usage: {self.usage}"
            )
        if option in found:
            raise Unreadable("repeated-option", f'"{option}" is given twice', hint="give each option once")
        self._fold(word.bare)
        return option

    def _option_word(self, option: str, what: str) -> Word:
        if not self.rest() or (self._peek() in OPTIONS):
            raise Unreadable(
                "missing-option-value", f'{what} is missing behind "{option}"', hint=f"usage: {self.usage}"
            )
        return self._take()

    def _scope(self) -> str:
        word = self._option_word("on", "a service, a host or service@host")
        self._plain(word)
        return spelling.scope(word, self.names)

    def _order(self) -> str:
        word = self._option_word("via", "a restart order")
        self._plain(word)
        return spelling.order(word, self.names)

    def _for(self) -> float:
        word = self._option_word("for", "a time like 2h")
        self._plain(word)
        return spelling.duration(self._fold(word.bare), word)

    def _ticket(self) -> str:
        word = self._option_word("ticket", "an id like INC-123")
        self._plain(word)
        return spelling.ticket(word)

    def _of(self) -> str:
        word = self._option_word("of", "a change like C-142")
        self._plain(word)
        change = spelling.change_id(word)
        self._replace(word, change)
        return change

    def _because(self) -> str:
        hint = 'write because "..." with the reason in quotes'
        if not self.rest():
            raise Unreadable("missing-option-value", 'the reason is missing behind "because"', hint=hint)
        word = self._take()
        if word.quoted is None or word.bare:
            rest = " ".join(one.text for one in self.words[self._next - 1 :])
            raise Unreadable(
                "because-unquoted",
                "the reason needs quotes around it",
                hint=f'write because "{shown(rest.replace(chr(34), ""))}"',
            )
        if not word.quoted.strip():
            raise Unreadable("because-empty", "the reason is empty", hint=hint)
        return word.quoted

    def _citing(self) -> tuple[str, ...]:
        words: list[Word] = []
        while self.rest() and not (self._peek() in OPTIONS and self.words[self._next].quoted is None):
            word = self._take()
            spelling.refuse_odd(word)
            words.append(word)
        return expressions(words)


def _text(value: str | tuple[str, ...] | float | bool | None) -> str | None:
    return value if isinstance(value, str) else None
