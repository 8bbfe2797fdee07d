"""The fourth view: what a change did, by the metadata key `feature_flag`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from seer_otel.local.pages import bars
from seer_otel.local.pages.filters import NONE
from seer_otel.local.pages.formats import DASH
from seer_otel.local.pages.reading import comparison
from seer_otel.local.pages.reading.comparison import Outcome, compare
from seer_otel.local.pages.reading.variants import MAX_TRACES, Variant, side, variants
from seer_otel.local.pages.site import Pages

TARGETS = (2, 5, 10)
"""Percentage points, of which one can be chosen as the smallest difference that matters."""
TARGET = 5
NAMES = {
    "recall": "Recall",
    "f1": "F1",
    "precision": "Precision",
    "ndcg": "nDCG",
    "gt_recall": "GT recall",
    "gt_f1": "GT F1",
    "gt_precision": "GT precision",
}


def routes(pages: Pages) -> list[Route]:
    """Return the view's route."""

    def show(request: Request) -> Response:
        # Which variant is meant is said by `base` and `test`.
        filters = replace(pages.filters(request), feature_flag=None)
        params = request.query_params
        target = _target(params.get("target", ""))
        with pages.engine.connect() as connection:
            seen = variants(connection, filters)
            base, test = _chosen(seen, params.get("base", ""), params.get("test", ""))
            sides = None
            if base is not None and test is not None and base != test:
                sides = side(connection, filters, base), side(connection, filters, test)
        context: dict[str, Any] = {
            "seen": seen,
            "base": base,
            "test": test,
            "named": {variant.name: variant.name or NONE for variant in seen},
            "target": target,
            "targets": TARGETS,
            "kept": {
                "base": None if base is None else base or NONE,
                "test": None if test is None else test or NONE,
                "target": None if target == TARGET else target,
            },
            "sides": sides,
            "most": MAX_TRACES,
            "names": NAMES,
            "bars": bars,
            "p": _p,
            "fewest": comparison.FEWEST,
            "listed": comparison.MAX_QUESTIONS,
            "outcome": None,
        }
        if sides is not None:
            outcome = compare(sides[0].units, sides[1].units, target / 100)
            context |= {"outcome": outcome, "end": _end(outcome)}
        return pages.render(request, "changes.html", filters=filters, **context)

    return [Route("/changes", show)]


def _p(value: float | None, *, spoken: bool = False) -> str:
    """Return a p as it is written; `spoken` with its sign: `= .012`, `< .001`."""
    if value is None:
        return DASH
    if value < 0.001:
        return "< .001"
    words = f"{value:.3f}".removeprefix("0")
    return f"= {words}" if spoken else words


def _target(text: str) -> int:
    return int(text) if text in map(str, TARGETS) else TARGET


def _chosen(seen: Sequence[Variant], base: str, test: str) -> tuple[str | None, str | None]:
    """Return the two variants; where none is named, that which was there first, and the last that came.

    Traces that say nothing are chosen where there is only one other variant.
    """
    names = [variant.name for variant in seen]
    likely = [name for name in names if name]
    likely = likely if len(likely) > 1 else names
    wanted = ["" if name == NONE else name for name in (base, test)]
    first = wanted[0] if base and wanted[0] in names else None
    last = wanted[1] if test and wanted[1] in names else None
    if first is None:
        first = next((name for name in likely if name != last), None)
    if last is None:
        last = next((name for name in reversed(likely) if name != first), None)
    return first, last


def _end(outcome: Outcome) -> float:
    """Return where the axis of all intervals ends."""
    rows = [*outcome.metrics, *(row for of_column in outcome.segments.values() for row in of_column)]
    reach = [
        max(abs(row.comparison.low), abs(row.comparison.high)) for row in rows if row.comparison is not None
    ]
    return bars.scale(max(reach, default=0.0))
