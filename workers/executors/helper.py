"""How the host helper is started on a host: sent along with each call, or installed there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

from policies.fleet import Host

PYTHON = "/usr/bin/python3"
SOURCE = Path(__file__).resolve().parents[1] / "hosthelper.py"

# reads `LENGTH\n` and so many bytes of source, and runs them; the rest of stdin is theirs. Nothing is read ahead: the
# helper waits for requests on the descriptor itself. The source is kept in memory under a name that can be opened, so
# that the helper can say which text it was and errors can quote it.
BOOT = (
    "import os\n"
    "def r(n):\n"
    " b=os.read(0,n)\n"
    " return b or os._exit(3)\n"
    "n=b''\n"
    "while n[-1:]!=b'\\n': n+=r(1)\n"
    "n=int(n);s=b''\n"
    "while len(s)<n: s+=r(n-len(s))\n"
    "f=os.memfd_create('hosthelper')\n"
    "open(f,'wb',closefd=False).write(s)\n"
    "__file__='/proc/self/fd/%d'%f\n"
    "exec(compile(s,__file__,'exec'))\n"
)


@dataclass(frozen=True, slots=True)
class HelperCall:
    """The command that answers requests. `source` goes first on stdin; empty: the command has its own."""

    argv: tuple[str, ...]
    source: bytes = field(default=b"", repr=False)
    sha256: str = ""  # that the answer of observe must name; "": any

    @classmethod
    def sent(cls, become: tuple[str, ...] = ()) -> Self:
        """Nothing is installed on the host: the source is sent with every call. `become` goes before the command."""
        source, sha256 = _source()
        return cls((*become, PYTHON, "-I", "-c", BOOT), source, sha256)

    @classmethod
    def installed(cls, *argv: str) -> Self:
        """A helper that stands on the host, e.g. the one command that a sudoers line allows."""
        return cls(argv)

    def stdin(self, request: bytes) -> bytes:
        """What is written to the command."""
        return b"%d\n%b%b" % (len(self.source), self.source, request) if self.source else request


def helper_for(host: Host) -> HelperCall:
    """The usual call: units of the system manager need root, by sudo without a password for another login."""
    become = host.manager == "system" and host.user != "root"
    return HelperCall.sent(("sudo", "-n") if become else ())


@cache
def _source() -> tuple[bytes, str]:
    source = SOURCE.read_bytes()
    return source, hashlib.sha256(source).hexdigest()
