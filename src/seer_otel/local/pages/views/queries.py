"""The second view: one row a trace, the worst first, with search."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from seer_otel.local.pages import listing
from seer_otel.local.pages.site import Pages

COLUMNS = {
    "when": "When",
    "requirements": "Present",
    "passages": "Cited",
    "recall": "Recall",
    "precision": "Precision",
    "sufficiency": "Sufficiency",
    "gt_recall": "GT recall",
}
DESCENDING_FIRST = frozenset({"when", "passages", "requirements"})


def routes(pages: Pages) -> list[Route]:
    """Return the view's route."""

    def show(request: Request) -> Response:
        filters = pages.filters(request)
        params = request.query_params
        text, sort, flag = params.get("q", "").strip(), params.get("sort", ""), params.get("flag", "")
        flag = flag if flag in listing.FLAGS else ""
        sort = sort if sort.removeprefix("-") in listing.SORTS else ""
        number = _page(params.get("page", "1"))
        with pages.engine.connect() as connection:
            rows, total = listing.page(connection, filters, text=text, flag=flag, sort=sort, number=number)
        kept = {"q": text, "sort": sort, "flag": flag}
        context: dict[str, Any] = {
            "rows": rows,
            "total": total,
            "counted": min(total, listing.MAX_COUNT),
            "number": number,
            "first": (number - 1) * listing.PAGE + 1,
            "more": number * listing.PAGE < min(total, listing.MAX_COUNT),
            "kept": kept,
            "flags": {name: title for name, (title, _) in listing.FLAGS.items()},
            "columns": [_column(name, title, sort) for name, title in COLUMNS.items()],
            "labelled": sort.endswith("gt_recall") or any(row.gt_recall is not None for row in rows),
            "why": _why,
        }
        return pages.render(request, "queries.html", filters=filters, **context)

    return [Route("/queries", show)]


def _page(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) > 0):
        raise HTTPException(400, "page is a number from 1 on.")
    if int(text) > listing.MAX_PAGE:
        raise HTTPException(
            400, f"There are at most {listing.MAX_PAGE} pages; a filter or a search shows less."
        )
    return int(text)


def _column(name: str, title: str, sort: str) -> dict[str, str]:
    """Return a heading: what it sorts by when followed, and how it is sorted now."""
    if sort.removeprefix("-") == name:
        down = sort.startswith("-")
        return {
            "name": name,
            "title": title,
            "sort": name if down else f"-{name}",
            "sorted": "descending" if down else "ascending",
        }
    return {
        "name": name,
        "title": title,
        "sort": f"-{name}" if name in DESCENDING_FIRST else name,
        "sorted": "",
    }


def _why(left_out: str) -> str:
    """Return a mark that keeps a trace out of averages in words: `passages cut`, `partial`."""
    return left_out.removeprefix("seer_otel.").replace("_", " ")
