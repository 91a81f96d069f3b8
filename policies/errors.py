"""The error tree. One root, so that an edge can show any error to a person.

OpsError
├── FleetFileError      the fleet file cannot be read or is wrong
├── NotFound            a named thing does not exist
├── HostUnreachable     no connection: nothing was done
│   └── HostKeyRefused  the host's key is unknown or changed
├── HostAnswerLost      the connection broke after a command was sent: unknown what was done
├── HostRefused         the host helper answered no (token, path, scope)
├── ArchiveBroken       the archive cannot be written, or does not belong to this ledger
├── StoreUnavailable    Redis cannot be reached or cannot be written
├── LedgerConflict      somebody else wrote first: reload and judge again
├── LeaseLost           another worker holds the lease now
├── CauseNotVerified    a cause was about to be stated that no readings establish
└── SettingsError       an environment variable or file of ours is missing or wrong

Refusals are values (Finding, Verdict), never exceptions.
"""

from __future__ import annotations


class OpsError(Exception):
    """Root. `message` is lower-case, quotes the input and says what was expected; `hint` says what to do next."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class FleetFileError(OpsError):
    """The fleet file cannot be read or holds errors."""


class NotFound(OpsError, KeyError):
    """A change, knob, service or record of that name does not exist."""

    __str__ = OpsError.__str__  # KeyError would print the repr


class HostUnreachable(OpsError):
    """No connection to the host was made, so nothing was done there."""


class HostKeyRefused(HostUnreachable):
    """The host's key is not known or is not the one that was known."""


class HostAnswerLost(OpsError):
    """The command was sent and its answer never came: what happened is unknown until the host is asked."""


class HostRefused(OpsError):
    """The host helper refused. `code` is its stable code, e.g. `stale-token`, `file-changed`, `bad-request`."""

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class ArchiveBroken(OpsError):
    """The files of the archive cannot be written, are damaged, or do not belong to this ledger."""


class StoreUnavailable(OpsError):
    """Redis cannot be reached or refuses writes: nothing is done that cannot be recorded."""


class LedgerConflict(OpsError):
    """The change moved on since it was read."""


class LeaseLost(OpsError):
    """This worker's lease on a service ended; it must stop at once."""


class AlertmanagerFailed(OpsError):
    """The Alertmanager cannot be reached, or did not do what was asked. No work depends on it."""


class SettingsError(OpsError):
    """Configuration from the environment is missing or wrong."""


class CauseNotVerified(OpsError):
    """A cause was about to be stated that no readings establish: a mistake of this program, never of a person."""
