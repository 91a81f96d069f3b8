"""Does a record still hold: where it was measured against what runs today. Evidence is a licence for a context.

invalid: another accelerator, model or topology, or a build that does not read the knob. stale: another build or driver,
or too old. outside: today's load was not measured. weak: something is not known, or flags or other knobs differ.
Source: each row is a condition under which published A/Bs did not carry over to the server that they were used for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from policies.context import NOT_SET, Context
from policies.evidence import Record
from policies.finding import Effect, Finding
from policies.model import Model

Holds = Literal["valid", "weak", "outside", "stale", "invalid"]
ORDER: tuple[Holds, ...] = ("valid", "weak", "outside", "stale", "invalid")
MAX_AGE_S = 90 * 86_400.0
SHORT = ("GPU", "build", "commit", "model")  # what a person wants to hear first
MOST_NAMED = 6
MOST_VALUE = 60
SHOWS_AN_EFFECT = frozenset({"improves", "regresses", "trade_off"})
VENDOR = re.compile(r"^(nvidia|amd|intel)\s+", re.IGNORECASE)
WATTS = re.compile(r"(?i)([0-9]{1,5}(?:\.[0-9]+)?)\s*w?(?:atts?)?")
DIGEST = re.compile(r"(sha256:)?[0-9a-f]{7,64}")
Values = dict[str, str | int | float | None]


class Standing(Model):
    """What a record is worth today. Each finding has its own `word` among its values; the standing has the worst."""

    record: str
    word: Holds
    findings: tuple[Finding, ...] = ()

    @property
    def reasons(self) -> tuple[Finding, ...]:
        """What keeps the record from being valid, the worst first."""
        return tuple(finding for finding in self.findings if finding.values.get("word") != "valid")


@dataclass(frozen=True, slots=True)
class _Row:
    """One field: `differs` and `unknown` are the words for what is not the same, and for what nobody told."""

    label: str
    of: Callable[[Context], str | None]
    differs: Holds
    must_be_known: bool


ROWS = (
    _Row("GPU", lambda c: _bare(c.accelerator), "invalid", must_be_known=True),
    _Row("number of GPUs", lambda c: _text(c.accelerators), "invalid", must_be_known=True),
    _Row("power limit", lambda c: _watts(c.power_limit), "invalid", must_be_known=False),
    _Row("MIG", lambda c: c.mig, "invalid", must_be_known=False),
    _Row("node pool", lambda c: c.node_pool, "weak", must_be_known=False),
    _Row("revision of the model", lambda c: c.revision, "invalid", must_be_known=False),
    _Row("quantisation", lambda c: c.quantization, "invalid", must_be_known=False),
    _Row("KV dtype", lambda c: c.kv_dtype, "invalid", must_be_known=False),
    _Row("build", lambda c: c.version, "stale", must_be_known=True),
    _Row("driver", lambda c: c.driver, "stale", must_be_known=False),
)


def standing(
    record: Record, today: Context, now: float, *, max_age_s: float | None = None, variable: str = "the knob"
) -> Standing:
    """Whether the record holds in the context `today`. now: epoch seconds. max_age_s None: 90 days."""
    look = _Look(record.context, today)
    for row in ROWS:
        look.compare(row.label, row.of(look.then), row.of(today), row.differs, must_be_known=row.must_be_known)
    look.model()
    look.commit()
    look.topology()
    look.flags()
    look.knobs()
    look.load()
    limit_s = MAX_AGE_S if max_age_s is None else max_age_s
    if now - record.measured_at > limit_s:
        look.add("applies.age", "stale", {"measured_at": record.measured_at, "max_age_s": limit_s})
    look.read(variable, shown=record.klass in SHOWS_AN_EFFECT)
    return look.standing(record.id)


@dataclass(slots=True)
class _Look:
    """Collects what is the same, what differs and what nobody told."""

    then: Context
    today: Context
    found: list[Finding] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    lacking: dict[str, list[str]] = field(default_factory=dict)

    def standing(self, record: str) -> Standing:
        for where, fields in self.lacking.items():
            self.add("applies.unknown", "weak", {"where": where, "fields": ", ".join(fields)})
        if self.same:
            short = [name for name in self.same if name in SHORT]
            self.add("applies.same", "valid", {"fields": _listed(self.same), "short": _listed(short or self.same[:2])})
        ordered = sorted(self.found, key=lambda finding: -ORDER.index(_word(finding)))
        return Standing(record=record, word=_word(ordered[0]) if ordered else "valid", findings=tuple(ordered))

    def add(self, code: str, word: Holds, values: Values) -> None:
        effect: Effect = "note" if word == "valid" else "warn" if word == "weak" else "refuse"
        self.found.append(Finding(code=code, effect=effect, values={**values, "word": word}))

    def compare(
        self, label: str, then: str | None, today: str | None, differs: Holds, *, must_be_known: bool = True
    ) -> None:
        if then is not None and today is not None and then == today:
            self.same.append(label)
        elif then is not None and today is not None:
            values: Values = {"field": label, "recorded": then[:MOST_VALUE], "today": today[:MOST_VALUE]}
            self.add("applies.differs", differs, values)
        elif must_be_known:
            self.unknown(label, then, today)

    def unknown(self, label: str, then: object, today: object) -> None:
        where = "in the record and today" if not then and not today else "today" if then else "in the record"
        self.lacking.setdefault(where, []).append(label)

    def model(self) -> None:
        names = [{context.model, *context.model_names} - {None} for context in (self.then, self.today)]
        if names[0] & names[1]:
            self.same.append("model")
        else:
            self.compare("model", self.then.model, self.today.model, "invalid")

    def commit(self) -> None:
        """A short commit is the long one that begins with it; a commit and a digest cannot be compared."""
        label, a, b = "commit or image digest", self.then.commit, self.today.commit
        if not a or not b:
            self.unknown(label, a, b)
        elif a.startswith("sha256:") != b.startswith("sha256:"):
            self.unknown(f"{label} of the same kind", None, None)
        else:
            short = DIGEST.fullmatch(a) and DIGEST.fullmatch(b) and (a.startswith(b) or b.startswith(a))
            self.compare("commit", a, a if short else b, "stale")

    def topology(self) -> None:
        then, today = self.then.topology, self.today.topology
        if not then or not today:
            self.unknown("topology", then, today)
            return
        before = len(self.found)
        for name in then:
            if name not in today or then[name] != today[name]:
                self.compare(f"topology {name}", then[name], today.get(name), "invalid")
        if len(self.found) == before and all(name in today for name in then):
            self.same.append("topology")

    def flags(self) -> None:
        then, today = self.then.flags, self.today.flags
        if then and today:
            self._differing("applies.flags", then, today, dict.fromkeys((*then, *today)))
        else:
            self.unknown("flags", then, today)

    def knobs(self) -> None:
        """Other knobs of the fleet. Where it has none, and the record tells of none, there is nothing to know."""
        then, today = self.then.knobs, self.today.knobs
        if today and not then:
            self.unknown("other knobs", then, today)
        for name in then:
            if name not in today:
                self.unknown(name, then, None)
        self._differing("applies.knobs", then, today, [name for name in then if name in today])

    def _differing(
        self, code: str, then: Mapping[str, str], today: Mapping[str, str], names: Mapping[str, None] | list[str]
    ) -> None:
        found = [name for name in names if then.get(name, NOT_SET) != today.get(name, NOT_SET)]
        if not found:
            return
        shown = [
            f"{name} {then.get(name, NOT_SET)[:MOST_VALUE]} / {today.get(name, NOT_SET)[:MOST_VALUE]}"
            for name in found[:MOST_NAMED]
        ]
        more = len(found) - MOST_NAMED
        self.add(code, "weak", {"differing": "; ".join(shown) + (f"; {more} more" if more > 0 else "")})

    def load(self) -> None:
        """Whether today's load was measured. One look can show that it is above, never that it is not below."""
        then, today = self.then.load, self.today.load
        if then is None or today is None:
            self.unknown("load", then, today)
            return
        values: Values = {"low": then.low, "high": then.high, "today": today.high, "kind": today.kind}
        # no traffic at all was not measured either, and there is nobody whom it could hurt
        below = today.kind == "p95" and 0 < today.high < then.low
        if today.high > then.high or below:
            self.add("applies.load", "outside", values)
        elif today.high < then.low:
            self.add("applies.load-low", "weak", values)

    def read(self, variable: str, *, shown: bool) -> None:
        """Whether the running build takes the variable's value. An effect that this very commit showed proves it."""
        if self.today.reads_knob == "no":
            self.add("applies.inert", "invalid", {"variable": variable, "why": self.today.reads_why})
        elif self.today.reads_knob is None and not (shown and "commit" in self.same):
            self.add("applies.read-unknown", "weak", {"variable": variable})


def _word(finding: Finding) -> Holds:
    return next((word for word in ORDER if finding.values.get("word") == word), "valid")


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _watts(limit: str | None) -> str | None:
    """`700W`, `700 watts` and `700.0 W` are one limit."""
    found = WATTS.fullmatch(limit.strip()) if limit is not None else None
    return f"{float(found[1]):g} W" if found is not None else limit


def _bare(name: str | None) -> str | None:
    """An accelerator without its vendor, in one spelling."""
    return None if name is None else " ".join(VENDOR.sub("", name.strip()).upper().split())


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
