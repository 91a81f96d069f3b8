"""Urls of a fleet file."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from policies.fleet_checks.problems import Path, Problems, quote
from policies.fleet_checks.table import Table


def check_url(problems: Problems, path: Path, url: str) -> str:
    """The url when it can be asked, else an empty string."""
    hint = 'write e.g. "http://127.0.0.1:30000/health"'
    reason = ""
    try:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"}:
            reason = "is not http or https"
        elif not parts.hostname:
            reason = "has no host"
        elif parts.username is not None or parts.password is not None:
            reason, hint = "holds a user or password", "secrets never stand in the fleet file"
        elif parts.port == 0 or not url.isascii() or re.search(r"[\s<>\"{}|\\^`]", url):
            reason = "has a port or a character that cannot be asked"
    except ValueError:
        reason = "cannot be read"
    if reason:
        problems.add(path, "url.form", f"{quote(url)} {reason}, expected an http:// or https:// url", hint)
        return ""
    return url


def read_url(table: Table) -> str:
    """The required key `url`."""
    table.need("url", 'url: "http://127.0.0.1:PORT/..."')
    text = table.text("url")
    return check_url(table.reader.problems, table.at("url"), text) if text else ""
