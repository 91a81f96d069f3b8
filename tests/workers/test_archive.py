"""The archive is the ledger in files: whatever ends its writer, and at whatever byte, the files come out the same."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from policies.errors import ArchiveBroken, SettingsError
from policies.events import GENESIS, Entry
from tests.conftest import Store
from tests.workers import events as make
from workers.archive.check import compare, last_of
from workers.archive.follow import catch_up, follow
from workers.archive.segment import segments
from workers.archive.writer import Archive
from workers.health import alive
from workers.ledger import STREAM, Ledger, stored

DAY = 86_400
ROOT = Path(__file__).parents[2]


def fill(store: Store, *changes: str, start: float = 10 * DAY) -> Ledger:
    """A ledger whose changes are asked for a day apart."""
    at = [start]
    ledger = Ledger(store.redis, lambda: at[0])
    for change in changes:
        for number, event in enumerate(make.whole_life()):
            ledger.append(change, event, expect_version=number)
        at[0] += DAY
    return ledger


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in segments(folder)}


def put_away(store: Store, folder: Path) -> dict[str, bytes]:
    with Archive(folder) as archive:
        catch_up(archive, store.redis)
    return files(folder)


def codes(store: Store, folder: Path) -> list[tuple[str, object]]:
    return [(one.code.removeprefix("archive."), one.values.get("seq")) for one in compare(store.redis, folder)]


def test_every_entry_is_a_line_as_it_is_stored_in_the_file_of_its_day(store: Store, tmp_path: Path) -> None:
    ledger = fill(store, "C-1", "C-2")
    found = put_away(store, tmp_path / "a")
    assert list(found) == ["1970-01-11.jsonl", "1970-01-12.jsonl"]
    first, second = (text.decode().splitlines() for text in found.values())
    assert [*first[1:], *second[1:]] == [text for _, text in stored(store.redis)] == list(ledger.export())
    assert json.loads(first[0]) == {"archive": 1, "day": "1970-01-11", "after_seq": 0, "prev": GENESIS}
    last = json.loads(first[-1])
    assert json.loads(second[0]) == {"archive": 1, "day": "1970-01-12", "after_seq": 8, "prev": last["hash"]}
    assert compare(store.redis, tmp_path / "a") == []


def test_nobody_else_may_read_it(store: Store, tmp_path: Path) -> None:
    fill(store, "C-1")
    before = os.umask(0)
    try:
        put_away(store, tmp_path / "a")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").iterdir()}
    assert modes == {"1970-01-11.jsonl": 0o600, "lock": 0o600}
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_a_clock_that_goes_back_does_not_go_back_to_an_older_file(store: Store, tmp_path: Path) -> None:
    fill(store, "C-1", start=10 * DAY)
    fill(store, "C-2", start=3 * DAY)
    assert list(put_away(store, tmp_path / "a")) == ["1970-01-11.jsonl"]
    assert compare(store.redis, tmp_path / "a") == []


def test_a_writer_that_was_cut_off_at_any_byte_leaves_nothing_that_is_not_taken_back(
    store: Store, tmp_path: Path
) -> None:
    fill(store, "C-1", "C-2")
    whole = put_away(store, tmp_path / "a")
    for name, text in whole.items():
        ends = [at for at, byte in enumerate(text) if byte == ord("\n")]
        cuts = {0, 1, *range(0, len(text), 397), *(end + by for end in ends for by in (-1, 0, 1))}
        for cut in sorted(cuts):
            folder = tmp_path / f"{name}-{cut}"
            folder.mkdir()
            for other, bytes_ in whole.items():
                if other <= name:
                    (folder / other).write_bytes(bytes_ if other < name else bytes_[:cut])
            with Archive(folder) as archive:
                torn = cut > 0 and text[cut - 1] != ord("\n")
                assert (archive.repaired is not None) == torn, (name, cut)
                catch_up(archive, store.redis)
            assert files(folder) == whole, (name, cut)


def test_a_writer_that_is_killed_is_followed_by_one_that_goes_on(store: Store, tmp_path: Path) -> None:
    fill(store, *(f"C-{number}" for number in range(1, 25)))
    folder = tmp_path / "a"
    script = (
        "import sys, pathlib; from workers.archive.writer import Archive; from workers.archive.follow import catch_up;"
        "from workers.store import connect; import workers.archive.follow as f; f.BATCH = 3;"
        "catch_up(Archive(pathlib.Path(sys.argv[2])), connect(sys.argv[1]))"
    )
    for _ in range(2):
        before = sum(map(len, files(folder).values()))
        writer = subprocess.Popen([sys.executable, "-c", script, store.url, str(folder)], cwd=ROOT)
        deadline = time.monotonic() + 30
        while sum(map(len, files(folder).values())) == before and writer.poll() is None:
            assert time.monotonic() < deadline
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    put_away(store, folder)
    assert codes(store, folder) == []
    assert [line for text in files(folder).values() for line in text.decode().splitlines()[1:]] == [
        text for _, text in stored(store.redis)
    ]


def test_two_writers_never_share_a_folder(store: Store, tmp_path: Path) -> None:
    with Archive(tmp_path / "a"), pytest.raises(SettingsError, match=f"being written by process {os.getpid()}"):
        Archive(tmp_path / "a")
    Archive(tmp_path / "a").close()


def test_what_is_appended_while_it_follows_is_put_away(store: Store, tmp_path: Path) -> None:
    ledger = fill(store, "C-1")
    ending = threading.Event()
    with Archive(tmp_path / "a") as archive:
        news = follow(archive, store.redis, ending, "me")
        assert next(news) == 8
        assert alive(store.redis, "archive") == 1
        ledger.append("ab-1", make.evidence("ab-1"), expect_version=0)
        assert next(news) == 1
        ending.set()
        assert list(news) == []
    assert last_of(tmp_path / "a")[0] == 9


def test_a_ledger_that_lost_entries_or_is_another_one_is_not_written_over_the_archive(
    store: Store, tmp_path: Path
) -> None:
    fill(store, "C-1")
    whole = put_away(store, tmp_path / "a")
    store.redis.flushall()
    with Archive(tmp_path / "a") as archive:
        with pytest.raises(ArchiveBroken, match="the archive has 8 entries and the ledger has 0"):
            catch_up(archive, store.redis)
        fill(store, "C-2", "C-3")
        with pytest.raises(ArchiveBroken, match="not of one chain"):
            catch_up(archive, store.redis)
    assert files(tmp_path / "a") == whole
    assert codes(store, tmp_path / "a") == [("other-chain", 1), ("behind", 9)]


def test_a_ledger_that_was_edited_is_not_put_away(store: Store, tmp_path: Path) -> None:
    fill(store, "C-1")
    rows = list(stored(store.redis))
    store.redis.delete(STREAM)
    for number, text in rows:
        edited = text.replace('"ben"', '"eve"') if number == 3 else text
        store.redis.xadd(STREAM, {"entry": edited, "writer": "x"}, id=f"{number}-0")
    with Archive(tmp_path / "a") as archive, pytest.raises(ArchiveBroken, match="entry 3 of the ledger"):
        catch_up(archive, store.redis)


@pytest.mark.parametrize(
    ("edit", "wanted"),
    [
        (lambda ls: [*ls[:3], ls[3].replace(b'"ben"', b'"eve"'), *ls[4:]], [("edited-entry", 3)]),
        (lambda ls: [*ls[:3], *ls[4:]], [("missing-entry", 3)]),
        (lambda ls: [*ls[:3], ls[4], ls[3], *ls[5:]], [("missing-entry", 3), ("misplaced-entry", 3)]),
        (lambda ls: [*ls[:3], b"?\n", *ls[4:]], [("unreadable-line", None)]),
        (lambda ls: [*ls, ls[-1]], [("misplaced-entry", 8)]),
        (lambda ls: ls[:-2], [("behind", 7)]),
        (lambda ls: [*ls[:-1], ls[-1][:50]], [("torn", None), ("behind", 8)]),
        (lambda ls: [ls[0].replace(b'"after_seq":0', b'"after_seq":2'), *ls[1:]], None),
    ],
    ids=["edited", "deleted", "swapped", "overwritten", "doubled", "behind", "torn", "anchor"],
)
def test_what_was_done_to_a_file_is_named(
    store: Store, tmp_path: Path, edit: object, wanted: list[tuple[str, object]] | None
) -> None:
    fill(store, "C-1")
    put_away(store, tmp_path / "a")
    (path,) = segments(tmp_path / "a")
    assert callable(edit)
    path.write_bytes(b"".join(edit(path.read_bytes().splitlines(keepends=True))))
    found = codes(store, tmp_path / "a")
    assert found == wanted if wanted is not None else found[0] == ("broken-anchor", None)


def test_an_entry_that_was_edited_and_sealed_anew_breaks_the_link_behind_it(store: Store, tmp_path: Path) -> None:
    fill(store, "C-1")
    put_away(store, tmp_path / "a")
    (path,) = segments(tmp_path / "a")
    found = path.read_text().splitlines(keepends=True)
    forged = Entry.model_validate_json(found[3]).model_copy(update={"at": 7.0}).sealed()
    path.write_text("".join([*found[:3], forged.canonical() + "\n", *found[4:]]))
    assert codes(store, tmp_path / "a") == [("broken-link", 4), ("other-chain", 3)]


def test_a_file_that_is_missing_in_the_middle_is_named(store: Store, tmp_path: Path) -> None:
    fill(store, "C-1", "C-2", "C-3")
    put_away(store, tmp_path / "a")
    segments(tmp_path / "a")[1].unlink()
    assert codes(store, tmp_path / "a") == [("broken-anchor", None)]


def test_a_disk_that_cannot_be_written_is_an_error_in_words(store: Store, tmp_path: Path) -> None:
    fill(store, "C-1")
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be used"):
        Archive(tmp_path / "file" / "a")
    with Archive(tmp_path / "a") as archive:
        (tmp_path / "a" / "1970-01-11.jsonl").mkdir()
        with pytest.raises(ArchiveBroken, match="cannot be written"):
            catch_up(archive, store.redis)
