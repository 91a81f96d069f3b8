"""What a unit's files say that a person should know."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "envfile.nul": "{file}:{line} holds a NUL byte: systemd takes nothing from this file",
    "envfile.not-utf-8": "{file}:{line} is not utf-8: systemd takes nothing from this file",
    "envfile.bom": "{file}:{line} begins with a byte-order mark, so systemd drops {name:code}; save it without one",
    "envfile.export": (
        "{file}:{line}: {name:code} is not a valid name, systemd drops it; there is no `export` in these files"
    ),
    "envfile.invalid-name": "{file}:{line}: {name:code} is not a valid name, systemd drops it",
    "envfile.inline-comment": (
        "{file}:{line}: {name:code} is {value:value}: what looks like a comment is part of the value"
    ),
    "envfile.open-quote": (
        "{file}:{line}: the quote of {name:code} is never closed; everything to line {last_line} is its value"
    ),
    "envfile.swallowed": (
        "{file}:{line}: the value of {name:code} goes on to line {last_line}; assignments that are lost in it: {count}"
    ),
    "envfile.no-expansion": "{file}:{line}: {name:code} is {value:value} as it stands, systemd expands nothing there",
    "envfile.comment-continued": (
        "{file}:{line}: the comment ends in a backslash, so systemd before 254 takes the next line for comment too"
    ),
    "envfile.optional-missing": "{file} does not exist; {asked_in} says that it may be missing",
    "envfile.missing": "{file} does not exist, and {asked_in} needs it: the unit will not start",
    "envfile.unreadable": "{file} could not be read ({error}), so the value is not certain",
    "unit.unreadable": "{file} could not be read ({error}), so the value is not certain",
    "unit.not-utf-8": "{file}:{line}: systemd reads no further here: {message}",
    "unit.bad-section": "{file}:{line}: systemd reads no further here: {message}",
    "unit.unknown-section": "{file}:{line}: {message}",
    "unit.no-section": "{file}:{line}: {message}",
    "unit.no-equals": "{file}:{line}: {message}",
    "unit.no-key": "{file}:{line}: {message}",
    "unit.limit-in-service": "{file}:{line}: {message} {key:code} belongs in `[Unit]`; {default}",
    "unit.invalid-assignment": "{file}:{line}: {message}",
    "unit.invalid-name": "{file}:{line}: {message}",
    "unit.invalid-syntax": "{file}:{line}: {message}",
    "unit.invalid-time": "{file}:{line}: {message}",
    "unit.specifier-invalid": "{file}:{line}: {message}",
    "unit.specifier-unknown": "{file}:{line}: {message}",
    "unit.path-not-absolute": "{file}:{line}: {message}",
    "unit.path-not-normalized": "{file}:{line}: {message}",
    "unit.manager-environment": (
        "{file}:{line}: DefaultEnvironment= of systemd itself gives {name:code} = {value:value}, and nothing in the"
        " unit overrides it: the value may come from there"
    ),
    "unit.passed": (
        "{file}:{line}: PassEnvironment= takes {name:code} from systemd's own environment, which these files do"
        " not show"
    ),
    "unit.masked": "{unit:code} is masked: systemd will not start it",
    "unit.will-not-start": "{unit:code} will not start as its files are",
}
