"""Where the bytes of files go in and out: the upload address, url_private for the app, and the page's own address."""

from __future__ import annotations

import time
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from sandbox.slack.filestore import StoredFile
from sandbox.slack.records import Call, Json, Violation
from sandbox.slack.webapi import WebApi

PRIVATE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class FileDoors:
    """Three addresses. Faults are switched on for `upload_url` and `url_private` as for methods."""

    def __init__(self, api: WebApi) -> None:
        self._api = api
        self._workspace = api.workspace

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/upload/v1/{ticket}", self._upload, methods=["POST"]),
            Route("/files-pri/{team_and_id}/{name}", self._private),
            Route("/files-pri/{team_and_id}/download/{name}", self._private),
            Route("/_page/files/{file_id}/{name}", self._for_person),
        ]

    async def _upload(self, http: HttpRequest) -> Response:
        """The bytes of an announced file: raw, or as the one file of a multipart form. The address is the secret."""
        with self._workspace.lock:
            file = self._workspace.files.by_ticket(http.path_params["ticket"])
        call = Call("upload_url", {"file": file.id if file else ""}, time.time())
        data = await self._body(http)
        call.args["bytes"] = len(data)
        return await self._api.answered(call, lambda: self._take(file, data), _upload_answer)

    @staticmethod
    async def _body(http: HttpRequest) -> bytes:
        if not http.headers.get("content-type", "").startswith("multipart/form-data"):
            return await http.body()
        body = await http.body()
        boundary = http.headers["content-type"].partition("boundary=")[2].strip('"').encode()
        parts = body.split(b"--" + boundary)
        inner = parts[1].partition(b"\r\n\r\n")[2] if len(parts) > 2 else b""
        return inner.removesuffix(b"\r\n")

    def _take(self, file: StoredFile | None, data: bytes) -> Json:
        if file is None:
            return {"ok": False, "error": "no_such_upload"}
        if len(data) != file.length:
            message = f"{len(data)} bytes were sent for {file.id}, {file.length} were announced"
            self._workspace.record_violation(Violation("upload_url", "upload_length", message))
            return {"ok": False, "error": "length_differs"}
        with self._workspace.change():
            file.data = data
        return {"ok": True, "length": len(data)}

    async def _private(self, http: HttpRequest) -> Response:
        """The bytes for the app. Without a token that may, the platform leads to its page for signing in."""
        file_id = http.path_params["team_and_id"].partition("-")[2]
        token = http.headers.get("authorization", "").removeprefix("Bearer ").strip()
        call = Call("url_private", {"file": file_id}, time.time())
        return await self._api.answered(call, lambda: self._given(file_id, token), self._bytes)

    def _given(self, file_id: str, token: str) -> Json:
        app = self._workspace.app
        with self._workspace.lock:
            file = self._workspace.files.get(file_id)
            if token != app.bot_token or app.token_error or "files:read" not in app.scopes:
                return {"ok": False, "error": "not_authed"}
            if file is None or file.data is None or file.deleted or not self._workspace.app_sees(file):
                return {"ok": False, "error": "file_not_found"}
            return {"ok": True, "file": file.id}

    def _bytes(self, answer: Json) -> Response:
        if answer.get("error") == "not_authed":
            return RedirectResponse("/?redir=files-pri", status_code=302)
        file = self._workspace.files.get(str(answer.get("file")))
        if file is None:
            return PlainTextResponse("no such file\n", status_code=404)
        return Response(file.data, media_type=file.kind[0], headers=PRIVATE)

    async def _for_person(self, http: HttpRequest) -> Response:
        """The bytes for somebody at the page: pictures to look at, everything else to keep, nothing to run."""
        found = await run_in_threadpool(self._seen, http.path_params["file_id"], http.query_params.get("as", ""))
        if found is None or found.data is None:
            return PlainTextResponse("no such file for this person\n", status_code=404, headers=PRIVATE)
        inline = found.picture is not None and "download" not in http.query_params
        way = "inline" if inline else "attachment"
        headers = PRIVATE | {"Content-Disposition": f"{way}; filename*=UTF-8''{quote(found.name, safe='')}"}
        return Response(found.data, media_type=found.picture or "application/octet-stream", headers=headers)

    def _seen(self, file_id: str, user: str) -> StoredFile | None:
        with self._workspace.lock:
            who, file = self._workspace.find_user(user), self._workspace.files.get(file_id)
            if who is None or file is None or file.deleted:
                return None
            shown = any(who.id in self._workspace.channels[share.channel].members for share in file.shares)
            return file if shown or file.user == who.id else None


def _upload_answer(answer: Json) -> Response:
    if answer["ok"]:
        return PlainTextResponse(f"OK - {answer['length']}")
    return PlainTextResponse(str(answer["error"]), status_code=404 if answer["error"] == "no_such_upload" else 400)
