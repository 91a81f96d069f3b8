"""The door to Redis: one way to connect, one translation of its errors, one look at whether it keeps its word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import redis
from pydantic import SecretStr
from redis import exceptions as vendor
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from policies.errors import SettingsError, StoreUnavailable
from policies.finding import Effect, Finding

SOCKET_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 2.0
HEALTH_CHECK_S = 15
RETRIES = 3
WANTED = {"appendonly": "yes", "appendfsync": "always"}
SCHEMES = ("redis://", "rediss://", "unix://")

# The vendor's roots; the first that fits gives the hint. A class outside of them fails a test.
HINTS: tuple[tuple[type[Exception], str], ...] = (
    (vendor.AuthenticationError, "check the user and the password in REDIS_URL"),
    (vendor.AuthenticationWrongNumberOfArgsError, "check the user and the password in REDIS_URL"),
    (vendor.AuthorizationError, "the Redis user may not do this: give it all commands on its own database"),
    (vendor.NoPermissionError, "the Redis user may not do this: give it all commands on its own database"),
    (vendor.BusyLoadingError, "Redis still loads its data: it goes on by itself"),
    (vendor.MaxConnectionsError, "raise max_connections in REDIS_URL"),
    (vendor.OutOfMemoryError, "Redis is full: raise maxmemory; its policy must be noeviction"),
    (vendor.ReadOnlyError, "REDIS_URL names a replica: name the primary"),
    (vendor.RedisClusterException, "a Redis cluster is not supported: name one server"),
    (vendor.ClusterError, "a Redis cluster is not supported: name one server"),
    (vendor.AskError, "a Redis cluster is not supported: name one server"),
    (vendor.ConnectionError, "check that Redis runs and that REDIS_URL is right"),
    (vendor.TimeoutError, "Redis did not answer in time: it goes on by itself when it answers again"),
    (vendor.RedisError, "see the log of Redis"),
    (vendor.ChildDeadlockedError, "a forked process used its parent's connection: end it"),
    (vendor.IncorrectPolicyType, "a Redis cluster is not supported: name one server"),
)
# Kinds of a lost connection at which the server had done nothing
NOT_DONE = (
    vendor.AuthenticationError,
    vendor.AuthorizationError,
    vendor.BusyLoadingError,
    vendor.MaxConnectionsError,
)
VENDOR_ERRORS: tuple[type[Exception], ...] = tuple(kind for kind, _ in HINTS)


class StoreUnclear(StoreUnavailable):
    """The request may have reached Redis and its answer did not come: it may be done, now or later."""


def connect(url: SecretStr | str, *, retries: int = RETRIES) -> redis.Redis:
    """A client for `url` that gives up within seconds and hands out bytes.

    Raises: SettingsError for an address that is none. Nothing is sent yet.
    """
    text = url.get_secret_value() if isinstance(url, SecretStr) else url
    if not text.startswith(SCHEMES):
        raise SettingsError(
            f"`{text.split(':', 1)[0][:16]}:...` is not the address of a Redis, expected one of {', '.join(SCHEMES)}",
            hint="for example redis://:PASSWORD@HOST:6379/0 or unix:///run/redis.sock",
        )
    try:
        return redis.Redis.from_url(
            text,
            decode_responses=False,
            socket_timeout=SOCKET_TIMEOUT_S,
            health_check_interval=HEALTH_CHECK_S,
            retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.5), retries),
            **({} if text.startswith("unix:") else {"socket_connect_timeout": CONNECT_TIMEOUT_S}),
        )
    except ValueError as error:
        raise SettingsError(f"the address of Redis cannot be read: {type(error).__name__}", hint=str(error)) from error


@contextmanager
def translated() -> Iterator[None]:
    """Turn every error of the Redis client into StoreUnavailable. Raises: StoreUnavailable, StoreUnclear."""
    try:
        yield
    except VENDOR_ERRORS as error:
        hint = next(hint for kind, hint in HINTS if isinstance(error, kind))
        text = " ".join(str(part) for part in error.args) or type(error).__name__
        raise _kind(error, text)(f"redis: {type(error).__name__}: {text}", hint=hint) from error


def _kind(error: Exception, text: str) -> type[StoreUnavailable]:
    """An answer that is late or was cut off may belong to a request that was done; no other error may."""
    if isinstance(error, NOT_DONE) or not isinstance(error, (vendor.ConnectionError, vendor.TimeoutError)):
        return StoreUnavailable
    return StoreUnavailable if " connecting to " in text else StoreUnclear


def persistence(client: redis.Redis, *, allow_volatile: bool = False) -> tuple[Finding, ...]:
    """Whether Redis keeps what it acknowledged. `refuse`: it may forget; only a warning with `allow_volatile`.

    A setting that cannot be read counts as wrong.

    Raises: StoreUnavailable.
    """
    bad: Effect = "warn" if allow_volatile else "refuse"
    found = {name: _setting(client, name) for name in (*WANTED, "maxmemory", "maxmemory-policy")}
    findings = [
        Finding(code="store.volatile", effect=bad, values={"setting": name, "found": found[name], "expected": value})
        for name, value in WANTED.items()
        if found[name] != value
    ]
    policy = found["maxmemory-policy"]
    if found["maxmemory"] not in ("0", None) and policy != "noeviction":
        values: dict[str, str | int | float | None] = {
            "setting": "maxmemory-policy",
            "found": policy,
            "expected": "noeviction",
        }
        findings.append(Finding(code="store.evicts", effect=bad, values=values))
    if not findings:
        findings = [Finding(code="store.persistent", effect="note", values={name: found[name] for name in WANTED})]
    return tuple(findings)


def _setting(client: redis.Redis, name: str) -> str | None:
    with translated():
        try:
            answer = client.config_get(name)
        except vendor.ResponseError:  # a hosted Redis may forbid CONFIG
            return None
    for key, value in answer.items():
        if _text(key) == name:
            return _text(value)
    return None


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
