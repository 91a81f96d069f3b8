"""Every rule of the stand-in's oracle rejects its seeded fault and accepts the good payload next to it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from sandbox.slack import SlackSandbox
from sandbox.slack.blockrules import BlockJudge
from sandbox.slack.blockschema import BlockSchema
from sandbox.slack.records import Json
from tests.shared import shared

FIXTURES = "slack/block-kit/slackblocks-spec/spec/fixtures/valid"


def section(text: str = "x", **more: Any) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}} | more


def button(action_id: str = "a", **more: Any) -> Json:
    return {"type": "button", "text": {"type": "plain_text", "text": "Go"}, "action_id": action_id} | more


def actions(*elements: Json) -> Json:
    return {"type": "actions", "elements": list(elements)}


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def confirm(**more: Any) -> Json:
    return {"title": plain("t"), "text": plain("x"), "confirm": plain("y"), "deny": plain("n")} | more


def option(number: int) -> Json:
    return {"text": plain(f"o{number}"), "value": str(number)}


def table(rows: int, cells: int, text: str = "x") -> Json:
    return {"type": "table", "rows": [[{"type": "raw_text", "text": text}] * cells] * rows}


# name -> (good, bad, pointer of the fault in the bad one); the same cases with the schema and by hand
CASES: dict[str, tuple[list[Json], list[Json], str]] = {
    "blocks 50": ([section()] * 50, [section()] * 51, ""),
    "block type": ([{"type": "divider"}], [{"type": "dividr"}], "/0/type"),
    "alert in a message": ([section()], [{"type": "alert", "text": plain("x")}], "/0/type"),
    "section text 3000": ([section("x" * 3000)], [section("x" * 3001)], "/0/text/text"),
    "section text empty": ([section("x")], [section("")], "/0/text/text"),
    "section without text": ([section()], [{"type": "section"}], "/0"),
    "section unknown key": ([section(expand=True)], [section(colour="red")], "/0"),
    "text type": ([section()], [{"type": "section", "text": {"type": "html", "text": "x"}}], "/0/text/type"),
    "fields 10": (
        [{"type": "section", "fields": [plain("x")] * 10}],
        [{"type": "section", "fields": [plain("x")] * 11}],
        "/0/fields",
    ),
    "field 2000": (
        [{"type": "section", "fields": [plain("x" * 2000)]}],
        [{"type": "section", "fields": [plain("x" * 2001)]}],
        "/0/fields/0/text",
    ),
    "header 150": (
        [{"type": "header", "text": plain("x" * 150)}],
        [{"type": "header", "text": plain("x" * 151)}],
        "/0/text/text",
    ),
    "header mrkdwn": (
        [{"type": "header", "text": plain("x")}],
        [{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}],
        "/0/text/type",
    ),
    "context 10": (
        [{"type": "context", "elements": [plain("x")] * 10}],
        [{"type": "context", "elements": [plain("x")] * 11}],
        "/0/elements",
    ),
    "actions 25": (
        [actions(*(button(f"a{n}") for n in range(25)))],
        [actions(*(button(f"a{n}") for n in range(26)))],
        "/0/elements",
    ),
    "actions empty": ([actions(button())], [actions()], "/0/elements"),
    "button text 75": (
        [actions(button(text=plain("x" * 75)))],
        [actions(button(text=plain("x" * 76)))],
        "/0/elements/0/text/text",
    ),
    "button value 2000": (
        [actions(button(value="x" * 2000))],
        [actions(button(value="x" * 2001))],
        "/0/elements/0/value",
    ),
    "button style": ([actions(button(style="danger"))], [actions(button(style="warn"))], "/0/elements/0/style"),
    "button key": ([actions(button())], [actions(button(onclick="x"))], "/0/elements/0"),
    "confirm needs deny": (
        [actions(button(confirm=confirm()))],
        [actions(button(confirm={k: v for k, v in confirm().items() if k != "deny"}))],
        "/0/elements/0/confirm",
    ),
    "confirm text 300": (
        [actions(button(confirm=confirm(text=plain("x" * 300))))],
        [actions(button(confirm=confirm(text=plain("x" * 301))))],
        "/0/elements/0/confirm/text/text",
    ),
    "options 100": (
        [actions({"type": "static_select", "action_id": "s", "options": [option(n) for n in range(100)]})],
        [actions({"type": "static_select", "action_id": "s", "options": [option(n) for n in range(101)]})],
        "/0/elements/0/options",
    ),
    "overflow 5": (
        [actions({"type": "overflow", "action_id": "s", "options": [option(n) for n in range(5)]})],
        [actions({"type": "overflow", "action_id": "s", "options": [option(n) for n in range(6)]})],
        "/0/elements/0/options",
    ),
    "action_id unique": (
        [actions(button("a")), actions(button("b"))],
        [actions(button("a")), actions(button("a"))],
        "/1/elements/0/action_id",
    ),
    "block_id unique": (
        [section(block_id="a"), section(block_id="b")],
        [section(block_id="a"), section(block_id="a")],
        "/1/block_id",
    ),
    "block_id 255": ([section(block_id="x" * 255)], [section(block_id="x" * 256)], "/0/block_id"),
    "one table": ([table(1, 1)], [table(1, 1), table(1, 1)], ""),
    "table rows 100": ([table(100, 1)], [table(101, 1)], "/0/rows"),
    "table cells 20": ([table(1, 20)], [table(1, 21)], "/0/rows/0"),
    "table text 10,000": ([table(10, 10, "x" * 100)], [table(10, 11, "x" * 100)], "/0/rows"),
    "markdown sum": (
        [{"type": "markdown", "text": "x" * 6000}] * 2,
        [{"type": "markdown", "text": "x" * 6001}] * 2,
        "",
    ),
    "all blocks 13,200": ([section("x" * 2640)] * 5, [section("x" * 2641)] * 5, ""),
}


@pytest.fixture(scope="module")
def judges() -> dict[str, BlockJudge]:
    return {"schema": BlockJudge(BlockSchema(shared("slack"))), "by hand": BlockJudge(None)}


@pytest.mark.parametrize("how", ["schema", "by hand"])
@pytest.mark.parametrize("name", CASES)
def test_a_rule_takes_the_limit_and_refuses_one_more(judges: dict[str, BlockJudge], name: str, how: str) -> None:
    good, bad, pointer = copy.deepcopy(CASES[name])
    assert judges[how].blocks(good, "message") == []
    assert pointer in [found.pointer for found in judges[how].blocks(bad, "message")]


def fixtures(kind: str) -> list[tuple[str, Any]]:
    return [(file.name, json.loads(file.read_text())) for file in sorted((shared(FIXTURES) / kind).glob("*.json"))]


def test_every_published_valid_block_is_accepted_but_the_one_where_sources_disagree(
    judges: dict[str, BlockJudge],
) -> None:
    refused = [
        name
        for name, block in fixtures("blocks")
        for blocks in [block if isinstance(block, list) else [block]]
        if judges["schema"].blocks(blocks, "modal" if name.startswith("alert") else "message")
    ]
    assert refused == ["task_card_block.json"]  # it stands alone as `pending`, which the platform refuses


def test_every_published_valid_view_is_accepted(judges: dict[str, BlockJudge]) -> None:
    assert [name for name, view in fixtures("views") if judges["schema"].view(view)] == []


def test_every_published_valid_element_is_accepted_but_the_one_that_is_wrong(judges: dict[str, BlockJudge]) -> None:
    refused: list[str] = []
    for name, element in fixtures("elements"):
        here: list[Json] = [
            actions(element),
            section(accessory=element),
            {"type": "input", "label": plain("l"), "element": element},
            {"type": "context", "elements": [element]},
        ]
        if all(judges["schema"].blocks([block], "message") for block in here) and "url_source" not in name:
            refused.append(name)
    assert refused == ["rich_text_input_basic.json"]  # its initial value is a bare text, not rich text


def test_the_blocks_of_recorded_payloads_are_accepted(judges: dict[str, BlockJudge]) -> None:
    recorded = json.loads((shared("slack") / "payload-samples/inbound-from-bolt-and-sdk-tests.json").read_text())
    seen, refused = 0, []
    for entry in recorded["block_actions"]:
        blocks = entry["payload"].get("message", {}).get("blocks")
        if blocks:
            seen += 1
            refused += [p.message for p in judges["schema"].blocks(blocks, "message")]
    assert seen > 0
    assert refused == []


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SlackSandbox]:
    made = SlackSandbox(reference=shared("slack"))
    ana = made.workspace.add_user("ana")
    made.workspace.add_channel("ops", [ana.id], channel_id="C0OPS")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
            patch.delenv(name, raising=False)
        with made:
            yield made


@pytest.fixture
def client(sandbox: SlackSandbox) -> Iterator[WebClient]:
    sandbox.workspace.violations.clear()
    yield WebClient(sandbox.bot_token, base_url=sandbox.base_url)
    sandbox.workspace.violations.clear()


def refused(client: WebClient, method: str, **args: Any) -> Json:
    """The answer of a call that must fail."""
    with pytest.raises(SlackApiError) as caught:
        client.api_call(method, json=args)
    answer: Json = dict(caught.value.response.data)
    return answer


def codes(sandbox: SlackSandbox) -> list[str]:
    return [violation.code for violation in sandbox.workspace.violations]


BAD_CALLS: list[tuple[str, str, Json, str, str]] = [
    ("an unknown method", "chat.posMessage", {}, "unknown_method", "unknown_method"),
    ("an unknown argument", "chat.postMessage", {"channel": "C0OPS", "text": "x", "colour": 1}, "invalid_arguments",
     "unknown_argument"),
    ("a missing argument", "usergroups.users.list", {}, "invalid_arguments", "missing_argument"),
    ("no text", "chat.postMessage", {"channel": "C0OPS"}, "no_text", "no_text"),
    ("blocks that are no list", "chat.postMessage", {"channel": "C0OPS", "text": "x", "blocks": {"a": 1}},
     "invalid_blocks_format", "invalid_blocks_format"),
    ("text and markdown_text", "chat.postMessage", {"channel": "C0OPS", "text": "x", "markdown_text": "y"},
     "markdown_text_conflict", "markdown_text_conflict"),
    ("metadata without a payload", "chat.postMessage",
     {"channel": "C0OPS", "text": "x", "metadata": {"event_type": "a"}},
     "invalid_metadata_format", "invalid_metadata_format"),
    ("metadata that is nested", "chat.postMessage",
     {"channel": "C0OPS", "text": "x", "metadata": {"event_type": "a", "event_payload": {"b": {"c": {"d": 1}}}}},
     "invalid_metadata_schema", "invalid_metadata_schema"),
    ("metadata above 4 kB", "chat.postMessage",
     {"channel": "C0OPS", "text": "x", "metadata": {"event_type": "a", "event_payload": {"b": "x" * 5000}}},
     "metadata_too_large", "metadata_too_large"),
    ("13,201 characters", "chat.postMessage",
     {"channel": "C0OPS", "text": "x", "blocks": [section("x" * 2641)] * 5},
     "msg_blocks_too_long", "msg_blocks_too_long"),
    ("two tables", "chat.postMessage", {"channel": "C0OPS", "text": "x", "blocks": [table(1, 1)] * 2},
     "invalid_attachments", "only_one_table_allowed"),
    ("a view without a title", "views.open", {"trigger_id": "1.2.a", "view": {"type": "modal", "blocks": [section()]}},
     "invalid_arguments", "invalid_view"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "args", "error", "code"), [c[1:] for c in BAD_CALLS], ids=[c[0] for c in BAD_CALLS])
def test_a_bad_call_is_answered_as_the_platform_would_and_remembered(
    sandbox: SlackSandbox, client: WebClient, method: str, args: Json, error: str, code: str
) -> None:
    assert refused(client, method, **args)["error"] == error
    assert code in codes(sandbox)


TOLERATED: list[tuple[str, Json, str]] = [
    ("blocks without text", {"blocks": [section()]}, "text_missing"),
    ("a thread_ts that is a number", {"text": "x", "thread_ts": 1690000000.12}, "thread_ts_format"),
    ("a thread_ts that was a float", {"text": "x", "thread_ts": "1690000000.12"}, "thread_ts_format"),
    ("a flag of the wrong type", {"text": "x", "unfurl_links": "perhaps"}, "argument_type"),
    ("a broadcast without a thread", {"text": "x", "reply_broadcast": True}, "broadcast_without_thread"),
    ("4,001 characters", {"text": "x" * 4001}, "text_advised"),
    ("@channel in text", {"text": "see <!channel>"}, "mass_mention"),
    ("@here in mrkdwn", {"text": "x", "blocks": [section("<!here|here>")]}, "mass_mention"),
]


@pytest.mark.parametrize(("args", "code"), [c[1:] for c in TOLERATED], ids=[c[0] for c in TOLERATED])
def test_what_the_platform_lets_pass_is_remembered_all_the_same(
    sandbox: SlackSandbox, client: WebClient, args: Json, code: str
) -> None:
    answer = client.api_call("chat.postMessage", json={"channel": "C0OPS", **args})
    assert answer["ok"] is True
    assert "thread_ts" not in answer["message"]
    assert set(codes(sandbox)) - {"argument_type"} <= {code}
    assert code in codes(sandbox)


def test_a_good_call_leaves_no_violation(sandbox: SlackSandbox, client: WebClient) -> None:
    parent = client.chat_postMessage(
        channel="C0OPS",
        text="<!channel in plain words",
        blocks=[section("ok"), {"type": "header", "text": plain("<!channel>")}],
        metadata={"event_type": "plan", "event_payload": {"plan": "C-1", "seq": 1, "hosts": ["a", "b"]}},
        unfurl_links=False,
        unfurl_media=False,
    )
    client.chat_postMessage(channel="C0OPS", text="y", thread_ts=parent["ts"], reply_broadcast=True)
    client.chat_update(channel="C0OPS", ts=parent["ts"], text="z", blocks=[section("z")])
    client.users_info(user=sandbox.workspace.app.bot_user)
    assert codes(sandbox) == []


def test_a_text_above_4000_characters_cannot_be_an_update(sandbox: SlackSandbox, client: WebClient) -> None:
    ts = client.chat_postMessage(channel="C0OPS", text="x")["ts"]
    client.chat_update(channel="C0OPS", ts=ts, text="y" * 4000)
    assert refused(client, "chat.update", channel="C0OPS", ts=ts, text="y" * 4001)["error"] == "msg_too_long"


def test_an_update_that_drops_blocks_without_saying_so_is_remembered(sandbox: SlackSandbox, client: WebClient) -> None:
    ts = client.chat_postMessage(channel="C0OPS", text="x", blocks=[section()])["ts"]
    assert client.chat_update(channel="C0OPS", ts=ts, text="y")["message"].get("blocks") is None
    assert codes(sandbox) == ["blocks_dropped"]
    ts = client.chat_postMessage(channel="C0OPS", text="x", blocks=[section()])["ts"]
    client.chat_update(channel="C0OPS", ts=ts, text="y", blocks=[])
    assert codes(sandbox) == ["blocks_dropped"]


def test_a_reply_addressed_to_a_reply_is_remembered(sandbox: SlackSandbox, client: WebClient) -> None:
    parent = client.chat_postMessage(channel="C0OPS", text="x")["ts"]
    reply = client.chat_postMessage(channel="C0OPS", text="y", thread_ts=parent)["ts"]
    client.chat_postMessage(channel="C0OPS", text="z", thread_ts=reply)
    assert codes(sandbox) == ["thread_ts_of_reply"]


def test_blocks_validate_lists_every_fault_with_its_pointer_and_remembers_none(
    sandbox: SlackSandbox, client: WebClient
) -> None:
    bad = json.dumps([{"type": "section", "text": {"type": "invalid", "text": "x"}}])
    answer = refused(client, "blocks.validate", blocks=bad)
    assert answer["error"] == "invalid_blocks"
    assert answer["errors"] == [
        {
            "code": "failed_constraint",
            "message": "unsupported type: invalid",
            "pointer": "/0/text/type",
            "constraint": {"type": "enum", "expected": ["mrkdwn", "plain_text"]},
        }
    ]
    assert client.api_call("blocks.validate", json={"blocks": json.dumps([section()])})["ok"]
    assert refused(client, "blocks.validate", blocks="[]", view="{}")["error"] == "invalid_arguments"
    assert codes(sandbox) == []


def test_without_reference_data_the_hand_checks_stay_on() -> None:
    sandbox = SlackSandbox(reference=None)
    found = sandbox.oracle.validate("blocks", [section("x" * 3001)] * 51)
    assert {"/0/text/text", ""} <= {problem.pointer for problem in found}
    assert sandbox.oracle.knows("chat.postMessage") is None


def test_the_reference_folder_is_where_the_oracle_looks() -> None:
    folder: Path = shared("slack")
    assert SlackSandbox(reference=folder).oracle.knows("chat.postMessage") is True
    assert SlackSandbox(reference=folder).oracle.knows("chat.posMessage") is False
