"""The API of an Alertmanager (v2), as far as silences need it. Everything that goes wrong is an AlertmanagerFailed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from policies.errors import AlertmanagerFailed
from policies.silences import AUTHOR, Matcher

TIMEOUT_S = 3.0
MOST_BYTES = 16 * 1024 * 1024
ALIVE = frozenset({"active", "pending"})


@dataclass(frozen=True, slots=True)
class Silence:
    """One as the Alertmanager has it. starts: its own spelling, which a prolonged one has to repeat."""

    id: str
    state: str
    author: str
    comment: str
    starts: str
    matchers: tuple[Matcher, ...]

    def is_ours(self, mark: str) -> bool:
        """Whether this program made it for this change and service."""
        return self.author == AUTHOR and self.comment.startswith(mark)


class Alertmanager:
    """One server. Units: timeout_s for one exchange. Raises everywhere: AlertmanagerFailed."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self.url = url.rstrip("/")
        # from its own address only: a proxy or a .netrc of the machine is not part of the fleet
        self._client = httpx.Client(timeout=timeout_s, trust_env=False)

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def version(self) -> str:
        """What runs there."""
        return str(_part(self._ask("GET", "/api/v2/status"), "versionInfo", "version"))

    def find(self, mark: str) -> Silence | None:
        """The one of ours that is alive and whose comment begins so."""
        found = self._ask("GET", "/api/v2/silences")
        silences = [_silence(one) for one in found] if isinstance(found, list) else []
        return next((one for one in silences if one.state in ALIVE and one.is_ours(mark)), None)

    def get(self, silence: str) -> Silence | None:
        """One by its id; None when there is none."""
        found = self._ask("GET", f"/api/v2/silence/{silence}", absent=True)
        return None if found is None else _silence(found)

    def make(self, matchers: Sequence[Matcher], comment: str, end: float) -> str:
        """A new one that holds at once; its id. Units: epoch seconds."""
        # a start that is past is now, by the server's own clock, which may be behind ours
        return self._put(None, matchers, comment, _moment(0.0), end)

    def prolong(self, silence: Silence, end: float) -> str:
        """The same until another moment; its id, which may be another one then. Units: epoch seconds."""
        return self._put(silence.id, silence.matchers, silence.comment, silence.starts, end)

    def end(self, silence: str) -> None:
        """Expire it now."""
        self._ask("DELETE", f"/api/v2/silence/{silence}", absent=True)

    def _put(self, id_: str | None, matchers: Sequence[Matcher], comment: str, starts: str, end: float) -> str:
        body: dict[str, Any] = {
            "matchers": [
                {"name": one.name, "value": one.value, "isRegex": one.regex, "isEqual": True} for one in matchers
            ],
            "startsAt": starts,
            "endsAt": _moment(end),
            "createdBy": AUTHOR,
            "comment": comment,
        }
        body |= {} if id_ is None else {"id": id_}
        return str(_part(self._ask("POST", "/api/v2/silences", body), "silenceID"))

    def _ask(self, method: str, path: str, body: object = None, *, absent: bool = False) -> Any:
        """The JSON of the answer; None where there is none, or nothing is there and `absent` says that this is fine."""
        try:
            with self._client.stream(method, self.url + path, json=body) as response:
                kept = bytearray()
                for piece in response.iter_bytes():
                    kept += piece
                    if len(kept) > MOST_BYTES:
                        raise _failed(f"its answer is longer than {MOST_BYTES} bytes")
            if absent and response.status_code == httpx.codes.NOT_FOUND:
                return None
            if response.status_code != httpx.codes.OK:
                said = " ".join(bytes(kept[:200]).decode("utf-8", "replace").split())
                raise _failed(f"status {response.status_code}: {said}")
            return httpx.Response(200, content=bytes(kept)).json() if kept else None
        except httpx.TimeoutException as error:
            raise _failed("no answer in time") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _failed(str(error) or type(error).__name__) from error
        except (ValueError, RecursionError) as error:
            raise _failed("its answer is no JSON") from error


def _failed(why: str) -> AlertmanagerFailed:
    return AlertmanagerFailed(why, hint="see that the Alertmanager of the fleet file runs and answers /api/v2/status")


def _part(document: Any, *names: str) -> Any:
    for name in names:
        if not isinstance(document, dict) or name not in document:
            raise _failed(f"its answer has no `{name}`")
        document = document[name]
    return document


def _silence(found: Any) -> Silence:
    conditions = _part(found, "matchers")
    return Silence(
        id=str(_part(found, "id")),
        state=str(_part(found, "status", "state")),
        author=str(_part(found, "createdBy")),
        comment=str(_part(found, "comment")),
        starts=str(_part(found, "startsAt")),
        matchers=tuple(
            Matcher(name=str(_part(one, "name")), value=str(_part(one, "value")), regex=bool(_part(one, "isRegex")))
            for one in (conditions if isinstance(conditions, list) else [])
        ),
    )


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
