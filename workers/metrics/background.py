"""One daemon thread that does small things one after another, for those who must not wait for them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import structlog

LOG = structlog.get_logger(__name__)
MOST_WAITING = 64
IDLE_S = 5.0  # the thread ends when there was nothing to do for so long


class Background:
    """Begins its thread when there is something to do. What is too much is let go, and said."""

    def __init__(self, name: str, most_waiting: int = MOST_WAITING) -> None:
        self._name = name
        self._most = most_waiting
        self._todo: deque[Callable[[], object]] = deque()
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def later(self, act: Callable[[], object]) -> bool:
        """Have it done; False when it is let go."""
        with self._news:
            if self._closed or len(self._todo) >= self._most:
                LOG.info("too much waits, this is let go", thread=self._name, waiting=len(self._todo))
                return False
            self._todo.append(act)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            self._news.notify_all()
        return True

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is done; False when it took longer."""
        with self._news:
            return self._news.wait_for(lambda: self._thread is None or not self._todo, timeout_s)

    def close(self, timeout_s: float) -> None:
        """Take nothing more, and wait for what is there."""
        with self._news:
            self._closed = True
        self.flush(timeout_s)

    def _work(self) -> None:
        while True:
            with self._news:
                if not self._news.wait_for(lambda: bool(self._todo), 0.0 if self._closed else IDLE_S):
                    self._thread = None
                    self._news.notify_all()
                    return
                act = self._todo[0]
            try:
                act()
            except Exception:
                LOG.exception("something done aside failed", thread=self._name)
            with self._news:
                self._todo.popleft()
                self._news.notify_all()
