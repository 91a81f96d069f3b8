"""Contracts between services: what one side alone would get, what does not agree, and what an engine reports."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "contract.one-side": (
        "the contract {contract:code} says that {knob:code} is alike everywhere: with this it would be {here} and"
        " {there}; nothing was restarted, ask for all of them as one change"
    ),
    "contract.as-one": "as one change: {words:code}",
    "contract.floor": (
        "the contract {contract:code} does not let old and new run side by side, so all {replicas} of {service:code}"
        " would be away at once, and `rolling.keep: {keep}` of the fleet file wants so many in service; lower it for"
        " this change, or move the traffic away"
    ),
    "contract.unknown": (
        "the contract {contract:code} cannot be checked behind this: the other side of {service:code} reports no one"
        " value now"
    ),
    "contract.differs-set": "the contract {contract:code} does not hold: the files give {found}",
    "contract.differs-reported": "the contract {contract:code} does not hold: the engines report {found}",
    "gate.contract.holds": (
        "{instance} reports {reported:code} at {path:code}, as the contract {contract:code} wants it"
    ),
    "gate.contract.broken": (
        "{instance} reports {reported:code} at {path:code}, expected {wanted:code}, which the other side of the"
        " contract {contract:code} has"
    ),
    "gate.contract.not-told": (
        "{instance} does not report {path:code}, expected {wanted:code}, which the other side of the contract"
        " {contract:code} has"
    ),
    "step.gate-contract": "its contract",
}
