"""`--plot FILE`: the pictures of a judgement as files, the effect at FILE and the runs beside it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bot.pictures import NothingToDraw, effect_png, runs_png
from policies.abtest.judgement import Judgement
from policies.errors import SettingsError

F = TypeVar("F", bound=Callable[..., Any])


def plot_option(function: F) -> F:
    """`--plot FILE.png`, as `plot`."""
    said = "Draw the effect to FILE.png and the runs in their order to FILE-runs.png."
    return click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.png", callback=_png, help=said)(
        function
    )


def _png(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and value.suffix.lower() != ".png":
        raise click.BadParameter(f"'{value}' has to end in .png: pictures are PNG files")
    return value


def plot(judgement: Judgement, file: Path | None, about: str = "") -> None:
    """Write both pictures where one was asked for, and say on stderr which; what cannot be drawn is said too.

    Raises: SettingsError when a file cannot be written.
    """
    if file is None:
        return
    for draw, path in ((effect_png, file), (runs_png, file.with_name(f"{file.stem}-runs{file.suffix}"))):
        try:
            picture = draw(judgement, about)
        except NothingToDraw as error:
            click.echo(f"not drawn: {path}: {error.message}", err=True)
            continue
        _write(path, picture)
        click.echo(f"drawn: {path}", err=True)


def _write(path: Path, picture: bytes) -> None:
    """As a whole or not at all."""
    part = path.with_name(f".{path.stem[:40]}-{os.getpid()}.png")
    try:
        part.write_bytes(picture)
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        why = (error.strerror or type(error).__name__).lower()
        raise SettingsError(
            f"`{path}` cannot be written ({why})", hint="give a file in a folder that exists"
        ) from error
