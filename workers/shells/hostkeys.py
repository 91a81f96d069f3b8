"""Known host keys: parsed once, shared by every connection, looked up without walking the file.

Our own reader, because the usual one checks every line against all lines before it.
Source: FACTS-ssh.md, 5,000 lines take 1.4 s there.
Understood: plain names, `[host]:port`, hashed names, patterns with `*`, `?` and `!`, and `@revoked`.
Lines with `@cert-authority` are passed over: a host certificate is not accepted in place of a key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from policies.errors import HostKeyRefused, SettingsError
from policies.fleet import Host

DEFAULT_FILES = (Path("~/.ssh/known_hosts"), Path("/etc/ssh/ssh_known_hosts"))


@dataclass(frozen=True, slots=True)
class HostKey:
    """The public key of a host: its type, e.g. `ssh-ed25519`, and its wire form."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """`SHA256:...` as `ssh-keygen -l` prints it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    @property
    def line(self) -> str:
        """`TYPE BASE64`, the form of `host_key` in the fleet file."""
        return f"{self.type} {base64.b64encode(self.blob).decode()}"


@dataclass(frozen=True, slots=True)
class _Table:
    """One state of the files. Exact names are a dictionary; only hashed names and patterns are walked."""

    exact: dict[str, list[HostKey]] = field(default_factory=dict)
    hashed: list[tuple[bytes, bytes, HostKey]] = field(default_factory=list)  # salt, hash, key
    patterns: list[tuple[tuple[str, ...], HostKey]] = field(default_factory=list)
    revoked: set[bytes] = field(default_factory=set)

    def keys(self, name: str) -> tuple[HostKey, ...]:
        """Keys of one name, in the order of the files."""
        found = list(self.exact.get(name, ()))
        raw = name.encode()
        # sha1 is the format of hashed names, not a choice
        found += [key for salt, digest, key in self.hashed if hmac.digest(salt, raw, "sha1") == digest]
        found += [key for patterns, key in self.patterns if _matches(name, patterns)]
        return tuple(dict.fromkeys(found))


class KnownHosts:
    """The known host keys of this machine. Files are read again when they change, so an added key works at once."""

    def __init__(self, files: Sequence[Path] = DEFAULT_FILES) -> None:
        self._files = tuple(path.expanduser() for path in files)
        self._lock = threading.Lock()
        self._seen: tuple[object, ...] | None = None
        self._table = _Table()
        self._names: dict[str, tuple[HostKey, ...]] = {}

    def keys(self, host: Host) -> tuple[HostKey, ...]:
        """Keys that `host` may show: the fleet file's `host_key` alone where it is given, else those of the files.

        Raises: SettingsError when the key or a file cannot be read.
        """
        with self._lock:
            self._refresh()
            if host.host_key is not None:
                return (parse_key(host.host_key, where=f"host_key of {host.name}"),)
            name = lookup_name(host.address, host.port)
            if name not in self._names:
                self._names[name] = self._table.keys(name)
            return self._names[name]

    def check(self, host: Host, shown: HostKey) -> None:
        """Accept the key that a server showed, or raise.

        Raises: HostKeyRefused when the key is revoked, unknown, or not the one that is known.
        """
        known = self.keys(host)
        name = lookup_name(host.address, host.port)
        if shown.blob in self._table.revoked:
            raise HostKeyRefused(
                f"host '{host.name}' ({name}) showed key {shown.fingerprint}, which is marked @revoked",
                hint="do not connect; find out why the host still uses this key",
            )
        if not known:
            raise HostKeyRefused(
                f"host '{host.name}' ({name}) is not known; it showed {shown.type} key {shown.fingerprint}",
                hint="compare with `ssh-keygen -lf` of the host's own /etc/ssh/ssh_host_*_key.pub on its console, then"
                f' write host_key: "{shown.line}" in the fleet file, or the line'
                f" '{name} {shown.line}' in {self._files[0] if self._files else 'known_hosts'}",
            )
        if all(not hmac.compare_digest(key.blob, shown.blob) for key in known):
            expected = ", ".join(f"{key.type} {key.fingerprint}" for key in known)
            where = "host_key in the fleet file" if host.host_key else f"the line of '{name}' in known_hosts"
            raise HostKeyRefused(
                f"the key of host '{host.name}' ({name}) changed: known is {expected},"
                f" shown was {shown.type} {shown.fingerprint}",
                hint="somebody may be in between; if the host was installed anew, compare on its own console and"
                f" replace {where}",
            )

    def _refresh(self) -> None:
        """Parse the files when they are not those that were parsed. The lock is held."""
        seen: list[object] = []
        for path in self._files:
            try:
                stat = path.stat()
            except OSError:
                seen.append(None)
            else:
                seen.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        if tuple(seen) == self._seen:
            return
        table = _Table()
        for path in self._files:
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except FileNotFoundError:
                continue
            except OSError as error:
                raise SettingsError(
                    f"known host keys cannot be read from '{path}': {error.strerror}", hint="make the file readable"
                ) from error
            _parse(text.splitlines(), table)
        self._table, self._names, self._seen = table, {}, tuple(seen)


def lookup_name(address: str, port: int) -> str:
    """The name under which known_hosts keeps a server: `[address]:port` unless the port is 22."""
    return address.lower() if port == 22 else f"[{address.lower()}]:{port}"


def parse_key(text: str, *, where: str) -> HostKey:
    """Read `TYPE BASE64 [COMMENT]`.

    Raises: SettingsError when it is not a key.
    """
    words = text.split()
    key = _key(words[0], words[1]) if len(words) >= 2 else None
    if key is None:
        raise SettingsError(
            f"{where} is '{text[:80]}', expected a public key such as 'ssh-ed25519 AAAA...'",
            hint="copy the line of /etc/ssh/ssh_host_ed25519_key.pub from the host",
        )
    return key


def _parse(lines: Iterable[str], table: _Table) -> None:
    """Add the lines of one file. A line that cannot be read stands for no key, so it cannot let anybody in."""
    for line in lines:
        words = line.split()
        if len(words) < 3 or words[0].startswith("#"):
            continue
        marker = words.pop(0) if words[0].startswith("@") else ""
        if len(words) < 3 or marker not in ("", "@revoked"):
            continue
        key = _key(words[1], words[2])
        if key is None:
            continue
        if marker:
            # a key that was given up is refused on every host, not only where it stood
            table.revoked.add(key.blob)
            continue
        names = tuple(words[0].lower().split(",")) if not words[0].startswith("|") else (words[0],)
        if words[0].startswith("|1|"):
            hashed = _hashed(words[0])
            if hashed is not None:
                table.hashed.append((*hashed, key))
        elif any(letter in words[0] for letter in "*?!"):
            table.patterns.append((names, key))
        else:
            for name in names:
                table.exact.setdefault(name, []).append(key)


def _key(type_: str, text: str) -> HostKey | None:
    """A key whose wire form begins with its own type, else None."""
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    size = int.from_bytes(blob[:4], "big")
    return HostKey(type_, blob) if blob[4 : 4 + size] == type_.encode() else None


def _hashed(word: str) -> tuple[bytes, bytes] | None:
    """Salt and hash of `|1|SALT|HASH`."""
    parts = word.split("|")
    if len(parts) != 4:
        return None
    try:
        return base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)
    except (binascii.Error, ValueError):
        return None


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name fits a list of patterns; a `!` pattern that fits ends it."""
    # `[` opens a character set for fnmatch and is a plain letter in known_hosts
    plain = [pattern.replace("[", "[[]") for pattern in patterns]
    if any(fnmatchcase(name, pattern[1:]) for pattern in plain if pattern.startswith("!")):
        return False
    return any(fnmatchcase(name, pattern) for pattern in plain if not pattern.startswith("!"))
