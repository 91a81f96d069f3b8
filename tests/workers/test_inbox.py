"""The inbox: once, for a day, whatever the key looks like."""

from __future__ import annotations

import re

import pytest

from policies.errors import NotFound
from tests.conftest import Store
from workers.inbox import KEPT_S, KEY, LIMIT_BYTES, WAITING, Inbox, TooLarge


@pytest.fixture
def inbox(store: Store) -> Inbox:
    return Inbox(store.redis)


def test_the_first_time_is_told_from_the_second(inbox: Inbox) -> None:
    first = inbox.put("env:1/2 ä", {"text": "set A=1", "n": [1, None]})
    again = inbox.put("env:1/2 ä", {"text": "something else"})
    assert (first.first, again.first, again.id) == (True, False, first.id)
    assert inbox.get(first.id) == {"text": "set A=1", "n": [1, None]}
    assert inbox.put("env:1/3 ä", {}).first


@pytest.mark.parametrize("key", ["", "x" * 10_000, "a:b/c\n\0", "\ud800", "ü💥"])
def test_every_key_gives_an_id_that_the_queue_takes(inbox: Inbox, key: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", inbox.put(key, {}).id)


def test_what_was_received_is_kept_for_a_day(inbox: Inbox, store: Store) -> None:
    received = inbox.put("k", {"a": 1})
    assert KEPT_S - 60 < store.redis.ttl(KEY + received.id) <= KEPT_S == 86_400


def test_an_unknown_id_is_not_found(inbox: Inbox) -> None:
    with pytest.raises(NotFound, match="nothing was received as `nope`"):
        inbox.get("nope")


def test_a_payload_beyond_the_limit_is_refused_and_not_kept(inbox: Inbox, store: Store) -> None:
    wrapping = len('{"t":""}')
    assert inbox.put("fits", {"t": "x" * (LIMIT_BYTES - wrapping)}).first
    with pytest.raises(TooLarge, match=f"received {LIMIT_BYTES + 1} bytes, expected at most {LIMIT_BYTES}"):
        inbox.put("big", {"t": "x" * (LIMIT_BYTES - wrapping + 1)})
    assert inbox.put("big", {}).first


def test_a_put_whose_answer_was_lost_is_still_the_first(inbox: Inbox) -> None:
    real = inbox._put

    def lossy(keys: list[str], args: list[str | bytes | int]) -> object:
        real(keys=keys, args=args)
        return real(keys=keys, args=args)

    inbox._put = lossy  # type: ignore[assignment]
    assert inbox.put("k", {}).first


def test_what_was_not_handled_goes_on_waiting(inbox: Inbox, store: Store) -> None:
    one, two = inbox.put("1", {}).id, inbox.put("2", {}).id
    assert sorted(inbox.waiting()) == sorted([one, two])
    assert inbox.waiting(older_s=3600) == []
    inbox.done(one)
    inbox.done(one)
    assert inbox.waiting() == [two]
    assert not inbox.put("1", {}).first
    assert inbox.waiting() == [two]
    store.redis.zadd(WAITING, {two: 1})
    inbox.put("3", {})
    assert two not in inbox.waiting()
