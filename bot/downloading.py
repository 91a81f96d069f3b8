"""Files that people hand over: looked up by their id, taken from Slack's own host with the bot's token, and bounded.

What is too large is not asked for, and what turns out to be larger than it said is not read to its end. Nothing is
unpacked. A redirect is never followed: it would lead to a page for signing in, or the token to another host.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from slack_sdk import WebClient

from bot.answering import certificates
from bot.filehosts import may_hold_files
from bot.slack import SlackRefused, SlackUnclear, call, is_loopback
from policies.bench.reading import MAX_BYTES
from policies.errors import OpsError

TIMEOUT_S = 20.0
MOST_WAIT_S = 10.0
PAUSES_S = (0.3, 1.0, 2.0)
CHUNK_BYTES = 64 * 1024


class FileNotGiven(OpsError):
    """A file could not be had; nothing of it is used."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file as somebody handed it over."""

    id: str
    name: str
    data: bytes


class Downloader:
    """`pause` waits for seconds. token: the bot's."""

    def __init__(self, client: WebClient, pause: Callable[[float], object] = time.sleep) -> None:
        self._client = client
        self._pause = pause

    def fetch(self, file_id: str) -> Fetched:
        """The bytes of a file.

        Raises: FileNotGiven, with the file's name where it is known.
        """
        try:
            found = call("files.info", self._client.files_info, file=file_id).get("file") or {}
        except SlackRefused as error:
            raise FileNotGiven(
                f"slack does not give the file `{file_id}` ({error.error})", hint=_remedy(error.error)
            ) from error
        except SlackUnclear as error:
            raise FileNotGiven(
                f"slack gave no clear answer about the file `{file_id}`", hint="send it again"
            ) from error
        name = str(found.get("name") or file_id)
        size = found.get("size")
        if isinstance(size, int) and size > MAX_BYTES:
            raise _too_large(name, size)
        url = str(found.get("url_private_download") or found.get("url_private") or "")
        if found.get("is_external") or not may_hold_files(url, self._client.base_url):
            raise FileNotGiven(f"`{name}` is not kept by slack itself", hint="upload the file instead of a link to it")
        return Fetched(file_id, name, self._bytes(name, url))

    def _bytes(self, name: str, url: str) -> bytes:
        why = ""
        for pause_s in (*PAUSES_S, None):
            try:
                return self._read(name, url)
            except _TryAgain as again:
                why = again.why
                if pause_s is None:
                    break
                self._pause(min(again.after_s if again.after_s is not None else pause_s, MOST_WAIT_S))
        raise FileNotGiven(f"`{name}` could not be read from slack ({why})", hint="send it again in a while")

    def _read(self, name: str, url: str) -> bytes:
        headers = {"Authorization": f"Bearer {self._client.token}", "Accept-Encoding": "identity"}
        data = bytearray()
        try:
            with (
                httpx.Client(timeout=TIMEOUT_S, trust_env=not is_loopback(url), verify=certificates()) as http,
                http.stream("GET", url, headers=headers, follow_redirects=False) as answer,
            ):
                _check(name, answer)
                for chunk in answer.iter_raw(CHUNK_BYTES):
                    data += chunk
                    if len(data) > MAX_BYTES:
                        raise _too_large(name, None)
        except httpx.HTTPError as error:
            raise _TryAgain(type(error).__name__) from error
        return bytes(data)


class _TryAgain(Exception):  # not an error: it ends in the loop above
    def __init__(self, why: str, after_s: float | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.after_s = after_s


def _check(name: str, answer: httpx.Response) -> None:
    """Raises unless these are the bytes of the file, as they are."""
    code = answer.status_code
    if code == httpx.codes.TOO_MANY_REQUESTS:
        wait = answer.headers.get("retry-after", "")
        raise _TryAgain("too many requests", float(wait) if wait.isdigit() else None)
    if code >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise _TryAgain(f"status {code}")
    if answer.is_redirect:
        message = f"slack asks to sign in instead of giving `{name}`"
        raise FileNotGiven(message, hint="the app needs the scope files:read and has to be in the channel")
    if code != httpx.codes.OK or answer.headers.get("content-encoding", "identity") != "identity":
        raise FileNotGiven(f"slack does not give `{name}` (status {code})", hint="send it again")


def _too_large(name: str, size: int | None) -> FileNotGiven:
    """size: as Slack tells it; None: found while it was read."""
    found = f"has {size / 1024 / 1024:.1f} MiB" if size is not None else "is larger than slack says"
    return FileNotGiven(
        f"`{name}` {found}, expected at most {MAX_BYTES // 1024 // 1024} MiB",
        hint="result files are small; leave the rows of single requests out",
    )


def _remedy(error: str) -> str:
    if error == "missing_scope":
        return "the app needs the scope files:read"
    return "send it again, in a channel where the app is"
