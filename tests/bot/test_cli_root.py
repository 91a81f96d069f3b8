"""The console script: exit codes, errors for people and for programs, and `explain`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from bot.cli import Root, main, registry
from bot.cli.output import emit
from bot.cli.registry import Entry
from policies.errors import SettingsError
from tests.shared import ROOT

EXAMPLE = str(ROOT / "fleet.example.yaml")


def run(*args: str, group: click.Command = main) -> Result:
    return CliRunner().invoke(group, list(args))


def test_explain_gives_the_intent_as_json() -> None:
    result = run("explain", "/knob restore TARGET_CTAS=512 via co–restart", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "intent": {
            "kind": "restore",
            "knob": "TARGET_CTAS",
            "value": "512",
            "scope": None,
            "order": "co-restart",
            "because": None,
            "emergency": False,
            "ticket": None,
            "dry": False,
        },
        "normalised": "/knob restore TARGET_CTAS=512 via co-restart",
    }


def test_explain_says_no_to_what_is_no_command() -> None:
    result = run("explain", "/knob restore TARGET_CTAS=1;reboot", "--json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "bad-value"
    assert error["message"] == 'the value "1;reboot" has characters that need quotes'
    assert error["hint"]


def test_explain_for_people_names_the_code_and_the_hint() -> None:
    result = run("explain", "/knob sett TARGET_CTAS=1")
    assert result.exit_code == 1
    assert result.stdout == 'not a command (unknown-word): there is no command "sett"\n  did you mean set?\n'


def test_explain_checks_names_against_a_fleet_file() -> None:
    assert run("explain", "/knob restore TARGET_CTAS=512 on decode", "--fleet", EXAMPLE).exit_code == 0
    result = run("explain", "/knob restore TARGET_CTA=512", "--fleet", EXAMPLE, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["hint"] == "did you mean TARGET_CTAS?"


def test_an_unreadable_fleet_file_is_exit_2_with_one_json_document() -> None:
    result = run("explain", "list", "--fleet", "/nowhere/fleet.yaml", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == "fleet-file"
    assert result.stderr.startswith('clawback: the fleet file "/nowhere/fleet.yaml" cannot be read')


def test_a_wrong_fleet_file_is_exit_2_with_its_line(tmp_path: Path) -> None:
    wrong = tmp_path / "fleet.yaml"
    wrong.write_text("version: 1\nname: x\nbogus: 1\n")
    result = run("explain", "list", "--fleet", str(wrong))
    assert result.exit_code == 2
    assert f"{wrong}:" in result.stderr


def test_wrong_usage_is_exit_2_without_a_traceback() -> None:
    for args in (["explain"], ["explain", "a", "b"], ["nope"], ["--nope"], []):
        result = run(*args)
        assert result.exit_code == 2, args
        assert "Traceback" not in result.output
    assert run("explain").stderr.startswith("clawback: missing argument 'TEXT'\n")


def failing(error: BaseException) -> Root:
    group = Root(name="clawback")

    @click.command("fail")
    def command() -> None:
        raise error

    group.add_command(command)
    return group


class Direct(Root):
    """A root with commands of its own instead of the registry."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.commands.get(cmd_name)


def direct(error: BaseException) -> Root:
    group = Direct(name="clawback")
    group.commands = failing(error).commands
    return group


def test_our_errors_are_printed_with_their_hint_and_exit_2() -> None:
    result = run("fail", group=direct(SettingsError("a token is missing", hint="set SLACK_BOT_TOKEN")))
    assert result.exit_code == 2
    assert result.stderr == "clawback: a token is missing\n  set SLACK_BOT_TOKEN\n"


def test_ctrl_c_is_exit_130() -> None:
    result = run("fail", group=direct(KeyboardInterrupt()))
    assert result.exit_code == 130
    assert result.stderr.endswith("clawback: stopped\n")


def test_a_command_that_cannot_be_imported_does_not_break_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.COMMANDS, "gone", Entry("bot.cli.gone_away:command", "not there"))
    assert run("--help").exit_code == 0
    assert run("explain", "list").exit_code == 0
    result = run("gone")
    assert result.exit_code == 2
    assert result.stderr == (
        'clawback: "clawback gone" is not part of this installation ("bot.cli.gone_away" is missing)\n'
    )


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "needs_more.py").write_text("import surely_absent_package\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(registry.COMMANDS, "more", Entry("needs_more:command", "needs more"))
    result = run("more")
    assert result.exit_code == 2
    assert 'needs the package "surely_absent_package"' in result.stderr


def test_help_lists_our_commands_and_those_of_installed_packages() -> None:
    out = run("--help").stdout
    for word in [*registry.COMMANDS, "demo"]:
        assert f"\n  {word} " in out


def test_the_installed_script_reads_a_command_and_tells_its_version() -> None:
    script = Path(sys.executable).with_name("clawback")
    done = subprocess.run([script, "explain", "/knob list", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["intent"] == {"kind": "list", "scope": None}
    assert done.stderr == ""
    version = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    assert version.returncode == 0
    assert version.stdout.startswith("clawback")


def test_emit_prints_one_document_or_lines(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"ok": True, "text": "grün"}, True, ["not shown"])
    assert json.loads(capsys.readouterr().out) == {"ok": True, "text": "grün"}
    emit({"ok": True}, False, ["one", "two"])
    assert capsys.readouterr().out == "one\ntwo\n"


def test_explain_says_each_thing_once_and_quotes_once() -> None:
    assert run("explain", "confirm C-1").stdout == "read as: confirm C-1\n  kind: confirm\n  change: C-1\n"
    said = run("explain", '"sett" X').stdout
    assert '""' not in said
    assert said.startswith("not a command (unknown-word): there is no command '\"sett\"'\n")
