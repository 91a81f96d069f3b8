"""The door to Redis: addresses, errors and whether it keeps what it acknowledged."""

from __future__ import annotations

import inspect

import pytest
import redis.exceptions as vendor
from pydantic import SecretStr

from policies.errors import SettingsError, StoreUnavailable
from tests.conftest import Store
from workers.store import connect, persistence, translated

ERRORS = [
    kind for _, kind in inspect.getmembers(vendor, inspect.isclass) if issubclass(kind, Exception) and kind.__module__
]
ARGUMENTS = {
    "AskError": ("1 host:1",),
    "MovedError": ("1 host:1",),
    "ClusterDownError": ("x",),
    "MasterDownError": ("x",),
}


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_of_the_client_becomes_ours(kind: type[Exception]) -> None:
    error = kind(*ARGUMENTS.get(kind.__name__, ("it broke",)))
    with pytest.raises(StoreUnavailable) as caught, translated():
        raise error
    assert caught.value.message.startswith(f"redis: {kind.__name__}")
    assert caught.value.hint
    assert caught.value.__cause__ is error


def test_the_client_has_errors_to_enumerate() -> None:
    assert len(ERRORS) > 30


def test_an_error_of_ours_passes_through() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError("x")


def test_a_client_hands_out_bytes_for_plain_and_secret_addresses(store: Store) -> None:
    for url in (store.url, SecretStr(store.url)):
        client = connect(url)
        client.set("k", "v")
        assert client.get("k") == b"v"
        client.close()


@pytest.mark.parametrize("url", ["", "gpu1:6379", "http://:hunter2@gpu1", "redis://:hunter2@gpu1:port/0"])
def test_an_address_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        connect(url)
    assert "hunter2" not in str(caught.value)


def test_a_redis_that_is_not_there_is_unavailable(tmp_path_factory: pytest.TempPathFactory) -> None:
    client = connect(f"unix://{tmp_path_factory.mktemp('none')}/no.sock")
    with pytest.raises(StoreUnavailable, match="redis: ConnectionError"), translated():
        client.ping()
    client.close()


def test_a_wrong_password_is_unavailable_and_says_where_to_look(store: Store) -> None:
    client = connect(store.url.partition("?")[0] + "?password=wrong", retries=0)
    with pytest.raises(StoreUnavailable, match="password in REDIS_URL"), translated():
        client.ping()
    client.close()


def test_the_embedded_store_keeps_what_it_acknowledges(store: Store) -> None:
    (finding,) = persistence(store.redis)
    assert (finding.code, finding.effect) == ("store.persistent", "note")
    assert finding.values == {"appendonly": "yes", "appendfsync": "always"}


def test_a_forgetful_store_is_refused_unless_allowed(store: Store) -> None:
    try:
        store.redis.config_set("appendfsync", "everysec")
        (finding,) = persistence(store.redis)
        assert (finding.code, finding.effect) == ("store.volatile", "refuse")
        assert finding.values == {"setting": "appendfsync", "found": "everysec", "expected": "always"}
        assert [f.effect for f in persistence(store.redis, allow_volatile=True)] == ["warn"]
    finally:
        store.redis.config_set("appendfsync", "always")


def test_a_store_that_evicts_is_refused(store: Store) -> None:
    try:
        store.redis.config_set("maxmemory", "500mb")
        store.redis.config_set("maxmemory-policy", "allkeys-lru")
        (finding,) = persistence(store.redis)
        assert (finding.code, finding.effect, finding.values["found"]) == ("store.evicts", "refuse", "allkeys-lru")
    finally:
        store.redis.config_set("maxmemory-policy", "noeviction")
        store.redis.config_set("maxmemory", "0")


def test_a_store_that_does_not_tell_counts_as_forgetful(store: Store) -> None:
    store.redis.acl_setuser("shy", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-config"])
    client = connect(store.url.partition("?")[0] + "?username=shy&password=pw")
    try:
        assert [(f.code, f.values["found"]) for f in persistence(client)] == [
            ("store.volatile", None),
            ("store.volatile", None),
        ]
    finally:
        client.close()
        store.redis.acl_deluser("shy")
