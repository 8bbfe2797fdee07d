"""The third view: one trace, hop by hop, with what an evaluator says about each passage."""

from __future__ import annotations

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from seer_otel.local import marks
from seer_otel.local.pages import links
from seer_otel.local.pages.reading import hops
from seer_otel.local.pages.reading.highlight import Highlighter
from seer_otel.local.pages.reading.traces import Hop, Trace, read
from seer_otel.local.pages.site import Pages
from seer_otel.local.storage import retention

_GONE = "There is no trace of this id here. It may have been deleted, by hand or because of its age."


def routes(pages: Pages) -> list[Route]:
    """Return the view's routes."""

    def show(request: Request) -> Response:
        filters = pages.filters(request)
        with pages.engine.connect() as connection:
            evaluator_id = filters.evaluator.id if filters.evaluator else None
            trace = read(connection, request.path_params["name"], evaluator_id)
        if trace is None:
            raise HTTPException(404, _GONE)
        hop = _chosen(trace, request.query_params.get("hop", ""))
        context: dict[str, Any] = {
            "trace": trace,
            "hop": hop,
            "growth": hops.growth(trace.hops),
            "why_final": hops.why_final(trace),
            "link": links.link(pages.trace_url, trace.name) if trace.has_id else None,
            "words": _words,
        }
        if hop is not None:
            queries = [hop.event.task, hop.event.subquery or ""]
            context |= {
                "passages": hops.shown(hop, trace.hops, Highlighter(queries)),
                "ranks": hops.ranks(hop),
                "bloat": hops.bloat(hop),
                "gold": hops.gold_of(hop),
                "missing": hops.missing(hop, trace.hops),
                "notes": marks.notes(hop.event.metadata),
            }
        return pages.render(request, "trace.html", filters=filters, **context)

    def delete(request: Request) -> Response:
        if not retention.delete(pages.store, request.path_params["name"]):
            raise HTTPException(404, _GONE)
        return RedirectResponse("/queries", 303)

    return [
        Route("/traces/{name}", show, methods=["GET"]),
        Route("/traces/{name}/delete", delete, methods=["POST"]),
    ]


def _chosen(trace: Trace, wanted: str) -> Hop | None:
    by_number = {str(hop.number): hop for hop in trace.hops}
    return by_number.get(wanted) or trace.final or next(iter(trace.hops), None)


def _words(value: object) -> str:
    """Return a value of metadata as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
