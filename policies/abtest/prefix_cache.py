"""What the prefix cache did during each arm, from counters scraped before A, between the arms and after B."""

from __future__ import annotations

import re

from policies.bench.run import Load
from policies.errors import OpsError
from policies.finding import Finding
from policies.model import Model

# looked up, found. Source: vllm 0.26, sglang 0.5.23
FAMILIES = (
    ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"),
    ("vllm:prefix_cache_queries", "vllm:prefix_cache_hits"),
    ("sglang:prompt_tokens_total", "sglang:cached_tokens_total"),
)
SAMPLE = re.compile(r"(?P<series>[A-Za-z_:][\w:]*(\{[^}]*\})?)\s+(?P<value>[-+0-9.eE]+)(\s+[0-9]+)?\s*")
SCRAPES = 3
HIT_RATE = 0.01  # on random prompts nothing may be found
RANDOM = {"random", "random-ids"}
MOST_CHARACTERS = 8 * 1024 * 1024


class CacheError(OpsError):
    """The scrapes do not tell what the cache did."""


class CacheUse(Model):
    """Tokens looked up and found in each arm."""

    looked_up_a: float
    found_a: float
    looked_up_b: float
    found_b: float

    @property
    def rate_a(self) -> float:
        """Share of tokens that A found."""
        return self.found_a / self.looked_up_a if self.looked_up_a else 0.0

    @property
    def rate_b(self) -> float:
        """Share of tokens that B found."""
        return self.found_b / self.looked_up_b if self.looked_up_b else 0.0


def read_cache_use(text: str, file: str) -> CacheUse:
    """From one text with three scrapes in order: every series of the cache's counters stands in it three times.

    Raises: CacheError.
    """
    scrapes: dict[str, list[float]] = {}
    for line in text[:MOST_CHARACTERS].splitlines():
        sample = SAMPLE.fullmatch(line)
        if sample is not None:
            try:
                scrapes.setdefault(sample["series"], []).append(float(sample["value"]))
            except ValueError:
                continue
    for looked_up, found in FAMILIES:
        queries, hits = _of(scrapes, looked_up, file), _of(scrapes, found, file)
        if queries is not None and hits is not None:
            return CacheUse(looked_up_a=queries[0], looked_up_b=queries[1], found_a=hits[0], found_b=hits[1])
    expected = " or ".join(pair[1] for pair in FAMILIES[::2])
    raise CacheError(f"{file}: no counters of a prefix cache, expected {expected} and what was looked up")


def cache_findings(use: CacheUse | None, load: Load) -> list[Finding]:
    """Whether the cache bent the comparison. Nothing when it is not known: see `policies.abtest.validity`."""
    if use is None:
        return []
    random = load.dataset in RANDOM
    apart = abs(use.rate_a - use.rate_b) >= HIT_RATE
    if not apart and not (random and max(use.rate_a, use.rate_b) >= HIT_RATE):
        return []
    return [
        Finding(
            code="abtest.cache-hit",
            effect="refuse",
            values={
                "a": f"{use.rate_a * 100:.1f}",
                "b": f"{use.rate_b * 100:.1f}",
                "tokens_a": f"{use.looked_up_a:,.0f}",
                "tokens_b": f"{use.looked_up_b:,.0f}",
                "dataset": load.dataset or "unknown",
            },
        )
    ]


def _of(scrapes: dict[str, list[float]], family: str, file: str) -> tuple[float, float] | None:
    """What a counter rose by during A and during B, summed over its series."""
    series = {name: values for name, values in scrapes.items() if name.partition("{")[0] == family}
    if not series:
        return None
    wrong = next(((name, values) for name, values in series.items() if len(values) != SCRAPES), None)
    if wrong is not None:
        message = (
            f"{file}: `{wrong[0][:120]}` stands {len(wrong[1])} times, expected {SCRAPES}: before A, between, after B"
        )
        raise CacheError(message, hint="put the three scrapes into one file, in this order")
    rises = [(values[1] - values[0], values[2] - values[1]) for values in series.values()]
    if any(rise < 0 for pair in rises for rise in pair):
        raise CacheError(f"{file}: `{family}` fell, the server was restarted between the scrapes")
    return sum(a for a, _ in rises), sum(b for _, b in rises)
