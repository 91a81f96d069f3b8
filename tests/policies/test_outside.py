"""What happened outside of changes is found by comparing two looks; what we did ourselves is accounted for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import events as e
from policies.events import Difference, Entry
from policies.facts import FileText, HttpAnswer, UnitFacts
from policies.finding import Verdict
from policies.outside import Snapshot, differences, not_ours
from tests.policies import builders as b
from tests.policies.systemd_tree import file_text

DROPIN = "/etc/systemd/system/sgl-decode.service.d/zz-clawback.conf"
BY_HAND = "/etc/systemd/system/sgl-decode.service.d/50-hand.conf"


def snap(**more: object) -> Snapshot:
    return Snapshot.of(b.unit(**more))  # type: ignore[arg-type]


def build(version: str) -> dict[str, object]:
    answer = HttpAnswer(
        id="server_info",
        url="http://127.0.0.1:1/server_info",
        status=200,
        body=json.dumps({"version": version}),
        at=b.NOW,
        took_s=0.1,
    )
    return {"http": (answer,)}


def entry(event: e.Event) -> Entry:
    return Entry(seq=1, subject="C-1", version=1, at=b.NOW, event=event, prev="0" * 64)


def wrote(sha256: str | None) -> Entry:
    return entry(
        e.StepDone(part="do", index=0, step="write", instance="decode@gpu1", host_at=b.NOW, before=None, sha256=sha256)
    )


def restarted(pid: int) -> list[Entry]:
    done = e.StepDone(part="do", index=1, step="restart", instance="decode@gpu1", host_at=b.NOW, before=b.life(1))
    gate = e.GatePassed(
        part="do",
        index=1,
        instance="decode@gpu1",
        gate="incarnation",
        verdict=Verdict(answer="pass"),
        incarnation=b.life(pid),
    )
    return [entry(done), entry(gate)]


def test_two_looks_at_the_same_thing_differ_in_nothing() -> None:
    assert differences(snap(), snap()) == ()


def test_a_drop_in_that_somebody_wrote_edited_and_took_away_is_named() -> None:
    text = "[Service]\nEnvironment=A=1\n"
    (found,) = differences(snap(), snap(dropins={"50-hand.conf": text}))
    assert (found.what, found.name, found.was) == ("appeared", BY_HAND, None)
    assert found.now == file_text(BY_HAND, text).sha256
    (found,) = differences(snap(dropins={"50-hand.conf": text}), snap(dropins={"50-hand.conf": text + "\n"}))
    assert (found.what, found.name) == ("edited", BY_HAND)
    (found,) = differences(snap(dropins={"50-hand.conf": text}), snap())
    assert (found.what, found.now) == ("gone", None)


def test_a_file_that_cannot_be_read_is_no_difference_and_is_remembered_as_it_was() -> None:
    before = snap(env_files={"/etc/sgl/a.env": "A=1\n"})
    hidden = FileText(
        path="/etc/sgl/a.env", exists=True, text=None, sha256=None, mode=None, owner=None, error="forbidden"
    )
    blind = Snapshot.of(b.unit().model_copy(update={"env_files": (hidden,)}))
    assert differences(before, blind) == ()
    kept = blind.kept_from(before)
    assert differences(kept, snap(env_files={"/etc/sgl/a.env": "A=2\n"}))[0].what == "edited"


@pytest.mark.parametrize(
    ("was", "now", "what"),
    [
        ({"pid": 1}, {"pid": 2}, "restarted"),
        ({"pid": 1}, {"pid": 2, "n_restarts": 3}, "auto_restarted"),
        ({"pid": 1}, {"pid": 0}, "stopped"),
        ({"pid": 0}, {"pid": 2}, "started"),
    ],
)
def test_a_process_that_is_another_one_says_how(was: dict[str, int], now: dict[str, int], what: str) -> None:
    (found,) = differences(snap(**was), snap(**now))
    assert found.what == what
    assert found.was == (f"pid {was['pid']}" if was["pid"] else None)


def test_a_build_that_moved_is_told_and_one_that_is_not_said_is_not() -> None:
    (found,) = differences(snap(**build("0.5.21")), snap(**build("0.5.23")))
    assert found == Difference(what="build", was="0.5.21", now="0.5.23")
    assert differences(snap(**build("0.5.21")), snap()) == ()


def test_our_own_write_and_our_own_restart_are_accounted_for() -> None:
    text = "[Service]\nEnvironment=A=512\n"
    before, now = snap(pid=1, **build("1")), snap(pid=2, dropins={"zz-clawback.conf": text}, **build("2"))
    found = differences(before, now)
    assert [one.what for one in found] == ["appeared", "restarted", "build"]
    ours = [wrote(file_text(DROPIN, text).sha256), *restarted(2)]
    assert not_ours(found, ours, "decode@gpu1", now) == ()
    assert not_ours(found, [], "decode@gpu1", now) == found
    assert not_ours(found, ours, "decode@gpu2", now) == found  # it was another instance


def test_what_somebody_did_beside_our_change_is_still_found() -> None:
    text = "[Service]\nEnvironment=A=512\n"
    before = snap(pid=1)
    now = snap(pid=3, dropins={"zz-clawback.conf": text, "50-hand.conf": "[Service]\n"})
    ours = [wrote(file_text(DROPIN, text).sha256), *restarted(2)]  # pid 3 was restarted by hand behind our gate
    found = not_ours(differences(before, now), ours, "decode@gpu1", now)
    assert [(one.what, one.name) for one in found] == [("appeared", BY_HAND), ("restarted", "")]


def test_our_drop_in_with_another_text_than_we_wrote_was_edited_by_hand() -> None:
    before, now = snap(), snap(dropins={"zz-clawback.conf": "[Service]\nEnvironment=A=9\n"})
    found = not_ours(differences(before, now), [wrote("f" * 64)], "decode@gpu1", now)
    assert [one.what for one in found] == ["appeared"]


def test_taking_our_drop_in_away_is_ours_when_we_did() -> None:
    before, now = snap(dropins={"zz-clawback.conf": "[Service]\n"}), snap()
    assert not_ours(differences(before, now), [wrote(None)], "decode@gpu1", now) == ()
    assert not_ours(differences(before, now), restarted(5), "decode@gpu1", now) != ()


DIGEST = st.sampled_from(["absent", "a" * 64, "b" * 64, "?forbidden"])
FILES = st.dictionaries(st.sampled_from(["/a", "/b", "/c"]), DIGEST)
UNITS = st.builds(lambda pid: b.unit(pid=pid), st.integers(0, 2))


@given(FILES, FILES, UNITS, UNITS)
def test_a_difference_is_never_made_of_what_was_not_read(
    was: dict[str, str], now: dict[str, str], first: UnitFacts, second: UnitFacts
) -> None:
    before = Snapshot.of(first).model_copy(update={"files": was})
    then = Snapshot.of(second).model_copy(update={"files": now})
    named = {one.name for one in differences(before, then) if one.name}
    known = [p for p in {*was, *now} if "?forbidden" not in {was.get(p), now.get(p)}]
    assert named == {p for p in known if was.get(p, "absent") != now.get(p, "absent")}
    assert differences(then, then) == ()
