"""New drift is told once in the fleet's channel, changes of it again, and its end."""

from __future__ import annotations

from bot.asides import Asides
from bot.posting import Poster
from bot.slack import make_client
from policies import events as e
from policies.finding import Finding
from sandbox.slack import SlackSandbox
from tests.bot.test_hearing import Room
from tests.conftest import Store
from workers.drawn import Drawn

FOUND = Finding(
    code="drift.live",
    effect="refuse",
    values={"instance": "decode@gpu1", "knob": "TARGET_CTAS", "live": "<!channel>", "configured": "512"},
)


def test_drift_is_posted_once_in_the_channel_of_the_fleet_and_its_end_too(store: Store, slack: SlackSandbox) -> None:
    room, rung = Room(store, slack), list[str]()
    web = make_client(slack.bot_token, slack.base_url, timeout_s=3)
    asides = Asides(room.client, Drawn(room.ledger.redis), Poster(web), lambda: room.now, rung.append)
    room.ledger.append("dr-1", e.DriftSeen(instance="decode@gpu1", found=(FOUND,)), expect_version=0)
    asides.sweep()
    assert rung == []  # the fleet file names no channel
    room.client.fleet = room.client.fleet.model_copy(update={"channel": "C0PERF"})
    for _ in range(2):
        asides.sweep()
        asides.draw("dr-1")
    assert rung == ["dr-1"]
    room.ledger.append("dr-1", e.DriftSeen(instance="decode@gpu1", found=()), expect_version=1)
    asides.sweep()
    asides.draw("dr-1")
    said = [m for m in slack.people.transcript("C0PERF") if "decode@gpu1" in m["text"]]
    assert len(said) == 2
    assert {m["thread_ts"] for m in said} == {None}
    assert "decode@gpu1 is not as it was left" in said[0]["text"]
    assert "TARGET_CTAS is" in said[0]["text"]
    assert "<!channel>" not in said[0]["text"]
    assert said[1]["text"] == "decode@gpu1 is as it was left again"
