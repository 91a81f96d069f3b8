"""`python -m sandbox.slack --port N`: the stand-in as a process; prints one JSON line and runs until a signal."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path

from sandbox.slack.server import SlackSandbox


def main(argv: list[str] | None = None) -> int:
    """Run until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.slack", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--reference", type=Path, help="folder with method-ref/ and block-kit/")
    parser.add_argument("--user", action="append", default=[], metavar="NAME", help="a member to start with")
    parser.add_argument("--channel", default="ops", help="a channel with the bot and these members")
    parser.add_argument("--request-url", help="HTTP mode: where the app takes requests; without it, Socket Mode")
    parser.add_argument("--signing-secret", default="", help="what requests are signed with in HTTP mode")
    args = parser.parse_args(argv)
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    sandbox = SlackSandbox(reference=args.reference, request_url=args.request_url, signing_secret=args.signing_secret)
    users = [sandbox.workspace.add_user(name) for name in args.user]
    channel = sandbox.workspace.add_channel(args.channel, [user.id for user in users])
    with sandbox.start(port=args.port):
        hello = {
            "base_url": sandbox.base_url,
            "control_url": sandbox.tickets.origin + "/_control/",
            "bot_token": sandbox.bot_token,
            "app_token": sandbox.app_token,
            "channel": channel.id,
            "users": {user.name: user.id for user in users},
        }
        print(json.dumps(hello), flush=True)
        over.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
