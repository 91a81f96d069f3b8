"""The form of `evidence add`: the button that opens it, the modal, and what each of its fields is called.

A modal needs a trigger that is younger than three seconds, which a mention has not: there a button comes first.
Source: 24 characters of a title, 10 files an input, 100 options of a menu, 3000 characters of private metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, ValidationError

from bot.cards.buttons import PREFIX
from bot.cards.kit import Block, Card, actions, made, section
from bot.messages import say
from policies.bench.metrics import short
from policies.fleet import Knob
from policies.model import Model

OPEN = f"{PREFIX}evidence-form"
CALLBACK = f"{PREFIX}evidence"
MOST_FILES_AN_ARM = 10
MOST_OPTIONS = 100
MOST_NOTE = 1000
METRICS = (
    "output_throughput",
    "total_throughput",
    "request_throughput",
    "median_ttft_ms",
    "p99_ttft_ms",
    "median_tpot_ms",
    "mean_tpot_ms",
    "p99_itl_ms",
    "median_e2e_latency_ms",
)
KNOB, VALUE, BASELINE, METRIC, ARM_A, ARM_B = "knob", "value", "baseline", "metric", "arm-a", "arm-b"
INTERLEAVED, CORRECTNESS, NOTE = "interleaved", "correctness", "note"


class Dropped(Model):
    """A file that is in the channel already."""

    id: str = Field(max_length=40)
    name: str = Field(max_length=60)


class Place(Model):
    """Where the answer goes. It travels with the form and comes back as it was sent."""

    channel: str = Field(max_length=40)
    thread_ts: str | None = Field(default=None, max_length=30)


class Opener(Model):
    """What the button carries: the thread, and the files that were dropped with the mention."""

    thread_ts: str | None = Field(default=None, max_length=30)
    files: tuple[Dropped, ...] = Field(default=(), max_length=20)


def opener(carried: Opener) -> Card:
    """The answer to a mention that says `evidence add`: a button that opens the form."""
    said = say("form.opener", n=len(carried.files)) if carried.files else say("form.opener-empty")
    button: Block = {
        "type": "button",
        "action_id": OPEN,
        "text": {"type": "plain_text", "text": "Open the form"},
        "style": "primary",
        "value": carried.model_dump_json(),
    }
    return made(said, [section(said)], [actions([button])])


def carried(value: str) -> Opener | None:
    """What a click on that button carries; None for anything else."""
    try:
        return Opener.model_validate_json(value)
    except ValidationError:
        return None


def view(knobs: Sequence[Knob], place: Place, dropped: Sequence[Dropped] = ()) -> Block:
    """The modal. dropped: files to choose from; without them files are picked on the person's own machine."""
    choose = [_option(one.name or one.id, one.id) for one in dropped]
    blocks = [
        _input(KNOB, "Knob", _menu([_option(knob.name, knob.name) for knob in knobs[:MOST_OPTIONS]])),
        _input(VALUE, "Value of B", _line("512"), hint="as it stood in the environment of the runs of B"),
        _input(BASELINE, "Value of A", _line("unset"), hint="leave it empty where A ran without it", optional=True),
        _input(ARM_A, "Files of A", _files(choose), hint="runs without the value, in the order in which they ran"),
        _input(ARM_B, "Files of B", _files(choose), hint="runs with the value, in the order in which they ran"),
        _input(INTERLEAVED, "Order", _tick("interleaved: A and B took turns"), optional=True),
        _input(METRIC, "Metric", _menu([_option(short(m), m) for m in METRICS], first=True), optional=True),
        _input(
            CORRECTNESS,
            "Correctness",
            _line("0/200"),
            hint="answers that differ, of those that were compared",
            optional=True,
        ),
        _input(
            NOTE,
            "Note",
            {"type": "plain_text_input", "multiline": True, "max_length": MOST_NOTE},
            hint="shown as your words",
            optional=True,
        ),
    ]
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "title": _plain("Evidence for a knob"),
        "submit": _plain("Judge and record"),
        "close": _plain("Cancel"),
        "private_metadata": place.model_dump_json(),
        "blocks": blocks,
    }


def _input(block_id: str, label: str, element: Block, *, hint: str = "", optional: bool = False) -> Block:
    block: Block = {"type": "input", "block_id": block_id, "label": _plain(label), "optional": optional}
    if hint:
        block["hint"] = _plain(hint)
    return block | {"element": {"action_id": f"{block_id}-field", **element}}


def _files(choose: list[Block]) -> Block:
    if not choose:
        return {"type": "file_input", "max_files": MOST_FILES_AN_ARM}
    return {"type": "multi_static_select", "options": choose, "placeholder": _plain("choose files")}


def _menu(options: list[Block], *, first: bool = False) -> Block:
    menu: Block = {"type": "static_select", "options": options}
    return menu | {"initial_option": options[0]} if first or len(options) == 1 else menu


def _tick(label: str) -> Block:
    return {"type": "checkboxes", "options": [_option(label, INTERLEAVED)]}


def _line(example: str) -> Block:
    return {"type": "plain_text_input", "placeholder": _plain(example), "max_length": 200}


def _option(label: str, value: str) -> Block:
    return {"text": _plain(label[:75]), "value": value[:150]}


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text}
