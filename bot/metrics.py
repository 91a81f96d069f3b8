"""What the bot counts of itself, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

import redis
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from policies.errors import StoreUnavailable
from workers.health import queue_lengths

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)  # Slack waits 3 s


class _Queues(Collector):
    """Lengths read when they are asked for; no data while Redis is away."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One sample a queue."""
        family = GaugeMetricFamily("clawback_queue_length", "Bells that wait for a worker.", labels=["queue"])
        try:
            for queue, length in queue_lengths(self._redis).items():
                family.add_metric([queue], length)
        except StoreUnavailable:
            return
        yield family


class Meter:
    """The counters of one process."""

    def __init__(self, client: redis.Redis) -> None:
        self._registry = CollectorRegistry()
        self._heard = Counter(
            "clawback_heard", "What Slack sent and was acknowledged, by kind.", ["kind"], registry=self._registry
        )
        self._took_s = Histogram(
            "clawback_acknowledged_seconds",
            "From hearing to acknowledging.",
            ["kind"],
            buckets=BUCKETS_S,
            registry=self._registry,
        )
        self._registry.register(_Queues(client))

    def heard(self, kind: str, took_s: float) -> None:
        """Something was acknowledged."""
        self._heard.labels(kind).inc()
        self._took_s.labels(kind).observe(took_s)

    def text(self) -> bytes:
        """Everything as Prometheus reads it."""
        return generate_latest(self._registry)
