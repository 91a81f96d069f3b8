"""What belongs to one process is refused in a child that was forked from it."""

from __future__ import annotations

import os

from policies.errors import OpsError


def must_be_own(pid: int, what: str) -> None:
    """Raises: OpsError in another process than `pid`."""
    if os.getpid() != pid:
        raise OpsError(
            f"this {what} belongs to process {pid} and was used in process {os.getpid()}",
            hint=f"make a {what} in the process that uses it; a connection cannot be shared across a fork",
        )
