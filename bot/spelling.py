"""How names, values, scopes, orders and change ids are spelled, and the refusals when they are not."""

from __future__ import annotations

import re

from bot.escape import named
from bot.names import Names, did_you_mean, near
from bot.normalise import Unreadable, character_name, lookalike
from bot.words import Word
from policies.deploys.strategy import sound_ref
from policies.tickets import sound_ticket

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")  # as in the fleet file
_VALUE = re.compile(r"[A-Za-z0-9_.,:/@%+~-]+")
_SCOPE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(@[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_ORDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_DURATION = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_MOST_DURATION_S = 3650 * 86_400
_CHANGE = re.compile(r"C-([1-9][0-9]{0,8})", re.IGNORECASE)
_STATEMENT = re.compile(r"st-([1-9][0-9]{0,8})", re.IGNORECASE)
_NEARLY_STATEMENT = re.compile(r"[s#]?t?-*([1-9][0-9]{0,8})", re.IGNORECASE)
_NEARLY_CHANGE = re.compile(r"[C#]?-*([1-9][0-9]{0,8})", re.IGNORECASE)


def is_plain_value(text: str) -> bool:
    """Whether a value may stand without quotes."""
    return _VALUE.fullmatch(text) is not None


def is_change(text: str) -> bool:
    """Whether it is spelled like a change: `C-142`."""
    return _CHANGE.fullmatch(text) is not None


def refuse_odd(word: Word) -> None:
    """Refuse characters outside ASCII in the unquoted part of a word: they may look like others.

    Raises:
        Unreadable: it names the character and where it is.
    """
    for index, char in enumerate(word.bare):
        if not char.isascii():
            raise _odd(char, f"{named(word.bare)}, at its character {index + 1}")


def _odd(char: str, where: str) -> Unreadable:
    return Unreadable(
        "odd-character",
        f"{character_name(char)} in {where}",
        hint="names and plain values use the letters A to Z; type the word again instead of pasting it",
    )


def knob_name(name: str, word: Word, names: Names | None, usage: str) -> str:
    """A knob's NAME, exactly as the fleet spells it.

    Raises:
        Unreadable: misspelled, or the fleet has no such knob.
    """
    refuse_odd(word)
    if not _NAME.fullmatch(name):
        raise Unreadable(
            "bad-name",
            f"{named(name or word.text)} is not a name, expected one like TARGET_CTAS",
            hint=f"usage: {usage}",
        )
    if names is not None and name not in names.knobs:
        raise Unreadable(
            "unknown-knob",
            f"there is no knob {named(name)}",
            hint=did_you_mean(names.knob_for(name)) or "/knob list shows the knobs of this fleet",
        )
    return name


def value(name: str, bare: str, word: Word) -> str:
    """A value behind =: `bare`, or the quoted text of the word.

    Raises:
        Unreadable: empty, or with characters that need quotes or look like others.
    """
    if word.quoted is not None and not bare:
        if (index := lookalike(word.quoted)) is not None:
            raise _odd(word.quoted[index], f"the value of {name}")
        return word.quoted
    if not bare:
        raise Unreadable(
            "empty-value",
            f'"{name}=" has no value',
            hint=f'unset {name} takes it out of the environment; {name}="" sets it to the empty text',
        )
    if word.quoted is not None or not is_plain_value(bare):
        raise Unreadable(
            "bad-value",
            f"the value {named(word.text.partition('=')[2])} has characters that need quotes",
            hint=f'letters, digits and _.,:/@%+~- stand alone; anything else goes in quotes: {name}="..."',
        )
    return bare


def _places(names: Names) -> str:
    services, hosts = (", ".join(sorted(some)) or "none" for some in (names.services, names.hosts))
    return f"this fleet has the services {services} and the hosts {hosts}"


def scope(word: Word, names: Names | None) -> str:
    """A service, a host or service@host; never guessed between two.

    Raises:
        Unreadable: misspelled, unknown, or both a service and a host.
    """
    typed = word.bare
    if not _SCOPE.fullmatch(typed):
        raise Unreadable(
            "bad-scope",
            f"{named(typed)} is not a scope",
            hint="expected a service, a host or service@host, as in decode@gpu1",
        )
    if names is None:
        return typed
    known = {*names.services, *names.hosts, *names.instances}
    if typed in names.services and typed in names.hosts:
        fitting = " or ".join(sorted(one for one in names.instances if typed in one.split("@")))
        raise Unreadable(
            "ambiguous-scope", f'"{typed}" is a service and a host', hint=f"say which: {fitting or 'service@host'}"
        )
    if typed not in known:
        raise Unreadable(
            "unknown-scope",
            f"there is no service, host or instance {named(typed)}",
            hint=did_you_mean(near(typed, known)) or _places(names),
        )
    return typed


def service(word: Word, names: Names | None) -> str:
    """The name of a service.

    Raises:
        Unreadable: misspelled or unknown.
    """
    typed = word.bare
    if not _ORDER.fullmatch(typed):
        raise Unreadable("bad-service", f"{named(typed)} is not a service", hint="expected a name like decode")
    if names is not None and typed not in names.services:
        known = ", ".join(sorted(names.services)) or "none"
        raise Unreadable(
            "unknown-service",
            f"there is no service {named(typed)}",
            hint=did_you_mean(near(typed, names.services)) or f"this fleet has {known}",
        )
    return typed


def ref(word: Word) -> str:
    """A version. Whether it fits the service, and whether it is there, is found out on the hosts.

    Raises:
        Unreadable: it could be no version at all.
    """
    if not sound_ref(word.bare):
        raise Unreadable(
            "bad-ref",
            f"{named(word.bare)} is not a version",
            hint="letters, digits and ._+:/@~- in one word that begins with a letter or digit, without .. and //",
        )
    return word.bare


def ticket(word: Word) -> str:
    """The id of an incident or ticket, as it was typed.

    Raises:
        Unreadable: it could be none.
    """
    if not sound_ticket(word.bare):
        hint = "expected one word like INC-123, with a digit or a capital letter, of letters, digits and ._/#:-"
        raise Unreadable("bad-ticket", f"{named(word.bare)} is not the id of a ticket", hint=hint)
    return word.bare


def order(word: Word, names: Names | None) -> str:
    """The name of a restart order.

    Raises:
        Unreadable: misspelled or unknown.
    """
    typed = word.bare
    if not _ORDER.fullmatch(typed):
        raise Unreadable("bad-order", f"{named(typed)} is not a restart order", hint="expected a name like co-restart")
    if names is not None and typed not in names.orders:
        raise Unreadable(
            "unknown-order",
            f"there is no restart order {named(typed)}",
            hint=did_you_mean(near(typed, names.orders))
            or f"this fleet has {', '.join(sorted(names.orders)) or 'none'}",
        )
    return typed


def change_id(word: Word) -> str:
    """A change id in capital letters.

    Raises:
        Unreadable: it is none.
    """
    if (match := _CHANGE.fullmatch(word.bare)) is not None:
        return f"C-{match[1]}"
    nearly = _NEARLY_CHANGE.fullmatch(word.bare)
    raise Unreadable(
        "bad-change",
        f"{named(word.text)} is not a change, expected a number like C-142",
        hint=f"did you mean C-{nearly[1]}?" if nearly else "status shows the changes that are open",
    )


def duration(text: str, word: Word) -> float:
    """A time such as `90s`, `30m`, `2h` or `3d`. Units: seconds.

    Raises:
        Unreadable: it is none, or longer than ten years.
    """
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[found[2]] if found is not None else 0.0
    if not 0 < seconds <= _MOST_DURATION_S:
        raise Unreadable(
            "bad-duration", f"{named(word.text)} is not a time", hint="write a whole number and s, m, h or d, as in 2h"
        )
    return seconds


def statement_id(word: Word) -> str:
    """A statement's id, spelled as we spell it.

    Raises:
        Unreadable: it is none.
    """
    if (match := _STATEMENT.fullmatch(word.bare)) is not None:
        return f"st-{match[1]}"
    nearly = _NEARLY_STATEMENT.fullmatch(word.bare)
    raise Unreadable(
        "bad-statement",
        f"{named(word.text)} is not a statement, expected one like st-3",
        hint=f"did you mean st-{nearly[1]}?" if nearly else "its number stands with it, where it was stated",
    )


def change_or_service(word: Word, names: Names | None) -> str:
    """A change id in capital letters, or the name of a service.

    Raises:
        Unreadable: neither.
    """
    typed = word.bare
    if (match := _CHANGE.fullmatch(typed)) is not None:
        return f"C-{match[1]}"
    if names is None and _ORDER.fullmatch(typed):
        return typed
    if names is not None and typed in names.services:
        return typed
    known = () if names is None else names.services
    if names is not None and typed in names.knobs:
        hint = f"/knob show {typed} tells about a knob"
    else:
        hint = did_you_mean(near(typed, known)) or f"services: {', '.join(sorted(known)) or 'none'}; a change is C-142"
    raise Unreadable("unknown-subject", f"there is no change or service {named(typed)}", hint=hint)


def cause_name(word: Word, names: Names | None) -> str:
    """A catalogued cause, exactly as the fleet file spells it; or a change, which is said to have done it.

    Raises:
        Unreadable: misspelled or unknown.
    """
    typed = word.bare
    if is_change(typed):
        return change_id(word)
    if not _NAME.fullmatch(typed):
        raise Unreadable(
            "bad-name",
            f"{named(typed)} is not the name of a cause",
            hint='words of your own go in quotes: /cause "..."',
        )
    if names is not None and typed not in names.causes:
        raise Unreadable(
            "unknown-cause",
            f"the fleet file has no cause {named(typed)}",
            hint=did_you_mean(near(typed, names.causes)) or 'words of your own go in quotes: /cause "..."',
        )
    return typed
