"""`alertmanager:` of a fleet file: its url, and the labels that the alerts of each service carry."""

from __future__ import annotations

import re

import yaml

from policies.alertmanager import AlertmanagerEntry
from policies.fleet import Fleet
from policies.fleet_checks.problems import Problems, quote
from policies.fleet_checks.table import Entry, Table
from policies.fleet_checks.urls import read_url
from policies.fleet_checks.values import Form
from policies.silences import HOLES

label_form = Form(
    r"[A-Za-z_][A-Za-z0-9_]{0,127}",
    "alertmanager.label",
    "the name of a label: letters, digits and '_', not beginning with a digit",
    "write e.g. job or instance",
)
margin_least_s = 30.0
example = 'match: {decode: {job: sglang-decode, instance: "{address}:30001"}}'


def read_alertmanager(top: Table) -> AlertmanagerEntry | None:
    """The entry, where there is one that can be used."""
    table = top.table("alertmanager", ("url", "match", "margin"))
    if table is None or not table.readable:
        return None
    url = read_url(table, of_service=False)
    table.need("match", example)
    match: dict[str, dict[str, str]] = {}
    entries = list(table.named("match", "service"))
    if entries:
        below = Table(table.reader, table.at("match"), table.nodes["match"], tuple(entry.name for entry in entries))
        match = {entry.name: _labels(below, entry) for entry in entries}
    elif "match" in table and isinstance(table.nodes["match"], yaml.MappingNode):
        problems = table.reader.problems
        problems.add(table.at("match"), "list.empty", "no service, expected one or more", f"write {example}")
    margin_s = table.duration("margin", 300.0, margin_least_s, 86_400.0)
    if not url or not match or not all(match.values()):
        return None
    return AlertmanagerEntry(url=url, match=match, margin_s=margin_s)


def _labels(below: Table, entry: Entry) -> dict[str, str]:
    labels = {}
    for label in below.named(entry.name, "label", label_form):
        text = below.reader.text(label.path, label.node, raw=True)
        problem = _problem(text)
        if text and problem:
            hint = "write the value that the alerts carry; {address} and {host} stand for those of each instance"
            below.reader.problems.add(label.path, "alertmanager.value", f"{quote(text)} {problem}", hint)
        labels[label.name] = text
    if isinstance(entry.node, yaml.MappingNode) and not labels:
        below.reader.problems.add(
            entry.path,
            "list.empty",
            "no label: every alert of the site would be silenced, expected one or more",
            "write e.g. {job: sglang-decode}",
        )
    return labels


def _problem(text: str) -> str:
    holes = re.findall(r"\{[^{}]*\}", text)
    if any(hole not in HOLES for hole in holes) or re.sub(r"\{[^{}]*\}", "", text).count("{"):
        return f"holds something in braces that nothing replaces, expected {' or '.join(HOLES)}"
    if not text.strip():
        return "is empty, which every alert without the label has, expected a value"
    return ""


def check_alertmanager(fleet: Fleet, problems: Problems) -> None:
    """Services that do not exist."""
    if fleet.alertmanager is None:
        return
    for name in fleet.alertmanager.match:
        if name not in fleet.services:
            problems.unknown(("alertmanager", "match", name), "alertmanager.service", "service", name, fleet.services)
