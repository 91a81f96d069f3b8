"""OpenAI's requests and answers, and the room in which prefill and decode meet when a router asks both at once."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Any

from . import web

DEFAULT_TOKENS = 16


@dataclass(frozen=True)
class Asked:
    """A request. `meets` is the address of prefill and the room there, when a router asked both engines."""

    prompt: str
    max_tokens: int
    chat: bool
    meets: tuple[str, str] | None


def read(body: dict[str, Any], *, chat: bool) -> Asked:
    """Read `/v1/completions` or `/v1/chat/completions`.

    Raises: web.Reply when it is not one.
    """
    if chat:
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
            raise web.Reply(400, "messages: expected a list of objects")
        prompt: object = "\n".join(str(one.get("content", "")) for one in messages)
    else:
        prompt = body.get("prompt")
    if not isinstance(prompt, str):
        raise web.Reply(400, "prompt: expected a string")
    tokens = body.get("max_tokens") or body.get("max_completion_tokens") or DEFAULT_TOKENS
    return Asked(prompt, tokens_of(tokens), chat, _meets(body))


def tokens_of(asked: object) -> int:
    """How many tokens were asked for.

    Raises: web.Reply for anything but a whole number from 1 to 100000.
    """
    if not isinstance(asked, int) or isinstance(asked, bool) or not 1 <= asked <= 100_000:
        raise web.Reply(400, "max_tokens: expected a whole number from 1 to 100000")
    return asked


def _meets(body: dict[str, Any]) -> tuple[str, str] | None:
    host, port, room = (body.get(f"bootstrap_{name}") for name in ("host", "port", "room"))
    if room is None:
        return None
    if not isinstance(host, str) or not isinstance(port, int) or not isinstance(room, int):
        raise web.Reply(400, "bootstrap_room: expected a number, with bootstrap_host and bootstrap_port")
    return f"http://{host}:{port}", str(room)


def envelope(model: str, chat: bool, text: str, usage: dict[str, int]) -> dict[str, object]:
    """The answer to either kind of request."""
    choice: dict[str, object] = {"index": 0, "finish_reason": "stop"}
    if chat:
        choice["message"] = {"role": "assistant", "content": text.strip()}
    else:
        choice |= {"text": text, "logprobs": None}
    return {
        "id": f"cmpl-{uuid.uuid4().hex}",
        "object": "chat.completion" if chat else "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": {**usage, "total_tokens": sum(usage.values())},
    }
