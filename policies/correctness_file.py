"""What a person or a tool says of correctness: `0/200`, or a small YAML (or JSON) file.

compared: 200
differing: 0
scores: {name: gsm8k, n: 1319, a: 0.951, b: 0.949, only_a: 21, only_b: 18, seed: 1}
endings:
  reasons_a: {stop: 1290, length: 29}
  reasons_b: {stop: 1291, length: 28}
  tokens_a: [212.4, 180, 611]
  tokens_b: [213.0, 181, 608]
"""

from __future__ import annotations

import re

import yaml
from pydantic import ValidationError

from policies.correctness import Correctness, problem
from policies.errors import OpsError
from policies.plain_yaml import PlainLoader

MAX_BYTES = 65536
OF = re.compile(r"(?P<differing>[0-9]{1,9})\s*/\s*(?P<compared>[0-9]{1,9})")
HINT = "e.g. `0/200`, or {compared: 200, differing: 0, scores: {name: gsm8k, n: 1319, a: 0.951, b: 0.949}}"


class CorrectnessError(OpsError):
    """It cannot be read; the message names the field."""


def read_pair(text: str) -> Correctness:
    """`differing/compared`.

    Raises: CorrectnessError.
    """
    found = OF.fullmatch(text.strip())
    if found is None or int(found["compared"]) == 0:
        raise CorrectnessError(f"correctness `{text[:60]}`, expected differing/compared such as 0/200", hint=HINT)
    return _checked(Correctness(compared=int(found["compared"]), differing=int(found["differing"])), "correctness")


def read_correctness(data: bytes, file: str) -> Correctness:
    """A whole file.

    Raises: CorrectnessError.
    """
    if len(data) > MAX_BYTES:
        raise CorrectnessError(f"{file}: larger than {MAX_BYTES} bytes, expected what was counted", hint=HINT)
    try:
        loader = PlainLoader(data.decode("utf-8"))
        document = loader.get_single_data()
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        said = getattr(error, "problem", None) or "not readable as utf-8 yaml"
        raise CorrectnessError(f"{file}{line}: {said}", hint=HINT) from error
    if not isinstance(document, dict):
        found = type(document).__name__
        raise CorrectnessError(f"{file}: expected a mapping with `compared` or `scores`, found {found}", hint=HINT)
    try:
        read = Correctness.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"]) or "file"
        raise CorrectnessError(f"{file}: {path}: {first['msg'].lower()}", hint=HINT) from error
    return _checked(read, file)


def _checked(read: Correctness, name: str) -> Correctness:
    wrong = problem(read)
    if wrong is not None:
        raise CorrectnessError(f"{name}: {wrong}", hint=HINT)
    return read
