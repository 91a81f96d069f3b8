"""The doctor finds what is not well, says what to do, goes on without the rest, and prints no secret."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bot.cli import main
from bot.manifest import SCOPES
from sandbox.slack import Fault, SlackSandbox
from tests.conftest import Store
from tests.ports import free_port
from tests.workers import events as make
from workers.archive.follow import ROLE as ARCHIVE
from workers.archive.follow import catch_up
from workers.archive.writer import Archive
from workers.health import beat
from workers.ledger import Ledger
from workers.queue import QUEUES

FLEET = """\
version: 1
name: lab
channel: C0PERF
hosts:
  gpu1:
    address: 127.0.0.1
    port: PORT
    user: nobody
    host_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f
services:
  decode:
    on: [gpu1]
    unit: decode.service
    health: {url: "http://127.0.0.1:30001/health", from: host, timeout: 25s, boot: 300s}
restarts:
  decode-only: [decode]
knobs:
  TARGET_CTAS: {env: TARGET_CTAS, on: [decode], type: int, range: [1, 4096], restarts: [decode-only]}
people: {ana: U0ANA}
roles: {engineers: {users: [U0ANA, U0BEN]}, approvers: {groups: [perf-oncall]}}
rules:
  - {match: {kind: knob}, ask: engineers, approvals: 1, by: approvers, expires: 30m}
"""
Doctor = Callable[..., Result]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Nothing is set but a folder; what a test puts here is."""
    for name in list(os.environ):
        if name.startswith(("CLAWBACK", "SLACK", "REDIS")):
            monkeypatch.delenv(name)
    return {"CLAWBACK_DATA": str(tmp_path / "data")}


@pytest.fixture
def whole(environment: dict[str, str], tmp_path: Path, slack: SlackSandbox, store: Store) -> dict[str, str]:
    """Everything is set and well, but the host is out of reach."""
    slack.workspace.add_group("perf-oncall", ["U0BEN"])
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET.replace("PORT", str(free_port())))
    key = tmp_path / "key"
    key.write_text(_key())
    key.chmod(0o600)
    environment |= {
        "SLACK_BOT_TOKEN": slack.bot_token,
        "SLACK_APP_TOKEN": slack.app_token,
        "SLACK_API_URL": slack.base_url,
        "REDIS_URL": store.url,
        "CLAWBACK_FLEET": str(fleet),
        "CLAWBACK_SSH_KEY": str(key),
    }
    return environment


def _key() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    form, none = serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    return ed25519.Ed25519PrivateKey.generate().private_bytes(serialization.Encoding.PEM, form, none).decode()


def examine(environment: dict[str, str]) -> dict[str, dict[str, Any]]:
    answer = CliRunner().invoke(main, ["doctor", "--json"], env=environment)
    document = json.loads(answer.stdout)
    checks = {check["name"]: check for check in document["checks"]}
    assert len(checks) == len(document["checks"])
    assert document["ok"] == (answer.exit_code == 0) == all(check["ok"] for check in checks.values())
    for check in checks.values():
        assert set(check) == {"name", "ok", "detail", "fix"}
        assert check["detail"]
        assert bool(check["fix"]) != check["ok"], check
    for name, secret in environment.items():
        if name in {"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "REDIS_URL"}:
            assert secret not in answer.output, name
    return checks


def sick(environment: dict[str, str]) -> dict[str, str]:
    """Name -> detail of what is not well."""
    return {name: check["detail"] for name, check in examine(environment).items() if not check["ok"]}


def test_without_anything_set_each_lack_is_told_and_the_rest_is_looked_at(environment: dict[str, str]) -> None:
    checks = examine(environment)
    assert {name for name, check in checks.items() if check["ok"]} == {
        "python",
        "packages",
        "data-folder",
        "archive-folder",
        "store",
        "roles",
        "endpoints",
    }
    assert "SLACK_BOT_TOKEN is not set" in checks["settings"]["detail"]
    assert checks["slack-token"]["fix"].startswith("install the app of `clawback manifest`")
    assert checks["slack-scopes"]["detail"] == "not checked: slack-token is not well"
    assert checks["hosts"]["detail"] == "not checked: fleet-file is not well"


def test_what_is_well_is_told_with_what_was_seen(whole: dict[str, str]) -> None:
    checks = examine(whole)
    assert [name for name, check in checks.items() if not check["ok"]] == ["ssh:gpu1", "python:gpu1"]
    assert checks["slack-token"]["detail"] == "clawback of the workspace sandbox"
    assert checks["slack-scopes"]["detail"].startswith(f"all {len(SCOPES)} scopes are granted")
    assert checks["slack-listening"]["detail"] == "slack can be heard by Socket Mode"
    assert checks["slack-people"]["detail"].startswith("2 people and 1 groups")
    assert checks["fleet-file"]["detail"] == "fleet lab: 1 hosts, 1 services, 1 knobs, no errors"
    assert checks["store-persistence"]["ok"]
    said = CliRunner().invoke(main, ["doctor"], env=whole)
    assert said.exit_code == 1
    assert "NOT  ssh:gpu1: " in said.stdout
    assert said.stdout.splitlines()[-1] == f"{len(checks)} checks, 2 not well"


def test_slacks_no_is_told_in_its_word(whole: dict[str, str], slack: SlackSandbox) -> None:
    slack.workspace.app.scopes -= {"usergroups:read", "users:read"}
    lacking = sick(whole)
    assert lacking["slack-scopes"] == (
        "scopes are missing: users:read (who asks and who approves), "
        "usergroups:read (who is in a group that a role names)"
    )
    assert "missing_scope" in lacking["slack-people"]
    slack.workspace.app.token_error = "token_revoked"
    revoked = sick(whole)
    assert revoked["slack-token"] == "slack does not take the token: token_revoked"
    assert revoked["slack-channel"] == "not checked: slack-token is not well"


def test_a_slack_that_is_away_does_not_keep_the_rest_from_being_looked_at(
    whole: dict[str, str], slack: SlackSandbox
) -> None:
    slack.faults.add(Fault("server_error", "*", count=-1))
    found = sick(whole)
    assert "gave no clear answer: status 503" in found["slack-token"]
    assert "gave no clear answer" in found["slack-listening"]
    assert {"store", "store-persistence", "fleet-file"}.isdisjoint(found)


@pytest.mark.parametrize(
    ("spoil", "name", "detail"),
    [
        (lambda s: s.channels["C0PERF"].members.discard(s.app.bot_user), "slack-channel", "the bot is not in the"),
        (lambda s: setattr(s.channels["C0PERF"], "is_archived", True), "slack-channel", "is archived"),
        (lambda s: setattr(s.channels["C0PERF"], "is_ext_shared", True), "slack-channel", "is shared with another"),
        (lambda s: s.channels.pop("C0PERF"), "slack-channel", "cannot be read: channel_not_found"),
        (lambda s: setattr(s.users["U0BEN"], "deleted", True), "slack-people", "U0BEN: deactivated"),
        (lambda s: setattr(s.users["U0ANA"], "is_restricted", True), "slack-people", "U0ANA: a guest"),
        (lambda s: s.groups.clear(), "slack-people", "perf-oncall: there is no such group"),
        (lambda s: next(iter(s.groups.values())).users.clear(), "slack-people", "perf-oncall: nobody is in it"),
    ],
)
def test_channel_and_people_are_looked_at(
    whole: dict[str, str], slack: SlackSandbox, spoil: Callable[[Any], object], name: str, detail: str
) -> None:
    spoil(slack.workspace)
    found = sick(whole)
    assert detail in found[name]
    assert set(found) == {name, "ssh:gpu1", "python:gpu1"}


def test_http_mode_and_its_address(whole: dict[str, str]) -> None:
    del whole["SLACK_APP_TOKEN"]
    whole |= {"SLACK_SIGNING_SECRET": "8f742231b10e", "CLAWBACK_HTTP": f"127.0.0.1:{free_port()}"}
    checks = examine(whole)
    assert checks["slack-listening"]["detail"].startswith("slack is heard in HTTP mode")
    assert "nothing listens" in checks["endpoints"]["detail"]
    assert "expected host:port" in sick({**whole, "CLAWBACK_HTTP": "nowhere"})["slack-listening"]


def test_files_that_others_can_read_or_write_are_named(whole: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    Path(whole["CLAWBACK_SSH_KEY"]).chmod(0o644)
    Path(whole["CLAWBACK_FLEET"]).chmod(0o666)
    found = sick(whole)
    assert "has mode 0755" in found["data-folder"]
    assert found["ssh-keys"] == f"others can read {whole['CLAWBACK_SSH_KEY']}"
    assert "everybody can write" in found["fleet-file"]
    Path(whole["CLAWBACK_SSH_KEY"]).write_text("no key")
    assert "cannot be read" in sick(whole)["ssh-keys"]


def test_a_setting_that_cannot_be_read_does_not_keep_the_rest_from_being_looked_at(whole: dict[str, str]) -> None:
    found = sick({**whole, "CLAWBACK_SSH_AGENT": "perhaps"})
    assert "CLAWBACK_SSH_AGENT cannot be read" in found["settings"]
    assert set(found) == {"settings", "ssh:gpu1", "python:gpu1"}


def test_the_store_its_settings_the_archive_and_the_roles(whole: dict[str, str], store: Store, tmp_path: Path) -> None:
    store.redis.config_set("appendfsync", "everysec")
    try:
        found = sick(whole)
    finally:
        store.redis.config_set("appendfsync", "always")
    assert found["store-persistence"] == "redis may forget what it acknowledged: appendfsync = everysec"
    beat(store.redis, QUEUES[:1], "w1")
    assert sick(whole)["roles"].startswith("no process runs for: ")
    beat(store.redis, QUEUES, "w1")
    assert sick(whole)["roles"] == "no process runs for: archive"
    beat(store.redis, (ARCHIVE,), "w1")
    assert "roles" not in sick(whole)
    ledger = Ledger(store.redis, lambda: 5.0)
    ledger.append("C-1", make.asked(), expect_version=0)
    with Archive(tmp_path / "data" / "archive") as files:
        catch_up(files, store.redis)
    assert "ledger" not in sick(whole)
    store.redis.flushall()
    assert "entries of the ledger were lost" in sick(whole)["ledger"]
    gone = sick({**whole, "REDIS_URL": f"redis://:hunter2-secret@127.0.0.1:{free_port()}/0"})
    assert "hunter2" not in str(gone)
    assert gone["store-persistence"] == "not checked: store is not well"


def test_a_prometheus_that_is_named_has_to_answer(whole: dict[str, str]) -> None:
    path = Path(whole["CLAWBACK_FLEET"])
    path.write_text(path.read_text() + f'prometheus: {{url: "http://127.0.0.1:{free_port()}"}}\n')
    assert sick(whole)["prometheus"].endswith("answers no query: ConnectError")
    path.write_text(path.read_text().replace("prometheus:", "# prometheus:"))
    assert "prometheus" not in examine(whole)
    with answers(b'{"status": "success"}') as url:
        path.write_text(path.read_text() + f'prometheus: {{url: "{url}"}}\n')
        assert examine(whole)["prometheus"] == {
            "name": "prometheus",
            "ok": True,
            "detail": f"{url} answers queries",
            "fix": "",
        }
    with answers(b"<html>") as url:
        path.write_text(path.read_text().replace('prometheus: {url: "', f'prometheus: {{url: "{url}"}}\n# "'))
        assert "prometheus" in sick(whole)


@contextmanager
def answers(body: bytes) -> Iterator[str]:
    """A server that answers everything with 200 and these bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
