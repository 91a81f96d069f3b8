"""Files that a terminal command is given: result files of two arms, and what stands beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from policies.bench import reading
from policies.bench.run import Problem, Reading
from policies.errors import SettingsError
from policies.recording import Given

ARMS = ("--a", "--b")


class Arms(click.Command):
    """A command whose `--a` and `--b` take all files up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`--a x y` is `--a x --a y`."""
        spread: list[str] = []
        arm: str | None = None
        empty: str | None = None
        for word in args:
            if word in ARMS:
                arm = empty = word
            elif word.startswith("-") or arm is None:
                arm = None
                spread.append(word)
            else:
                spread += [arm, word]
                empty = None
        if empty is not None:
            raise click.UsageError(f"{empty} has no file, expected one or more", ctx)
        return super().parse_args(ctx, spread)


def reading_of(path: Path) -> Reading:
    """The runs of a file; one that cannot be read is a problem of its first line."""
    try:
        data = _bytes(path)
    except OSError as error:
        problem = Problem(file=str(path), line=1, message=f"the file cannot be read ({_why(error)})")
        return Reading(file=str(path), sha256="", problems=(problem,))
    return reading.read_runs(data, str(path))


def given(path: Path | None, hint: str = "give the path of a file") -> Given | None:
    """A file's bytes, no more than can be read of a result.

    Raises: SettingsError.
    """
    if path is None:
        return None
    try:
        return Given(str(path), _bytes(path))
    except OSError as error:
        raise SettingsError(f"`{path}` cannot be read ({_why(error)})", hint=hint) from error


def given_arm(files: Sequence[str]) -> list[Given]:
    """The files of an arm in their order; `FILE#ARM` means the runs that the file itself names so.

    Raises: SettingsError.
    """
    found: list[Given] = []
    for name in files:
        path, _, arm = (name, "", "") if Path(name).exists() else name.partition("#")
        try:
            found.append(Given(path, _bytes(Path(path)), arm or None))
        except OSError as error:
            problem = Problem(file=path, line=1, message=f"the file cannot be read ({_why(error)})")
            raise SettingsError(str(problem), hint="`clawback evidence read` tells what a file holds") from error
    return found


def _bytes(path: Path) -> bytes:
    with path.open("rb") as source:
        return source.read(reading.MAX_BYTES + 1)


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
