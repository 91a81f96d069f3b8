"""Configuration from the environment, read once. A missing variable is named together with what it is for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from policies.errors import SettingsError

SLACK = "https://slack.com/api/"

PURPOSE: dict[str, str] = {
    "SLACK_BOT_TOKEN": "the bot's token (xoxb-...), with which it reads people and posts",
    "SLACK_APP_TOKEN": "the app-level token (xapp-...), with which the bot listens by Socket Mode",
    "SLACK_SIGNING_SECRET": "the secret with which Slack signs requests in HTTP mode",
    "SLACK_API_URL": "the base address of the Web API",
    "REDIS_URL": "the Redis that keeps the ledger and the queues; unset: an embedded one is started",
    "CLAWBACK_FLEET": "the path of the fleet file",
    "CLAWBACK_DATA": "the folder for everything that clawback keeps",
    "CLAWBACK_ARCHIVE": "the folder of the archive, best on another disk; unset: a folder in CLAWBACK_DATA",
    "CLAWBACK_HTTP": "host:port for HTTP mode, health and metrics",
    "CLAWBACK_URL": "the https address at which Slack reaches the bot in HTTP mode",
    "CLAWBACK_SSH_KEY": "private key files for the hosts, separated by a colon",
    "CLAWBACK_SSH_AGENT": "whether keys of the running ssh agent may be used",
    "CLAWBACK_KNOWN_HOSTS": "the file with the keys of hosts",
}


class Settings(BaseSettings):
    """Everything that the environment can say. Tokens are SecretStr, so that no log or traceback holds them."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True, env_ignore_empty=True)

    slack_bot_token: SecretStr | None = None
    slack_app_token: SecretStr | None = None
    slack_signing_secret: SecretStr | None = None
    slack_api_url: str = SLACK
    redis_url: SecretStr | None = None  # it may hold a password
    clawback_fleet: Path | None = None
    clawback_data: Path = Field(default_factory=lambda: Path.home() / ".local/share/clawback")
    clawback_archive: Path | None = None
    clawback_http: str | None = None
    clawback_url: str | None = None
    clawback_ssh_key: str = ""
    clawback_ssh_agent: bool = False
    clawback_known_hosts: Path | None = None

    @property
    def ssh_keys(self) -> tuple[Path, ...]:
        """The key files, in the order in which they are tried."""
        return tuple(Path(part).expanduser() for part in self.clawback_ssh_key.split(":") if part)

    @property
    def archive_folder(self) -> Path:
        """Where the archive is."""
        return self.clawback_archive or self.clawback_data / "archive"

    @property
    def api_url(self) -> str:
        """The base address of the Web API, with the slash at its end that the client needs."""
        return self.slack_api_url.rstrip("/") + "/"

    def secret(self, variable: str) -> str:
        """The text of a secret that is needed now.

        Raises: SettingsError naming the variable and its purpose.
        """
        value = getattr(self, variable.lower())
        if not isinstance(value, SecretStr) or not value.get_secret_value():
            raise missing(variable)
        return value.get_secret_value()

    def must_be_complete(self) -> None:
        """Everything that all roles together need is set.

        Raises: SettingsError naming every variable that is missing, each with its purpose.
        """
        checks: list[Callable[[], object]] = [self.fleet_file, self.must_log_in]
        if self.slack_signing_secret and not self.slack_app_token:
            checks.insert(0, self.http_address)
        else:
            checks.insert(0, lambda: self.secret("SLACK_APP_TOKEN"))
        checks.insert(0, lambda: self.secret("SLACK_BOT_TOKEN"))
        found: list[SettingsError] = []
        for check in checks:
            try:
                check()
            except SettingsError as error:
                found.append(error)
        if len(found) == 1:
            raise found[0]
        if found:
            message = "\n  ".join(["not everything is set", *(error.message for error in found)])
            raise SettingsError(message, hint="set them and start again; the README has the list")

    def must_log_in(self) -> None:
        """Some way to log in to hosts is set.

        Raises: SettingsError.
        """
        if not self.ssh_keys and not self.clawback_ssh_agent:
            message = f"CLAWBACK_SSH_KEY is not set, expected {PURPOSE['CLAWBACK_SSH_KEY']}"
            raise SettingsError(message, hint="set it, or set CLAWBACK_SSH_AGENT=1 to use the keys of the ssh agent")

    def listens_by(self, *, http: bool = False) -> Literal["socket", "http"]:
        """How Slack is heard: HTTP mode when it is asked for, or when only a signing secret is there.

        Raises: SettingsError when something is missing that the mode needs.
        """
        self.secret("SLACK_BOT_TOKEN")
        if not http and not (self.slack_signing_secret and not self.slack_app_token):
            self.secret("SLACK_APP_TOKEN")
            return "socket"
        self.secret("SLACK_SIGNING_SECRET")
        self.http_address()
        return "http"

    def http_address(self) -> str:
        """host:port to serve on.

        Raises: SettingsError.
        """
        if self.clawback_http is None:
            raise missing("CLAWBACK_HTTP")
        return self.clawback_http

    def fleet_file(self) -> Path:
        """The path of the fleet file.

        Raises: SettingsError.
        """
        if self.clawback_fleet is None:
            raise missing("CLAWBACK_FLEET")
        return self.clawback_fleet


def missing(variable: str) -> SettingsError:
    """The error for a variable that is needed and not set."""
    return SettingsError(f"{variable} is not set, expected {PURPOSE[variable]}", hint=f"set {variable} and start again")


def read_settings() -> Settings:
    """The settings of this process.

    Raises: SettingsError for a value that cannot be read; the value itself is not repeated, it may be a secret.
    """
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        variable = str(first["loc"][0]).upper()
        message = f"{variable} cannot be read ({first['msg'].lower()}), expected {PURPOSE.get(variable, 'a value')}"
        raise SettingsError(message, hint=f"correct {variable} and start again") from error
    parts = urlsplit(settings.slack_api_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        message = f"SLACK_API_URL is {settings.slack_api_url!r}, expected an http or https address"
        raise SettingsError(message, hint="unset it to use Slack itself")
    return settings
