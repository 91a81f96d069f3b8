"""A Socket Mode connection ends when it is told to, whatever its threads are doing."""

from __future__ import annotations

import threading
import time

import pytest
from slack_sdk.socket_mode.builtin import SocketModeClient
from slack_sdk.socket_mode.builtin.connection import ConnectionState

from bot.hangup import hang_up
from bot.slack import make_client
from sandbox.slack import SlackSandbox

WAIT_S = 60.0


class TakenBack(ConnectionState):
    """A session that begins in the moment of the end: the first word that it is over is taken back."""

    begun = threading.Event()

    def __setattr__(self, name: str, value: object) -> None:
        if name == "terminated" and value is False and hasattr(self, "terminated"):
            self.begun.set()
            deadline = time.monotonic() + WAIT_S
            while not self.terminated and time.monotonic() < deadline:
                time.sleep(0.001)
        super().__setattr__(name, value)


def ends(client: SocketModeClient, slack: SlackSandbox) -> None:
    threads = [client.current_session_runner.thread, client.current_app_monitor.thread, client.message_processor.thread]
    ending = threading.Thread(target=hang_up, args=(client,), daemon=True)
    ending.start()
    ending.join(WAIT_S)
    assert not ending.is_alive()
    assert [thread.is_alive() for thread in threads] == [False] * 3
    assert slack.people.wait_for(lambda: slack.sockets.connected == 0)


def test_every_thread_of_a_connection_ends(slack: SlackSandbox) -> None:
    client = SocketModeClient(slack.app_token, web_client=make_client(None, slack.base_url))
    client.connect()
    assert slack.people.wait_for(lambda: slack.sockets.connected == 1)
    ends(client, slack)


def test_a_connection_that_begins_in_the_moment_of_its_end_ends(
    slack: SlackSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slack_sdk.socket_mode.builtin.client.ConnectionState", TakenBack)
    client = SocketModeClient(slack.app_token, web_client=make_client(None, slack.base_url))
    client.connect()
    assert TakenBack.begun.wait(WAIT_S)
    ends(client, slack)


def test_one_that_never_connected_ends_too(slack: SlackSandbox) -> None:
    client = SocketModeClient(slack.app_token, web_client=make_client(None, slack.base_url))
    thread = client.current_session_runner.thread
    hang_up(client)
    assert not thread.is_alive()
