"""Tells every open page that the workspace changed: from its threads into the server's loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

from sandbox.slack.workspace import Workspace


class Feed:
    """A bell that rings after each change of the workspace. `open()` in the loop, `close()` from anywhere."""

    def __init__(self, workspace: Workspace, on_change: Callable[[], None]) -> None:
        self._workspace = workspace
        self._on_change = on_change
        self._bell = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.over = True
        self.rings = 0

    def open(self) -> None:
        """Start listening; to be called in the loop that serves the pages."""
        self.over = False
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._thread = threading.Thread(target=self._listen, name="page-feed", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End every stream; returns when the listening thread is gone."""
        if self._thread is None:
            return
        self.over = True
        with self._workspace.change():
            pass  # wakes the thread
        self._thread.join(5)
        self._thread = None

    def _listen(self) -> None:
        loop = self._loop
        with self._workspace.changed:
            # the lock is given up only inside wait(), so that no change can fall between two waits
            while loop is not None and not self.over:
                if self._workspace.changed.wait(5.0):
                    self._on_change()
                    self._call(loop)
        if loop is not None:
            self._call(loop)

    def _call(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        self.rings += 1
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()

    async def wait(self, heard: int, timeout_s: float) -> None:
        """Return when the bell rang after `heard` rings, or the time is over."""
        if self.rings != heard:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._bell.wait(), timeout_s)
