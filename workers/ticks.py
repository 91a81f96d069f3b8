"""Ticks: a small turn that is taken again and again beside the work of a process, from a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from policies.errors import OpsError

TICK_S = 1.0
log = logging.getLogger(__name__)


@contextmanager
def ticking(turn: Callable[[], object], tick_s: float = TICK_S, *, join_s: float | None = None) -> Iterator[None]:
    """Take `turn` every `tick_s` until the block ends, and wait then for the last one, at most `join_s`.

    One that fails is logged, once for as long as it says the same; the next one comes.
    """
    ending = threading.Event()
    thread = threading.Thread(target=_tick, args=(turn, tick_s, ending), name="tick", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(join_s)


def _tick(turn: Callable[[], object], tick_s: float, ending: threading.Event) -> None:
    said = ""
    while not ending.wait(tick_s):
        try:
            turn()
        except OpsError as error:
            if error.message != said:
                log.warning("a tick did not do all of its work: %s; the next one comes", error.message)
            said = error.message
        except Exception:
            log.exception("a tick ended with an error; the next one comes")
        else:
            said = ""
