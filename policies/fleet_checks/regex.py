"""Regular expressions of a fleet file."""

from __future__ import annotations

import re
import warnings

from policies.fleet_checks.problems import quote
from policies.fleet_checks.table import Table

longest_pattern = 200


def regex(table: Table, key: str, code: str, example: str, groups: int | None = None) -> str | None:
    """A pattern for a whole text, where it is one; None and an error where it is not. groups: how many it must have."""
    text = table.text(key)
    if not text:
        return None
    reason = f"{len(text)} characters, at most {longest_pattern}" if len(text) > longest_pattern else ""
    if not reason:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # an ambiguous set like [[a] is a mistake, not a style
                found = re.compile(text)
        except (re.error, OverflowError, RecursionError, Warning) as error:
            reason = str(error)
        else:
            if groups is not None and found.groups != groups:
                reason = f"it has {found.groups} groups, not {groups}"
    if reason:
        table.reader.problems.add(
            table.at(key),
            code,
            f"{quote(text)} is not a regular expression ({reason}), expected one that matches the whole value",
            f"write e.g. {key}: {example}",
        )
        return None
    return text
