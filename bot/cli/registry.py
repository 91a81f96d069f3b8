"""The commands of the terminal: where each one is, and its line of help. Nothing is imported until it is called."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

GROUP = "clawback.commands"


@dataclass(frozen=True, slots=True)
class Entry:
    """`target` is `module:attribute`, the attribute a click command."""

    target: str
    about: str


COMMANDS: dict[str, Entry] = {
    "up": Entry("bot.cli.up:command", "run bot, worker and narrator, with an embedded Valkey unless REDIS_URL is set"),
    "bot": Entry("bot.cli.roles:bot", "run the bot alone: talk to Slack"),
    "worker": Entry("bot.cli.roles:worker", "run one worker alone: act on hosts"),
    "narrator": Entry("bot.cli.roles:narrator", "run the narrator alone: draw threads and cards"),
    "archive": Entry("bot.cli.archive:archive", "run the archive alone: put the ledger away into files, one a day"),
    "say": Entry("bot.cli.say:command", "say a chat command from this terminal, also while Slack is down"),
    "confirm": Entry("bot.cli.acts:confirm", "approve the plan of a change"),
    "deny": Entry("bot.cli.acts:deny", "say no to the plan of a change"),
    "abort": Entry("bot.cli.acts:abort", "stop a change after the gate that runs, then undo it"),
    "keep": Entry("bot.cli.acts:keep", "leave a held change as it is"),
    "undo": Entry("bot.cli.acts:undo", "undo a held change"),
    "retry": Entry("bot.cli.acts:retry", "look at the failed gate of a held change again"),
    "ratify": Entry("bot.cli.acts:ratify", "answer for what somebody else did alone in an emergency"),
    "status": Entry("bot.cli.status:command", "where a change is, step by step; or the last changes"),
    "explain": Entry("bot.cli.explain:command", "show how a chat command is read"),
    "fleet": Entry("bot.cli.fleet:command", "check a fleet file; what is not as it was left on its hosts"),
    "systemd": Entry("bot.cli.systemd:command", "the value a unit would start with, and the line that decides it"),
    "proof": Entry("bot.cli.proof:command", "whether a process and its children have a variable"),
    "evidence": Entry("bot.cli.evidence:command", "read benchmark results, judge an A/B, record and list evidence"),
    "doctor": Entry("bot.cli.doctor:command", "check packages, settings, slack, store and hosts, each with the fix"),
    "manifest": Entry("bot.cli.manifest:command", "the Slack app of this configuration, ready to be pasted"),
    "cause": Entry("bot.cli.cause:command", "judge a claim about a cause on metrics texts"),
    "policy": Entry("bot.cli.policy:command", "test the policy of a fleet file on cases, or on past changes"),
    "audit": Entry("bot.cli.audit:command", "verify, export and rebuild the ledger"),
}


def found() -> dict[str, Entry]:
    """All commands: ours, then those that installed packages add. Nobody replaces one of ours."""
    added = {one.name: _entry(one) for one in entry_points(group=GROUP)}
    return COMMANDS | {name: entry for name, entry in sorted(added.items()) if name not in COMMANDS}


def find(word: str) -> Entry | None:
    """The command of a word; other packages are asked only for words that are not ours."""
    return COMMANDS.get(word) or found().get(word)


def _entry(point: EntryPoint) -> Entry:
    return Entry(point.value, _first_line(point.module) or f"from the package {point.module.partition('.')[0]}")


def _first_line(module: str) -> str:
    """First line of a module's docstring, read from its source without running the module."""
    try:
        spec = find_spec(module)
        source = Path(spec.origin).read_text() if spec is not None and spec.origin else ""
        lines = (ast.get_docstring(ast.parse(source)) or "").splitlines()
    except (ImportError, OSError, SyntaxError, ValueError):
        return ""  # help for the others is still worth printing; running this command tells what is wrong
    return lines[0] if lines else ""
