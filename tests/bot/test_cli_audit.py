"""`clawback audit` on a real ledger, as a person calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pydantic import SecretStr

from bot.cli import main
from bot.cli.up import must_go_on
from policies.errors import ArchiveBroken
from policies.events import Entry
from tests.conftest import Store
from tests.workers import events as make
from workers.archive.follow import catch_up
from workers.archive.writer import Archive
from workers.ledger import STREAM, Ledger
from workers.live import EmbeddedStore
from workers.store import connect

ROOT = Path(__file__).parents[2]


def _run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key not in {"REDIS_URL", "CLAWBACK_DATA"}}
    return subprocess.run(
        [sys.executable, "-c", "from bot.cli import main; main()", "audit", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**kept, **environment},
        timeout=60,
        check=False,
    )


def _fill(ledger: Ledger) -> None:
    for number, event in enumerate(make.whole_life()):
        ledger.append("C-1", event, expect_version=number)


def test_a_whole_ledger_is_whole(store: Store) -> None:
    _fill(Ledger(store.redis, lambda: 1000.0))
    plain, as_json = _run("verify", REDIS_URL=store.url), _run("verify", "--json", REDIS_URL=store.url)
    assert (plain.returncode, plain.stdout) == (0, "the ledger is whole\n")
    assert (as_json.returncode, json.loads(as_json.stdout)) == (0, {"ok": True, "problems": []})


def test_a_deleted_entry_is_named_and_the_answer_is_no(store: Store) -> None:
    _fill(Ledger(store.redis, lambda: 1000.0))
    store.redis.xdel(STREAM, "3-0")
    plain, as_json = _run("verify", REDIS_URL=store.url), _run("verify", "--json", REDIS_URL=store.url)
    assert (plain.returncode, plain.stdout) == (1, "entry 3 is missing\n")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout) == {
        "ok": False,
        "problems": [{"code": "ledger.missing-entry", "message": "entry 3 is missing", "values": {"seq": 3}}],
    }


def test_a_store_that_is_not_there_is_unreadable() -> None:
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        answer = _run("verify", "--json", REDIS_URL=f"unix://{folder}/none.sock")
        nothing = _run("verify", CLAWBACK_DATA=folder)
    assert answer.returncode == 2
    assert json.loads(answer.stdout)["error"]["code"] == "store-unavailable"
    assert nothing.returncode == 2
    assert "there is no ledger in" in nothing.stderr


def test_export_prints_every_entry(store: Store) -> None:
    ledger = Ledger(store.redis, lambda: 1000.0)
    _fill(ledger)
    answer = _run("export", REDIS_URL=store.url)
    assert answer.returncode == 0
    assert [Entry.model_validate_json(line) for line in answer.stdout.splitlines()] == list(ledger.read())


def test_the_embedded_ledger_is_read_while_it_runs_and_when_it_does_not() -> None:
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        with EmbeddedStore(folder) as server:
            client = connect(server.url)
            _fill(Ledger(client, lambda: 1000.0))
            client.close()
            running = _run("export", CLAWBACK_DATA=folder)
        stopped = _run("export", CLAWBACK_DATA=folder)
    assert (running.returncode, stopped.returncode) == (0, 0)
    assert running.stdout == stopped.stdout
    assert len(stopped.stdout.splitlines()) == 8


def test_the_archive_is_written_compared_and_brings_the_ledger_back(store: Store, tmp_path: Path) -> None:
    _fill(Ledger(store.redis, lambda: 1000.0))
    told = {"REDIS_URL": store.url, "CLAWBACK_ARCHIVE": str(tmp_path / "a")}

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, list(words), env={**told, "CLAWBACK_DATA": str(tmp_path)})

    assert run("archive", "--once").stdout == f"8 entries put away, 8 in all, in {tmp_path / 'a'}\n"
    assert (run("audit", "verify").exit_code, run("audit", "verify").stdout) == (0, "the ledger is whole\n")
    store.redis.flushall()
    lost = run("audit", "verify", "--json")
    assert lost.exit_code == 1
    assert [one["code"] for one in json.loads(lost.stdout)["problems"]] == ["archive.ledger-shorter"]
    back = run("audit", "rebuild", "--json")
    assert (back.exit_code, json.loads(back.stdout)["ok"]) == (0, True)
    assert run("audit", "rebuild").stdout.startswith("the ledger has 8 whole entries; none was touched\n")
    assert run("audit", "verify").stdout == "the ledger is whole\n"
    store.redis.xdel(STREAM, "3-0")
    refused = run("audit", "rebuild")
    assert refused.exit_code == 1
    assert "the ledger itself is damaged (`ledger.missing-entry`, entry 3)" in refused.stdout
    assert run("audit", "rebuild", "--from-archive").exit_code == 0
    assert run("audit", "verify").exit_code == 0


def test_up_does_not_go_on_with_a_ledger_that_lost_entries(store: Store, tmp_path: Path) -> None:
    _fill(Ledger(store.redis, lambda: 1000.0))
    url = SecretStr(store.url)
    must_go_on(url, tmp_path / "a")
    with Archive(tmp_path / "a") as files:
        catch_up(files, store.redis)
    must_go_on(url, tmp_path / "a")
    store.redis.flushall()
    with pytest.raises(ArchiveBroken, match="entries of the ledger were lost"):
        must_go_on(url, tmp_path / "a")
