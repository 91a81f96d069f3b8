"""What people do with forms and files: fill a modal in and send it or close it, upload files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox.slack import payloads
from sandbox.slack.delivery import Delivery
from sandbox.slack.errors import PersonError
from sandbox.slack.filestore import MOST_BYTES, StoredFile
from sandbox.slack.oracle import Oracle
from sandbox.slack.records import Envelope, Json, User
from sandbox.slack.responses import Tickets
from sandbox.slack.workspace import Workspace

NamedBytes = tuple[str, bytes]
MOST_FILES = 20


class Forms:
    """The part of people's hands that is about modals and files."""

    def __init__(self, workspace: Workspace, delivery: Delivery, tickets: Tickets, oracle: Oracle) -> None:
        self.workspace = workspace
        self._delivery = delivery
        self._tickets = tickets
        self._oracle = oracle

    def upload(self, user: str, files: Sequence[NamedBytes]) -> list[StoredFile]:
        """Files of a person that nobody else sees yet, as a client uploads them before a message or a form is sent."""
        who = self._user(user)
        if len(files) > MOST_FILES:
            raise PersonError(f"{len(files)} files at once, no more than {MOST_FILES}")
        for name, data in files:
            if not name or not data or len(data) > MOST_BYTES:
                raise PersonError(f"{name!r}: expected 1 byte to {MOST_BYTES} bytes, found {len(data)}")
        with self.workspace.change():
            return [self.workspace.files.put(name, data, who.id) for name, data in files]

    def submit_view(self, user: str, view_id: str, values: Json) -> Envelope:
        """Submit an open modal; `values` is `{block_id: {action_id: {"type": ..., "value": ...}}}`.

        Of a file input the value is `{"type": "file_input", "files": [ids of this person's uploads]}`.
        """
        who, view = self._opened(user, view_id)
        filled = {
            block: {action: self._filled(who, value) for action, value in inputs.items()}
            for block, inputs in values.items()
        }
        shown = {key: item for key, item in view.items() if not key.startswith("_")} | {"state": {"values": filled}}
        payload = payloads.interaction(self.workspace, "view_submission", who, self._tickets.new_trigger(who.id)) | {
            "view": shown,
            "response_urls": [],
        }
        return self._delivery.deliver("interactive", payload, on_settled=lambda e: self._view_answer(e, view_id))

    def close_view(self, user: str, view_id: str) -> Envelope | None:
        """Close a modal without sending it; the app hears of it where its view says so."""
        who, view = self._opened(user, view_id)
        with self.workspace.change():
            self.workspace.views.pop(view_id, None)
        if not view.get("notify_on_close"):
            return None
        shown = {key: item for key, item in view.items() if not key.startswith("_")}
        payload = payloads.interaction(self.workspace, "view_closed", who, "") | {"view": shown, "is_cleared": False}
        return self._delivery.deliver("interactive", payload)

    def _opened(self, user: str, view_id: str) -> tuple[User, Json]:
        who = self._user(user)
        view = self.workspace.views.get(view_id)
        if view is None or view["_opened_by"] != who.id:
            raise PersonError(f"{who.name} has no open view {view_id!r}")
        return who, view

    def _filled(self, who: User, value: Any) -> Any:
        """A value as the app gets it: of files their objects, and from then on it may read them."""
        if not isinstance(value, dict) or value.get("type") != "file_input":
            return value
        made: list[Json] = []
        for file_id in value.get("files") or ():
            file = self.workspace.files.get(str(file_id))
            if file is None or file.user != who.id:
                raise PersonError(f"{who.name} has uploaded no file {file_id!r}")
            with self.workspace.change():
                file.for_app = "files:read" in self.workspace.app.scopes
            made.append(self.workspace.files.shown(file.id))
        return {"type": "file_input", "files": made}

    def _user(self, user: str) -> User:
        found = self.workspace.find_user(user)
        if found is None:
            raise PersonError(f"nobody is called {user!r}")
        return found

    def _view_answer(self, envelope: Envelope, view_id: str) -> None:
        """`response_action` of a submission: errors keep the modal open, update changes it, nothing closes it."""
        answer = envelope.ack_payload or {}
        with self.workspace.change():
            view = self.workspace.views.get(view_id)
            if view is None:
                return
            if answer.get("response_action") == "errors":
                errors = answer.get("errors") or {}
                inputs = {block.get("block_id") for block in view["blocks"] if block.get("type") == "input"}
                for block_id in set(errors) - inputs:
                    self._oracle.note("view_submission", "no_such_input", f"{block_id!r} is no input of the view")
                # counted, so that the same error twice is shown twice
                view["_errors"], view["_tries"] = errors, view.get("_tries", 0) + 1
            elif answer.get("response_action") in {"update", "push"}:
                for found in self._oracle.validate("view", answer.get("view")):
                    self._oracle.note("view_submission", "invalid_view", found.message, found.pointer)
                view |= answer.get("view") or {}
            else:
                self.workspace.views.pop(view_id, None)
