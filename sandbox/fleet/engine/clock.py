"""The engine's own record of what it did and when: one JSON line per event, appended and flushed."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Union

Value = Union[str, int, float, bool, None]  # noqa: UP007 - evaluated by python 3.9


class Clock:
    """Appends `{"event", "time", "pid", "role", "knob", ...}` lines to a file; without one it does nothing."""

    def __init__(self, path: str, role: str, knob: str | None) -> None:
        self._path = path
        self._role = role
        self._knob = knob
        self._lock = threading.Lock()
        self._told: set[str] = set()

    def tell(self, event: str, **more: Value) -> None:
        """Append one event."""
        if not self._path:
            return
        line = {"event": event, "time": time.time(), "pid": os.getpid(), "role": self._role, "knob": self._knob, **more}
        with self._lock:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, (json.dumps(line) + "\n").encode())
            finally:
                os.close(handle)

    def tell_once(self, event: str, **more: Value) -> None:
        """Append one event, the first time only."""
        with self._lock:
            if event in self._told:
                return
            self._told.add(event)
        self.tell(event, **more)
