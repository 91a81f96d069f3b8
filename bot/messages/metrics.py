"""What was measured, and why there is nothing to measure."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "metrics.missing": "no data for {query:code} from {start:at} to {end:at} ({source}): a missing series is not 0",
    "metrics.no-answer": "no metrics from {instance}: status {status:or=none} ({error:or=no error})",
    "metrics.too-long": "the metrics of {instance} are longer than the {bytes} bytes that are read ({url})",
    "metrics.unreadable": "line {line} of the metrics of {instance} cannot be read: {text:code} ({url})",
}
