"""`{address}` in the urls of a fleet file: the address of the host of the instance that is asked."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

ADDRESS = "{address}"


def url_at(url: str, address: str) -> str:
    """The url with `{address}` filled in. An IPv6 address stands in brackets in a url."""
    return url.replace(ADDRESS, f"[{address}]" if ":" in address else address)


def may_meet(one: str, other: str) -> bool:
    """Whether listeners on one port of a host, as two urls name them, may be one and the same.

    Two addresses of one kind are two listeners (127.0.0.2 and 127.0.0.3; two addresses of the network). Loopback
    and an address of the network may be one that listens on all of them, and what a name stands for is not known here.
    """
    first, second = (urlsplit(url).hostname or "" for url in (one, other))
    if first == second:
        return True
    try:
        known = [ipaddress.ip_address({"localhost": "127.0.0.1"}.get(name, name)) for name in (first, second)]
    except ValueError:
        return True
    return known[0] == known[1] or known[0].version != known[1].version or known[0].is_loopback != known[1].is_loopback
