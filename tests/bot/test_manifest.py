"""The manifest is what Slack takes, and asks for exactly what the code uses."""

from __future__ import annotations

import ast
import json

import jsonschema
import pytest
from click.testing import CliRunner, Result

from bot.cli import main
from bot.manifest import COMMANDS, EVENTS, SCOPES, manifest, request_url
from policies.errors import SettingsError
from tests.shared import ROOT, shared

SCHEMAS = ("manifest.schema.1.0.0.json", "schemastore-slack-app-manifest.json")


def run(*words: str, **environment: str) -> Result:
    quiet = dict.fromkeys(("SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "CLAWBACK_URL"), "")
    return CliRunner().invoke(main, ["manifest", *words], env={**quiet, **environment})


def called() -> set[str]:
    """Web API methods whose names stand in the bot's code."""
    known = {path.stem for path in shared("slack/method-ref").glob("*.*.json")}
    texts = {
        node.value
        for path in (ROOT / "bot").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return known & texts


def scopes_of(method: str) -> set[str]:
    """Bot scopes of which the method needs one, as Slack's reference says; of a channel's kinds those with threads."""
    read = json.loads((shared("slack/method-ref") / f"{method}.json").read_text())
    return {scope for scope in read["scope"].get("bot", []) if not scope.startswith(("im:", "mpim:"))}


def scopes_of_event(event: str) -> set[str]:
    read = json.loads((shared("slack/method-ref") / "_events.json").read_text())
    (found,) = [one for one in read if one["name"] == event]
    return {scope.replace(".", ":") for scope in found["scopes"]}


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("url", [None, "https://bot.example.org/slack/events"])
def test_slack_takes_the_manifest(schema: str, url: str | None) -> None:
    rules = json.loads((shared("slack/manifest") / schema).read_text())
    jsonschema.validate(manifest("clawback", url), rules)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(manifest("x" * 36, url), rules)


def test_the_scopes_are_those_of_the_methods_and_events_that_are_used_and_no_others() -> None:
    assert len(called()) >= 10
    wanted = {"commands"} | {s for method in called() for s in scopes_of(method)}
    wanted |= {scope for event in EVENTS for scope in scopes_of_event(event)}
    assert set(SCOPES) == wanted


def test_socket_mode_names_no_address_and_http_mode_names_it_everywhere() -> None:
    socket, http = manifest("clawback", None), manifest("clawback", "https://bot.example.org")
    assert "https" not in json.dumps(socket)
    assert json.dumps(http).count('"https://bot.example.org/slack/events"') == len(COMMANDS) + 2
    assert [m["settings"]["socket_mode_enabled"] for m in (socket, http)] == [True, False]  # type: ignore[index, call-overload]  # json
    for made in (socket, http):
        assert made["settings"]["event_subscriptions"]["bot_events"] == list(EVENTS)  # type: ignore[index, call-overload]  # json
        assert made["settings"]["interactivity"]["is_enabled"] is True  # type: ignore[index, call-overload]  # json


@pytest.mark.parametrize(
    "url", ["http://bot.example.org", "bot.example.org", "https://", "https://a.b/?x=1", "https://u:p@a.b", "https://["]
)
def test_an_address_that_slack_would_not_call_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="expected https://HOST"):
        request_url(url)


def test_the_mode_follows_the_configuration() -> None:
    plain = run()
    assert plain.exit_code == 0
    assert json.loads(plain.stdout)["settings"]["socket_mode_enabled"] is True
    assert "connections:write" in plain.stderr
    secret = "8f742231b10e8888abcd99yyyzzz85a5"
    signed = run("--json", SLACK_SIGNING_SECRET=secret, CLAWBACK_URL="https://bot.example.org/in")
    assert json.loads(signed.stdout)["features"]["slash_commands"][0]["url"] == "https://bot.example.org/in"
    assert (signed.stderr, secret in signed.output) == ("", False)
    lacking = run("--http")
    assert (lacking.exit_code, "CLAWBACK_URL is not set" in lacking.stderr) == (2, True)
    named = run("--url", "https://bot.example.org", "--name", "perfbot", SLACK_APP_TOKEN="xapp-1")
    assert json.loads(named.stdout)["display_information"]["name"] == "perfbot"
    assert run("--name", "x" * 36).exit_code == 2
