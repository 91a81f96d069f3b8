"""Where a value was measured, or what runs today: all that evidence is a licence for. None and no entry: unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Literal

from pydantic import Field

from policies.errors import OpsError
from policies.model import Model

# a package version with the commit behind it, as setuptools-scm and vllm write it
COMMITTED = re.compile(r"(?P<version>[^+]+)\+(?:\w*\.)?g(?P<commit>[0-9a-f]{7,40})(?:\.\w+)*")
TOPOLOGY = {
    "tp_size": "tp", "tensor_parallel_size": "tp",
    "dp_size": "dp", "data_parallel_size": "dp",
    "ep_size": "ep", "moe_ep_size": "ep",
    "pp_size": "pp", "pipeline_parallel_size": "pp",
}  # fmt: skip
SAID_BY_ARGS = {
    "quantization": "quantization",
    "kv_cache_dtype": "kv_dtype",
    "revision": "revision",
}
# how people call what a field is about
SPELLED = {
    "accelerator": "accelerator", "gpu": "accelerator", "gpu_model": "accelerator",
    "accelerators": "accelerators", "gpus": "accelerators", "num_accelerators": "accelerators",
    "gpu_count": "accelerators",
    "power_limit": "power_limit", "power": "power_limit",
    "mig": "mig",
    "driver": "driver",
    "node_pool": "node_pool", "pool": "node_pool", "host_class": "node_pool",
    "model": "model",
    "revision": "revision",
    "quantization": "quantization", "quantisation": "quantization", "quant": "quantization",
    "kv_dtype": "kv_dtype", "kv_cache_dtype": "kv_dtype",
    "version": "version", "build": "version", "engine_version": "version",
    "commit": "commit", "digest": "commit", "image": "commit", "image_digest": "commit", "sha": "commit",
}  # fmt: skip
PREFIXES = {"flag": "flags", "flags": "flags", "env": "knobs", "knob": "knobs", "topology": "topology"}
COMMITS = ("commit", "git_commit", "git_sha", "build_commit", "image_digest")
ELSEWHERE = frozenset({"version", "model_path", "served_model_name", *COMMITS, *TOPOLOGY, *SAID_BY_ARGS})
NOT_SET = "not set"
UNSET = "unset"
MOST_TEXT = 200
MOST_ACCELERATORS = 100_000


class ContextError(OpsError):
    """What was told of a context cannot be used."""


class LoadRange(Model):
    """Requests running at once. `points`: the loads of a record. Of today: `p95` of a day, `recent` of the last hour,
    `now` of one look.
    """

    low: float = Field(ge=0, allow_inf_nan=False)
    high: float = Field(ge=0, allow_inf_nan=False)
    kind: Literal["points", "p95", "recent", "now"] = "points"


class Context(Model):
    """One side of the comparison that says whether a record holds today."""

    accelerator: str | None = None
    accelerators: int | None = None
    power_limit: str | None = None
    mig: str | None = None
    driver: str | None = None
    node_pool: str | None = None
    model: str | None = None
    model_names: tuple[str, ...] = ()  # further names of the same model
    revision: str | None = None
    quantization: str | None = None
    kv_dtype: str | None = None
    version: str | None = None
    commit: str | None = None  # of the source, or the digest of the image
    flags: dict[str, str] = Field(default_factory=dict)
    knobs: dict[str, str] = Field(default_factory=dict)  # other knobs' variables; `unset` where there is none
    topology: dict[str, str] = Field(default_factory=dict)
    load: LoadRange | None = None
    reads_knob: Literal["yes", "no"] | None = None  # whether the build takes the value of the knob's variable
    reads_why: str = ""
    other: dict[str, str] = Field(default_factory=dict)  # told by a person, compared with nothing


def from_arguments(args: Mapping[str, str], version: str | None = None, model: str | None = None) -> Context:
    """The context that a server's own arguments tell. What has a field of its own is no flag.

    An argument that a server does not tell beside others is not set: that is known, too.
    """
    told = {field: args.get(name, NOT_SET) for name, field in SAID_BY_ARGS.items()} if args else {}
    number, commit = split_version(version)
    served = args.get("served_model_name")
    return Context(
        quantization=told.get("quantization"),
        kv_dtype=told.get("kv_dtype"),
        revision=told.get("revision"),
        model=model or served,
        model_names=(served,) if served and model and served != model else (),
        version=number,
        commit=commit or next((args[name] for name in COMMITS if name in args), None),
        topology={TOPOLOGY[name]: value for name, value in args.items() if name in TOPOLOGY},
        flags={name: value for name, value in args.items() if name not in ELSEWHERE},
    )


def split_version(version: str | None) -> tuple[str | None, str | None]:
    """`0.5.23+g4f2a91c` as version and commit."""
    found = COMMITTED.fullmatch(version or "")
    return (found["version"], found["commit"]) if found is not None else (version, None)


def field_of(name: str) -> str | None:
    """The field that a person's word is about, `gpu` or `build`; None for a word that is none."""
    return SPELLED.get(name.strip().lower().replace("-", "_").replace(" ", "_"))


def told(pairs: Mapping[str, str], *, strict: bool = True) -> Context:
    """What a person told: `gpu=H200`, `env.NAME=VALUE`, `flags.NAME=VALUE`, `topology.tp=8`.

    strict False keeps what has no field as `other`. Raises: ContextError.
    """
    fields: dict[str, str] = {}
    inside: dict[str, dict[str, str]] = {"flags": {}, "knobs": {}, "topology": {}}
    other: dict[str, str] = {}
    for name, value in pairs.items():
        head, dot, rest = name.partition(".")
        field = field_of(name)
        usable = bool(value) and len(value) <= MOST_TEXT and value.isprintable()
        if dot and rest and head in PREFIXES and usable:
            inside[PREFIXES[head]][rest] = value
        elif field is not None and usable and fields.get(field, value) == value:
            fields[field] = value
        elif strict:
            raise _not_told(name, value, fields, usable=usable)
        else:
            other[name] = value
    return _typed(fields, inside, other, strict=strict)


def _not_told(name: str, value: str, fields: Mapping[str, str], *, usable: bool) -> ContextError:
    field = field_of(name)
    if not usable:
        return ContextError(f"context `{name[:60]}`: expected 1 to {MOST_TEXT} printable characters")
    if field is not None:
        return ContextError(f"context {field} is told twice: `{fields[field]}` and `{value}`")
    near = get_close_matches(name, [*SPELLED, *PREFIXES], n=1)
    known = "accelerator, accelerators, model, version, commit, node_pool, env.NAME, flags.NAME, topology.tp"
    hint = f"did you mean `{near[0]}`?" if near else f"known are e.g. {known}"
    return ContextError(f"context `{name[:60]}` is no field that is compared", hint=hint)


def _typed(
    fields: dict[str, str], inside: dict[str, dict[str, str]], other: dict[str, str], *, strict: bool
) -> Context:
    count = fields.pop("accelerators", None)
    if count is not None and (not count.isascii() or not count.isdecimal() or not 0 < int(count) <= MOST_ACCELERATORS):
        if strict:
            raise ContextError(f"context accelerators: `{count}`, expected how many there are, such as 8")
        other, count = {**other, "accelerators": count}, None
    number, commit = split_version(fields.pop("version", None))
    spelled = fields.pop("commit", None)
    return Context(
        **fields,
        version=number,
        commit=spelled or commit,
        accelerators=int(count) if count is not None else None,
        flags=inside["flags"],
        knobs=inside["knobs"],
        topology=inside["topology"],
        other=other,
    )


def joined(files: Context, person: Context) -> Context:
    """What files tell, and beside it what a person told.

    Raises: ContextError where they contradict each other.
    """
    update: dict[str, object] = {}
    for name in type(files).model_fields:
        by_file, by_person = getattr(files, name), getattr(person, name)
        if isinstance(by_file, dict):
            wrong = next((k for k in by_person if k in by_file and by_file[k] != by_person[k]), None)
            if wrong is not None:
                raise _contradiction(f"{name}.{wrong}", by_file[wrong], by_person[wrong])
            update[name] = {**by_person, **by_file}
        elif by_person not in (None, (), "") and by_file in (None, (), ""):
            update[name] = by_person
        elif by_person not in (None, (), "") and by_person != by_file and name not in {"load", "reads_why"}:
            raise _contradiction(name, by_file, by_person)
    return files.model_copy(update=update)


def _contradiction(name: str, by_file: object, by_person: object) -> ContextError:
    message = f"context {name}: the files say `{by_file}`, you say `{by_person}`"
    return ContextError(message, hint="leave it out: what the files tell is taken")


def everywhere(contexts: Sequence[Context]) -> Context:
    """One context of several instances. What differs between them is written with a slash: it equals nothing."""
    if not contexts:
        return Context()
    first = contexts[0]
    update: dict[str, object] = {}
    for name in type(first).model_fields:
        values = [getattr(one, name) for one in contexts]
        if all(value == values[0] for value in values):
            continue
        if isinstance(values[0], dict):
            keys = dict.fromkeys(key for value in values for key in value)
            update[name] = {key: _slashed([value.get(key, NOT_SET) for value in values]) for key in keys}
        elif isinstance(values[0], str | None) and name != "reads_knob":
            update[name] = _slashed([value if value is not None else "unknown" for value in values])
        else:
            update[name] = next((v for v in values if v == "no"), None) if name == "reads_knob" else None
    return first.model_copy(update=update)


def _slashed(values: Sequence[str]) -> str:
    return " / ".join(dict.fromkeys(values))
