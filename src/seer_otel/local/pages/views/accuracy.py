"""The fifth view: how far the evaluator agrees with labels, where it does not, and labelled files in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from seer_otel.local.pages import importing
from seer_otel.local.pages.importing import Problem, Upload
from seer_otel.local.pages.reading import disagreements, exporting, labelled
from seer_otel.local.pages.reading.disagreements import Disagreement
from seer_otel.local.pages.site import Pages

MAX_PAGE = 1_000

_Writer = Callable[[Iterable[Disagreement], str], Iterator[str]]


def routes(pages: Pages) -> list[Route]:
    """Return the view's routes."""

    def show(request: Request) -> Response:
        imported = request.query_params.get("imported", "")
        number = int(imported) if imported.isascii() and imported.isdigit() else 0
        words = f"{number:,} labelled questions are stored. They are judged within moments; reload to see."
        return _page(pages, request, imported=words if number else "")

    async def take(request: Request) -> Response:
        upload = await importing.read(request)
        if isinstance(upload, Problem):
            return await run_in_threadpool(_page, pages, request, problem=upload)
        outcome = await run_in_threadpool(importing.store, pages.store, upload)
        if isinstance(outcome, Problem):
            return await run_in_threadpool(_page, pages, request, problem=outcome, upload=upload)
        query: dict[str, object] = {"imported": outcome}
        if upload.dataset:
            query["meta.dataset"] = upload.dataset
        return RedirectResponse(f"/accuracy?{urlencode(query)}", 303)

    def export(name: str, media_type: str, write: _Writer) -> Route:
        def answer(request: Request) -> Response:
            filters = pages.filters(request)
            kind = _kind(request)
            evaluator = filters.evaluator.key if filters.evaluator else ""

            def lines() -> Iterator[str]:
                with pages.engine.connect() as connection:
                    found = disagreements.find(connection, filters, kind, limit=disagreements.MAX_EXPORTED)
                    yield from write(found, evaluator)

            headers = {"Content-Disposition": f'attachment; filename="{name}"'}
            return StreamingResponse(lines(), media_type=media_type, headers=headers)

        return Route(f"/accuracy/{name}", answer, methods=["GET"])

    return [
        Route("/accuracy", show, methods=["GET"]),
        Route("/accuracy/import", take, methods=["POST"]),
        export("disagreements.jsonl", "application/jsonl", exporting.json_lines),
        export("disagreements.csv", "text/csv", exporting.comma_separated),
    ]


def _page(
    pages: Pages,
    request: Request,
    *,
    imported: str = "",
    problem: Problem | None = None,
    upload: Upload | None = None,
) -> Response:
    filters = pages.filters(request)
    kind, number = _kind(request), _number(request.query_params.get("page", "1"))
    first = (number - 1) * disagreements.PER_PAGE
    with pages.engine.connect() as connection:
        datasets = labelled.by_dataset(connection, filters)
        context: dict[str, Any] = {
            "datasets": datasets,
            "total": labelled.together(datasets),
            "corrections": labelled.corrections(connection, filters),
            "disagreeing": disagreements.count(connection, filters, kind),
            "rows": list(disagreements.find(connection, filters, kind, offset=first)),
        }
    return pages.render(
        request,
        "accuracy.html",
        status=problem.status if problem else 200,
        filters=filters,
        kind=kind,
        kept={"kind": kind},
        number=number,
        first=first + 1,
        imported=imported,
        problem=problem,
        pasted=upload.pasted if upload else "",
        named=upload.dataset if upload else "",
        path="/accuracy",
        **context,
    )


def _kind(request: Request) -> str:
    kind = request.query_params.get("kind", "")
    return kind if kind in disagreements.KINDS else ""


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) <= MAX_PAGE):
        raise HTTPException(400, f"page is a number from 1 to {MAX_PAGE:,}; a filter shows less.")
    return int(text)
