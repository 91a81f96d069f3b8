"""A revert on suspicion as the ledger has it, for tests of reclaim and reminders."""

from __future__ import annotations

from policies import events as e
from policies import suspicion as su
from policies.intents import RevertKnob, Where
from tests.bot import stories
from workers.ledger import Ledger

WEEK_S = 604_800.0


def reverted(at: float, change: str = "C-7", channel: str = "C0PERF") -> list[e.Event]:
    """Ana takes 512 away because a harness hangs; ben agrees; it succeeds at that time."""
    plan = stories.plan("decode-only").model_copy(
        update={
            "value": None,
            "targets": tuple(
                t.model_copy(update={"now": "512", "then": None}) for t in stories.plan("decode-only").targets
            ),
        }
    )
    asked = e.Asked(
        intent=RevertKnob(knob="TARGET_CTAS", because="multi-round hang"),
        actor=stories.ana(),
        where=Where(channel=channel),
        said='revert TARGET_CTAS because "multi-round hang"',
        normalised='/knob revert TARGET_CTAS because "multi-round hang"',
        fleet_sha256="f" * 64,
    )
    record = stories.record()
    suspicion = su.Suspicion(
        id=su.suspicion_id(change),
        change=change,
        knob="TARGET_CTAS",
        value="512",
        was={"decode@gpu1": "512"},
        now={"decode@gpu1": None},
        reason="multi-round hang",
        owner="U0ANA",
        at=at,
        review_at=at + WEEK_S,
        review_s=WEEK_S,
        evidence=record.id,
        prices=su.prices(record),
    )
    given = e.ApprovalGiven(actor=stories.ben(), order="decode-only", digest=plan.digest, complete=True)
    end = e.Succeeded(
        knob="TARGET_CTAS",
        order="decode-only",
        word="revert",
        was=suspicion.was,
        now=suspicion.now,
        took_s=80.0,
        suspicion=suspicion,
    )
    return [asked, stories.planned(plan), given, stories.started("decode-only"), end]


def restored() -> list[e.Event]:
    """The value comes back."""
    end = e.Succeeded(
        knob="TARGET_CTAS",
        order="decode-only",
        word="restore",
        was={"decode@gpu1": None},
        now={"decode@gpu1": "512"},
        took_s=80.0,
    )
    return [
        stories.asked(),
        stories.planned(stories.plan("decode-only")),
        stories.confirmed("decode-only"),
        stories.started("decode-only"),
        end,
    ]


def record(ledger: Ledger, subject: str, events: list[e.Event]) -> None:
    """Append them in order."""
    for version, event in enumerate(events):
        ledger.append(subject, event, expect_version=version)
