"""The judge of the trail: the ledger recomputed, the workspace held against it, and an edit behind the bot's back."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from sandbox.eyes import Eyes, Json, is_reply, payload_of
from sandbox.judge import Verdict
from sandbox.stage import CHANNEL, Stage

GENESIS = "0" * 64  # what the first entry names as the one before it
FORGED = "nothing was restarted"


class AuditJudge:
    """Looks at one stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.eyes = Eyes(stage)

    def audit_clean(self) -> Verdict:
        """Every link recomputed; the hashes that the workspace's messages carry; and `audit verify --thread`."""
        with ThreadPoolExecutor(1) as aside:
            verified = aside.submit(self._verify)
            entries = self.eyes.entries()
            done = verified.result()
        problems = chain_problems(entries)
        known = {entry["seq"]: (entry["subject"], entry["hash"]) for entry in entries}
        drawn = [payload for message in self.eyes.transcript() if (payload := payload_of(message))]
        for payload in drawn:
            if known.get(payload.get("seq")) != (payload.get("change"), payload.get("hash")):
                problems.append(f"a message draws entry {payload.get('seq')}, which the ledger does not have like that")
        if done.returncode != 0:
            problems.append(
                f"`clawback audit verify --thread` ended with {done.returncode}: {(done.stdout + done.stderr)[:200]}"
            )
        seen = f"{len(entries)} entries, every link recomputed; {len(drawn)} messages carry the hashes of theirs"
        return bool(entries) and not problems, "; ".join(problems) or seen

    def audit_catches_edit(self, change: str) -> Verdict:
        """A line of a thread is edited behind the bot's back: `audit verify --thread` names it; then it is put back."""
        lines = [m for m in self.eyes.transcript() if payload_of(m).get("change") == change and is_reply(m)]
        if not lines:
            return False, f"{change} has no line to edit"
        ts, text = str(lines[-1]["ts"]), str(lines[-1]["text"])
        people = self.stage.slack.people
        people.edit_message_behind_the_bot(CHANNEL, ts, FORGED)
        try:
            done = self._verify()
        finally:
            people.edit_message_behind_the_bot(CHANNEL, ts, text)
        if done.returncode != 1:
            said = (done.stdout + done.stderr)[:300]
            return False, f"`clawback audit verify --thread` ended with {done.returncode}: {said}"
        problems = json.loads(done.stdout)["problems"]
        named = [one for one in problems if FORGED in json.dumps(one)]
        others = [one for one in problems if one not in named]
        ok = len(named) == 1 and not others
        return ok, f"the edited line of {change} is named: {json.dumps(named)[:200]}" if ok else json.dumps(problems)[
            :300
        ]

    def _verify(self) -> subprocess.CompletedProcess[str]:
        return self.stage.clawback("audit", "verify", "--thread", "--json")


def chain_problems(entries: Sequence[Json]) -> list[str]:
    """What is wrong with the hash chain of exported entries."""
    problems: list[str] = []
    previous = GENESIS
    for number, entry in enumerate(entries, start=1):
        body = {key: value for key, value in entry.items() if key != "hash"}
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        if entry["seq"] != number or entry["prev"] != previous:
            problems.append(f"entry {number} does not follow the one before it")
        if hashlib.sha256(text.encode()).hexdigest() != entry["hash"]:
            problems.append(f"entry {number} does not carry its own hash")
        previous = str(entry["hash"])
    return problems
