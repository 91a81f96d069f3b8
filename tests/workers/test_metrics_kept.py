"""Recorded scrapes come back as they were, and the store never holds more of them than is said."""

from __future__ import annotations

import hashlib
import math
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.metrics.samples import Sample, Scrape
from tests.conftest import Store
from workers.metrics.codec import UNPACKED_MAX_BYTES, Unreadable, pack, unpack
from workers.metrics.kept import BYTES, KEY, Kept

DECODE = "decode@gpu1"

labels = st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=3)
samples = st.builds(
    Sample, st.text(min_size=1, max_size=12), labels, st.floats(), st.none() | st.floats(0, 2e9, allow_nan=False)
)
scrapes = st.builds(
    Scrape, st.just(DECODE), st.text(max_size=30), st.floats(0, 2e9, allow_nan=False), st.lists(samples).map(tuple)
)


def spelled(scrape: Scrape) -> tuple[str, str, float, list[str]]:
    """Comparable, NaN and all; series of one name may stand together."""
    told = (f"{s.name} {sorted(s.labels.items())} {s.value!r} {s.at!r}" for s in scrape.samples)
    return scrape.instance, scrape.url, scrape.at, sorted(told)


def scrape(at: float, value: float = 1.0, padding: str = "") -> Scrape:
    return Scrape(DECODE, "http://127.0.0.1:1/metrics", at, (Sample("a", {"x": padding}, value),))


def counted(store: Store) -> int:
    return int(store.redis.get(BYTES + DECODE) or 0)


def ats(kept: Kept) -> list[float]:
    return [found.at for found in kept.between(DECODE, 0, 1e10)]


@settings(max_examples=150, deadline=None)
@given(scrapes)
def test_a_scrape_comes_back_as_it_was(found: Scrape) -> None:
    assert spelled(unpack(pack(found), DECODE)) == spelled(found)


def test_values_that_json_has_no_word_for_come_back() -> None:
    odd = Scrape(
        DECODE, "u", 1.0, tuple(Sample("a", {"i": str(i)}, v) for i, v in enumerate((math.nan, math.inf, -0.0, 1e300)))
    )
    back = [sample.value for sample in unpack(pack(odd), DECODE).samples]
    assert math.isnan(back[0])
    assert back[1:] == [math.inf, 0.0, 1e300]
    assert math.copysign(1, back[2]) == -1


@given(st.binary(max_size=100) | st.text(max_size=40).map(lambda text: zlib.compress(text.encode())))
def test_any_bytes_are_a_scrape_or_unreadable(data: bytes) -> None:
    with pytest.raises(Unreadable):
        unpack(data, DECODE)


def test_a_scrape_that_would_unpack_without_end_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="more than"):
        unpack(zlib.compress(b"[" + b" " * UNPACKED_MAX_BYTES), DECODE)


def test_a_window_gives_its_scrapes_in_order_and_no_others(store: Store) -> None:
    kept = Kept(store.redis, keep_s=1000)
    assert kept.add([scrape(130.0, 3), scrape(100.0, 1), scrape(115.0, 2)]) == 3
    assert [s.at for s in kept.between(DECODE, 100.0, 115.0)] == [100.0, 115.0]
    assert kept.between("decode@gpu2", 0, 1e10) == ()
    newest = kept.newest(DECODE, 130.0)
    assert newest is not None
    assert newest.at == 115.0
    assert kept.newest(DECODE, 100.0) is None


def test_two_looks_at_one_moment_are_one_scrape(store: Store) -> None:
    kept = Kept(store.redis, keep_s=1000)
    assert kept.add([scrape(100.0), scrape(100.1), scrape(99.9), scrape(100.3)]) == 2
    assert ats(kept) == [100.0, 100.3]


def test_what_is_too_old_goes(store: Store) -> None:
    kept = Kept(store.redis, keep_s=60)
    kept.add([scrape(100.0), scrape(130.0)])
    kept.add([scrape(165.0)])
    assert ats(kept) == [130.0, 165.0]


def test_what_is_too_much_goes_oldest_first(store: Store) -> None:
    kept = Kept(store.redis, keep_s=1e6, most=3)
    kept.add(scrape(at) for at in (100.0, 101.0, 102.0, 103.0, 104.0))
    assert ats(kept) == [102.0, 103.0, 104.0]


def test_bytes_are_counted_and_bounded(store: Store) -> None:
    noise = [hashlib.sha256(bytes([i])).hexdigest() for i in range(20)]
    kept = Kept(store.redis, keep_s=1e6, most_bytes=600)
    kept.add(scrape(100.0 + i, padding=text) for i, text in enumerate(noise))
    held = store.redis.zrange(KEY + DECODE, 0, -1)
    assert 2 <= len(held) < 20
    assert counted(store) == sum(map(len, held)) <= 600
    assert ats(kept)[-1] == 119.0


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 5000), max_size=30))
def test_the_count_of_bytes_is_never_wrong(store: Store, moments: list[int]) -> None:
    store.redis.flushall()
    kept = Kept(store.redis, keep_s=2.0, most=4, most_bytes=400)
    for moment in moments:
        kept.add([scrape(moment / 1000, padding=str(moment) * 5)])
    held = store.redis.zrange(KEY + DECODE, 0, -1)
    assert counted(store) == sum(map(len, held))
    assert len(held) <= 4


def test_an_instance_that_is_gone_from_the_fleet_is_forgotten(store: Store) -> None:
    Kept(store.redis, keep_s=3600).add([scrape(100.0)])
    assert 3600 < store.redis.ttl(KEY + DECODE) <= 7260
    assert 3600 < store.redis.ttl(BYTES + DECODE) <= 7260


def test_a_damaged_scrape_is_left_out(store: Store) -> None:
    kept = Kept(store.redis, keep_s=1000)
    kept.add([scrape(100.0)])
    store.redis.zadd(KEY + DECODE, {b"junk": 101_000})
    assert ats(kept) == [100.0]
    assert kept.newest(DECODE, 200.0) is None
