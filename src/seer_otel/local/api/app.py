"""The local backend over HTTP: `POST /v1/log`, `DELETE /v1/traces/<id>`, `GET /healthz`, and the pages."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from seer_otel.local import pages
from seer_otel.local.api import log
from seer_otel.local.api.answers import EXPECTED, refusal
from seer_otel.local.api.guard import Guard
from seer_otel.local.api.inbox import ROOM
from seer_otel.local.api.log import Log
from seer_otel.local.judging.judge import count_pending
from seer_otel.local.storage import retention
from seer_otel.local.storage.migrations import HEAD
from seer_otel.local.storage.store import Store


class Backend(Starlette):
    """The application, which leaves events to `log`."""

    log: Log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"] == log.PATH and scope["method"] == "POST":
            await self.log(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(
    store: Store, key: str | None = None, room: int = ROOM, *, trace_url: str | None = None
) -> Starlette:
    """Return the application. Whoever calls opens and closes `store`.

    Args:
        key: what every request needs as bearer, health alone excepted; browsers may send it as a password. Without
            one, whatever reads or deletes is answered only under a name of this machine.
        room: events that wait to be written, beyond which the answer is 429.
        trace_url: as for `pages.routes`.
    """
    app = Backend(
        routes=[
            Route(log.PATH, _only_post, methods=["POST"]),
            Route("/v1/traces/{trace}", _delete, methods=["DELETE"]),
            Route("/healthz", _health),
            *pages.routes(store, trace_url=trace_url),
        ],
        middleware=[Middleware(Guard, key=key, free=(log.PATH, "/healthz"))],
        exception_handlers=dict.fromkeys((*EXPECTED, Exception), _failed),
    )
    # A redirect would look like an answer to a client that must not follow it.
    app.router.redirect_slashes = False
    app.state.store = store
    app.log = Log(store, key, room)
    return app


def _only_post(request: Request) -> Response:
    """Stands for `log` in the list of routes, so that other methods are told which one is allowed."""
    raise NotImplementedError


async def _delete(request: Request) -> Response:
    trace = request.path_params["trace"]
    if not await run_in_threadpool(retention.delete, request.app.state.store, trace):
        raise HTTPException(404, "there is no trace of this id")
    return JSONResponse({"deleted": True})


async def _health(request: Request) -> Response:
    waiting = await run_in_threadpool(count_pending, request.app.state.store.engine)
    return JSONResponse({"status": "ok", "schema": HEAD, "pending": waiting})


async def _failed(request: Request, error: Exception) -> Response:
    answer = refusal(error, request.method, request.url.path)
    # Events that went to a wrong address would else be missed by nobody.
    if request.method == "POST" and request.url.path.startswith("/v1/"):
        request.app.state.store.refusals.note(answer.code)
    return answer
