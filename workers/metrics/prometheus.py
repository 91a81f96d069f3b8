"""A Prometheus server: instant and range queries over one kept connection. Everything that goes wrong is a Finding."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from policies.finding import Finding
from policies.fleet import Fleet
from policies.metrics.collected import Asked, Collected
from policies.metrics.measured import Measured
from policies.metrics.promql import parse_query
from policies.metrics.ranged import FRESH_S, Answered, Line, readings
from policies.metrics.scoped import Scoped, known_as, scope

TIMEOUT_S = 10.0
CONNECT_S = 3.0
ANSWER_MAX_BYTES = 16 * 1024 * 1024
STEP_S = 15.0  # between two moments of a window; less in a short one, more in a long one
LEAST_MOMENTS = 4
MOST_MOMENTS = 240


class Prometheus:
    """One server. Units: timeout_s for one exchange; fresh_s is how old a sample may be, in seconds."""

    def __init__(self, fleet: Fleet, url: str, *, timeout_s: float = TIMEOUT_S, fresh_s: float = FRESH_S) -> None:
        self.url = url.rstrip("/")
        self.source = f"prometheus {self.url}"
        self._fleet = fleet
        self._fresh_s = fresh_s
        self._timeout_s = timeout_s
        # from its own address only: a proxy or a .netrc of the machine is not part of the fleet
        self._client = httpx.Client(timeout=httpx.Timeout(timeout_s, connect=CONNECT_S), trust_env=False)

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def at(self, asked: Asked, instances: Sequence[str], at: float) -> Measured:
        """One reading, by instant queries. Units: epoch seconds."""
        return self._measured(asked, instances, at, at, [at])

    def window(self, asked: Asked, instances: Sequence[str], start: float, end: float) -> Measured:
        """Readings over a window, by range queries; the last one is at its end. Units: epoch seconds."""
        return self._measured(asked, instances, start, end, moments(start, end))

    def _measured(
        self, asked: Asked, instances: Sequence[str], start: float, end: float, at: Sequence[float]
    ) -> Measured:
        window = Collected(asked, self.source, start, end)
        parsed = parse_query(asked.query)
        if isinstance(parsed, Finding):
            window.problem = parsed
            return window.told()
        names = known_as(self._fleet, instances)
        found = self._ask_all(window, scope(parsed, names), at)
        if isinstance(found, Finding):
            window.problem = found
            return window.told()
        return readings(window, found, moments=at, known_as=names, instances=instances, fresh_s=self._fresh_s)

    def _ask_all(self, window: Collected, scoped: Scoped, at: Sequence[float]) -> Answered | Finding:
        warnings: list[str] = []

        def ask(query: str) -> tuple[Line, ...]:
            lines = self._ask(window, query, at, warnings)
            if isinstance(lines, Finding):
                raise _Failed(lines)
            return lines

        try:
            lines = ask(scoped.text)
            newest = {name: ask(scoped.newest(name)) for name in scoped.names}
            buckets = [(quantile, ask(quantile.buckets)) for quantile in scoped.quantiles]
        except _Failed as failed:
            return failed.finding
        return Answered(lines, newest, buckets, tuple(dict.fromkeys(warnings)))

    def _ask(
        self, window: Collected, query: str, at: Sequence[float], warnings: list[str]
    ) -> tuple[Line, ...] | Finding:
        fields = {"query": query, "timeout": f"{self._timeout_s:g}s"}
        if len(at) == 1:
            path = "/api/v1/query"
            fields["time"] = f"{at[0]:.3f}"
        else:
            path = "/api/v1/query_range"
            fields |= {"start": f"{at[0]:.3f}", "end": f"{at[-1]:.3f}", "step": f"{at[1] - at[0]:.3f}"}
        try:
            status, text = self._post(path, fields)
        except httpx.TimeoutException:
            return window.finding("metrics.prometheus-away", error=f"no answer in {self._timeout_s:g} s")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return window.finding("metrics.prometheus-away", error=str(error) or type(error).__name__)
        if text is None:
            return window.finding("metrics.prometheus-long", bytes=ANSWER_MAX_BYTES)
        try:
            document = json.loads(text)
            if document["status"] != "success":
                return self._refused(window, status, document)
            warnings += [str(warning) for warning in document.get("warnings", ())]
            return tuple(_lines(document["data"], at))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            said = " ".join(text[:80].decode("utf-8", "replace").split())
            return window.finding(
                "metrics.prometheus-failed", status=status, error=f"no answer of a Prometheus: {said}"
            )

    def _post(self, path: str, fields: Mapping[str, str]) -> tuple[int, bytes | None]:
        """Status and body; None for a body that is longer than allowed."""
        with self._client.stream("POST", self.url + path, data=dict(fields)) as response:
            kept = bytearray()
            for piece in response.iter_bytes():
                kept += piece
                if len(kept) > ANSWER_MAX_BYTES:
                    return response.status_code, None
            return response.status_code, bytes(kept)

    def _refused(self, window: Collected, status: int, document: Mapping[str, Any]) -> Finding:
        kind, said = str(document.get("errorType", "")), str(document.get("error", ""))[:300]
        if kind == "bad_data":
            return window.finding("metrics.bad-query", problem=said)
        if kind == "execution":
            return window.finding("metrics.ambiguous", construct=said)
        return window.finding("metrics.prometheus-failed", status=status, error=f"{kind}: {said}")


class _Failed(Exception):  # not an error: carries the finding out of the questions
    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.code)
        self.finding = finding


def moments(start: float, end: float) -> list[float]:
    """The moments of a window: evenly spread, the last one its end. Units: epoch seconds, whole milliseconds."""
    length_s = max(0.0, end - start)
    step_s = min(STEP_S, length_s / LEAST_MOMENTS)
    step_ms = max(1, math.ceil(max(step_s, length_s / MOST_MOMENTS) * 1000))
    last = round(end * 1000)
    count = int(length_s * 1000) // step_ms
    return [(last - step_ms * back) / 1000 for back in range(count, -1, -1)]


def _lines(data: Mapping[str, Any], at: Sequence[float]) -> list[Line]:
    """Series of a vector, a matrix or a number. The times are those that were asked for, which are its keys."""
    asked = {round(moment * 1000): moment for moment in at}
    kind, result = data["resultType"], data["result"]
    if kind == "scalar":
        return [Line({}, {at[0]: float(result[1])})]
    if kind not in {"vector", "matrix"}:
        message = f"a {kind} is no series"
        raise ValueError(message)
    found = []
    for one in result:
        pairs = [one["value"]] if kind == "vector" else one["values"]
        values = {asked[round(float(time) * 1000)]: float(value) for time, value in pairs}
        found.append(Line({str(k): str(v) for k, v in one["metric"].items()}, values))
    return found
