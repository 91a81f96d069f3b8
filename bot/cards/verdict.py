"""The proof per instance in words: what the environment of each process said, what was asked and what it answered."""

from __future__ import annotations

from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.events import Proved
from policies.facts import ProcessEnv
from policies.proof import Proof

MOST_PROOFS = 12


def proof_lines(proved: Proved | None) -> list[Markup]:
    """One line an instance with its verdict, then what was measured through the services."""
    if proved is None:
        return []
    told = [
        joined([say("proof.verdict", instance=p.instance, verdict=p.verdict.replace("_", " "), rung=p.rung), one(p)])
        for p in list(proved.proofs.values())[:MOST_PROOFS]
    ]
    left = len(proved.proofs) - MOST_PROOFS
    if left > 0:
        told.append(say("plan.more-lines", n=left))
    return [*told, *[sentence(finding) for finding in proved.findings]]


def proof_line(proved: Proved) -> Markup:
    """Everything on one line, as the thread has it."""
    parts = [one(proof) for proof in list(proved.proofs.values())[:MOST_PROOFS]]
    left = len(proved.proofs) - MOST_PROOFS
    if left > 0:
        parts.append(say("plan.more-lines", n=left))
    parts += [sentence(finding) for finding in proved.findings]
    return joined(parts) if parts else say("proof.nothing")


def one(proof: Proof) -> Markup:
    """What is proven of one instance: the main process, its children, what the engine says of itself."""
    mains = [p for p in proof.processes if p.main]
    children = [p for p in proof.processes if not p.main]
    parts = [_main(proof, process) for process in mains] or [say("proof.no-process", instance=proof.instance)]
    if children:
        parts[-1] = Markup(f"{parts[-1]} ({_children(proof, children)})")
    if proof.reported is not None:
        parts.append(say("proof.reported", reported=proof.reported))
    parts += [sentence(finding) for finding in proof.findings]
    return joined(parts)


def _main(proof: Proof, process: ProcessEnv) -> Markup:
    if process.answer == "present" and process.value == proof.wanted:
        return say("proof.present", value=process.value, instance=proof.instance, pid=process.pid)
    if process.answer == "absent" and proof.wanted is None:
        return say("proof.absent", variable=proof.variable, instance=proof.instance, pid=process.pid)
    if process.answer in {"present", "absent"}:
        found = process.value if process.answer == "present" else None
        return say("proof.other", instance=proof.instance, pid=process.pid, found=found, wanted=proof.wanted)
    return say("proof.main-unread", instance=proof.instance, pid=process.pid, answer=process.answer)


def _children(proof: Proof, children: list[ProcessEnv]) -> Markup:
    parts: list[Markup] = []
    of = len(children)
    agree = sum(1 for p in children if p.answer in {"present", "absent"} and p.value == proof.wanted)
    differ = sum(1 for p in children if p.answer in {"present", "absent"} and p.value != proof.wanted)
    for answer, code in (("unreadable", "proof.children-unreadable"), ("forbidden", "proof.children-forbidden")):
        if n := sum(1 for p in children if p.answer == answer):
            parts.append(say(code, n=n, of=of))
    if agree:
        parts.append(say("proof.children-agree", n=agree, of=of))
    if differ:
        parts.append(say("proof.children-differ", n=differ, of=of))
    if gone := sum(1 for p in children if p.answer == "vanished"):
        parts.append(say("proof.children-vanished", n=gone, of=of))
    return joined(parts, ", ")
