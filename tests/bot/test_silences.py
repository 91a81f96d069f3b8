"""What becomes of the silences of a change is told in its thread, once, in order."""

from __future__ import annotations

from bot.asides import Asides
from bot.posting import Poster
from bot.slack import make_client
from policies import events as e
from sandbox.slack import SlackSandbox
from tests.bot.suspected import record, reverted
from tests.bot.test_hearing import Room
from tests.conftest import Store
from workers.drawn import Drawn, Pointer

T0 = 1_764_600_000.0
EVENTS: tuple[e.Event, ...] = (
    e.SilenceMade(service="decode", silence="1a2b", until=T0, matchers=('job="<!channel>"',)),
    e.SilenceProlonged(service="decode", silence="1a2b", until=T0 + 600),
    e.SilenceEnded(service="decode", silence="1a2b", why="held"),
    e.SilenceFailed(doing="make", services=("decode", "router"), error="no answer in time"),
)


def test_silences_are_told_once_in_the_thread_of_their_change(store: Store, slack: SlackSandbox) -> None:
    room = Room(store, slack)
    record(room.ledger, "C-7", reverted(T0))
    web = make_client(slack.bot_token, slack.base_url, timeout_s=3)
    card = str(web.chat_postMessage(channel="C0PERF", text="the card of C-7")["ts"])
    drawn = Drawn(room.ledger.redis)
    rung: list[str] = []
    asides = Asides(room.client, drawn, Poster(web), lambda: room.now, rung.append)
    for number, event in enumerate(EVENTS):
        room.ledger.append("si-7", event, expect_version=number)
    asides.sweep()
    assert rung == []  # its thread is not there yet
    drawn.put("C-7", Pointer(channel="C0PERF", thread_ts=card, card_ts=card))
    asides.sweep()
    assert rung == ["si-7"]
    for _ in range(2):
        asides.draw("si-7")
    said = [m["text"] for m in slack.people.transcript("C0PERF") if "decode" in m["text"]]
    assert len(said) == len(EVENTS)
    assert {m["thread_ts"] for m in slack.people.transcript("C0PERF") if "decode" in m["text"]} == {card}
    assert "alerts of decode are silenced until" in said[0]
    assert "<!channel>" not in said[0]
    assert "stay silenced" in said[1]
    assert "heard again: the change is held" in said[2]
    assert "alerts of decode, router are not silenced, the Alertmanager did not do it: no answer in time" in said[3]
