"""Typed calls of the host helper: look at units, write our drop-in, restart, wait until ready, fence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from time import monotonic
from typing import Any, TypeVar

from pydantic import ValidationError

from policies.errors import HostAnswerLost, HostRefused, HostUnreachable, OpsError
from policies.facts import Incarnation, Rights
from policies.fleet import Host, HttpCheck
from policies.model import Model
from workers.executors.answers import Fenced, HttpAsk, Issued, Observed, UnitAsk, Waited, Written
from workers.executors.helper import VERSION, HelperCall, helper_for
from workers.shells import Done, NoRoom, Shell
from workers.shells.kept import Program

# Units: seconds, for one call beside what it waits for: systemd answers in well under a second, a lock or a
# daemon-reload of a large host in a few
CALL_S = 45.0
# Units: bytes, of one answer. A few units with their metrics fit; more is an error, never a part taken for the whole.
ANSWER_MAX_BYTES = 64 * 1024 * 1024
SHELL_NOT_RUN = (126, 127)

Answer = TypeVar("Answer", bound=Model)


class SystemdHost:
    """One host's units, through a `Shell`. `helper` says how the host helper is started there.

    `stay`: a helper that is kept running on the host is asked where one can be had. Else each call starts one.
    """

    def __init__(self, shell: Shell, host: Host, *, helper: HelperCall | None = None, stay: bool = False) -> None:
        self.host = host
        self._shell = shell
        self._helper = helper or helper_for(host)
        self._resident = self._helper.resident(host.manager) if stay else None

    def warm(self, *, within_s: float) -> None:
        """Have a connection, and a helper that stays, ready for the first call.

        Raises: HostUnreachable.
        """
        if self._resident is None:
            return
        try:
            session = self._shell.kept.take(self.host, self._resident, deadline_s=within_s)
        except NoRoom:
            return
        self._shell.kept.give_back(self.host, self._resident, session)

    def observe(self, units: Sequence[UnitAsk], probes: Sequence[HttpAsk] = ()) -> Observed:
        """Look at units and ask endpoints; changes nothing.

        Raises: HostUnreachable, HostRefused; OpsError when the answer is not one.
        """
        asked = [*probes, *(probe for unit in units for probe in unit.http)]
        observed = self.call(
            "observe",
            {
                "host": self.host.name,
                "units": [unit.model_dump(mode="json", by_alias=True) for unit in units],
                "http": [probe.model_dump(mode="json", by_alias=True) for probe in probes],
            },
            Observed,
            wait_s=max((probe.timeout_s for probe in asked), default=0.0),
        )
        if self._helper.sha256 and observed.facts.helper != self._helper.sha256:
            raise OpsError(
                f"host '{self.host.name}' answered with helper {observed.facts.helper[:12]},"
                f" expected {self._helper.sha256[:12]}",
                hint="something on the host replaces the program that was sent; look at the login shell and sudo",
            )
        return observed

    def rights(self, units: Sequence[str], folders: Sequence[str] = ()) -> Rights:
        """As whom the helper runs on the host, what it may do for units and in folders; changes nothing.

        Raises: HostUnreachable, HostRefused; OpsError when the answer is not one.
        """
        return self.call("rights", {"units": list(units), "folders": list(folders)}, Rights)

    def write(
        self, unit: str, *, token: int, change: str, step: str, text: str | None, expect_sha256: str | None
    ) -> Written:
        """Write our drop-in of a unit (None: remove it), and reload the manager.

        `expect_sha256` is of the file as planned, None where there is none.
        Raises: HostUnreachable, HostRefused (`stale-token`, `file-changed`, ...), HostAnswerLost.
        """
        request = {
            "unit": unit,
            "token": token,
            "change": change,
            "step": step,
            "text": text,
            "expect_sha256": expect_sha256,
        }
        return self.call("write", request, Written, mutates=True)

    def restart(self, unit: str, *, token: int, change: str, step: str) -> Issued:
        """Ask systemd to restart a unit and do not wait; once for each (change, step, token).

        Raises: HostUnreachable, HostRefused (`stale-token`, ...), HostAnswerLost.
        """
        request = {"unit": unit, "token": token, "change": change, "step": step}
        return self.call("restart", request, Issued, mutates=True)

    def wait(
        self,
        unit: str,
        *,
        before: Incarnation | None,
        port: int | None,
        health: HttpCheck | None,
        confirmations: int,
        poll_s: float,
        for_s: float,
        expect: Incarnation | None = None,
    ) -> Waited:
        """Wait on the host until a unit is ready after `before`, for one slice; changes nothing.

        `expect` is the new incarnation when an earlier slice saw it: another one then ends the wait.
        Raises: HostUnreachable, HostRefused, HostAnswerLost (the answer only: nothing was changed), OpsError.
        """
        probe = None if health is None else {"url": health.url, "timeout_s": health.timeout_s}
        request = {
            "unit": unit,
            "before": before and before.model_dump(mode="json"),
            "expect": expect and expect.model_dump(mode="json"),
            "port": port,
            "health": probe,
            "confirmations": confirmations,
            "poll_s": poll_s,
            "for_s": for_s,
        }
        # a request and a row of 200s that have begun are finished after the slice
        probes_s = 0.0 if health is None else confirmations * (health.timeout_s + poll_s)
        return self.call("wait", request, Waited, wait_s=for_s + probes_s)

    def fence(self, unit: str, *, token: int) -> Fenced:
        """Shut out every lower token, and learn what was done to the unit until now.

        Raises: HostUnreachable, HostRefused (`stale-token`), HostAnswerLost.
        """
        return self.call("fence", {"unit": unit, "token": token}, Fenced, mutates=True)

    def call(
        self, verb: str, fields: dict[str, Any], model: type[Answer], *, mutates: bool = False, wait_s: float = 0.0
    ) -> Answer:
        """One call of the helper, its answer as `model`. wait_s: what it may wait for beside the call itself.

        Raises: HostUnreachable, HostRefused; OpsError, or HostAnswerLost where it mutates, when the answer is not one.
        """
        request = {"v": VERSION, "verb": verb, "scope": self.host.manager, **fields}
        done = self._exchange(json.dumps(request).encode(), deadline_s=CALL_S + wait_s)
        answer = _document(done)
        if answer is not None and answer.get("ok") is False:
            raise HostRefused(
                f"host '{self.host.name}' refused {verb}: {answer.get('message', '')}",
                code=str(answer.get("code", "")),
                hint=str(answer.get("hint", "")),
            )
        if answer is None and done.exit_status in SHELL_NOT_RUN:
            raise HostRefused(
                f"host '{self.host.name}' could not start the helper, nothing was done: {_tail(done)}",
                code="no-helper",
                hint=f"expected to run {' '.join(self._helper.argv[:4])}; python 3.9 or newer is needed",
            )
        problem = "it is not one JSON document with ok"
        if answer is not None and answer.get("ok") is True:
            try:
                return model.model_validate(_ours(answer))
            except ValidationError as error:
                problem = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        message = (
            f"host '{self.host.name}' answered {verb} with exit status {done.exit_status} and no valid answer"
            f" ({'longer than allowed' if done.truncated else problem}): {_tail(done)}"
        )
        if mutates:
            raise HostAnswerLost(message, hint="ask the host what happened before anything is repeated")
        raise OpsError(message, hint="run the helper by hand on the host to see what it says")

    def _exchange(self, request: bytes, *, deadline_s: float) -> Done:
        """Ask the helper that stays; where there is none, or it turns out to have ended before, start one for this."""
        until = monotonic() + deadline_s
        for _ in range(2 if self._resident else 0):
            try:
                done = self._ask_resident(self._resident, request, until)
            except NoRoom:
                break
            if done is not None:
                return done
        return self._shell.run(
            self.host,
            self._helper.argv,
            stdin=self._helper.stdin(request),
            deadline_s=until - monotonic() if self._resident else deadline_s,
            max_output_bytes=ANSWER_MAX_BYTES,
        )

    def _ask_resident(self, program: Program | None, request: bytes, until: float) -> Done | None:
        """The answer of a helper that stays; None when it had ended as it waited and nothing was sent.

        Raises: NoRoom, HostUnreachable, HostRefused, HostAnswerLost.
        """
        if program is None:
            return None
        session = self._shell.kept.take(self.host, program, deadline_s=until - monotonic())
        begun = monotonic()
        try:
            line = session.call(request, deadline_s=until - begun, max_output_bytes=ANSWER_MAX_BYTES)
        except HostUnreachable:
            return None
        finally:
            self._shell.kept.give_back(self.host, program, session)
        return Done(0, line, session.said, monotonic() - begun)


# names on the wire -> ours
NAMES = {
    "before_sha256": "sha256_before",
    "after_sha256": "sha256_after",
    "loaded_dropins": "dropins",
    "phase": "state",
    "from": "ref_before",
    "to": "ref_after",
}


def _ours(answer: dict[str, Any]) -> dict[str, Any]:
    """The fields of an answer under our names, without those that every answer has."""
    fields = {NAMES.get(name, name): value for name, value in answer.items() if name not in ("v", "ok")}
    if isinstance(fields.get("records"), list):
        fields["records"] = [
            {NAMES.get(k, k): v for k, v in record.items()} if isinstance(record, dict) else record
            for record in fields["records"]
        ]
        fields["incarnation"] = fields.pop("current", None)
    return fields


def _document(done: Done) -> dict[str, Any] | None:
    """The one JSON object on stdout, None when there is none.

    A byte of an environment that is no utf-8 comes as a lone surrogate, which no model takes: it is shown as `\\udcXX`.
    """
    if done.truncated:
        return None
    try:
        answer = json.loads(done.stdout)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict):
        return None
    shown: dict[str, Any] = _shown(answer) if b"\\ud" in done.stdout else answer
    return shown


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {_shown(key): _shown(item) for key, item in value.items()}
    return value


def _tail(done: Done) -> str:
    """What the host said on stderr, for a message."""
    words = " ".join(done.stderr.decode("utf-8", "replace").split())
    return words[:200] or "nothing on stderr"
