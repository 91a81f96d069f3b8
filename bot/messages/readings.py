"""What was measured, what a statement came to on it, and what an engine was doing."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "reading.is": "{name}={value}{unit}",
    "reading.beyond": "{name}>{value}{unit}",
    "reading.between": "{name}={value}..{most}{unit}",
    "reading.at": "{readings} at {at:at}",
    "reading.more": "{readings} and {n:n=reading} more",
    "reading.none": "nothing",
    # what an engine was doing
    "state.is": "engine {word}",
    "state.open": "state of the engine not proven, it may be {words}: {why}",
    "state.moved": "{name} +{by}{unit} in {over_s:s} ({rate}{unit}/s)",
    "state.one-sample": "cannot tell hung from busy: one sample",
    "state.one-sample-idle": "idle not proven: one sample",
    "state.restarted": "{instance} was restarted between the two samples, so they cannot be compared",
    "state.too-close": "the two samples are {gap_s:s} apart, {needed_s:s} are needed",
    "state.unread": "idle not proven: {readings} unknown",
    "state.queue-unknown": "how many requests wait is unknown",
    "state.no-counters": "no counter of progress is in both samples",
    "state.start-unknown": (
        "process_start_time_seconds is not exported and every counter is 0, so whether {instance} was restarted in"
        " between is unknown"
    ),
    "state.work-once": "one of the two samples has work, the other has not, and no counter moved",
    "state.router-busy": "a router has requests in flight, and whether {instance} has them is unknown",
    # why a claim is what it is
    "claim.holds": "{needs:code} holds, did not hold before, and nothing speaks against it",
    "claim.nothing-cited": "nothing was cited that can be measured",
    "claim.not-over": "the time asked about ends at {end:day}, now it is {now:day}",
    "claim.spoken-against": "{refuted_by:code} holds, which speaks against it",
    "claim.does-not-hold": "{needs:code} does not hold",
    "claim.not-known": "whether {needs:code} holds is not known",
    "claim.refutation-unknown": (
        "{needs:code} holds; whether {refuted_by:code} holds, which would speak against it, is not known"
    ),
    "claim.rivals-hold": "{needs:code} holds, and so does what is needed for {rivals}",
    "claim.no-baseline": "{needs:code} holds; nothing was measured before, so whether that is new is not known",
    "claim.baseline-not-before": (
        "{needs:code} holds; the baseline ends at {end:day}, expected before {start:day}, when the effect begins"
    ),
    "claim.held-before": "{needs:code} holds and held before as well, so it is not what differs",
    "claim.baseline-unknown": "{needs:code} holds; whether it held before is not known",
    "claim.not-ruled-out": "not ruled out: {names}",
    "claim.refuted-rivals": "refuted by readings: {names}",
    # whether a change had an effect
    "claim.change-holds": (
        "{effect:code} holds since {change}, did not hold before and not in the old state measured again, and nothing"
        " else changed"
    ),
    "claim.change-not-over": "the time asked about is not over yet",
    "claim.change-no-effect": "{effect:code} does not hold after {change}",
    "claim.change-not-known": "whether {effect:code} holds after {change} is not known",
    "claim.change-was-there-before": "{effect:code} held before {change} as well",
    "claim.change-old-state-too": "{effect:code} holds in the old state as well, measured again after {change}",
    "claim.change-not-measured-before": "{effect:code} holds after {change}; whether it held before is not known",
    "claim.change-others-not-known": "{effect:code} holds since {change}; what else changed was not looked at",
    "claim.change-not-alone": "{effect:code} holds since {change}, and these changed as well: {others}",
    "claim.change-rivals-hold": "{effect:code} holds since {change}, and so does what is needed for {rivals}",
    "claim.change-load-unknown": (
        "{effect:code} holds since {change}; whether all was measured at the same load is not known"
    ),
    "claim.change-other-load": (
        "{effect:code} holds since {change}, measured at another load: {before} requests before, {after} after it and"
        " {again} in the old state again"
    ),
    "claim.change-did-nothing": "{change} was never carried out",
    "claim.change-no-effect-named": (
        "nothing says what {change} is to have done: cite what is seen since, for instance `citing ttft_s > 5`"
    ),
    "claim.change-not-guilty": "{must:code} would be seen if {change} did it, and was not",
    "claim.change-guilt-unknown": "whether {must:code} was the case, as it would be if {change} did it, is not known",
    "claim.no-last-change": "no change is recorded that was carried out before",
    "claim.change-old-state-not-measured": (
        "{effect:code} holds since {change}; the old state was not measured again, so whether it would be as bad is not"
        " known"
    ),
    # why something is not known
    "claim.not-measured": "{metric:code} was not measured",
    "claim.stale": "{metric:code} has no reading from the {fresh_s:s} before {end:at}, the newest is of {at:day}",
    "claim.not-exact": "{metric:code} is known only in part, which does not decide {statement:code}",
    "claim.mixed": "{statement:code} holds for {holding} of {n:n=reading}",
    "claim.went-back": "{metric:code} went back, as after a restart, so whether it falls or rises is not known",
    "claim.few-readings": "{metric:code} has {n:n=reading} since the last start, a trend needs {needed}",
    "claim.no-state": "whether the engine was {word} was not measured",
    # what cannot be judged
    "claim.no-such-metric": "{metric:code} is no metric of the fleet file; {hint}",
    "claim.malformed": "{text:code} cannot be read at character {at}: {problem}; {hint}",
}
