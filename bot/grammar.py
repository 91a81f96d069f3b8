"""Text of a chat command -> a Command of `policies.intents`, or a ParseError value. Pure; nothing is guessed.

>>> parse("/knob restore TARGET_CTAS=512").normalised
'/knob restore TARGET_CTAS=512'
>>> parse("/knob restore TARGET_CTAS=1;reboot").error.code
'bad-value'
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.arguments import Arguments
from bot.commands import COMMANDS, cause, find
from bot.commands.deploy import COMMAND as DEPLOY
from bot.commands.not_built import NOT_BUILT, not_built
from bot.escape import named
from bot.names import Names, did_you_mean, near
from bot.normalise import Unreadable, unwrap
from bot.options import OPTIONS
from bot.spelling import is_change, refuse_odd
from bot.words import Word, joined, split
from policies.intents import Command, Help

__all__ = ["Names", "ParseError", "Reading", "parse", "parse_slash", "render"]

FAMILIES = tuple(NOT_BUILT)
CAUSE = "/cause"
TYPING_ERROR = 0.8  # from here on a word is taken for one of ours that was typed wrong
_WORDS = {one.word for one in COMMANDS}


@dataclass(frozen=True, slots=True)
class ParseError:
    """Why a text is no command. Plain text for people: user text in it is shortened and cannot ping anybody."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text was read as. Exactly one of `command` and `error` is None.

    `normalised` is the text in its plain spelling (as far as it could be read); `changed` says that it is not what was
    typed, so that "I read this as ..." must be shown.
    """

    command: Command | None
    normalised: str
    changed: bool
    error: ParseError | None


def parse(text: str, *, names: Names | None = None) -> Reading:
    """Read `/knob restore X=1`, the same after a mention of the bot, or without `/knob`.

    `names` None: whether knobs, scopes and orders exist is not checked.
    """
    words: tuple[Word, ...] = ()
    typed = ""
    try:
        unwrapped = unwrap(text)
        typed = unwrapped.text
        words = split(typed)
        family, rest = _family(words)
        if not rest and (family is not None or unwrapped.mentioned):
            return _reading(Help(), words, typed, wrapped=unwrapped.changed)
        command, read = _command(family, rest, names)
        words = (*(() if family is None else (Word(family),)), *read)
        return _reading(command, words, typed, wrapped=unwrapped.changed)
    except Unreadable as problem:
        normalised = joined(words)
        error = ParseError(problem.code, problem.message, problem.hint)
        return Reading(None, normalised, bool(normalised) and normalised != typed, error)


def parse_slash(command: str, text: str, *, names: Names | None = None) -> Reading:
    """Read a slash command, whose word and text Slack sends apart."""
    return parse(f"{command} {text}", names=names)


def render(command: Command) -> str:
    """A command as it is typed, without `/knob`; `parse` reads it back as the same command."""
    return next(text for one in COMMANDS if (text := one.write(command)) is not None)


def _reading(command: Command, words: tuple[Word, ...], typed: str, *, wrapped: bool) -> Reading:
    normalised = joined(words)
    return Reading(command, normalised, wrapped or normalised != typed, None)


def _family(words: tuple[Word, ...]) -> tuple[str | None, tuple[Word, ...]]:
    if not words:
        return None, ()
    first = words[0]
    if not first.bare.startswith("/"):
        return None, words
    refuse_odd(first)
    family = first.bare.lower()
    if family not in FAMILIES or first.quoted is not None:
        raise Unreadable(
            "unknown-family",
            f"there is no command {named(first.text)}",
            hint=did_you_mean(near(family, FAMILIES)) or "commands begin with /knob",
        )
    return family, words[1:]


def _command(family: str | None, rest: tuple[Word, ...], names: Names | None) -> tuple[Command, tuple[Word, ...]]:
    """The command, and its words in their plain spelling."""
    if not rest:
        raise Unreadable("empty", "there is no command in this message", hint="help shows what can be typed")
    rest = rest[1:] if _cause_is_its_family(rest) else rest
    first = rest[0]
    refuse_odd(first)
    word = first.bare.lower()
    found = find(word, family or _meant(word, rest, names)) if first.quoted is None else None
    if found is None or (family is not None and family not in found.families):
        if family == CAUSE and _states(rest, names):
            found = cause.COMMAND
        elif _is_service(family, rest, names):
            found = DEPLOY
        else:
            raise _unknown(family, word, first, names)
        arguments = Arguments(rest, usage=found.usage, names=names)
        return found.read(arguments), tuple(arguments.words)
    arguments = Arguments(rest[1:], usage=found.usage, names=names)
    command = found.read(arguments)
    if isinstance(command, Help) and command.command is not None:
        _check_help(command.command)
    return command, (Word(word), *arguments.words)


def _meant(word: str, rest: tuple[Word, ...], names: Names | None) -> str | None:
    """The family of a word that stands behind two of them, by what it is said about."""
    if word != "why" or len(rest) < 2:
        return None
    about = rest[1].bare
    if about in names.knobs if names is not None else not about.islower() and not is_change(about):
        return "/knob"
    return CAUSE


def _cause_is_its_family(rest: tuple[Word, ...]) -> bool:
    """`cause why C-1` and `cause dispute st-1 ...`: the slash command's name was typed without its slash."""
    words = [one.text.lower() for one in rest[:3]]
    return len(words) == 3 and words[0] == "cause" and words[1] in {"why", "dispute"} and words[2] not in OPTIONS


def _states(rest: tuple[Word, ...], names: Names | None) -> bool:
    """Whether the words behind /cause are a cause that is stated, and not a word of ours that is misspelt."""
    first = rest[0]
    if first.quoted is not None or (names is not None and first.bare in names.causes):
        return True
    behind = [one.word for one in COMMANDS if CAUSE in one.families]
    return first.bare.lower() not in _WORDS and not near(first.bare.lower(), behind)


def _is_service(family: str | None, rest: tuple[Word, ...], names: Names | None) -> bool:
    """Behind /deploy, what is no word of ours is the name of a service; not what looks like a word with a typing error.

    Where the names of the fleet are not known, a word that stands alone must not look like one of ours at all.
    """
    word = rest[0].bare
    if family != "/deploy" or rest[0].quoted is not None or word.lower() in NOT_BUILT["/deploy"]:
        return False
    if names is not None:
        return word in names.services
    alike = near(word.lower(), _WORDS, at_least=TYPING_ERROR) if len(rest) > 1 else near(word.lower(), _WORDS)
    return word.lower() not in _WORDS and not alike


def _unknown(family: str | None, word: str, first: Word, names: Names | None) -> Unreadable:
    if first.quoted is None and (absent := not_built(family, word)) is not None:
        return _absent(absent)
    meant = near(word, _WORDS)
    meant = tuple(one for one in meant if one == _behind(family, one)) or meant
    meant = tuple(_behind(family, one) for one in meant)
    what, hint = "command", "help shows what can be typed"
    if family == "/deploy" and word not in _WORDS:
        services = names.services if names is not None else frozenset()
        what, meant = "command or service", (*meant, *near(first.bare, services))
        hint = f"this fleet has the services {', '.join(sorted(services))}" if services else hint
    return Unreadable(
        "unknown-word",
        f"there is no {what} {named(first.text)}" + (f" behind {family}" if word in _WORDS and family else ""),
        hint=did_you_mean(meant) or hint,
    )


def _absent(what: str) -> Unreadable:
    return Unreadable("not-built", f"`{what}` is not available in this version", hint="help shows what is")


def _behind(family: str | None, word: str) -> str:
    """A word, with its family where that is another one than was typed."""
    found = find(word, family)
    return word if found is None or family is None or family in found.families else f"{found.families[0]} {word}"


def _check_help(word: str) -> None:
    if word in _WORDS:
        return
    if (absent := not_built(None, word)) is not None:
        raise _absent(absent)
    raise Unreadable(
        "unknown-word",
        f"there is no command {named(word)}",
        hint=did_you_mean(near(word, _WORDS)) or "help shows what can be typed",
    )
