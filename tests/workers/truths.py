"""A fleet of prefill, decode and router whose metrics stand in memory, and what judges causes on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.fleet import CauseEntry, Fleet, HttpCheck, MetricQuery
from tests.bot import stories
from tests.conftest import Store
from tests.policies.scrapes import PD_EMPTY, engine_text, router_text
from tests.workers.remembered import Remembered
from workers.client import Client
from workers.ledger import Ledger
from workers.measuring import Measuring
from workers.queue import Doorbell
from workers.truth import Truth

T0 = stories.T0
HOURS_AGO = T0 - 78_000.0
TTFT = "sum(sglang:time_to_first_token_seconds_sum) / sum(sglang:time_to_first_token_seconds_count)"


def fleet(**changes: Any) -> Fleet:
    """The fleet of the stories, with metrics, causes and what would be seen if the knob did it."""
    known = stories.fleet(approvers=("U0BEN",))
    services = {
        name: service.model_copy(
            update={
                "metrics": HttpCheck(url=f"http://127.0.0.1:{stories.PORTS[name]}/metrics"),
                "needs": {"prefill": (), "decode": ("prefill",), "router": ("prefill", "decode")}[name],
            }
        )
        for name, service in known.services.items()
    }
    metrics = {
        "running_reqs": ("sum(max by (instance, dp_rank) (sglang:num_running_reqs))", "requests"),
        "queue_reqs": ("sum(max by (instance, dp_rank) (sglang:num_queue_reqs))", "requests"),
        "uptime_s": ("time() - process_start_time_seconds", "s"),
        "ttft_s": (TTFT, "s"),
        "tput": ("sum(sglang:gen_throughput)", "tok/s"),
    }
    causes = {
        "queued-behind-load": ("the request queued behind live traffic", "queue_reqs > 0", "queue_reqs == 0"),
        "cold-start": (
            "cold start after a restart",
            "uptime_s < 600 and ttft_s falling",
            "uptime_s > 3600 or ttft_s not falling",
        ),
    }
    guilty = known.knobs["TARGET_CTAS"].model_copy(update={"if_guilty": "state != idle"})
    return known.model_copy(
        update={
            "services": services,
            "knobs": {"TARGET_CTAS": guilty},
            "metrics": {n: MetricQuery(name=n, on="decode", query=q, unit=u) for n, (q, u) in metrics.items()},
            "causes": {
                n: CauseEntry(name=n, about=about, needs=needs, refuted_by=against)
                for n, (about, needs, against) in causes.items()
            },
            **changes,
        }
    )


def texts(
    decode: Mapping[str, object] | None = None,
    prefill: Mapping[str, object] | None = None,
    in_flight: object = 0,
    without: tuple[str, ...] = (),
) -> dict[str, str]:
    """What the three export; idle for hours unless it is said otherwise."""
    said = {
        "prefill@gpu1": engine_text(
            **{"role": "prefill", "started": HOURS_AGO, "pd": PD_EMPTY["prefill"], **(prefill or {})}  # type: ignore[arg-type]  # its own parameters
        ),
        "decode@gpu1": engine_text(
            **{"role": "decode", "started": HOURS_AGO, "pd": PD_EMPTY["decode"], **(decode or {})}  # type: ignore[arg-type]  # its own parameters
        ),
        "router@gpu1": router_text(in_flight),
    }
    return {instance: text for instance, text in said.items() if instance not in without}


class World:
    """The ledger, the metrics and the judge of causes; the clock moves only when somebody waits."""

    def __init__(self, store: Store, known: Fleet | None = None) -> None:
        self.now = T0
        self.fleet = known or fleet()
        self.said = texts()
        self.metrics = Remembered(self.fleet, self.clock, lambda _at: self.said)
        self.ledger = Ledger(store.redis, self.clock)
        self.doorbell = Doorbell(store.redis)
        self.client = Client(self.ledger, self.doorbell, self.fleet, self.clock)
        self.measuring = Measuring(self.fleet, self.metrics, self.clock, self.wait)
        self.looks = self  # of which only `truth` is asked
        self.truth = Truth(self, self.measuring)  # type: ignore[arg-type]  # as much of the wiring as it needs

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def past(self, *looks_ago_s: float, **said: object) -> None:
        """What was recorded so many seconds ago."""
        meant, self.said = self.said, texts(**said) if said else self.said  # type: ignore[arg-type]  # its own parameters
        for ago_s in looks_ago_s:
            self.metrics.record(self.now - ago_s)
        self.said = meant
