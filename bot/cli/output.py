"""What a terminal command prints: one JSON document, or lines for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import click
from pydantic import JsonValue


def emit(document: Mapping[str, JsonValue], as_json: bool, lines: Iterable[str]) -> None:
    """Print `document` on stdout as one JSON document when `as_json`, else the `lines`."""
    if as_json:
        click.echo(json.dumps(dict(document), indent=2, ensure_ascii=True))
        return
    for line in lines:
        click.echo(line)
