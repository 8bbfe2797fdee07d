"""What all views share: the templates, the filters of a request, the headers, the error page.

A view is a module in `views/` with `routes(pages: Pages) -> list[Route]`; its endpoints are plain functions
`(request) -> Response`, which run in a thread. It reads `pages.engine`, and answers with `pages.render`:

    def routes(pages: Pages) -> list[Route]:
        def show(request: Request) -> Response:
            filters = pages.filters(request)
            with pages.engine.connect() as connection:
                ...
            return pages.render(request, "changes.html", filters=filters, rows=rows)

        return [Route("/changes", show)]

A template extends `base.html` and fills the blocks `title` and `content`; it includes `_filters.html` where the
filter bar belongs. Neither scripts nor styles may be inline, not even a `style` attribute: the policy forbids it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import jinja2
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from seer_otel.local.pages import assets, charts, formats
from seer_otel.local.pages.choices import Choices, evaluators
from seer_otel.local.pages.filters import BadParameterError, Filters
from seer_otel.local.storage.store import Store

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer of a page, unless it says otherwise itself. No store: pages hold users' questions."""


class Pages:
    """What a view is given.

    Attributes:
        store: for what a POST asks to be written; nothing else is.
        engine: the store's, for reading the tables.
        now: the clock, a datetime in UTC.
        trace_url: a link into the tracing UI of whoever runs this, as `links.check` lets it through.
    """

    def __init__(self, store: Store, now: Callable[[], datetime], trace_url: str | None = None) -> None:
        self.store = store
        self.engine = store.engine
        self.now = now
        self.trace_url = trace_url
        self._templates = _environment()

    def filters(self, request: Request) -> Filters:
        """Return what the request's URL chooses; a parameter that cannot be meant is answered with a 400 page."""
        with self.engine.connect() as connection:
            known = evaluators(connection)
        try:
            return Filters.of(request.query_params, self.now(), known)
        except BadParameterError as error:
            raise HTTPException(400, str(error)) from None

    def render(self, request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
        """Render a template. It sees `context`, and:

        `request`, `path` (of the URL), `now`, `choices` (what the filter bar offers, read when it is looked at),
        `asset(name)` (the URL of a static file), `charts` (the functions of charts.py), and the functions of
        formats.py as filters. Give it `filters` where it includes `_filters.html`.
        """
        text = self._templates.get_template(template).render(
            {
                "request": request,
                "path": request.url.path,
                "now": self.now(),
                "choices": Choices(self.engine, context.get("filters")),
                "filters": None,
                **context,
            }
        )
        return HTMLResponse(text, status)

    def guarded(self, route: Route) -> Route:
        """Return a route that runs in a thread, with the headers, an error page, and no writes from other sites.

        A view raises `HTTPException(status, message)`; the message is shown.
        """
        return Route(
            route.path, self._guarded(route.endpoint), methods=sorted(route.methods or ()), name=route.name
        )

    def _error(self, request: Request, error: HTTPException) -> Response:
        return self.render(request, "error.html", status=error.status_code, error=error)

    def _guarded(self, endpoint: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
        @functools.wraps(endpoint)
        async def answer(request: Request) -> Response:
            try:
                _refuse_other_sites(request)
                if inspect.iscoroutinefunction(endpoint):
                    response: Response = await endpoint(request)
                else:
                    response = await run_in_threadpool(endpoint, request)
            except HTTPException as error:
                response = await run_in_threadpool(self._error, request, error)
            except SQLAlchemyError as error:
                # 503 and not 500: a full disk or a locked file may pass.
                reason = HTTPException(503, f"The store could not be read: {getattr(error, 'orig', error)}.")
                response = await run_in_threadpool(self._error, request, reason)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return answer


def _refuse_other_sites(request: Request) -> None:
    """Raise unless a request that may write was sent by a page of this server."""
    if request.method in {"GET", "HEAD"}:
        return
    # Browsers send one or both with every POST, and no page can forge them.
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin", "").partition("://")[2]
    if site != "same-origin" and (site is not None or not origin or origin != request.headers.get("host")):
        raise HTTPException(403, "This was not sent by a page of this server, so nothing was changed.")


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("seer_otel.local.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    for function in (
        formats.percent,
        formats.points,
        formats.interval,
        formats.number,
        formats.duration,
        formats.when,
        formats.ago,
        formats.period,
        formats.short,
    ):
        environment.filters[function.__name__] = function
    environment.globals["asset"] = assets.url
    environment.globals["charts"] = charts
    return environment
