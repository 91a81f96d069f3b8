"""The files of the workspace: announced by the app, or dropped by people; their bytes, and where they are shared."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from sandbox.slack.records import Channel, Json

MOST_BYTES = 64 * 1024 * 1024
"""This stand-in's own limit; a real workspace takes 1 GB."""
KINDS: dict[str, tuple[str, str, str]] = {
    "png": ("image/png", "png", "PNG"),
    "jpg": ("image/jpeg", "jpg", "JPEG"),
    "jpeg": ("image/jpeg", "jpg", "JPEG"),
    "gif": ("image/gif", "gif", "GIF"),
    "json": ("application/json", "json", "JSON"),
    "jsonl": ("text/plain", "text", "Plain Text"),
    "txt": ("text/plain", "text", "Plain Text"),
    "csv": ("text/csv", "csv", "CSV"),
    "yaml": ("text/plain", "yaml", "YAML"),
    "zip": ("application/zip", "zip", "Zip"),
}
PICTURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


@dataclass(frozen=True, slots=True)
class Share:
    """One message that shows a file."""

    channel: str
    ts: str
    thread_ts: str | None


@dataclass(slots=True, repr=False)
class StoredFile:
    """A file. `data` None: announced, its bytes were not sent. `complete`: the app said that its upload is finished."""

    id: str
    name: str
    title: str
    user: str
    length: int
    ticket: str
    alt_txt: str = ""
    data: bytes | None = None
    complete: bool = False
    for_app: bool = False
    deleted: bool = False
    created: float = field(default_factory=time.time)
    shares: list[Share] = field(default_factory=list)

    @property
    def kind(self) -> tuple[str, str, str]:
        """MIME type, file type and its pretty name, by the end of the name as the platform guesses them."""
        ending = PurePosixPath(self.name).suffix.lstrip(".").lower()
        return KINDS.get(ending, ("application/octet-stream", "binary", "Binary"))

    @property
    def picture(self) -> str | None:
        """The MIME type of a picture, by its first bytes; None for everything else."""
        return next((kind for magic, kind in PICTURES.items() if (self.data or b"").startswith(magic)), None)


class FileStore:
    """Every file of one workspace. Callers hold the workspace's lock."""

    def __init__(self, new_id: Callable[[str], str], team_id: str) -> None:
        self._new_id = new_id
        self._files: dict[str, StoredFile] = {}
        self._team_id = team_id
        self.origin = ""
        """`http://127.0.0.1:PORT`, set when the server listens."""

    def announce(self, name: str, length: int, user: str, alt_txt: str = "") -> StoredFile:
        """A file whose bytes are still to come, to its ticket."""
        made = StoredFile(self._new_id("F"), name, name, user, length, secrets.token_urlsafe(24), alt_txt)
        self._files[made.id] = made
        return made

    def put(self, name: str, data: bytes, user: str) -> StoredFile:
        """A file that a person uploads at once."""
        made = self.announce(name, len(data), user)
        made.data, made.complete = data, True
        return made

    def get(self, file_id: str) -> StoredFile | None:
        """By its id."""
        return self._files.get(file_id)

    def by_ticket(self, ticket: str) -> StoredFile | None:
        """By the ticket of its upload address, as long as its bytes were not sent."""
        return next((f for f in self._files.values() if f.ticket == ticket and f.data is None), None)

    def all(self) -> list[StoredFile]:
        """In the order in which they came."""
        return list(self._files.values())

    def url(self, file: StoredFile, *, download: bool = False) -> str:
        """`url_private`, or `url_private_download`."""
        way = "/download" if download else ""
        return f"{self.origin}/files-pri/{self._team_id}-{file.id}{way}/{_in_url(file.name)}"

    def shown(self, file_id: str, channels: Iterable[Channel] = ()) -> Json:
        """The file object of the Web API. channels: those of the workspace, to tell public shares from private."""
        file = self._files[file_id]
        if file.deleted:
            return {"id": file.id, "mode": "tombstone"}
        mimetype, filetype, pretty = file.kind
        places = {channel.id: channel for channel in channels}
        made: Json = {
            "id": file.id,
            "created": int(file.created),
            "timestamp": int(file.created),
            "name": file.name,
            "title": file.title,
            "mimetype": mimetype,
            "filetype": filetype,
            "pretty_type": pretty,
            "user": file.user,
            "user_team": self._team_id,
            "editable": False,
            "size": file.length,
            "mode": "hosted",
            "is_external": False,
            "external_type": "",
            "is_public": any(places[s.channel].kind == "channels" for s in file.shares if s.channel in places),
            "public_url_shared": False,
            "display_as_bot": False,
            "username": "",
            "url_private": self.url(file),
            "url_private_download": self.url(file, download=True),
            "permalink": f"{self.origin}/files/{file.user}/{file.id}/{_in_url(file.name)}",
            "has_rich_preview": False,
            "file_access": "visible",
        }
        if file.alt_txt:
            made["alt_txt"] = file.alt_txt
        return made | (_shares(file, places) if places else {})


def _shares(file: StoredFile, places: dict[str, Channel]) -> Json:
    made: Json = {"shares": {}, "channels": [], "groups": [], "ims": []}
    for share in file.shares:
        channel = places[share.channel]
        listed = {"channels": "channels", "groups": "groups", "im": "ims"}[channel.kind]
        if channel.id not in made[listed]:
            made[listed].append(channel.id)
        kind = made["shares"].setdefault("public" if channel.kind == "channels" else "private", {})
        entry: Json = {"ts": share.ts, "channel_name": channel.name, "reply_users": [], "reply_count": 0}
        kind.setdefault(channel.id, []).append(entry | ({"thread_ts": share.thread_ts} if share.thread_ts else {}))
    return made


def _in_url(name: str) -> str:
    """A name as it stands in an address: lower-case letters, digits and dots, as the platform writes it."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name.lower())[:100] or "file"
