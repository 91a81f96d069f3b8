"""The only sentences about a cause, in a file of their own so that the promise can be read in one place.

clawback never states a cause that it cannot cite. `{..:cause}` takes a `policies.causes.cause.Cause` and nothing else,
and there is no other way to write one; `{..:consistent}` likewise takes what the readings agree with and do not
establish. A test finds every sentence that speaks of a cause and demands one of the two, or that none is established.
"""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    # states a cause
    "cause.is": "cause: {cause:cause}; measured {measured}; before {before}",
    # states none
    "cause.consistent": "cause: not established; measured {measured} -> consistent with {found:consistent}",
    "cause.not-established": "cause: not established",
    "cause.not-established-measured": "cause: not established; measured {measured}",
}
"""Those that state a cause take a `Cause`; the others say that none is established."""
