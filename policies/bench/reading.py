"""A file's bytes to runs: what the text is, which reader fits, and what is wrong, with its line."""

from __future__ import annotations

import hashlib
import re

from policies.bench import READERS
from policies.bench.fields import Fields, plain
from policies.bench.reader import MOST_RUNS, Reader
from policies.bench.run import Problem, Reading, Run
from policies.bench.source import Broken, Label, Located, Source, documents
from policies.bench.table import table

MAX_BYTES = 8 * 1024 * 1024
MOST_PROBLEMS = 50
TOO_MANY = f"more than {MOST_RUNS} runs, expected the results of one benchmark"
HEADING = re.compile(r"#{1,6} \S")
LETTERS = re.compile(r"[^\W\d_]{2,}")
SENTENCE_WORDS = 5
PROSE_SHARE = 0.6
FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
FORMATS = ", ".join(reader.name for reader in READERS)


def read_runs(data: bytes, file: str) -> Reading:
    """The runs of a result file in their order, and every problem with its line. Never raises on any content."""
    sha256 = hashlib.sha256(data).hexdigest()
    if len(data) > MAX_BYTES:
        message = f"larger than {MAX_BYTES // 2**20} MiB, expected less: leave per-request details out"
        return Reading(file=file, sha256=sha256, problems=(Problem(file=file, line=1, message=message),))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not utf-8, expected text"
        return Reading(file=file, sha256=sha256, problems=(Problem(file=file, line=line, message=message),))
    text = text.replace("\r\n", "\n")
    if is_prose(text):
        return Reading(file=file, sha256=sha256, skipped="text for people, no result file")
    runs, problems = _read(text, file)
    numbered = [run.model_copy(update={"file": file, "sha256": sha256, "order": i}) for i, run in enumerate(runs)]
    if len(problems) > MOST_PROBLEMS:
        more = f"and {len(problems) - MOST_PROBLEMS} more problems"
        problems = [*problems[:MOST_PROBLEMS], Problem(file=file, line=problems[MOST_PROBLEMS].line, message=more)]
    return Reading(file=file, sha256=sha256, runs=tuple(numbered), problems=tuple(problems))


def is_prose(text: str) -> bool:
    """Whether a text is written for people: it starts with a heading or has code fences, or its lines are sentences.

    A text that starts as JSON or as a table is never prose, however broken it is.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or lines[0][0] in "{[":
        return False
    objects = sum(line.startswith("{") for line in lines)
    if FENCE.search(text) or (HEADING.match(lines[0]) and not objects):
        return True
    if table(lines[0], "") is not None or objects:
        return False
    sentences = sum(len(LETTERS.findall(line)) >= SENTENCE_WORDS for line in lines)
    return sentences >= PROSE_SHARE * len(lines)


def _read(text: str, file: str) -> tuple[list[Run], list[Problem]]:
    runs: list[Run] = []
    problems: list[Problem] = []
    if not text.strip():
        return [], [Problem(file=file, line=1, message="the file is empty, expected benchmark results")]
    rows = table(text, file)
    if rows is not None:
        return _by_reader(rows, file)
    labels: list[int] = []
    seen = 0
    for found in documents(text):
        match found:
            case Label():
                labels.append(found.line)
            case Broken():
                problems.append(Problem(file=file, line=found.line, message=plain(found.message, 200)))
            case Source():
                seen += 1
                if seen > MOST_RUNS:
                    return runs, [*problems, Problem(file=file, line=found.line, message=TOO_MANY)]
                more, wrong = _by_reader(found, file)
                runs += more
                problems += wrong
    if labels and runs:
        left = ", ".join(str(line) for line in labels[:5]) + (" and more" if len(labels) > 5 else "")
        runs[0] = runs[0].model_copy(
            update={"warnings": (*runs[0].warnings, f"lines without a result were left out: {left}")}
        )
    if not runs and not problems:
        what = "no result in the text" if not seen else "no runs in the result"
        problems.append(Problem(file=file, line=labels[0] if labels else 1, message=f"{what}, expected {FORMATS}"))
    return runs, problems


def _by_reader(source: Located, file: str) -> tuple[list[Run], list[Problem]]:
    """The runs of a document; of a list that no reader takes as a whole, the runs of each entry."""
    reader = _fitting(source)
    if reader is not None:
        return _one(reader, Fields(source, file))
    value = source.value
    if isinstance(source, Source) and isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        runs: list[Run] = []
        problems: list[Problem] = []
        if len(value) > MOST_RUNS:
            return [], [Problem(file=file, line=source.line_of(()), message=TOO_MANY)]
        for entry in source.entries():
            more, wrong = _by_reader(entry, file)
            runs += more
            problems += wrong
        return runs, problems
    known = f"no known result format, expected {FORMATS}"
    return [], [Problem(file=file, line=source.line_of(()), message=known)]


def _one(reader: Reader, fields: Fields) -> tuple[list[Run], list[Problem]]:
    runs = reader.read(fields)
    return runs, sorted(set(fields.problems), key=lambda p: (p.line, p.message))


def _fitting(source: Located) -> Reader | None:
    return next((reader for reader in READERS if reader.fits(source)), None)
