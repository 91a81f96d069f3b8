"""The Web API client and what its errors mean: refused (surely not done) or unclear (perhaps done)."""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler

from policies.errors import OpsError

TIMEOUT_S = 10
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Answers with `ok: false` that do not say whether the work was done. Source: errors listed for chat.postMessage.
UNCLEAR = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"})
T = TypeVar("T")


class SlackRefused(OpsError):
    """Slack said no: nothing was done. `error` is Slack's name for it; `retry_after_s` where it gave one."""

    def __init__(self, method: str, error: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"slack refused {method}: {error}")
        self.error = error
        self.retry_after_s = retry_after_s


class SlackUnclear(OpsError):
    """No answer, or one that does not say whether it was done."""

    def __init__(self, method: str, why: str) -> None:
        super().__init__(f"slack gave no clear answer to {method}: {why}")
        self.why = why


def make_client(token: str | None, base_url: str, *, timeout_s: int = TIMEOUT_S) -> WebClient:
    """A client that waits when Slack asks it to, and repeats nothing else by itself.

    A connection that broke is never retried here: the message may have been posted.
    """
    # after a 429 nothing was done, so that this one retry is safe
    handlers = [RateLimitErrorRetryHandler(max_retry_count=1)]
    client = WebClient(token=token, base_url=base_url, timeout=timeout_s, retry_handlers=list(handlers))
    if is_loopback(base_url):
        client.proxy = None
        keep_loopback_direct()
    return client


def is_loopback(url: str) -> bool:
    """The address is on this machine."""
    return urlsplit(url).hostname in LOOPBACK


def keep_loopback_direct() -> None:
    """Proxies from the environment are for other machines; the client's transport reads `no_proxy` at each call."""
    listed = [part for part in os.environ.get("no_proxy", os.environ.get("NO_PROXY", "")).split(",") if part]
    os.environ["no_proxy"] = ",".join(dict.fromkeys([*listed, *LOOPBACK]))


def call(method: str, function: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    """One call of the Web API; arguments that are None are not sent.

    Raises: SlackRefused, SlackUnclear.
    """
    return call_whole(method, function, **arguments)[0]


def call_whole(method: str, function: Callable[..., Any], **arguments: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The same with the headers of the answer, their names in lower case."""
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        answer = function(**given)
    except SlackApiError as error:
        raise _translated(method, error) from error
    except (SlackClientError, http.client.HTTPException, OSError, ValueError) as error:
        raise SlackUnclear(method, type(error).__name__) from error
    body = answer.data
    if not isinstance(body, dict):
        raise SlackUnclear(method, "an answer that is no object")
    headers = {str(k).lower(): v[0] if isinstance(v, list) else str(v) for k, v in dict(answer.headers or {}).items()}
    return body, headers


def _translated(method: str, error: SlackApiError) -> SlackRefused | SlackUnclear:
    response = error.response
    status = getattr(response, "status_code", 0)
    data = getattr(response, "data", None)
    name = data.get("error") if isinstance(data, dict) else None
    if status >= 500 or not isinstance(name, str) or name in UNCLEAR:
        return SlackUnclear(method, name if isinstance(name, str) and len(name) < 60 else f"status {status}")
    return SlackRefused(method, name, _retry_after(response) if status == 429 else None)


def _retry_after(response: Any) -> float | None:
    for name, value in dict(getattr(response, "headers", {}) or {}).items():
        if name.lower() == "retry-after":
            first = value[0] if isinstance(value, list) else value
            return float(first) if str(first).isdigit() else None
    return None
