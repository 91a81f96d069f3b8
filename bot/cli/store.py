"""How a terminal command finds the running store: REDIS_URL, or the embedded one of `clawback up` in CLAWBACK_DATA."""

from __future__ import annotations

from pydantic import SecretStr

from bot.settings import Settings, read_settings
from policies.errors import SettingsError
from workers.live import running_url
from workers.wiring import Wiring, open_wiring


def store_url(settings: Settings) -> SecretStr:
    """The address of the store that is in use.

    Raises: SettingsError when REDIS_URL is not set and no embedded store runs.
    """
    if settings.redis_url is not None:
        return settings.redis_url
    found = running_url(settings.clawback_data)
    if found is None:
        message = f"REDIS_URL is not set and no store runs in `{settings.clawback_data}`"
        raise SettingsError(message, hint="start `clawback up`, or set REDIS_URL")
    return SecretStr(found)


def open_from_terminal() -> Wiring:
    """The wiring of a short terminal command.

    Raises: SettingsError, FleetFileError, StoreUnavailable.
    """
    settings = read_settings()
    return open_wiring(
        fleet_file=settings.fleet_file(),
        redis_url=store_url(settings),
        ssh_keys=settings.ssh_keys,
        ssh_agent=settings.clawback_ssh_agent,
        known_hosts=settings.clawback_known_hosts,
    )
