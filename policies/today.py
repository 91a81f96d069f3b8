"""Today's context: what one look at a knob's instances tells of where a value would run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Literal

from pydantic import JsonValue

from policies.bench.fields import Fields, plain
from policies.bench.identity import arguments, home_less
from policies.bench.source import Source, documents
from policies.context import UNSET, Context, LoadRange, everywhere, from_arguments
from policies.facts import HttpAnswer, UnitFacts
from policies.fleet import Fleet, Knob
from policies.gates.port import taken
from policies.gates.reported import reported_value
from policies.inert import reads, server_info
from policies.metrics.engine import Engine
from policies.metrics.measured import Reading
from policies.metrics.samples import Scrape, answered_scrape

# told by images in the environment of the process that serves
COMMIT_VARIABLES = ("VLLM_BUILD_COMMIT", "IMAGE_DIGEST", "GIT_COMMIT")
DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})\b")
GPU = "DCGM_FI_DEV_"
POWER_LIMIT = "DCGM_FI_DEV_POWER_MGMT_LIMIT"
MOST_TEXT = 200
MOST_NAMES = 8
LEAST_READINGS = 20
LEAST_SPAN_S = 600.0


def variables(fleet: Fleet, knob: Knob) -> tuple[str, ...]:
    """The environment variables to look for: the knob's own, those of the other knobs, and what tells a build."""
    others = [name for other in fleet.knobs.values() if set(other.on) & set(knob.on) for name in other.variables]
    return tuple(dict.fromkeys((*knob.variables, *others, *COMMIT_VARIABLES)))


def scraped(fleet: Fleet, knob: Knob, units: Mapping[str, UnitFacts]) -> dict[str, Scrape]:
    """What the metrics of the knob's instances say, read once: such a text is large."""
    found: dict[str, Scrape] = {}
    for instance in (i for service in knob.on for i in fleet.instances(service) if i in units):
        scrape = answered_scrape(instance, _answer(units[instance], "metrics"))
        if isinstance(scrape, Scrape):
            found[instance] = scrape
    return found


def today(
    fleet: Fleet, knob: Knob, units: Mapping[str, UnitFacts], scrapes: Mapping[str, Scrape] | None = None
) -> Context:
    """The context of the knob's instances. Its load is that of this moment. scrapes: see `scraped`."""
    known = scraped(fleet, knob, units) if scrapes is None else scrapes
    instances = [i for service in knob.on for i in fleet.instances(service) if i in units]
    own = [units[i] for i in instances]
    found = everywhere([_of(fleet, knob, units[i], known.get(i)) for i in instances])
    read = reads(knob, own)
    split = _prefill_decode(units)
    return found.model_copy(
        update={
            "topology": {**found.topology, **split},
            "load": running_now({i: known.get(i) for i in instances}),
            "reads_knob": read.answer,
            "reads_why": read.why,
        }
    )


def running_now(scrapes: Mapping[str, Scrape | None]) -> LoadRange | None:
    """Requests that run on all instances of a service together, the most of any; None unless each says how many.

    A request of a prefill and decode pair runs at one after the other, so that services are not added.
    """
    totals: dict[str, float] = {}
    for instance, scrape in scrapes.items():
        running = Engine(scrape).running.value if scrape is not None else None
        if running is None:
            return None
        service = instance.partition("@")[0]
        totals[service] = totals.get(service, 0.0) + running
    most = max(totals.values(), default=None)
    return None if most is None else LoadRange(low=most, high=most, kind="now")


def running_query(fleet: Fleet, knob: Knob, scrapes: Mapping[str, Scrape]) -> tuple[str, str] | None:
    """(service, query) for the running requests of the knob's last service, by the names that its engine exports."""
    for service in reversed(knob.on):
        for instance in fleet.instances(service):
            running = Engine(scrapes[instance]).running if instance in scrapes else None
            if running is not None and running.value is not None:
                return service, running.query
    return None


def with_load(readings: Sequence[Reading], now: LoadRange | None, kind: Literal["p95", "recent"]) -> LoadRange | None:
    """The p95 of what was measured, and what runs now where that is more; only that where too little was measured."""
    values = sorted(reading.value for reading in readings)
    if len(values) < LEAST_READINGS or readings[-1].at - readings[0].at < LEAST_SPAN_S:
        return now
    p95 = values[ceil(0.95 * len(values)) - 1]
    most = max(p95, now.high) if now is not None else p95
    return LoadRange(low=most, high=most, kind=kind)


def _of(fleet: Fleet, knob: Knob, unit: UnitFacts, scrape: Scrape | None) -> Context:
    """One instance. What somebody else answers at its port is not asked."""
    info = server_info(unit)
    found = _from_info(info) if info is not None else Context()
    update: dict[str, object] = {"knobs": _knobs(fleet, knob, unit)}
    update |= _gpus([scrape, *_exported(unit)]) | _loads(_document(_answer(unit, "loads")))
    names, revision = _models(_document(_answer(unit, "model_info")))
    if names:
        update["model"] = found.model or names[0]
        update["model_names"] = tuple(dict.fromkeys((*found.model_names, *names)))
    if revision is not None and found.revision is None:
        update["revision"] = revision
    if found.commit is None:
        update["commit"] = _deployed(fleet, unit, info, found.version) or _commit(unit)
    return found.model_copy(update=update)


def _from_info(body: str) -> Context:
    source = next(iter(documents(body)), None)
    if not isinstance(source, Source) or not isinstance(source.value, dict):
        return Context()
    fields = Fields(source, "server_info")
    args = arguments(fields, skip=frozenset({"version", "model_path"}))
    return from_arguments(args, fields.text("version"), home_less(fields.text("model_path")))


def _knobs(fleet: Fleet, knob: Knob, unit: UnitFacts) -> dict[str, str]:
    """The other knobs of this service, as the main process has them; what could not be read is not told."""
    found: dict[str, str] = {}
    for other in (one.at(unit.service) for one in fleet.knobs.values()):
        if other.name == knob.name or unit.service not in other.on:
            continue
        main = next((p for p in unit.processes if p.main and p.variable == other.env), None)
        if main is not None and main.answer in {"present", "absent"}:
            found[other.env] = UNSET if main.value is None else plain(main.value, MOST_TEXT)
    return found


def _commit(unit: UnitFacts) -> str | None:
    """The digest of the image that the unit starts, or what the environment of its main process tells."""
    for word in unit.exec_start:
        if (found := DIGEST.search(word)) is not None:
            return found[1]
    for name in COMMIT_VARIABLES:
        main = next((p for p in unit.processes if p.main and p.variable == name and p.answer == "present"), None)
        if main is not None and main.value:
            return plain(main.value, MOST_TEXT)
    return None


def _models(document: JsonValue) -> tuple[list[str], str | None]:
    """Names of the served model, from `/v1/models` or `/model_info`; its revision where that is told."""
    if not isinstance(document, dict):
        return [], None
    data = document.get("data")
    listed = [one.get("id") for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    told = [document.get("model_path"), document.get("served_model_name"), *listed]
    names = [home for text in told[:MOST_NAMES] if (home := home_less(_text(text))) is not None]
    return names, _text(document.get("revision"))


def _loads(document: JsonValue) -> dict[str, object]:
    """Kind and number of the accelerators, as `/v1/loads` tells them."""
    if not isinstance(document, dict):
        return {}
    kind, number = _text(document.get("accelerator")), document.get("num_accelerators")
    counted = isinstance(number, int) and not isinstance(number, bool) and number > 0
    return ({"accelerator": kind} if kind is not None else {}) | ({"accelerators": number} if counted else {})


def _exported(unit: UnitFacts) -> list[Scrape]:
    """Where `loads` is the address of a DCGM exporter: what that says."""
    answer = _answer(unit, "loads")
    scrape = answered_scrape(unit.service, answer) if answer is not None else None
    return [scrape] if isinstance(scrape, Scrape) else []


def _gpus(scrapes: Sequence[Scrape | None]) -> dict[str, object]:
    """What DCGM's metrics say of the accelerators: kind, number, driver, power limit and MIG profile.

    What differs between them is not told: no single word is true of all.
    """
    seen = [s for scrape in scrapes if scrape is not None for s in scrape.samples if s.name.startswith(GPU)]
    numbers = {s.labels.get("UUID") or s.labels.get("gpu") for s in seen} - {None}
    limits = {f"{s.value:g} W" for s in seen if s.name == POWER_LIMIT}
    told: dict[str, object] = {
        "accelerator": _only({s.labels.get("modelName", "") for s in seen}),
        "accelerators": len(numbers) or None,
        "driver": _only({s.labels.get("DCGM_FI_DRIVER_VERSION", "") for s in seen}),
        "mig": _only({s.labels.get("GPU_I_PROFILE", "") for s in seen}),
        "power_limit": _only(limits),
    }
    return {name: value for name, value in told.items() if value is not None}


def _only(values: set[str]) -> str | None:
    return plain(next(iter(values)), MOST_TEXT) or None if len(values) == 1 else None


def _deployed(fleet: Fleet, unit: UnitFacts, info: str | None, version: str | None) -> str | None:
    """The running version as the service's `deploy` reads it back, where that stands in server_info."""
    service = fleet.at(f"{unit.service}@{unit.host}")
    told = service.deploy.version if service.deploy is not None else None
    if info is None or told is None or told.field is None or service.server_info is None:
        return None
    found = reported_value(info, told.field) if told.http == service.server_info.url else None
    return plain(found, MOST_TEXT) if found and found != version else None


def _prefill_decode(units: Mapping[str, UnitFacts]) -> dict[str, str]:
    """How many prefill and decode engines there are, where both were seen."""
    modes = [_from_info(info).flags.get("disaggregation_mode") for u in units.values() if (info := server_info(u))]
    counts = {mode: modes.count(mode) for mode in ("prefill", "decode")}
    return {mode: str(count) for mode, count in counts.items()} if all(counts.values()) else {}


def _answer(unit: UnitFacts, name: str) -> HttpAnswer | None:
    found = next((a for a in unit.http if a.id == name and a.status == 200 and not a.truncated), None)
    return None if taken(unit.port) else found


def _document(answer: HttpAnswer | None) -> JsonValue:
    try:
        found: JsonValue = json.loads(answer.body) if answer is not None else None
    except (ValueError, RecursionError):
        return None
    return found


def _text(value: JsonValue) -> str | None:
    return plain(value, MOST_TEXT) if isinstance(value, str) and value.strip() else None
