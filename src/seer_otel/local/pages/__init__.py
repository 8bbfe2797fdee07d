"""The backend's page: one site of five views, rendered on the server. See `site.py` for how a view is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

from starlette.routing import BaseRoute

from seer_otel.local.pages import assets
from seer_otel.local.pages.site import Pages
from seer_otel.local.pages.views import accuracy, changes, overview, queries, trace
from seer_otel.local.storage.store import Store


def routes(
    store: Store,
    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    trace_url: str | None = None,
) -> list[BaseRoute]:
    """Return the routes of the page, to be mounted at the root.

    `trace_url` is a link into a tracing UI that `links.check` lets through, such as `https://ui.example/{trace_id}`.
    """
    pages = Pages(store, now, trace_url)
    views = [route for view in (overview, queries, trace, changes, accuracy) for route in view.routes(pages)]
    return [*(pages.guarded(route) for route in views), *assets.routes()]
