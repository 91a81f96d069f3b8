"""Words of the grammar that this version does not have yet. They are refused by name instead of as unknown."""

from __future__ import annotations

# family -> words
NOT_BUILT: dict[str, tuple[str, ...]] = {
    "/knob": ("try",),
    "/deploy": (),
    "/cause": (),
}


def not_built(family: str | None, word: str) -> str | None:
    """What is not available, as a person would name it, or None.

    `family` is None after a mention, where all words share one space.
    """
    owner = family or next((one for one, words in NOT_BUILT.items() if word in words), None)
    if owner is None:
        return None
    if word not in NOT_BUILT[owner]:
        return None
    return f"{owner} {word}"
