"""The terminal against real hosts: asked, refused and confirmed there while Slack is down; the thread catches up."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.kernel import environ_of
from sandbox.stage import CHANNEL, Stage

pytestmark = pytest.mark.real
WAIT_S = 90.0


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    folder = Path(tempfile.mkdtemp(prefix="cb-say-"))
    made = Stage(folder)
    try:
        made.boot()
        fleet_yaml = made.demo_fleet.fleet_yaml
        fleet = yaml.safe_load(fleet_yaml.read_text())
        # the watch after the last gate is another test's matter
        fleet["timing"] = {**fleet.get("timing", {}), "bake": "0s"}
        fleet_yaml.write_text(yaml.safe_dump(fleet, sort_keys=False))
        made.start()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


def clawback(stage: Stage, *words: str) -> tuple[int, Any]:
    done = stage.clawback(*words, "--json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def lines(stage: Stage) -> list[str]:
    return [m["text"] for m in stage.slack.people.transcript(CHANNEL) if m["who"] == "clawback"]


def test_a_change_is_made_from_two_terminals_while_slack_is_down_and_the_thread_catches_up(stage: Stage) -> None:
    code, told = clawback(stage, "say", "verify TARGET_CTAS", "--as", "ana")
    assert (code, told["change"]) == (0, None)
    assert "decode@" in told["text"]

    port = int(stage.slack.base_url.split(":")[2].split("/")[0])
    stage.slack.stop()
    reason = 'revert TARGET_CTAS because "multi-round hang"'
    code, told = clawback(stage, "say", reason, "--as", "ana", "--yes")
    assert (code, told["decision"]["answer"]) == (0, "needs_approval")
    change = told["change"]

    code, told = clawback(stage, "confirm", change, "--as", "ana", "--yes")
    assert (code, [one["code"] for one in told["decision"]["findings"]]) == (1, ["click.self-approval"])

    done = stage.clawback("confirm", change, "--via", "decode-only", "--as", "ben", "--yes", "--wait")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "slack was not asked who you are" in done.stderr
    assert "decode healthy after" in done.stdout
    main = stage.demo_fleet.show("decode", "MainPID")["MainPID"]
    assert environ_of(int(main), "SGLANG_SM120_MMA_TARGET_CTAS") is None

    assert lines(stage) == []
    stage.slack.start(port=port)
    code, told = clawback(stage, "status", change, "--follow")
    assert (code, told["decision"]["state"], told["events"][0]["kind"]) == (0, "succeeded", "asked")
    assert told["events"][0]["event"]["actor"] == {
        "id": "U01ANA", "team": "", "name": "ana", "source": "terminal", "roles": ["engineers"],
    }  # fmt: skip
    # one card, and one line for each event that has one
    count = 1 + sum(bool(one["text"]) for one in told["events"])
    assert stage.slack.people.wait_for(lambda: len(lines(stage)) >= count, WAIT_S)
    assert len(lines(stage)) == count
    assert any("decode healthy after" in text for text in lines(stage))


def test_a_terminal_user_whom_nobody_mapped_is_nobody(stage: Stage) -> None:
    code, told = clawback(stage, "say", "restore TARGET_CTAS=512", "--yes")
    assert (code, [one["code"] for one in told["decision"]["findings"]]) == (1, ["identity.not-mapped"])
