"""What serves the page: who may ask, what a reader gets to see, and what the composer completes."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator

import httpx
import pytest

from sandbox.page.reader import Blame, Reader, Sources
from sandbox.page.routes import STATIC
from sandbox.slack import Fault, SlackSandbox, Violation
from sandbox.slack.records import Json

WORDS = {"": {"/knob": "performance knobs"}, "/knob": {"list": "values"}}


@pytest.fixture
def slack() -> Iterator[SlackSandbox]:
    made = SlackSandbox(page_hints=WORDS)
    made.workspace.add_user("ana", user_id="U0ANA")
    made.workspace.add_user("ben", user_id="U0BEN")
    made.workspace.add_channel("ops", ["U0ANA", "U0BEN"], channel_id="C0OPS")
    made.workspace.add_channel("bens", ["U0BEN"], channel_id="C0BENS")
    with made:
        yield made


@pytest.fixture
def http(slack: SlackSandbox) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=slack.page_url, trust_env=False) as client:
        yield client


def reader(slack: SlackSandbox, user: str) -> Reader:
    blame = Blame(slack.workspace)
    return Reader(Sources(slack.workspace, slack.sockets, slack.http, slack.faults, slack.api, blame), user)


def texts(news: Json) -> list[str]:
    return [message["text"] for message in news.get("messages", []) if not message.get("gone")]


# who may ask


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]:80"])
def test_a_name_that_was_rebound_to_loopback_is_refused(http: httpx.Client, host: str) -> None:
    for path in ("/", "/_page/events", "/_control/state", "/api/auth.test"):
        assert http.get(path, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9", "LOCALHOST", "[::1]:9"])
def test_loopback_names_are_let_in(http: httpx.Client, host: str) -> None:
    assert http.get("/", headers={"Host": host}).status_code == 200


def test_another_sites_page_can_do_nothing(slack: SlackSandbox, http: httpx.Client) -> None:
    said = {"user": "ana", "channel": "ops", "text": "hello"}
    for verb in ("/_page/do/say", "/_control/say"):
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            assert http.post(verb, json=said, headers=headers).status_code == 403
    assert slack.people.transcript("ops") == []


def test_the_page_acts_only_with_its_own_origin_and_programs_use_the_control_api(
    slack: SlackSandbox, http: httpx.Client
) -> None:
    said = {"user": "ana", "channel": "ops", "text": "hello"}
    assert http.post("/_page/do/say", json=said).status_code == 403
    assert http.post("/_control/say", json=said).status_code == 200
    assert http.post("/_page/do/say", json=said, headers={"Origin": slack.tickets.origin}).status_code == 200
    assert [m["text"] for m in slack.people.transcript("ops")] == ["hello", "hello"]


def test_a_wrong_deed_is_answered_with_its_reason(slack: SlackSandbox, http: httpx.Client) -> None:
    body = {"user": "ana", "channel": "bens", "text": "hello"}
    answer = http.post("/_page/do/say", json=body, headers={"Origin": slack.tickets.origin})
    assert (answer.status_code, answer.json()) == (400, {"error": "ana is not in #bens"})


# the files


def test_the_page_may_load_nothing_from_elsewhere_and_make_no_markup_from_text(http: httpx.Client) -> None:
    policy = http.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    for file in STATIC.iterdir():
        served = http.get(f"/_page/static/{file.name}")
        assert served.status_code == 200
        assert served.headers["content-security-policy"] == policy
        assert served.headers["x-content-type-options"] == "nosniff"


def test_only_files_of_the_page_are_served(http: httpx.Client) -> None:
    for name in ("nothing.js", "..%2froutes.py", "%2e%2e%2froutes.py", "../routes.py", "/etc/passwd"):
        assert http.get(f"/_page/static/{name}").status_code == 404


def test_the_sources_of_the_page_are_small_and_plain() -> None:
    sizes = {file.name: len(file.read_text().splitlines()) for file in STATIC.iterdir()}
    assert {name: lines for name, lines in sizes.items() if name.endswith(".js") and lines > 300} == {}
    assert sum(lines for name, lines in sizes.items() if name.endswith(".css")) < 400
    markup = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|javascript:")
    assert [file.name for file in STATIC.glob("*.js") if markup.search(file.read_text())] == []
    address = re.compile(r"(?<!xmlns=\")https?://(?!\\)[a-z]")
    assert [file.name for file in STATIC.iterdir() if address.search(file.read_text())] == []


# what a reader sees


def test_an_ephemeral_message_is_seen_by_its_reader_only(slack: SlackSandbox) -> None:
    slack.workspace.post("C0OPS", "U0CLAWBACK", "for ana", bot_id="B0CLAWBACK", ephemeral_to="U0ANA")
    assert texts(reader(slack, "ana").news()) == ["for ana"]
    assert texts(reader(slack, "U0BEN").news()) == []


def test_channels_of_others_are_not_shown(slack: SlackSandbox) -> None:
    slack.people.say("ben", "bens", "private matters")
    ana = reader(slack, "ana").news()
    assert [channel["name"] for channel in ana["state"]["channels"]] == ["ops"]
    assert texts(ana) == []
    assert texts(reader(slack, "ben").news()) == ["private matters"]


def test_news_are_only_what_changed(slack: SlackSandbox) -> None:
    looking = reader(slack, "ana")
    first = slack.people.say("ben", "ops", "one")
    news = looking.news()
    assert news["fresh"]
    assert texts(news) == ["one"]
    assert looking.news() == {}
    slack.people.edit_message_behind_the_bot("ops", first.ts, "uno")
    changed = looking.news()
    assert texts(changed) == ["uno"]
    assert changed["messages"][0]["edited"]["user"] == "U0BEN"
    slack.people.delete_message("ops", first.ts)
    assert looking.news() == {"messages": [{"key": f"C0OPS {first.ts}", "gone": True}]}
    slack.faults.add(Fault("delay"))
    assert looking.news()["state"]["faults"][0]["kind"] == "delay"


def test_violations_are_shown_with_the_call_they_belong_to(slack: SlackSandbox, http: httpx.Client) -> None:
    looking = reader(slack, "ana")
    token = {"Authorization": f"Bearer {slack.bot_token}"}
    for body in ({"text": "fine"}, {"text": "<!channel> wake up"}):
        http.post("/api/chat.postMessage", json={"channel": "C0OPS"} | body, headers=token)
    slack.workspace.record_violation(Violation("view_submission", "invalid_view", "no title"))
    news = looking.news()
    assert [(v["code"], v["call"]) for v in news["violations"]] == [("mass_mention", 1), ("invalid_view", None)]
    assert [call["status"] for call in news["calls"]] == [200, 200]
    assert slack.bot_token not in json.dumps(news)


def test_traffic_that_was_forgotten_starts_anew(slack: SlackSandbox, http: httpx.Client) -> None:
    looking = reader(slack, "ana")
    for _ in range(2):
        http.get("/api/auth.test")
    assert [call["n"] for call in looking.news()["calls"]] == [0, 1]
    slack.workspace.calls.clear()
    http.get("/api/auth.test")
    news = looking.news()
    assert news["restart"] == ["calls"]
    assert [call["n"] for call in news["calls"]] == [0]


def test_the_first_person_looks_where_nobody_is_named(slack: SlackSandbox) -> None:
    assert [reader(slack, name).news()["state"]["me"] for name in ("", "nobody", "clawback")] == ["U0ANA"] * 3
    assert reader(SlackSandbox(), "").news()["state"]["me"] is None


# the stream


def test_the_stream_tells_what_happens_and_ends_with_the_workspace(slack: SlackSandbox, http: httpx.Client) -> None:
    seen: list[Json] = []
    arrived = threading.Event()

    def listen() -> None:
        with http.stream("GET", "/_page/events?as=ana", timeout=60) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    seen.append(json.loads(line.removeprefix("data: ")))
                    arrived.set()

    listener = threading.Thread(target=listen)
    listener.start()
    assert arrived.wait(60)
    slack.people.say("ben", "ops", "anybody here?")
    assert slack.people.wait_for(lambda: any("anybody here?" in texts(news) for news in seen))
    slack.stop()
    listener.join(60)
    assert not listener.is_alive()


# completion


def test_completion_knows_the_given_words_and_what_was_typed(slack: SlackSandbox, http: httpx.Client) -> None:
    for line in ("/knob list", "/knob set A<1 & @ben in #ops", "/knob list"):
        slack.people.command("ana", "ops", line)
    told = http.get("/_page/hints").json()
    assert told == {"words": WORDS, "typed": ["/knob list", "/knob set A<1 & @ben in #ops"]}
