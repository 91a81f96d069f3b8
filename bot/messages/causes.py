"""The only sentences about a cause, in a file of their own so that the promise can be read in one place.

clawback never states a cause that it cannot cite. Until something can carry a verified cause with its readings, the
one sentence there is says that none is established. A new one here needs a type that holds those readings.
"""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "cause.not-established": "cause: not established",
}
