"""A process that takes a port the moment it is free and answers 200 to everything: `python FILE PORT`."""

from __future__ import annotations

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Yes(BaseHTTPRequestHandler):
    """Says 200."""

    def do_GET(self) -> None:
        """200."""
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Silent."""


def main(port: int) -> None:
    """Try until the port is free, then serve."""
    while True:
        try:
            server = ThreadingHTTPServer(("127.0.0.1", port), Yes)
        except OSError:
            time.sleep(0.002)
            continue
        server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
