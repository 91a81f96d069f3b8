"""The fault menu: what a test or a person can make go wrong, per method and count."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

FaultKind = Literal[
    "ratelimited",  # 429 with Retry-After
    "server_error",  # an HTTP 5xx before anything was done
    "reset_before_commit",  # connection reset, nothing was done
    "reset_after_commit",  # connection reset, although the work was done
    "error_after_commit",  # an HTTP 5xx, although the work was done
    "delay",  # the answer comes late
    "error",  # `ok: false` with the name in `error`
    "drop_share",  # an upload is finished and never shared
    "duplicate_envelope",  # the same envelope twice on one socket
    "other_socket",  # the same envelope again on another socket
    "drop_ack",  # the acknowledgement is lost on its way
    "replay",  # HTTP mode: the very same request once more, signature and all
    "wrong_signature",  # HTTP mode: signed with another secret
    "no_signature",  # HTTP mode: not signed
    "old_timestamp",  # HTTP mode: signed rightly, 301 s ago
]
ENVELOPE_FAULTS = frozenset({
    "duplicate_envelope", "other_socket", "drop_ack", "replay", "wrong_signature", "no_signature", "old_timestamp",
})  # fmt: skip


@dataclass(slots=True)
class Fault:
    """One switched-on fault; `method` is a Web API method, `response_url`, an envelope kind or `*`."""

    kind: FaultKind
    method: str = "*"
    count: int = 1
    error: str = "internal_error"
    status: int = 503
    retry_after_s: int = 1
    delay_s: float = 1.0
    channel: str | None = None


class FaultMenu:
    """The faults that are switched on, oldest first. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Switch a fault on; it ends by itself after `count` uses (a negative count never ends)."""
        if fault.kind not in get_args(FaultKind):
            raise ValueError(f"fault {fault.kind!r}: expected one of {', '.join(get_args(FaultKind))}")
        with self._lock:
            self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """Switch everything off."""
        with self._lock:
            self._faults.clear()

    def listed(self) -> list[Fault]:
        """What is on now."""
        with self._lock:
            return list(self._faults)

    def take(self, method: str, channel: str | None = None) -> Fault | None:
        """Use up one Web API fault for this call."""
        return self._take(method, channel, envelopes=False)

    def take_envelope(self, kind: str) -> Fault | None:
        """Use up one delivery fault for this envelope kind."""
        return self._take(kind, None, envelopes=True)

    def _take(self, method: str, channel: str | None, *, envelopes: bool) -> Fault | None:
        with self._lock:
            for fault in self._matching(method, channel, envelopes=envelopes):
                if fault.count > 0:
                    fault.count -= 1
                    if fault.count == 0:
                        self._faults.remove(fault)
                return fault
        return None

    def _matching(self, method: str, channel: str | None, *, envelopes: bool) -> Iterable[Fault]:
        return [
            fault
            for fault in self._faults
            if (fault.kind in ENVELOPE_FAULTS) == envelopes
            and fault.method in {"*", method}
            and fault.channel in {None, channel}
        ]
