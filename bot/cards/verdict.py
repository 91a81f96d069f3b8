"""The proof per instance in words: what the environment of each process said, what was asked and what it answered."""

from __future__ import annotations

from bot.cards.probe import load
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.events import Proved
from policies.facts import ProcessEnv
from policies.finding import Finding
from policies.probe import Probe
from policies.proof import Proof

MOST_PROOFS = 12
# told from the processes themselves, in fewer words
PROCESS_BY_PROCESS = frozenset({"proof.absent", "proof.present-unwanted", "proof.other-value", "proof.no-process"})
HEALTH = frozenset({"proof.healthy", "proof.not-healthy"})


def proof_lines(proved: Proved | None, canary: tuple[Finding, ...] = (), probe: Probe | None = None) -> list[Markup]:
    """One line an instance with its verdict, then what was measured through the services."""
    if proved is None:
        return []
    told = [
        joined([verdict(instance, proof), one(instance, proof)])
        for instance, proof in list(proved.proofs.items())[:MOST_PROOFS]
    ]
    left = len(proved.proofs) - MOST_PROOFS
    if left > 0:
        told.append(say("plan.more-lines", n=left))
    return [*told, *measured(proved, canary, probe)]


def proof_line(proved: Proved, canary: tuple[Finding, ...] = (), probe: Probe | None = None) -> Markup:
    """Everything on one line, as the thread has it."""
    parts = [one(instance, proof) for instance, proof in list(proved.proofs.items())[:MOST_PROOFS]]
    left = len(proved.proofs) - MOST_PROOFS
    if left > 0:
        parts.append(say("plan.more-lines", n=left))
    parts += measured(proved, canary, probe)
    return joined(parts) if parts else say("proof.nothing")


def measured(proved: Proved, canary: tuple[Finding, ...], probe: Probe | None) -> list[Markup]:
    """`health 200/200/200`, what is wrong with one of them, and the canary of the last gate with the load then."""
    statuses = [f.values.get("status") for f in proved.findings if f.code in HEALTH]
    told = (
        [say("proof.health", statuses="/".join("none" if s is None else str(s) for s in statuses))] if statuses else []
    )
    others = [f for f in proved.findings if f.code != "proof.healthy"]
    beside = [load(probe)] if probe is not None and canary else []
    return [*told, *[sentence(finding) for finding in (*others, *canary)], *beside]


def verdict(instance: str, proof: Proof) -> Markup:
    """The verdict and the highest rung that holds."""
    return say("proof.verdict", instance=instance, verdict=proof.verdict.replace("_", " "), rung=proof.rung)


def one(instance: str, proof: Proof) -> Markup:
    """What is proven of one instance: the main process, its children, then what is said beside the processes."""
    if proof.of == "version":
        return joined([*_version(instance, proof), *[sentence(finding) for finding in proof.findings]])
    mains = [p for p in proof.processes if p.main]
    children = [p for p in proof.processes if not p.main]
    parts = [_main(instance, proof, process) for process in mains] or [say("proof.no-process-read", instance=instance)]
    if children:
        parts[-1] = Markup(f"{parts[-1]} ({_children(proof, children)})")
    if proof.reported is not None and proof.reported == proof.wanted:
        parts.append(say("proof.reported", value=proof.reported))
    parts += [sentence(finding) for finding in proof.findings if finding.code not in PROCESS_BY_PROCESS]
    return joined(parts)


def _version(instance: str, proof: Proof) -> list[Markup]:
    if proof.reported is None:
        return []
    if proof.reported == proof.wanted:
        return [say("proof.version", instance=instance, version=proof.reported)]
    return [say("proof.version-other", instance=instance, version=proof.reported, wanted=proof.wanted)]


def _main(instance: str, proof: Proof, process: ProcessEnv) -> Markup:
    if process.answer == "present" and process.value == proof.wanted:
        return say("proof.in-environment", value=process.value, instance=instance, pid=process.pid)
    if process.answer == "absent" and proof.wanted is None:
        return say("proof.not-in-environment", variable=proof.variable, instance=instance, pid=process.pid)
    if process.answer in {"present", "absent"}:
        found = process.value if process.answer == "present" else None
        return say("proof.differs", instance=instance, pid=process.pid, found=found, wanted=proof.wanted)
    return say("proof.main-unread", instance=instance, pid=process.pid, answer=process.answer)


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
