"""rate, increase, delta, irate and idelta over samples, with the extrapolation of Prometheus.

Source: extrapolatedRate and instantValue in Prometheus 2.42, promql/functions.go. The difference between the first and
the last sample of the range is stretched to the range's ends when the samples come near them (within 1.1 of their mean
distance), else by half that distance; a counter is never stretched back below 0. A counter that falls began again: what
it had before is added.
"""

from __future__ import annotations

from typing import assert_never

from policies.metrics.nodes import Over

NEAR = 1.1
Samples = list[tuple[int, float]]


def changed(func: Over, samples: Samples, start: int, end: int) -> float | None:
    """The change over the range, None with fewer than two samples. Units: times are milliseconds; rates a second."""
    if len(samples) < 2:
        return None
    match func:
        case "rate":
            return _extrapolated(samples, start, end, counter=True) / ((end - start) / 1000)
        case "increase":
            return _extrapolated(samples, start, end, counter=True)
        case "delta":
            return _extrapolated(samples, start, end, counter=False)
        case "irate":
            (then, before), (now, value) = samples[-2:]
            return (value if value < before else value - before) / ((now - then) / 1000)
        case "idelta":
            return samples[-1][1] - samples[-2][1]
        case _:
            assert_never(func)


def _extrapolated(samples: Samples, start: int, end: int, *, counter: bool) -> float:
    (first, low), (last, high) = samples[0], samples[-1]
    moved = high - low
    if counter:
        before = 0.0
        for _, value in samples:
            if value < before:
                moved += before
            before = value
    to_start_s, to_end_s, sampled_s = (first - start) / 1000, (end - last) / 1000, (last - first) / 1000
    apart_s = sampled_s / (len(samples) - 1)
    if counter and moved > 0 and low >= 0:
        to_start_s = min(to_start_s, sampled_s * (low / moved))
    stretched_s = sampled_s
    for gap_s in (to_start_s, to_end_s):
        stretched_s += gap_s if gap_s < apart_s * NEAR else apart_s / 2
    return moved * (stretched_s / sampled_s)
