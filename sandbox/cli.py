"""`clawback demo`: the story on the sandbox, in the terminal, with the thread as its transcript."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import click
from pydantic import JsonValue

from policies.errors import OpsError
from sandbox.eyes import Eyes
from sandbox.stage import QUICK_BOOT_S, REAL_BOOT_S, Stage
from sandbox.story import Story


@click.command()
@click.option("--once", is_flag=True, help="Play the story and end: 0 only if every check held.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: checks, transcript.")
@click.option("--port", default=0, help="Port of the local workspace; 0: a free one.")
@click.option("--real-time", is_flag=True, help="Boots take as long as in the incident, about a minute each.")
@click.option("--pause-before", type=click.Choice(["plan", "confirm", "execute"]), help="Wait for Enter there.")
@click.option("--keep", is_flag=True, help="Keep the demo's folder (logs, units, ledger).")
def demo(*, once: bool, as_json: bool, port: int, real_time: bool, pause_before: str | None, keep: bool) -> None:
    """Play the story: a knob is taken away on suspicion and given back behind gates, on real systemd and real SSH.

    Everything runs on this machine, on loopback, below one temporary folder.
    """
    folder = Path(tempfile.mkdtemp(prefix="clawback-demo-"))
    stage = Stage(folder, port=port, boot_s=REAL_BOOT_S if real_time else QUICK_BOOT_S)

    def tell(line: str) -> None:
        if not as_json:
            click.echo(line)

    def pause(where: str) -> None:
        if where == pause_before:
            click.echo(f"paused before {where}; files are below {folder}; press Enter to go on", err=True)
            sys.stdin.readline()

    story = Story(stage, tell, pause, pauses_at=pause_before)
    held = False
    try:
        tell(f"# booting hosts, services, workspace and clawback below {folder}")
        stage.open()
        held = story.play()
        lines = transcript(stage)
        show(story, lines, as_json=as_json)
        if not once:
            stay(stage, tell)
    except OpsError as error:
        story.fail_rest(str(error))
        show(story, [], as_json=as_json)
    finally:
        stage.close()
        if keep or not held:
            click.echo(f"kept: {folder}", err=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if held else 1)


def transcript(stage: Stage) -> list[dict[str, JsonValue]]:
    """The channel and its threads, as everybody sees them."""
    eyes = Eyes(stage)
    lines: list[dict[str, JsonValue]] = []
    for message in eyes.transcript():
        thread = message["thread_ts"] not in {None, message["ts"]}
        where = f"only @{message['ephemeral_to']}" if message["ephemeral_to"] else ("thread" if thread else "channel")
        moment = datetime.fromtimestamp(float(str(message["ts"])), tz=UTC).strftime("%H:%M:%S")
        lines.append({"ts": moment, "who": message["who"], "where": where, "text": eyes.text(message)})
    return lines


def show(story: Story, lines: list[dict[str, JsonValue]], *, as_json: bool) -> None:
    """Print the outcome."""
    checks: list[JsonValue] = [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in story.checks]
    if as_json:
        click.echo(json.dumps({"checks": checks, "transcript": lines}, indent=1))
        return
    click.echo("\n# the channel and its threads")
    for line in lines:
        indent = {"channel": "", "thread": "    "}.get(str(line["where"]), "  ~ ")
        first, *rest = str(line["text"]).split("\n")
        click.echo(f"{indent}{line['ts']} {line['who']}: {first}")
        for more in rest:
            click.echo(f"{indent}         {more}")
    bad = [c.name for c in story.checks if not c.ok]
    held = len(story.checks) - len(bad)
    click.echo(f"\n{held} of {len(story.checks)} checks held" + (f"; not: {', '.join(bad)}" if bad else ""))


def stay(stage: Stage, tell: object) -> None:
    """Keep everything running until Ctrl-C."""
    if callable(tell):
        tell(f"the workspace stays up at {stage.slack.base_url} (control: /_control); Ctrl-C ends it")
    try:
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        return
