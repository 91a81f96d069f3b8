"""The changes that the matrix plays: what is typed, how it ends when it is left in peace, and what decode has then."""

from __future__ import annotations

from typing import Literal, get_args

from sandbox.fleet.document import KNOB
from sandbox.fleet.fleet import Engines
from sandbox.fleet.releases import DEPLOYED, GOOD
from sandbox.stage import KNOB_VALUE

Story = Literal["succeeds", "undone", "deployed", "rolling"]
STORIES: tuple[Story, ...] = get_args(Story)
# each story goes there and back again, so that one stage serves many of its cells; an undo is back by itself
WORDS: dict[Story, tuple[str, ...]] = {
    "succeeds": ("revert", "restore"),
    "undone": ("undo",),
    "deployed": ("deploy", "deploy-back"),
    "rolling": ("roll", "roll-back"),
}
TITLES: dict[Story, str] = {
    "succeeds": "A change that succeeds",
    "undone": "A change that fails its gate and is undone",
    "deployed": "A deploy that succeeds",
    "rolling": "A deploy over three replicas that succeeds",
}
VERSIONS = {"deploy": GOOD, "deploy-back": Engines().version, "roll": GOOD, "roll-back": Engines().version}
ORDERS = dict.fromkeys(WORDS["rolling"], "decode-only")  # the others restart all three services


def _via(word: str) -> str:
    return f" via {ORDERS[word]}" if word in ORDERS else ""


REVERT = f'/knob revert {KNOB} because "multi-round hang"'
TYPED = {
    "revert": REVERT,
    "restore": f"/knob restore {KNOB}={KNOB_VALUE}",
    "undo": REVERT,  # on a rig where that cannot go well
    **{word: f"/deploy {DEPLOYED} {ref}{_via(word)}" for word, ref in VERSIONS.items()},
}


def story_of(word: str) -> Story:
    """The story that a word belongs to."""
    return next(story for story, words in WORDS.items() if word in words)


def knob_of(word: str) -> str | None:
    """The knob's value in decode's environment when a word has ended; None: it has none."""
    return None if word == "revert" else KNOB_VALUE
