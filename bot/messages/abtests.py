"""What was found when two arms of runs were compared. Each names the load, what differs and both values."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    # the comparison as a whole
    "abtest.no-runs": "arm {arm} has no runs, expected at least one",
    "abtest.no-metric": "{metric:code} is not in a run of arm {arm} ({file}), expected one of: {known}",
    "abtest.no-direction": "{metric:code} has no better direction, expected a throughput or a latency",
    "abtest.zero": "{metric:code} is 0 in a run of arm {arm} ({file}): no ratio can be formed",
    "abtest.unread": "could not be read: {n:n=place} of the files, the first is {first}",
    "abtest.same-run": "the run of {file} line {line} stands {where}: an observation counts once",
    "abtest.mixed-arms": "arm {arm} mixes runs that their file tells apart: {named}",
    "abtest.format": "the arms are results of different tools: A {a}, B {b}; their metrics are not defined alike",
    "abtest.model": "the model differs: A {a}, B {b}",
    "abtest.model-unknown": "the model is not recorded for {arm}",
    "abtest.version": "the server's build differs: A {a}, B {b}",
    "abtest.version-unknown": "server version unknown for {arm}: that the builds are the same is not shown",
    "abtest.flags": "server arguments differ (A / B): {flags}",
    "abtest.load-differs": "at {point} the load differs in {field:code}: A {a}, B {b}",
    "abtest.no-common-load": "no load was measured in both arms: A {a}; B {b}",
    "abtest.one-arm-only": "only arm {arm} measured {points}: not compared",
    "abtest.days-apart": "the arms were measured {days} days apart",
    "abtest.not-interleaved": "the runs are not known to have taken turns: a drift between the arms counts as effect",
    # one load
    "abtest.not-warm-order": (
        "the arms are not equally warm at {point}: A is run {a} after its restart, B is run {b}; repeat interleaved,"
        " after a warm-up that is thrown away"
    ),
    "abtest.not-warm": (
        "the arms are not equally warm at {point}: mean time to first token is {a} x its median in A, {b} x in B;"
        " repeat interleaved, after a warm-up that is thrown away"
    ),
    "abtest.first-run": "at {point} arm {arm} {word} {percent} % from run 1 to run 2",
    "abtest.left-out": (
        "at {point} the first run of each arm is left out by rule, as one of them was cold; {n} per arm stay"
    ),
    "abtest.failed": "at {point} the share of failed requests differs: A {a} %, B {b} %",
    "abtest.failed-both": "at {point} requests failed in both arms: A {a} %, B {b} %",
    "abtest.errors-unknown": "at {point} the number of failed requests is unknown for {arm}",
    "abtest.completed": "at {point} completed requests differ: A {a}, B {b}; the rest was dropped or never sent",
    "abtest.input-tokens": (
        "at {point} input tokens per request differ by {percent} %: A {a}, B {b}; at most 2 % are allowed"
    ),
    "abtest.output-tokens": (
        "at {point} output tokens per request differ by {percent} %: A {a}, B {b}; at most 2 % are allowed"
    ),
    "abtest.short-run": "at {point} a run of arm {arm} took {took_s:s}, expected at least {least_s:s}",
    "abtest.few-requests": (
        "at {point} a run of arm {arm} completed {completed} requests, expected at least {least}, 5 for each client"
    ),
    "abtest.saturated": (
        "arm {arm} is saturated at {point}: {reached} of {asked} req/s asked; {metric:code} then shows the queue"
        " unless it is a throughput"
    ),
    "abtest.cache-hit": (
        "the prefix cache answered: hit rate A {a} % of {tokens_a}, B {b} % of {tokens_b} looked-up tokens (dataset"
        " {dataset}); a small spread of the repeats does not help, all of them read the same cache"
    ),
    "abtest.cache-replayed": (
        "prefix cache state unknown at {point}, and every run replays the prompts of seed {seed}: weak at most"
    ),
    "abtest.cache-suspected": (
        "prefix cache state unknown at {point}, and {metric:code} differs {times} x, as a warm cache would do it:"
        " weak at most"
    ),
    "abtest.cache-unknown": "prefix cache state unknown at {point}: no hit counters were given",
    "abtest.drift": (
        "at {point} arm {arm} only {word} over its {n} runs, by {percent} % beside an effect of {effect_percent} %:"
        " drift or warm-up"
    ),
    "abtest.drift-explains": (
        "at {point} the runs took no turns, and the trend within the arms carried on from A to B could be {percent} %,"
        " the effect is {effect_percent} %: weak at most"
    ),
    "abtest.traded": "at {point} {metric:code} is {percent} % in B, allowed are {margin} %",
    # how many runs
    "abtest.one-run": (
        "{points}: n=1 per arm, no interval; repeat interleaved, after a thrown-away warm-up, at least 3 per arm"
    ),
    "abtest.two-runs": "{points}: n=2 per arm is weak whatever its interval, expected at least 3",
    "abtest.unpaired": "at {point} {a} runs of A and {b} of B are no pairs: judged as separate runs",
}
