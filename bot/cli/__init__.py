"""The console script `clawback`.

Exit codes: 0 ok, 1 the answer is no, 2 usage or unreadable input, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from bot.cli.registry import Entry, find, found
from policies.errors import OpsError


class Root(click.Group):
    """A click group that imports a command when it is called, so that `--help` and `explain` stay light."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Words of all commands, in the order of help."""
        return list(found())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of a word; imports its module."""
        entry = find(cmd_name)
        return None if entry is None else _load(cmd_name, entry)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(word, entry.about) for word, entry in found().items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and end the process with its exit code. No error that we know shows a traceback."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        given = list(sys.argv[1:] if args is None else args)
        try:
            result = super().main(given, prog_name or "clawback", complete_var, standalone_mode=False, **extra)
        except OpsError as error:
            _fail(given, type(error).__name__, error.message, error.hint)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(2)
        except click.UsageError as error:
            usage = error.ctx.command_path if error.ctx is not None else "clawback"
            _fail(given, "UsageError", _plain(error), f"{usage} --help shows what can be given")
        except click.ClickException as error:
            _fail(given, type(error).__name__, _plain(error), "")
        except click.Abort:
            click.echo("clawback: stopped", err=True)
            sys.exit(130)
        sys.exit(result if isinstance(result, int) else 0)


def _load(word: str, entry: Entry) -> click.Command:
    module, _, attribute = entry.target.partition(":")
    try:
        loaded = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        missing = error.name or "?"
        if f"{module}.".startswith(f"{missing}."):
            raise OpsError(f'"clawback {word}" is not part of this installation ("{missing}" is missing)') from error
        raise OpsError(
            f'"clawback {word}" needs the package "{missing}"', hint="pip install 'clawback[sandbox]' has everything"
        ) from error
    if not isinstance(loaded, click.Command):
        raise TypeError(f"{entry.target} is not a click command")
    return loaded


def _fail(given: list[str], kind: str, message: str, hint: str) -> NoReturn:
    """Tell the error on stderr, and on stdout as well where one JSON document was asked for; exit 2."""
    if "--json" in given:
        click.echo(json.dumps({"error": {"code": _code(kind), "message": message, "hint": hint}}, indent=2))
    click.echo(f"clawback: {message}", err=True)
    if hint:
        click.echo(f"  {hint}", err=True)
    sys.exit(2)


def _plain(error: click.ClickException) -> str:
    """Click's message in the form of ours: lower-case, no full stop."""
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]


def _code(kind: str) -> str:
    """`FleetFileError` -> `fleet-file`."""
    words = "".join(f"-{char.lower()}" if char.isupper() else char for char in kind.removesuffix("Error"))
    return words.strip("-") or "error"


main = Root(
    name="clawback",
    help="Chat-ops for deploys and performance knobs. Each command has its own --help.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=True,
)
main = click.version_option(package_name="clawback", prog_name="clawback")(main)
