"""What may be kept of the server's arguments: no secrets, hosts or addresses, nothing that changes by itself."""

from __future__ import annotations

import hashlib
import json
import re

from policies.bench.fields import Fields, plain
from policies.bench.source import Key

SECRET = re.compile(
    r"api_?key|_key$|secret|passw|credential|authori[sz]ation|cookie|(access|hf|auth|bearer)_token|^token$"
)
PLACE = re.compile(
    r"host|addr|address|url|endpoint$|node_?(name|id)|_ip$|^ip$|_ports?$|^port$|launch_command|nccl_init|uds$"
)
PRIVATE = re.compile(r"user(name)?$|email|(output|log|save|dump|download|cache|storage)_?\w*(dir|path|file|folder)$")
# differs between two starts of the same server with the same arguments
VOLATILE = re.compile(
    r"random_seed|(^|_)(time|uptime|timestamp|date)$|^status$|max_total_num_tokens|last_gen|internal_states|^pid$|_id$"
    r"|^load$|avg_|_usage$"
)
ADDRESS = re.compile(r"://|@|\b\d{1,3}(\.\d{1,3}){3}\b|\b(sk|hf|ghp|xox[a-z])[-_][A-Za-z0-9]{8,}|^Bearer ")
MOST_ARGS = 500
ARG_MOST = 120


def arguments(fields: Fields, *path: Key, skip: frozenset[str] = frozenset()) -> dict[str, str]:
    """The scalar arguments at `path` that may be kept, by name."""
    found: dict[str, str] = {}
    for name in sorted(fields.members(*path)):
        value = fields.raw(*path, name)
        if name in skip or isinstance(value, dict | list) or value is None or not kept(name, value):
            continue
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        found[plain(name, ARG_MOST)] = plain(shown, ARG_MOST)
        if len(found) == MOST_ARGS:
            break
    return found


def kept(name: str, value: object) -> bool:
    """Whether an argument may be stored and quoted."""
    low = name.lower().replace("-", "_")
    if any(pattern.search(low) for pattern in (SECRET, PLACE, PRIVATE, VOLATILE)):
        return False
    return not (isinstance(value, str) and ADDRESS.search(value))


def digest(args: dict[str, str]) -> str | None:
    """A digest to compare arguments by; None for none."""
    if not args:
        return None
    return hashlib.sha256(json.dumps(args, sort_keys=True).encode()).hexdigest()


def home_less(text: str | None) -> str | None:
    """A path without whose home it is in."""
    return None if text is None else re.sub(r"^/(home|Users)/[^/]+/", "~/", text)
