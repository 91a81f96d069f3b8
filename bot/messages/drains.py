"""Taking an instance out at its routers, waiting until it has nothing to do, and giving it back."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "drain.empty": "{instance} is out of {routers}, and nothing was in flight after {took_s:s}",
    "drain.still-out": "{instance} is still out of {routers} since its drain, so nothing can be in flight",
    "drain.no-process": "{instance} is out of {routers}; it has no process, so nothing is in flight",
    "drain.aborted": "{instance} is out of {routers}; somebody aborts, so what is in flight was not waited for",
    "drain.cuts": (
        "{instance} is out of {routers}, and {left:n=request} still in flight after {took_s:s} will be cut by the"
        " restart"
    ),
    "drain.oldest": "the oldest request at {router} is over {older_than_s:s} old, whichever worker has it",
    "drain.unread": "not known of {instance}: {unknown}",
    "drain.cuts-unknown": (
        "{instance} is out of {routers}; after {took_s:s} it is not known how many requests are in flight there and"
        " will be cut by the restart"
    ),
    "drain.never-was": (
        "{instance} was not registered at {router} ({worker:code}) before the drain, so it will not be registered there"
        " afterwards"
    ),
    "drain.as-found": (
        "{router} knows {instance} otherwise than the fleet file ({differs}); it is given back as {router} knew it"
    ),
    "drain.away": "{instance} is out of {routers}, so it gets no requests",
    "drain.maybe-away": "{instance} may be out of its routers: its drain was begun, and how it ended is not known",
    "hold.drain-over": (
        "{instance} is out of {routers}, and {left:n=request} still in flight after {took_s:s}, expected none; it was"
        " not restarted, look again or go back"
    ),
    "hold.drain-unknown": (
        "{instance} is out of {routers}; after {took_s:s} it is not known whether requests are in flight there; it was"
        " not restarted, look again or go back"
    ),
    "plan.last-worker": (
        "{router} lists no healthy {kind} beside {instances}: it answers 503 to everybody while that is away"
    ),
    "plan.not-registered": (
        "{instance} ({worker:code}) is not registered at {router} now, so it will not be registered there afterwards"
    ),
    "plan.as-registered": (
        "{router} knows {instance} otherwise than the fleet file ({differs}); it is taken out and given back as"
        " {router} knows it"
    ),
    "plan.ranked-worker": (
        "{router} lists {instance} ({worker:code}) by its data parallel ranks, and by the id of a rank it removes"
        " nobody, so it cannot be drained; take `drain` of the service out of the fleet file"
    ),
    "hold.ranked-worker": (
        "{router} lists {worker:code} by its data parallel ranks, and by the id of a rank it removes nobody, so"
        " {instance} cannot be drained; nothing was touched"
    ),
    "hold.router-unreached": (
        "how {instance} stands at its routers is unknown: {error:or=a host gave no answer}; look at the hosts, then ask"
        " again"
    ),
    "hold.not-taken-out": "{router} still lists {worker:code} although it was asked to remove it; look at the router",
    "hold.registered-again": (
        "{router} lists {worker:code} again since {instance} was taken out there: somebody registered it, or the router"
        " was restarted; it was not restarted over that, find out which, then look again or go back"
    ),
    "hold.not-listed": (
        "{router} does not list {worker:code} although it was asked to register it ({said:or=it does not say why});"
        " look at the router, then look again"
    ),
    "hold.router-refused": (
        "{router} answered {status} when its list of workers was to be changed ({worker:code}: {said:or=no words});"
        " look at the router, then look again"
    ),
    "router.no-answer": "{router} did not say which workers it has ({error}), so nothing is known about them",
    "router.forbidden": (
        "{router} answers {status} to whoever asks for its workers: it wants a key, and clawback has none; let it be"
        " asked without one from its own host"
    ),
    "router.no-list": "{router} answers {status:or=nothing} when it is asked for its workers, expected 200 and a list",
    "router.unreadable": "{router} gave no list of workers that can be read",
    "admit.never-was": "{instance} was not registered at {router} before, so it is not registered now",
    "gate.admitted.ok": "{instance} is registered at {router}, healthy there, breaker {breaker}",
    "gate.admitted.never-was": "{instance} is not registered at {router}, as before the drain",
    "gate.admitted.not-registered": (
        "{instance} ({worker:code}) is not registered at {router} after {waited_s:s}, which lists {listed:n=worker};"
        " register it, then look again"
    ),
    "gate.admitted.unhealthy": "{router} calls {worker:code} unhealthy after {waited_s:s} (breaker {breaker})",
    "gate.admitted.breaker": "{router} has its breaker for {worker:code} {breaker} after {waited_s:s}, expected closed",
    "gate.admitted.health-unknown": "{router} does not say whether {worker:code} is healthy",
    "gate.admitted.breaker-unknown": (
        "whether the breaker of {router} for {worker:code} is closed is not known ({breaker}): its metrics were not"
        " read or do not say; the fleet file says where they are (`metrics` of the router)"
    ),
    "step.now-drain": "{instance} drain",
    "step.now-admit": "{instance} registration",
    "step.now-admitting": "{instance} registration, waiting for {gate}",
    "step.gate-admitted": "its routers",
    "details.drain": (
        "{n}. take {instance} ({worker:code}) out at {router}, wait up to {deadline_s:s} until nothing is in flight"
        " there; {over}"
    ),
    "details.drain-hold": "what is left then holds the change",
    "details.drain-restart": "what is left then is cut by the restart",
    "details.admit": (
        "{n}. register {instance} ({worker:code}) at {router} again as it was (type, bootstrap port, labels, priority,"
        " cost; a key of its own is told to nobody by a router, so that is not kept)"
    ),
}
