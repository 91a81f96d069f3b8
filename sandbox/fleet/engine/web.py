"""HTTP in and out: a threaded JSON server and a client that reuses no state."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

BODY_MAX_BYTES = 8 * 1024 * 1024


class Reply(Exception):
    """An HTTP answer that ends a handler early."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Text(str):
    """A body that is text, not JSON."""

    __slots__ = ()


Handler = Callable[[dict[str, Any]], object]
Routes = dict[tuple[str, str], Handler]


class _Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True
    allow_reuse_address = True  # a restart binds the port again while old connections linger


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # header and body in one segment
    timeout = 300
    routes: Routes

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Access lines are left out; the clock file holds what matters."""

    def _answer(self, method: str) -> None:
        path = urlsplit(self.path).path
        try:
            handler, name = self._find(method, path)
            body = self._body() if method == "POST" else {}
            body["_name"] = name
            self._send(200, handler(body))
        except Reply as reply:
            self._send(reply.status, {"error": {"message": reply.message, "code": reply.status}})
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _find(self, method: str, path: str) -> tuple[Handler, str]:
        found = self.routes.get((method, path))
        if found is not None:
            return found, ""
        folder, _, name = path.rpartition("/")
        found = self.routes.get((method, folder + "/*"))
        if found is None:
            raise Reply(404, f"no such path: {path}")
        return found, name

    def _body(self) -> dict[str, Any]:
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_MAX_BYTES:
            self.close_connection = True
            raise Reply(413, f"at most {BODY_MAX_BYTES} bytes")
        try:
            body = json.loads(self.rfile.read(length) or b"{}")
        except ValueError as error:
            raise Reply(400, f"not JSON: {error}") from error
        if not isinstance(body, dict):
            raise Reply(400, "expected a JSON object")
        return body

    def _send(self, status: int, value: object) -> None:
        text = isinstance(value, Text)
        data = str(value).encode() if text else json.dumps(value).encode()
        self.send_response(status)
        kind = "text/plain; version=0.0.4; charset=utf-8" if text else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()


def bind(host: str, port: int, routes: Routes, wait_s: float = 0.0) -> ThreadingHTTPServer:
    """Bind host:port, if need be after others let it go; the caller runs `serve_forever()`.

    Raises: OSError when the port is taken.
    """
    handler = type("Handler", (_Handler,), {"routes": routes})
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return _Server((host, port), handler)
        except OSError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.005)


def ask(method: str, url: str, body: dict[str, Any] | None = None, timeout_s: float = 60.0) -> tuple[int, Any]:
    """One request; gives the status and the JSON (or None when it is not JSON).

    Raises: OSError when no answer came.
    """
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout_s)
    try:
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, parts.path, data, {"Content-Type": "application/json", "Connection": "close"})
        answer = connection.getresponse()
        raw = answer.read()
        try:
            return answer.status, json.loads(raw)
        except ValueError:
            return answer.status, None
    except http.client.HTTPException as error:
        raise ConnectionError(f"no full answer from {url}: {error!r}") from error
    finally:
        connection.close()
