"""The names that a fleet knows, and "did you mean" for the ones it does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from policies.fleet import Fleet

_NEAR = 0.6  # difflib's own default for "similar"
_LONGEST = 64  # no name is longer; comparing long texts is slow
_AS_GOOD = 0.15  # a word this much worse than the best one is no second suggestion


@dataclass(frozen=True, slots=True)
class Names:
    """What may be named in a command. `knobs` maps each knob's NAME to its environment variable."""

    knobs: Mapping[str, str] = field(default_factory=dict)
    services: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    orders: frozenset[str] = frozenset()
    instances: frozenset[str] = frozenset()  # service@host
    causes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, fleet: Fleet) -> Names:
        """The names of a fleet."""
        return cls(
            knobs={name: knob.env for name, knob in fleet.knobs.items()},
            services=frozenset(fleet.services),
            hosts=frozenset(fleet.hosts),
            orders=frozenset(fleet.restarts),
            instances=frozenset(one for service in fleet.services for one in fleet.instances(service)),
            causes=frozenset(fleet.causes),
        )

    def knob_for(self, typed: str) -> tuple[str, ...]:
        """Names of knobs that may be meant by `typed`: same but for case, by its variable, or similar."""
        by_env = tuple(name for name, env in self.knobs.items() if env.casefold() == typed.casefold())
        return by_env or near(typed, self.knobs)


def near(typed: str, known: Iterable[str], *, at_least: float = _NEAR) -> tuple[str, ...]:
    """Up to three of `known` that look like `typed`, the best first; exact but for case comes alone."""
    words = sorted(known) if len(typed) <= _LONGEST else ()
    same = tuple(word for word in words if word.casefold() == typed.casefold())
    if same:
        return same
    scored = [(SequenceMatcher(None, typed.casefold(), word.casefold()).ratio(), word) for word in words]
    best = max((score for score, _ in scored), default=0.0)
    good = sorted((-score, word) for score, word in scored if score >= max(at_least, best - _AS_GOOD))
    return tuple(word for _, word in good)[:3]


def did_you_mean(words: tuple[str, ...]) -> str:
    """`did you mean X or Y?`, or nothing."""
    return f"did you mean {' or '.join(words)}?" if words else ""
