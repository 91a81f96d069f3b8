"""How a short terminal command is wired to the store that runs."""

from __future__ import annotations

from bot.settings import read_settings
from workers.stores import store_url
from workers.wiring import Wiring, open_wiring


def open_from_terminal() -> Wiring:
    """The wiring of a short terminal command.

    Raises: SettingsError, FleetFileError, StoreUnavailable.
    """
    settings = read_settings()
    return open_wiring(
        fleet_file=settings.fleet_file(),
        redis_url=store_url(settings.redis_url, settings.clawback_data),
        ssh_keys=settings.ssh_keys,
        ssh_agent=settings.clawback_ssh_agent,
        known_hosts=settings.clawback_known_hosts,
    )
