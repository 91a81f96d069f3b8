"""Which Redis is meant: the named one, or the embedded one of a data folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr

from policies.errors import SettingsError
from workers.live import EmbeddedStore, running_url


def store_url(redis_url: SecretStr | None, data: Path) -> SecretStr:
    """The address of the store that is in use.

    Raises: SettingsError when none is named and no embedded one runs in `data`.
    """
    if redis_url is not None:
        return redis_url
    found = running_url(data)
    if found is None:
        message = f"REDIS_URL is not set and no store runs in `{data}`"
        raise SettingsError(message, hint="start `clawback up`, or set REDIS_URL")
    return SecretStr(found)


@contextmanager
def opened_store(redis_url: SecretStr | None, data: Path, *, new: bool = False) -> Iterator[SecretStr]:
    """The same, but an embedded store that does not run is started for as long as it is looked into.

    new: start one in an empty folder too. Raises: SettingsError, StoreUnavailable.
    """
    if redis_url is not None or running_url(data) is not None:
        yield store_url(redis_url, data)
        return
    if not new and not (data / "appendonlydir").is_dir():
        raise SettingsError(f"there is no ledger in `{data}`", hint="set REDIS_URL or CLAWBACK_DATA")
    with EmbeddedStore(data) as server:
        yield SecretStr(server.url)
