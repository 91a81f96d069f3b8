"""Urls of a fleet file."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from policies.addresses import ADDRESS, url_at
from policies.fleet_checks.problems import Path, Problems, quote
from policies.fleet_checks.table import Table


def check_url(problems: Problems, path: Path, url: str, *, of_service: bool = True) -> str:
    """The url when it can be asked, else an empty string. of_service: `{address}` may be its host."""
    hint = 'write e.g. "http://127.0.0.1:30000/health"'
    told, reason = quote(url), _braces(url, of_service=of_service)
    if reason:
        hint = f'write e.g. "http://{ADDRESS}:30000/health"' if of_service else "name the host or its address"
        problems.add(path, "url.braces", f"{told} {reason}", hint)
        return ""
    shown, url = url, url_at(url, "host")
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
        problems.add(path, "url.form", f"{told} {reason}, expected an http:// or https:// url", hint)
        return ""
    return shown


def _braces(url: str, *, of_service: bool) -> str:
    """What is wrong with what stands in braces; an empty text where nothing is."""
    for word in re.findall(r"\{[^{}]*\}", url):
        if not of_service:
            return f"holds {quote(word)}, which nothing replaces here, expected the address itself"
        if word != ADDRESS:
            return f"holds {quote(word)}, which nothing replaces, expected {ADDRESS} alone"
    if ADDRESS in url and not re.fullmatch(r"https?://\{address\}(:[0-9]+)?(?![^/?#])[^{]*", url):
        return f"has {ADDRESS} elsewhere than as its host, expected it once, between // and the port"
    return ""


def read_url(table: Table, *, of_service: bool = True) -> str:
    """The required key `url`."""
    table.need("url", 'url: "http://127.0.0.1:PORT/..."')
    text = table.text("url")
    return check_url(table.reader.problems, table.at("url"), text, of_service=of_service) if text else ""
