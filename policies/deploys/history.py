"""Which versions of a service ran, how each deploy of them ended, and which one is proven good and not taken back.

A version is what its newest deploy or rollback made of it: one that was rolled back stays bad until it is proven again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from policies.change import Change
from policies.finding import Finding

# proven: succeeded, live on every instance, and watched to the end. kept: a person left it as it was, no gate vouches.
End = Literal["proven", "unproven", "kept", "undone", "open", "nothing"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """One deploy or rollback of a service. `was`: versions that ran before, where known. at: epoch seconds."""

    change: str
    word: Literal["deploy", "rollback"]
    ref: str
    was: tuple[str, ...]
    end: End
    at: float


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a version last. change: the one that says so."""

    ref: str
    word: Literal["good", "bad", "unproven"]
    change: str
    at: float


def deployment_of(change: Change) -> Deployment | None:
    """A change as a deployment; None when it is none, or was never carried out."""
    plan = change.plan
    if plan is None or plan.deploy is None or not change.started_at:
        return None
    was = tuple(dict.fromkeys(t.now for t in plan.targets if t.now is not None and t.now != plan.deploy.ref))
    at = change.ended_at if change.ended_at is not None else change.started_at
    return Deployment(change.id, plan.deploy.word, plan.deploy.ref, was, _end(change), at)


def _end(change: Change) -> End:
    if not change.ended:
        return "open"
    if change.state == "succeeded":
        proofs = change.proved.proofs if change.proved is not None else {}
        live = bool(proofs) and all(proof.verdict == "live" for proof in proofs.values())
        return "proven" if live and (change.bake is None or change.baked) else "unproven"
    if change.state == "rolled_back":
        return "undone"
    return "kept" if change.state == "failed" else "nothing"


def standings(history: Iterable[Deployment]) -> list[Standing]:
    """Every version that a deployment says something about, the newest word first. history: newest first.

    A rollback that was begun speaks against the versions that it left, whatever came of it.
    """
    found: dict[str, Standing] = {}

    def say(ref: str, word: Literal["good", "bad", "unproven"], by: Deployment) -> None:
        found.setdefault(ref, Standing(ref, word, by.change, by.at))

    for one in history:
        match one.end:
            case "proven":
                say(one.ref, "good", one)
            case "undone":
                say(one.ref, "bad", one)
            case "unproven" | "kept":
                say(one.ref, "unproven", one)
            case "open" | "nothing":
                pass
        if one.word == "rollback" and one.end != "nothing":
            for ref in one.was:
                say(ref, "bad", one)
    return list(found.values())


def good(history: Iterable[Deployment], without: Collection[str] = ()) -> list[Standing]:
    """Versions that are proven good, the one that was proven last first."""
    return [one for one in standings(history) if one.word == "good" and one.ref not in without]


def standing_of(history: Iterable[Deployment], ref: str) -> Standing | None:
    """What became of one version last; None where nothing is recorded of it."""
    return next((one for one in standings(history) if one.ref == ref), None)


def rollback_to(service: str, history: Sequence[Deployment], running: Collection[str]) -> Standing | Finding:
    """The version that a rollback goes to: proven good, not taken back since, and not the one that runs.

    After a rollback, or a deploy that was undone, there is nothing to take back: who goes on backwards names the REF.
    """
    values: dict[str, str | int | float | None] = {"service": service, "running": ", ".join(sorted(running)) or None}
    found = good(history, running)
    values["others"] = ", ".join(one.ref for one in found[:3]) or None
    last = next((one for one in history if one.end not in {"open", "nothing"}), None)
    if last is not None and last.word == "rollback" and last.end in {"proven", "unproven", "kept"}:
        return Finding(code="rollback.cascade", effect="refuse", values={**values, "change": last.change})
    if last is not None and last.word == "deploy" and last.end == "undone":
        values |= {"change": last.change, "ref": last.ref}
        return Finding(code="rollback.undone-already", effect="refuse", values=values)
    if not found:
        return Finding(code="rollback.none-proven", effect="refuse", values=values)
    return found[0]
