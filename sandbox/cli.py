"""play the story on a local Slack workspace and fleet, all on this machine; then stay in it in a browser"""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import JsonValue

from policies.errors import OpsError
from sandbox.fleet.document import KNOB
from sandbox.fleet.units import unit_name
from sandbox.rolling import Rolling
from sandbox.screen import Line, clean, page, summary, transcript
from sandbox.stage import CHANNEL, Stage
from sandbox.story import Story
from sandbox.telling import Telling, in_words

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):  # as KeyboardInterrupt, of which this is a wider kind: nothing may swallow it
    """A signal asked for the end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


STORIES: dict[str, type[Telling]] = {"knob": Story, "rolling": Rolling}


@click.command()
@click.option(
    "--story", type=click.Choice(list(STORIES)), default="knob", help="A knob on one host, or a deploy over replicas."
)
@click.option("--once", is_flag=True, help="Play the story and end: 0 only if every check held.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: checks, transcript.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the local workspace; 0: a free one.")
@click.option("--real-time", is_flag=True, help="Boots take as long as in the incident, about a minute each.")
@click.option(
    "--pause-before",
    type=click.Choice(["plan", "confirm", "execute"]),
    help="Wait for Enter there, so that something can be broken by hand.",
)
@click.option("--keep", is_flag=True, help="Keep the demo's folder (logs, units, ledger) in any case.")
def demo(
    *, story: str, once: bool, as_json: bool, port: int, real_time: bool, pause_before: str | None, keep: bool
) -> None:
    """Play a story on real systemd and real SSH: a knob is taken away on suspicion and given back behind gates.

    `--story rolling`: 2 prefill, 3 decode and a real sglang-router on three hosts; a release that one host cannot start
    is undone everywhere, goes through in waves once that host is put right, and a mixed fleet is called mixed.

    Everything runs on this machine, on loopback, below one temporary folder. The checks are judged from the services'
    own clocks, the kernel, systemd and the local workspace, never from what clawback says of itself.

    Exits 0 when every check held, 1 when one did not, 2 where this machine cannot run the demo.
    """
    listen()
    try:
        run = Run(Path(tempfile.mkdtemp(prefix="clawback-demo-")).resolve(), as_json=as_json, keep=keep)
        code = run.go(STORIES[story], port=port, real_time=real_time, pause_before=pause_before, stays=not once)
    except Interrupted as asked:  # so early that nothing had been started
        code = 128 + asked.number
    sys.exit(code)


@dataclass(slots=True)
class Run:
    """One run of the demo in its folder."""

    folder: Path
    as_json: bool
    keep: bool
    shown: bool = False
    code: int = 1

    @property
    def keeps(self) -> bool:
        """The folder stays: it was asked for, or a check did not hold."""
        return self.keep or self.code == 1

    def go(self, which: type[Telling], *, port: int, real_time: bool, pause_before: str | None, stays: bool) -> int:
        """Boot, play, show, clean up; the exit status."""
        stage = Stage(self.folder, port=port, real_time=real_time, replicas=which is Rolling)
        story = which(stage, self.tell, lambda where: pause(stage, where, pause_before), pauses_at=pause_before)
        problem = ""
        try:
            problem = self.play(stage, story)
            if not problem and stays:
                stay(stage, keeps=self.keeps)
        except Interrupted as asked:
            problem, self.code = f"interrupted by {asked}", 128 + asked.number
        finally:
            ignore()
            left = stage.close()
        for told in [problem, *(f"not cleaned up: {one}" for one in left)]:
            if told:
                click.echo(told, err=True)
        if self.as_json and not self.shown:
            story.fail_rest(f"not reached: {problem}")
            self.show(story, transcript(stage))
        if self.keeps or left:
            click.echo(f"kept: {self.folder}", err=True)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.code or int(bool(left))

    def play(self, stage: Stage, story: Telling) -> str:
        """Boot and play, and show what came of it. Gives why this machine cannot run the demo; empty: it could."""
        self.tell(f"clawback demo: {story.TITLE}")
        self.tell(f"everything it writes is below {self.folder}\n")
        self.tell(f"booting a Slack workspace, {stage.hosts_said}, and `clawback up`")
        begun = time.monotonic()
        try:
            stage.boot()
        except (OpsError, OSError) as error:
            self.code = 2
            return f"the demo cannot run here: {in_words(error)}"
        try:
            stage.start()
            self.tell(
                f"ready after {time.monotonic() - begun:.0f} s: {len(stage.demo_fleet.layout.instances)} services"
                " healthy, the bot listens in #serving"
            )
            self.tell(f"as it goes on in a browser: {page_of(stage, 'ana')}")
            self.code = 0 if story.play() else 1
        except (OpsError, OSError) as error:
            story.fail_rest(f"not reached: {in_words(error)}")
        self.show(story, transcript(stage))
        return ""

    def tell(self, line: str) -> None:
        """A line for people, as things happen."""
        if not self.as_json:
            click.echo(clean(line, self.folder))

    def show(self, story: Telling, lines: list[Line]) -> None:
        """Print the outcome."""
        self.shown = True
        checks = story.sorted_checks()
        if self.as_json:
            told: list[JsonValue] = [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in checks]
            said: list[JsonValue] = [line.document() for line in lines]
            click.echo(json.dumps({"checks": told, "transcript": said}, indent=1))
            return
        click.echo("\n#serving and its threads, as people saw them (cards as they look in the end; times are UTC)")
        for text in page(lines, self.folder):
            click.echo(text)
        click.echo(f"\n{summary(checks)}")


def pause(stage: Stage, where: str, wanted: str | None) -> None:
    """Say where everything is and wait for Enter, if this is the place to wait at."""
    if where != wanted:
        return
    fleet = stage.demo_fleet
    host = fleet.host("decode").manager
    running = ", ".join(
        f"{fleet.layout.name(i)} pid {fleet.show(i, 'MainPID')['MainPID']} port {fleet.ports[fleet.layout.of(i)[0]]}"
        for i in fleet.layout.instances
    )
    lines = (
        f"paused before {where}: break something, then press Enter to go on",
        f"  folder     {stage.folder}",
        f"  units      {host.units}",
        f"  engines    {fleet.releases.current / 'engine'} (decode's; the others run lib/engine)",
        f"  systemctl  XDG_RUNTIME_DIR={host.xdg} systemctl --user status {unit_name('decode')}",
        f"  processes  {running}",
        f"  workspace  {stage.slack.tickets.origin}/_control/transcript?channel={CHANNEL}",
    )
    click.echo("\n".join(lines), err=True)
    if sys.stdin is not None:
        sys.stdin.readline()


def stay(stage: Stage, *, keeps: bool) -> None:
    """Keep everything running until a signal asks for the end."""
    ends = "ends it and keeps its folder" if keeps else "ends it and removes everything"
    lines = (
        f"everything stays up, with the story played; Ctrl-C {ends}",
        f"  open   {page_of(stage, 'ana')}",
        "  act    as ana or ben, chosen at the top; ana asks, ben may approve",
        f"  type   /knob list, /knob verify {KNOB}, /deploy restart decode, /knob help",
        f"  files  {stage.folder}",
        "from another terminal, after these lines:",
        *(f"  {line}" for line in exports(stage.environment())),
        '  clawback say "restart decode" --as ana --yes, clawback confirm C-3 --as ben --yes',
        "  clawback status --follow C-3, clawback audit verify, clawback evidence list",
    )
    click.echo("\n".join(lines), err=True)
    try:
        while True:
            time.sleep(1)
    except Interrupted:
        return


def exports(environment: Mapping[str, str]) -> list[str]:
    """What a shell has to be told so that `clawback` there speaks to this demo."""
    told = {name: value for name, value in environment.items() if name.startswith(("SLACK_", "CLAWBACK_"))}
    return [f"export {name}={shlex.quote(value)}" for name, value in told.items()]


def page_of(stage: Stage, who: str) -> str:
    """Where somebody sees the channel in a browser."""
    return f"{stage.slack.page_url}#as={who}&in=serving"


def listen() -> None:
    """Have signals that ask for the end raise `Interrupted`, once; those that were ignored stay so."""

    def ended(number: int, _: object) -> None:
        ignore()
        raise Interrupted(number)

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, ended)


def ignore() -> None:
    """Nothing may interrupt the cleaning up."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
