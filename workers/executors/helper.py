"""How the host helper is started on a host: sent along with each call, or installed there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

from policies.errors import HostRefused
from policies.fleet import Host
from workers.shells import NoRoom, Session
from workers.shells.kept import Program

VERSION = 1
PYTHON = "/usr/bin/python3"
# Units: seconds. A helper that is asked nothing for so long ends; above `kept.KEEP_S`, so that none ends as it is asked
IDLE_S = 660.0
HELLO_MAX_BYTES = 65536
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

    @property
    def prefix(self) -> bytes:
        """What is written to the command before the first request."""
        return b"%d\n%b" % (len(self.source), self.source) if self.source else b""

    def stdin(self, request: bytes) -> bytes:
        """What is written to a command that answers this one request."""
        return self.prefix + request

    def resident(self, scope: str) -> Program:
        """The same command, staying: it ends with its stdin, or after `IDLE_S` without a request."""
        asked = {"v": VERSION, "verb": "hello", "scope": scope, "idle_s": IDLE_S}

        def greet(session: Session, deadline_s: float) -> None:
            line = session.call(json.dumps(asked).encode(), deadline_s=deadline_s, max_output_bytes=HELLO_MAX_BYTES)
            try:
                answer = json.loads(line)
            except ValueError:
                answer = None
            if not isinstance(answer, dict) or answer.get("ok") is not True:
                raise NoRoom(f"no helper that stays: {line[:200].decode('utf-8', 'replace')}")
            if self.sha256 and answer.get("helper") != self.sha256:
                raise HostRefused(
                    f"another helper answered than the one that was sent, nothing was done: it is"
                    f" {str(answer.get('helper'))[:12]}, expected {self.sha256[:12]}",
                    code="other-helper",
                    hint="something on the host replaces the program that was sent; look at the login shell and sudo",
                )

        return Program(self.argv, self.prefix, greet)


def helper_for(host: Host) -> HelperCall:
    """The usual call: units of the system manager need root, by sudo without a password for another login."""
    become = host.manager == "system" and host.user != "root"
    return HelperCall.sent(("sudo", "-n") if become else ())


@cache
def _source() -> tuple[bytes, str]:
    source = SOURCE.read_bytes()
    return source, hashlib.sha256(source).hexdigest()
