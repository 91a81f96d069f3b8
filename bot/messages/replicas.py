"""Replicas that are taken in turn: floors, waves, the one that goes first, and fleets that are mixed."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "plan.floor-never-holds": (
        "{service}: {keep} of {replicas} replicas must stay in service at every moment, so that none can ever be"
        " restarted; lower `keep` of {service} in the fleet file"
    ),
    "plan.floor-broken": (
        "{service}: at least {keep} of {replicas} replicas must stay in service and {serving} are now (away:"
        " {away:or=none}), so that none of those asked for may be taken away; bring back what is away first, or ask for"
        " all of {service}, which begins with it"
    ),
    "plan.away-now": "{service}: {n:n=replica} out of service already, counted as away ({away})",
    "plan.order-not-offered": "{order:code} is not offered: {keep} of {replicas} {service} must stay in service",
    "plan.mixed": "{service} is mixed now: {found}",
    "plan.left-alone": "left alone, because {value:value} is set and runs there already: {instances}",
    "plan.mixed-after": "{service} will be mixed after this: {found}",
    # lines of the card and of Details
    "plan.waves": "in {n:n=wave}",
    "plan.wave": "wave {n} of {total}: {path}",
    "plan.wave-canary": "wave {n} of {total} (canary {canary}): {path}",
    "plan.wave-watched": "wave {n} of {total} (canary {canary}, watched {watch_s:s}): {path}",
    "plan.canary-why": "{instance} first: {why}",
    "plan.undo-waves": (
        "undo: {undo}, the last wave first, whatever stays in service meanwhile, without a new approval"
    ),
    "plan.wave-more": "... {n:n=more wave} under Details",
    "plan.floor": "at least {said} stay in service",
    "plan.floor-one": "{keep} of {replicas} {service}",
    "plan.drained-hold": (
        "each {services} is taken out at {routers} first, and given up to {deadline_s:s} to end what is in flight; what"
        " is left then holds the change and is not cut (only an undo cuts it)"
    ),
    "plan.drained-restart": (
        "each {services} is taken out at {routers} first, and given up to {deadline_s:s} to end what is in flight; what"
        " is left then is cut"
    ),
    "plan.load-drained": (
        "would cut what is left after {deadline_s:s} of the requests in flight: {said} (metrics, {at:at})"
    ),
    "plan.load-held": (
        "in flight now: {said} (metrics, {at:at}); what is left of them after {deadline_s:s} is not cut without a"
        " person's word"
    ),
    "plan.at-once": "at once: {path}",
    "details.wave": "wave {n} of {total}",
    "details.floor": (
        "{service}: {most} of {replicas} replicas at once at most, at least {keep} stay in service; an undo is not held"
        " up by that"
    ),
    "details.canary": "{instance} goes first and alone: {why}",
    "details.canary-watched": "{instance} goes first and alone, watched {watch_s:s}: {why}",
    "details.require": "    before the next wave, read on {instance}: {condition:code} must hold",
}
