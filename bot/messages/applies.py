"""What a record is worth today: where it was measured against what runs. Each names the field and both values."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "applies.same": "same {fields}",
    "applies.differs": "{field}: recorded {recorded}, today {today}",
    "applies.unknown": "not known {where}: {fields}",
    "applies.flags": "flags differ (recorded / today): {differing}",
    "applies.knobs": "other knobs differ (recorded / today): {differing}",
    "applies.load": "load: recorded {low} to {high} running requests, today {today}",
    "applies.load-low": (
        "load: {today} requests run now, below the recorded {low} to {high}, and what runs at most is not known"
    ),
    "applies.age": "measured {measured_at:day}, more than {max_age_s:s} ago",
    "applies.inert": "the running build does not read {variable:code}: {why}",
    "applies.read-unknown": "that the running build reads {variable:code} is not proven",
    # on a card
    "applies.not-asked": "whether it holds today is not known: {error}",
    "applies.today": "*{word}* today",
    "applies.reserve": "{word} today: {said}",
}
