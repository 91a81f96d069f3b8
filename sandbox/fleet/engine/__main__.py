"""`python3 -m engine ROLE --port N ...`"""

from __future__ import annotations

import os
import signal
import sys
import threading

from .decode import Decode
from .options import read
from .prefill import Prefill
from .router import Router


def main() -> int:
    """Run one role until SIGTERM."""
    options = read(sys.argv[1:])
    if options.trouble == "dead":
        print(f"version {options.version} needs a newer driver than this host has", file=sys.stderr, flush=True)
        return 1
    engine: Prefill | Decode | Router
    if options.role == "prefill":
        engine = Prefill(options)
    elif options.role == "decode":
        engine = Decode(options)
    else:
        engine = Router(options)
    # a thread, not the handler itself: the handler may interrupt code that holds the same locks
    stop = threading.Thread(target=engine.stop)

    def on_signal(*_: object) -> None:
        if not stop.ident:
            stop.start()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    if options.exit_after_s > 0:

        def give_up() -> None:
            print(f"told to give up after {options.exit_after_s:g} s", file=sys.stderr, flush=True)
            os._exit(3)

        timer = threading.Timer(options.exit_after_s, give_up)
        timer.daemon = True
        timer.start()
    code = engine.serve()
    sys.stdout.flush()
    os._exit(code)  # requests that outlived the drain are in daemon threads; nothing of them matters any more


if __name__ == "__main__":
    sys.exit(main())
