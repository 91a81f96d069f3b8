"""Words of the grammar that this version does not have yet. They are refused by name instead of as unknown."""

from __future__ import annotations

# family -> words
NOT_BUILT: dict[str, tuple[str, ...]] = {
    "/knob": ("why", "try"),
    "/deploy": (),
    "/cause": ("cause", "why", "dispute"),
}

WHOLE = {"/cause"}  # nothing of it is there but words about changes
WHOLE_NAME = {"cause": "/cause"}  # words that are only typed after a mention


def not_built(family: str | None, word: str) -> str | None:
    """What is not available, as a person would name it, or None.

    `family` is None after a mention, where all words share one space.
    """
    owner = family or next((one for one, words in NOT_BUILT.items() if word in words), None)
    if owner is None:
        return None
    if word not in NOT_BUILT[owner]:
        return owner if owner in WHOLE else None
    return WHOLE_NAME.get(word, f"{owner} {word}")
