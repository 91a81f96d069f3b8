"""The folder of the embedded Valkey: its owner's alone, one process's at a time, with the password in it."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from pathlib import Path
from urllib.parse import quote

from policies.errors import SettingsError, StoreUnavailable

LOCK_S = 0.3  # `running_url` looks at the lock by taking it for a moment
SOCKET_PATH_BYTES = 107  # Source: sun_path of struct sockaddr_un on Linux, without the final NUL


def prepare(folder: Path) -> None:
    """Make the folder, readable by its owner only. Raises: SettingsError."""
    if any(sign in str(folder) for sign in '"\\\n\r'):
        raise SettingsError(f"`{folder}` holds a quote, a backslash or a line end", hint="choose another data folder")
    socket = os.fsencode(folder / "valkey.sock")
    if len(socket) > SOCKET_PATH_BYTES:
        raise SettingsError(
            f"`{folder}` is {len(socket) - SOCKET_PATH_BYTES} bytes too long for a unix socket in it",
            hint="choose a data folder with a shorter path",
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            raise SettingsError(f"`{folder}` belongs to another user", hint="choose a data folder of your own")
        folder.chmod(0o700)
    except OSError as error:
        raise SettingsError(
            f"`{folder}` cannot be used: {error.strerror}", hint="choose another data folder"
        ) from error


def lock(folder: Path) -> int:
    """Take the folder for this process; a descriptor to close. Raises: SettingsError naming who has it."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError as error:
            if time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise SettingsError(
                f"`{folder}` is in use by process {holder}", hint="one clawback for one data folder: end that one first"
            ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def password(folder: Path) -> str:
    """The password of the server on the folder; made once."""
    path = folder / "password"
    if not path.exists() or len(path.read_text()) < 32:
        write_private(path, secrets.token_hex(32))
    return path.read_text()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, and have it on the disk."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def url_of(folder: Path, password: str) -> str:
    """Address of the server on the folder."""
    return f"unix://{quote(str(folder / 'valkey.sock'))}?password={password}"


def clear(folder: Path) -> None:
    """Take away what a server that ended left behind.

    Raises: StoreUnavailable when the folder is not what it was, or cannot be written; nothing is started on an empty
    one, because the ledger is in the one that was there.
    """
    if not (folder / "valkey.conf").is_file():
        message = f"the folder `{folder}` of the embedded Valkey is not what it was, expected its valkey.conf"
        raise StoreUnavailable(message, hint="put the folder back: the ledger is in it")
    try:
        for leftover in ("valkey.sock", "valkey.pid"):
            (folder / leftover).unlink(missing_ok=True)
    except OSError as error:
        message = f"the embedded Valkey cannot use its folder `{folder}`: {error.strerror or error}"
        raise StoreUnavailable(message, hint="make it writable for the owner of this process") from error
