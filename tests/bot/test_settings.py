"""Configuration is read once, kept secret, and a missing variable is named with its purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.settings import PURPOSE, Settings, read_settings
from policies.errors import SettingsError


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in PURPOSE:
        monkeypatch.delenv(variable, raising=False)


def test_a_missing_variable_is_named_with_its_purpose() -> None:
    settings = read_settings()
    with pytest.raises(SettingsError, match="SLACK_BOT_TOKEN is not set, expected the bot's token"):
        settings.secret("SLACK_BOT_TOKEN")
    with pytest.raises(SettingsError, match="CLAWBACK_FLEET is not set"):
        settings.fleet_file()
    with pytest.raises(SettingsError, match="CLAWBACK_SSH_KEY is not set"):
        settings.must_log_in()


def test_everything_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings().must_be_complete()
    for variable in ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "CLAWBACK_FLEET", "CLAWBACK_SSH_KEY"):
        assert f"\n  {variable} is not set, expected " in caught.value.message
    for variable in ("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "CLAWBACK_FLEET", "CLAWBACK_SSH_KEY"):
        monkeypatch.setenv(variable, "x")
    with pytest.raises(SettingsError, match=r"^CLAWBACK_HTTP is not set"):
        read_settings().must_be_complete()
    monkeypatch.setenv("CLAWBACK_HTTP", "127.0.0.1:0")
    read_settings().must_be_complete()


def test_an_empty_variable_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "")
    with pytest.raises(SettingsError, match="SLACK_BOT_TOKEN"):
        read_settings().secret("SLACK_BOT_TOKEN")


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-very-secret")
    monkeypatch.setenv("REDIS_URL", "redis://:hidden@127.0.0.1/0")
    settings = read_settings()
    assert settings.secret("SLACK_BOT_TOKEN") == "xoxb-very-secret"
    assert "very-secret" not in repr(settings)
    assert "hidden" not in repr(settings)


def test_an_unreadable_value_is_named_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWBACK_SSH_AGENT", "perhaps-secret")
    with pytest.raises(SettingsError, match="CLAWBACK_SSH_AGENT cannot be read") as caught:
        read_settings()
    assert "perhaps-secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://x/api", "slack", "http://"])
def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SLACK_API_URL", url)
    with pytest.raises(SettingsError, match="SLACK_API_URL"):
        read_settings()


def test_addresses_and_keys_are_read_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_API_URL", "http://127.0.0.1:8080/api")
    monkeypatch.setenv("CLAWBACK_SSH_KEY", "/keys/a:/keys/b")
    settings = read_settings()
    assert settings.api_url == "http://127.0.0.1:8080/api/"
    assert settings.ssh_keys == (Path("/keys/a"), Path("/keys/b"))


def test_every_variable_has_a_purpose() -> None:
    assert {name.upper() for name in Settings.model_fields} == set(PURPOSE)
