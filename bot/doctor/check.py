"""One check's answer, and what the checks look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from slack_sdk import WebClient

from bot.messages import sentence
from bot.settings import Settings
from bot.slack import make_client
from bot.terminal import plain
from policies.errors import OpsError
from policies.finding import Finding
from policies.fleet import Fleet
from policies.model import Model
from workers.wiring import load_fleet

Value = str | int | float | None


class Check(Model):
    """ok: nothing has to be done. fix: what to do, empty when it is ok."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Patient:
    """This installation. `problem`: why settings could not be read; the defaults are then used for the rest."""

    settings: Settings
    problem: OpsError | None = None
    notes: dict[str, str] = field(default_factory=dict)

    @cached_property
    def fleet(self) -> Fleet | OpsError:
        """The fleet, or why there is none."""
        try:
            return load_fleet(self.settings.fleet_file())
        except OpsError as error:
            return error

    @cached_property
    def slack(self) -> WebClient | None:
        """A client with the bot's token; None without one."""
        token = self.settings.slack_bot_token
        return make_client(token.get_secret_value(), self.settings.api_url) if token else None


def good(name: str, code: str, /, **values: Value) -> Check:
    """It is well; the sentence of `code` says what was seen."""
    return Check(name=name, ok=True, detail=_said(code, values))


def bad(name: str, code: str, fix: str, /, **values: Value) -> Check:
    """It is not; `fix` is the code of the sentence that says what to do."""
    return Check(name=name, ok=False, detail=_said(code, values), fix=_said(fix, values))


def failed(name: str, error: OpsError, fix: str = "fix.see-message", /, **values: Value) -> Check:
    """It could not be done, in the error's own words and with its hint where it has one."""
    return Check(name=name, ok=False, detail=error.message, fix=error.hint or _said(fix, values))


def unknown(name: str, needs: str) -> Check:
    """It could not be looked at, because another check is not well. What was not seen is not said to be well."""
    return bad(name, "doctor.not-checked", "fix.other-first", needs=needs)


def _said(code: str, values: dict[str, Value]) -> str:
    return plain(sentence(Finding(code=code, effect="note", values=values)), lambda user: user)
