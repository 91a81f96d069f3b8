"""Pictures into a channel or thread: announced, sent, finished, and then looked for until Slack shows them.

An announced file that is never finished disappears, so that the first two steps may be repeated. The third is not
repeated blindly: the file's own record says whether it was shared. Raises everywhere: SlackRefused, SlackUnclear.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx
from slack_sdk import WebClient

from bot.answering import certificates
from bot.filehosts import may_hold_files
from bot.posting import Posted
from bot.slack import SlackRefused, SlackUnclear, call, is_loopback

TIMEOUT_S = 30.0
TRIES = 3
LOOKS_S = (0.1, 0.2, 0.3, 0.5, 0.9, 1.5, 2.5, 4.0)  # Source: FACTS-slack 4, a share comes after the answer, or never
MOST_ALT = 1000  # Source: files.getUploadURLExternal, alt_txt_too_large


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG with its title and the words for those who do not see it."""

    name: str
    title: str
    words: str
    png: bytes


UNSEEN = Posted("", None)
# what is said of a file that was finished before, or whose bytes are lost
SPENT = frozenset({"file_update_failed", "file_not_found"})


class NotShared(SlackUnclear):
    """The upload is finished and nobody sees it: only other bytes can still be shown."""

    def __init__(self) -> None:
        super().__init__("files.completeUploadExternal", "the file was not shared")


@dataclass(frozen=True, slots=True)
class Sent:
    """A picture that Slack has the bytes of, and that nobody sees yet."""

    file: str
    title: str


class Uploader:
    """`pause` waits for seconds."""

    def __init__(self, client: WebClient, pause: Callable[[float], object] = time.sleep) -> None:
        self._client = client
        self._pause = pause

    def send(self, picture: Picture) -> Sent:
        """Announce a picture and send its bytes."""
        for left in reversed(range(TRIES)):
            try:
                return self._sent(picture)
            except SlackUnclear:
                if not left:
                    raise
                self._pause(LOOKS_S[-left])
        raise SlackUnclear("files.getUploadURLExternal", "no answer")

    def share(self, files: Sequence[Sent], channel: str, thread_ts: str | None, comment: str = "") -> Posted:
        """Show pictures in one message; where it stands, or UNSEEN where the app may not look.

        Called again with the same files it shows nothing twice. Raises: NotShared.
        """
        if (before := self._found(files[0], channel, strict=False)) is not None:
            return before
        try:
            call(
                "files.completeUploadExternal",
                self._client.files_completeUploadExternal,
                files=[{"id": one.file, "title": one.title} for one in files],
                channel_id=channel,
                thread_ts=thread_ts,
                initial_comment=comment or None,
            )
        except SlackRefused as error:
            # perhaps because an earlier attempt, whose answer was lost, did it
            if (found := self._found(files[0], channel, strict=False)) is not None:
                return found
            if error.error in SPENT:
                raise NotShared from error
            raise
        except SlackUnclear:
            if (found := self._awaited(files[0], channel)) is not None:
                return found
            raise
        if (found := self._awaited(files[0], channel)) is not None:
            return found
        raise NotShared

    def is_shown(self, file: Sent, channel: str) -> bool:
        """Whether a picture that was not shared in time came to be shown."""
        return self._found(file, channel, strict=False) is not None

    def _awaited(self, file: Sent, channel: str) -> Posted | None:
        """Where it is shown once Slack has shared it; None when it did not in time."""
        for pause_s in LOOKS_S:
            self._pause(pause_s)
            try:
                if (found := self._found(file, channel)) is not None:
                    return found
            except SlackRefused as error:
                if error.error == "missing_scope":
                    return UNSEEN
                raise
            except SlackUnclear:
                continue
        return None

    def _found(self, file: Sent, channel: str, *, strict: bool = True) -> Posted | None:
        """The message that shows a file in a channel, if it is there. strict: not being allowed to look is an error."""
        try:
            found = call("files.info", self._client.files_info, file=file.file).get("file") or {}
        except SlackRefused as error:
            if error.error == "file_not_found" or (error.error == "missing_scope" and not strict):
                return None
            raise
        for kind in ("public", "private"):
            for share in ((found.get("shares") or {}).get(kind) or {}).get(channel, ()):
                return Posted(str(share["ts"]), share.get("thread_ts"))
        return None

    def _sent(self, picture: Picture) -> Sent:
        announced = call(
            "files.getUploadURLExternal",
            self._client.files_getUploadURLExternal,
            filename=picture.name,
            length=len(picture.png),
            alt_txt=picture.words[:MOST_ALT],
        )
        url = str(announced.get("upload_url") or "")
        if not may_hold_files(url, self._client.base_url):
            raise SlackRefused("files.getUploadURLExternal", "an upload address on another host")
        try:
            # the address is the secret: no token goes with it
            answer = httpx.post(
                url,
                content=picture.png,
                timeout=TIMEOUT_S,
                trust_env=not is_loopback(url),
                verify=certificates(),
                follow_redirects=False,
            )
        except httpx.HTTPError as error:
            raise SlackUnclear("the upload of a file", type(error).__name__) from error
        if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
            wait = answer.headers.get("retry-after", "")
            raise SlackRefused("the upload of a file", "ratelimited", float(wait) if wait.isdigit() else 1.0)
        if answer.status_code != httpx.codes.OK:
            raise SlackUnclear("the upload of a file", f"status {answer.status_code}")
        return Sent(str(announced.get("file_id") or ""), picture.title)
