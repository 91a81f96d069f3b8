"""The words that the page completes, for the fleet of the demo: the product's chat commands as plain data.

The sandbox imports nothing of the product's bot; a test holds these words against its grammar.
"""

from __future__ import annotations

from sandbox.fleet.document import KNOB
from sandbox.fleet.releases import BAD, BROKEN, DEPLOYED, GOOD
from sandbox.page.hints import PageHints

CHANGES = {
    "status": "the last 10 changes, or one change",
    "confirm": "approve the plan that is shown now",
    "deny": "refuse a plan",
    "abort": "stop a change; what was changed is undone",
    "keep": "leave a held change as it is; needs an approval",
    "undo": "take a held change back",
    "retry": "ask the gate of a held change again",
    "ratify": "answer for what somebody else did alone in an emergency",
    "help": "what you may run, or one command",
}
OPTIONS = {
    "via": "a restart order",
    "because": "the reason, in quotes",
    "emergency": "alone on call: confirm it yourself, a second person ratifies; needs a reason",
    "ticket": "the incident or ticket that it is for",
    "dry": "only the plan",
}
ORDERS = {"co-restart": "prefill, decode, router", "decode-only": "decode"}
SCOPES = {"prefill": "service", "decode": "service", "router": "service", "gpu1": "host"}
NAME = {KNOB: ""}
RELEASES = {GOOD: "a good release", BAD: "one that never gets well", BROKEN: "one whose files are not as it says"}
CAUSES = {"queued-behind-load": "the request queued behind live traffic", "cold-start": "cold start after a restart"}
HINTS: PageHints = {
    "": {"/knob": "performance knobs", "/deploy": "versions, restarts, locks", "/cause": "why something happened"},
    "/knob": {
        "list": "desired, configured and live values of every knob",
        "show": "definition and value of a knob",
        "revert": "take the present value away; the reason is judged on what is measured, and shown as your words",
        "restore": "bring back a value that was live before and was taken away",
        "set": "give a knob a new value; dry only shows the plan",
        "unset": "take a knob out of the environment",
        "evidence": (
            "what is recorded of a knob's worth, judged, with pictures; add opens a form for result files, also for"
            " files that are dropped here with a mention of the app"
        ),
        "why": "where a knob's value comes from: the change, its people, evidence, suspicions, causes",
        "history": "everything that happened to a knob, in order: changes, evidence, suspicions, people",
        "reclaim": "what was taken away on suspicion, what that costs, and how to get it back",
        "verify": "how far it is proven that a knob is live, on every instance; changes nothing",
        **CHANGES,
    },
    "/knob restore": {f"{KNOB}=512": "", **NAME},
    "/knob set": {f"{KNOB}=512": ""},
    "/knob evidence": {**NAME, "add": "a form for result files"},
    **{f"/knob {word}": NAME for word in ("show", "revert", "unset", "verify", "why", "history")},
    "/knob *": {"on": "a service, a host or service@host", **OPTIONS, "citing": "readings that support it", **ORDERS},
    "/deploy": {
        "deploy": "another version of a service: checked on its hosts before anything is planned, proven afterwards",
        "rollback": "back to the last version that was proven good and not taken back since",
        "restart": "restart a service, a host's services or service@host, and change no value",
        "log": "what changed, by changes and outside of them, and what is not watched; or the changes of a ticket",
        "lock": "no change touches a service, a host or service@host until it is opened or the time is over",
        "unlock": "changes may touch it again; for whoever locked it, and for approvers",
        **CHANGES,
    },
    "/deploy deploy": {f"{DEPLOYED} {ref}": said for ref, said in RELEASES.items()},
    "/deploy rollback": {DEPLOYED: ""},
    **{f"/deploy {word}": SCOPES for word in ("restart", "lock", "unlock")},
    "/deploy *": {
        **OPTIONS,
        "anyway": "also an engine that works; needs a reason",
        "for": "how long a lock holds",
        "since": "how far back the log goes",
        **ORDERS,
    },
    "/cause": {
        "cause": "state why something happened; it is judged on what was measured, and stated only when that holds",
        "why": "what the metrics say, which causes hold, which are refuted, and what is not known",
        "dispute": "contest what was stated: it is judged once more, and struck through when it does not hold",
        **CHANGES,
    },
    "/cause cause": CAUSES,
    "/cause why": {name: what for name, what in SCOPES.items() if what == "service"},
    "/cause *": {"of": "a change like C-2", "citing": "readings that must hold"},
}
