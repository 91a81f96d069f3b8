"""Words of the grammar that this version does not have yet. They are refused by name instead of as unknown."""

from __future__ import annotations

# family -> words; a whole family without words of its own is refused behind every word that is not about changes
NOT_BUILT: dict[str, tuple[str, ...]] = {
    "/knob": ("why", "history", "reclaim", "evidence", "try"),
    "/deploy": ("deploy", "restart", "rollback", "log", "lock", "unlock"),
    "/cause": ("cause", "why", "dispute"),
}


def not_built(family: str | None, word: str) -> str | None:
    """What is not available, as a person would name it, or None.

    `family` is None after a mention, where all words share one space.
    """
    if family in {"/deploy", "/cause"}:
        return f"{family} {word}" if word in NOT_BUILT[family] else family
    if family is not None:
        return f"{family} {word}" if word in NOT_BUILT[family] else None
    owner = next((one for one, words in NOT_BUILT.items() if word in words), None)
    if owner is None:
        return None
    return owner if word == owner.removeprefix("/") else f"{owner} {word}"
