"""Buttons and what they carry. A button names the change, and where it matters the order and the plan that was seen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import Field, ValidationError

from bot.cards.kit import Block
from bot.messages import say
from policies.intents import Act, DisputeStatement
from policies.model import Model
from policies.plan import Plan
from policies.suspicion import Suspicion

PREFIX = "clawback."
Word = Literal["confirm", "deny", "abort", "retry", "undo", "keep", "ratify"]
WORDS: tuple[Word, ...] = get_args(Word)
DETAILS = "details"
GIVE_BACK = "reclaim"
DISPUTE = "dispute"
TOGETHER = "together"
MOST_LABEL = 75


class Carried(Model):
    """The value of a button, as JSON: c change, o restart order, d digest of the plan."""

    c: str = Field(max_length=40)
    o: str | None = Field(default=None, max_length=200)
    d: str | None = Field(default=None, max_length=64)

    def text(self) -> str:
        """The value as Slack keeps it."""
        return json.dumps(self.model_dump(exclude_none=True), separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Details:
    """A click on [Details]: a question, for everybody who may see the channel. digest: of the plan that was seen."""

    change: str
    digest: str | None


@dataclass(frozen=True, slots=True)
class GiveBack:
    """A click on [Restore ...]: plan the restore of what a suspicion took away."""

    suspicion: str


@dataclass(frozen=True, slots=True)
class Together:
    """A click on [... on all]: plan as one change what was refused for one side."""

    change: str


Clicked = Details | GiveBack | Together


def together(change_id: str, label: str) -> Block:
    """[Set NAME=VALUE on all], which plans that and carries out nothing."""
    return _button(f"{TOGETHER}.{change_id}", label, Carried(c=change_id), style="primary")


def give_back(suspicion: Suspicion) -> Block:
    """[Restore NAME=VALUE], which plans that restore and carries out nothing."""
    what = suspicion.knob if suspicion.value is None else f"{suspicion.knob}={suspicion.value}"
    word = "Unset" if suspicion.value is None else "Restore"
    return _button(f"{GIVE_BACK}.{suspicion.id}", f"{word} {what}", Carried(c=suspicion.id), style="primary")


def dispute(statement: str) -> Block:
    """[Dispute], which has a statement judged once more."""
    button = _button(f"{DISPUTE}.{statement}", "Dispute", Carried(c=statement))
    title, text = say("statement.dispute-title", statement=statement), say("statement.dispute-text")
    button["confirm"] = _asking(title, text, "Dispute")
    return button


def confirm(change_id: str, plan: Plan, label: str, title: str, text: str) -> Block:
    """[Confirm LABEL], which asks once more and says what will be restarted."""
    carried = Carried(c=change_id, o=plan.order, d=plan.digest)
    button = _button(f"confirm.{plan.order}", f"Confirm {label}", carried, style="primary")
    button["confirm"] = _asking(title, text, "Confirm")
    return button


def deny(change_id: str) -> Block:
    """[Deny]."""
    return _button("deny", "Deny", Carried(c=change_id), style="danger")


def details(change_id: str, digest: str) -> Block:
    """[Details]."""
    return _button(DETAILS, "Details", Carried(c=change_id, d=digest))


def abort(change_id: str, title: str, text: str) -> Block:
    """[Abort], which asks once more."""
    button = _button("abort", "Abort", Carried(c=change_id), style="danger")
    button["confirm"] = _asking(title, text, "Abort")
    return button


def ratify(change_id: str) -> Block:
    """[Ratify], for a second person."""
    return _button("ratify", "Ratify", Carried(c=change_id), style="primary")


def on_held(change_id: str, keep_title: str, keep_text: str, *, retry: str | None, undo: bool) -> list[Block]:
    """[Retry gate] [Undo] [Keep], the first two where they mean something; keeping asks once more.

    retry: what that button says; None: there is nothing to look at again.
    """
    keep = _button("keep", "Keep", Carried(c=change_id))
    keep["confirm"] = _asking(keep_title, keep_text, "Keep")
    row = [_button("retry", retry, Carried(c=change_id), style="primary")] if retry else []
    row += [_button("undo", "Undo", Carried(c=change_id), style="danger")] if undo else []
    return [*row, keep]


def read(action_id: str, value: str) -> Act | Clicked | DisputeStatement | None:
    """The word that a click says; None when it is no button of ours or carries nothing readable."""
    if not action_id.startswith(PREFIX):
        return None
    word = action_id.removeprefix(PREFIX).split(".", 1)[0]
    if word not in {*WORDS, DETAILS, GIVE_BACK, DISPUTE, TOGETHER}:
        return None
    try:
        carried = Carried.model_validate_json(value)
    except ValidationError:
        return None
    if word == DETAILS:
        return Details(carried.c, carried.d)
    if word == GIVE_BACK:
        return GiveBack(carried.c)
    if word == TOGETHER:
        return Together(carried.c)
    if word == DISPUTE:
        return DisputeStatement(statement=carried.c)
    if word == "confirm" and (carried.o is None or carried.d is None):
        return None  # a click that names no plan is none of ours
    return Act.model_validate({"kind": word, "change": carried.c, "order": carried.o, "digest": carried.d})


def _button(name: str, label: str, carried: Carried, *, style: str | None = None) -> Block:
    button: Block = {
        "type": "button",
        "action_id": f"{PREFIX}{name}"[:255],
        "text": {"type": "plain_text", "text": label[:MOST_LABEL]},
        "value": carried.text(),
    }
    if style is not None:
        button["style"] = style
    return button


def _asking(title: str, text: str, word: str) -> Block:
    return {
        "title": {"type": "plain_text", "text": title[:100]},
        "text": {"type": "mrkdwn", "text": text},
        "confirm": {"type": "plain_text", "text": word},
        "deny": {"type": "plain_text", "text": "Back"},
    }
