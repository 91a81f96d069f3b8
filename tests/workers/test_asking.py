"""What is asked becomes one change, whatever ends in between; what cannot be planned is refused with its reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from policies.errors import FleetFileError, OpsError, SettingsError, StoreUnavailable
from policies.events import Refused
from policies.intents import Act, RestoreKnob, Where
from tests.bot import stories
from tests.conftest import Store
from workers.client import Client
from workers.ledger import Ledger
from workers.prepare import prepare
from workers.queue import Doorbell
from workers.shells import Shell
from workers.wiring import Wiring


def asking(store: Store) -> Client:
    return Client(Ledger(store.redis, lambda: stories.T0), Doorbell(store.redis), stories.fleet(), lambda: stories.T0)


def ask(client: Client, key: str | None) -> str:
    intent = RestoreKnob(knob="TARGET_CTAS", value="512")
    return client.request(intent, stories.ana(), Where(channel="C0PERF"), said="x", normalised="x", key=key)


def test_the_same_key_is_the_same_change_and_another_key_another_one(store: Store) -> None:
    client = asking(store)
    assert client.requested("one") is None
    assert [ask(client, "one"), ask(client, "one"), ask(asking(store), "one"), ask(client, "two")] == [
        "C-1",
        "C-1",
        "C-1",
        "C-2",
    ]
    assert [ask(client, None), ask(client, None)] == ["C-3", "C-4"]
    assert client.requested("one") == "C-1"
    assert len(client.entries("C-1")) == 1


def test_an_id_that_was_reserved_before_the_process_ended_is_used_when_it_is_asked_again(store: Store) -> None:
    class Ended(Ledger):
        def append(self, *_: object, **__: object) -> None:  # type: ignore[override]  # the process ends here
            raise KeyboardInterrupt

    dying = Client(Ended(store.redis, lambda: stories.T0), Doorbell(store.redis), stories.fleet(), lambda: stories.T0)
    with pytest.raises(KeyboardInterrupt):
        ask(dying, "one")
    client = asking(store)
    assert client.requested("one") is None
    assert ask(client, "one") == "C-1"
    assert [change.id for change in client.recent(5)] == ["C-1"]


@pytest.mark.parametrize("error", [SettingsError, FleetFileError])
def test_what_is_missing_here_refuses_the_change_with_a_reason_and_is_no_endless_job(
    store: Store, error: type[OpsError]
) -> None:
    wiring = Wiring(stories.fleet(), store.redis, failing(error("no ssh key is set", hint="set CLAWBACK_SSH_KEYS")))
    change_id = ask(wiring.client, None)
    prepare(wiring, change_id)
    (_, entry) = wiring.client.entries(change_id)
    assert isinstance(entry.event, Refused)
    (finding,) = entry.event.findings
    assert (finding.code, finding.effect) == ("plan.not-made", "refuse")
    assert finding.values == {"error": "no ssh key is set", "hint": "set CLAWBACK_SSH_KEYS"}


def test_a_store_that_is_away_refuses_nothing(store: Store) -> None:
    wiring = Wiring(stories.fleet(), store.redis, failing(StoreUnavailable("redis is away")))
    change_id = ask(wiring.client, None)
    with pytest.raises(StoreUnavailable):
        prepare(wiring, change_id)
    assert wiring.client.change(change_id).state == "asked"


def failing(error: OpsError) -> Callable[[], Shell]:
    def open_shell() -> Shell:
        raise error

    return open_shell


def test_a_click_that_is_heard_twice_because_its_hearer_ended_is_one_click_with_the_same_answer(store: Store) -> None:
    client = asking(store)
    ask(client, "one")
    client.ledger.append("C-1", stories.planned(), expect_version=1)
    plan = client.change("C-1").plan
    assert plan is not None
    click = Act(kind="confirm", change="C-1", order=plan.order, digest=plan.digest)
    first = client.act(click, stories.ben(), key="click")
    again = asking(store).act(click, stories.ben(), key="click")
    assert (first.finding.code, again.finding) == ("click.ok", first.finding)
    assert again.change == first.change
    assert [entry.event.kind for entry in client.entries("C-1")] == ["asked", "planned", "approval_given"]

    refused = client.act(click, stories.ana(), key="another")
    assert refused.finding.effect == "refuse"
    assert asking(store).act(click, stories.ana(), key="another").finding == refused.finding
    assert len(client.entries("C-1")) == 4
