"""What was measured, and why there is nothing to measure."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "metrics.ambiguous": "{query:code} cannot be answered: {construct}; put them together with sum or max by (...)",
    "metrics.bad-query": "{query:code} is no PromQL: {problem}",
    "metrics.disagree": (
        "series of {query:code} disagree at {at:at}: from {least} to {most} ({source}); put them together"
        " with sum or max"
    ),
    "metrics.gaps": "{query:code} had no answer at {missing} of {of:n=moment} ({why:code}, {source})",
    "metrics.host-away": "host {host} cannot be scraped: {error}",
    "metrics.instead": (
        "{query:code} was answered by recorded scrapes ({source}) because {away} did not answer: {error:or=no error}"
    ),
    "metrics.last-value": "{query:code} is the last value that was logged, not that of now",
    "metrics.missing": "no data for {query:code} from {start:at} to {end:at} ({source}): a missing series is not 0",
    "metrics.needs-prometheus": (
        "{query:code} needs a Prometheus server: recorded scrapes cannot answer {construct}; name one in the fleet file"
        " (`prometheus:`), or ask without it"
    ),
    "metrics.no-answer": "no metrics from {instance}: status {status:or=none} ({error:or=no error})",
    "metrics.no-number": "{query:code} gave no number at {at:at} ({source}): NaN and Inf are no readings",
    "metrics.not-recorded": (
        "{query:code} reads {series:code}, which is not recorded; name a query of it under `metrics` in the fleet file,"
        " or a Prometheus server"
    ),
    "metrics.not-scraped": "{query:code} cannot be answered at {at:at}: {instance} was not scraped then ({source})",
    "metrics.partial": (
        "{query:code} cannot be answered at {at:at}: {instance} has no {series:code}, which others of its service have"
        " ({source})"
    ),
    "metrics.past-bounds": (
        "{query:code} cannot be answered: a quantile lies beyond the last bound of its histogram, and what"
        " {construct:code} makes of it is not known"
    ),
    "metrics.prometheus-away": "{source} did not answer {query:code}: {error}",
    "metrics.prometheus-failed": "{source} did not answer {query:code}: status {status:or=none}, {error}",
    "metrics.prometheus-long": (
        "{source} answers {query:code} with more than {bytes} bytes; put series together with sum or max by (...)"
    ),
    "metrics.ranks-disagree": (
        "the ranks of {instance} do not agree at {at:at}: {least} or {most} ({query:code}); the greater one is taken"
    ),
    "metrics.stale": "{query:code} has no sample in the window: the last one is {age_s:s} older ({last:at}, {source})",
    "metrics.too-long": "the metrics of {instance} are longer than the {bytes} bytes that are read ({url})",
    "metrics.unreadable": "line {line} of the metrics of {instance} cannot be read: {text:code} ({url})",
    "metrics.warned": "{source} answered {query:code} with a warning: {warning}",
}
