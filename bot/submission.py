"""What somebody sent with the form of `evidence add`: read, and judged as far as the form alone tells.

Pure and quick: it runs in the listener, because only an acknowledgement can say what is wrong at which field.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from bot.cards import form
from bot.escape import shown
from bot.heard import MOST_FILES, HeardForm
from bot.messages import say, sentence
from policies.bench.metrics import better
from policies.bench.reading import MAX_BYTES
from policies.correctness_file import read_pair
from policies.errors import OpsError
from policies.fleet import Fleet
from policies.knobs import value_problem

UNSET = "unset"
MOST_NAME = 60
Errors = dict[str, str]


def read(body: Mapping[str, Any], fleet: Fleet) -> tuple[str, HeardForm] | Errors:
    """The form with the key under which Slack's repeats of it are known; or the fields that are wrong, with why."""
    view = body.get("view") or {}
    values = ((view.get("state") or {}).get("values")) or {}
    user = body.get("user") or {}
    try:
        place = form.Place.model_validate_json(str(view.get("private_metadata") or ""))
    except ValidationError:
        return {form.KNOB: _plain(say("form.unreadable"))}
    a, b = _files(values, form.ARM_A), _files(values, form.ARM_B)
    heard = HeardForm(
        user=str(user.get("id", "")),
        team=str(user.get("team_id") or ""),
        channel=place.channel,
        thread_ts=place.thread_ts,
        knob=_chosen(values, form.KNOB),
        value=_typed(values, form.VALUE),
        baseline=_baseline(_typed(values, form.BASELINE)),
        metric=_chosen(values, form.METRIC) or form.METRICS[0],
        interleaved=bool((_field(values, form.INTERLEAVED)).get("selected_options")),
        correctness=_typed(values, form.CORRECTNESS) or None,
        note=_typed(values, form.NOTE)[: form.MOST_NOTE],
        a=tuple(a),
        b=tuple(b),
    )
    wrong = _wrong(heard, fleet) | _wrong_files(values, a, b)
    return wrong or (f"view:{view.get('id', '')}:{view.get('hash', '')}", heard)


def _wrong(heard: HeardForm, fleet: Fleet) -> Errors:
    """What is wrong with the words of the form."""
    knob = fleet.knobs.get(heard.knob)
    if knob is None:
        return {form.KNOB: _plain(say("form.no-knob", known=", ".join(fleet.knobs)))}
    found: Errors = {}
    if (problem := value_problem(knob, heard.value)) is not None:
        found[form.VALUE] = _plain(sentence(problem))
    if heard.baseline is not None and (problem := value_problem(knob, heard.baseline)) is not None:
        found[form.BASELINE] = _plain(sentence(problem))
    elif heard.baseline == heard.value:
        found[form.BASELINE] = _plain(say("form.same-value"))
    if better(heard.metric) is None:
        found[form.METRIC] = _plain(say("form.no-metric", metric=heard.metric))
    if heard.correctness is not None:
        try:
            read_pair(heard.correctness)
        except OpsError as error:
            found[form.CORRECTNESS] = error.message
    return found


def _wrong_files(values: Mapping[str, Any], a: list[str], b: list[str]) -> Errors:
    found: Errors = {}
    for block, mine in ((form.ARM_A, a), (form.ARM_B, b)):
        if not mine:
            found[block] = _plain(say("form.no-files"))
        elif len(a) + len(b) > MOST_FILES:
            found[block] = _plain(say("form.too-many", n=len(a) + len(b), most=MOST_FILES))
        for file in _field(values, block).get("files") or ():
            size = file.get("size")
            if isinstance(size, int) and size > MAX_BYTES:
                name = shown(str(file.get("name") or ""), limit=MOST_NAME)
                said = say("form.too-large", file=name, mib=f"{size / 2**20:.1f}", most=MAX_BYTES // 2**20)
                found.setdefault(block, _plain(said))
    if set(a) & set(b):
        found.setdefault(form.ARM_B, _plain(say("form.both-arms")))
    return found


def _field(values: Mapping[str, Any], block: str) -> Mapping[str, Any]:
    found = (values.get(block) or {}).get(f"{block}-field")
    return found if isinstance(found, dict) else {}


def _typed(values: Mapping[str, Any], block: str) -> str:
    return str(_field(values, block).get("value") or "").strip()


def _chosen(values: Mapping[str, Any], block: str) -> str:
    return str((_field(values, block).get("selected_option") or {}).get("value") or "")


def _files(values: Mapping[str, Any], block: str) -> list[str]:
    """Ids of the files of an arm, in the order in which they were picked, each once."""
    field = _field(values, block)
    ids = [str(file.get("id") or "") for file in field.get("files") or ()]
    ids += [str(option.get("value") or "") for option in field.get("selected_options") or ()]
    return list(dict.fromkeys(one for one in ids if one))


def _baseline(typed: str) -> str | None:
    return None if typed.lower() in {"", UNSET} else typed


def _plain(text: str) -> str:
    """A sentence as a form shows it: without markup."""
    return html.unescape(text).replace("\u2060", "").replace("`", "")[:1000]
