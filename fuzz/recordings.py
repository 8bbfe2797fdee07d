"""The recorded traces of real frameworks, as spans to begin from."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from seer_otel.spans import Span

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "recorded"


@cache
def recordings() -> tuple[tuple[Span, ...], ...]:
    """The spans of each recording in the order in which they ended."""
    paths = sorted(RECORDED.glob("*/*.json"))
    return tuple(_spans(json.loads(path.read_text(encoding="utf-8"))) for path in paths)


def _spans(recording: dict[str, Any]) -> tuple[Span, ...]:
    resource = recording["resource"]["attributes"]
    ended = sorted(recording["spans"], key=lambda span: span["end_order"])
    return tuple(_span(span, resource) for span in ended)


def _span(span: dict[str, Any], resource: dict[str, Any]) -> Span:
    return Span(
        trace_id=int(span["trace_id"], 16),
        span_id=int(span["span_id"], 16),
        parent_id=int(span["parent_id"], 16) if span["parent_id"] else None,
        parent_is_remote=bool(span["parent_is_remote"]),
        name=span["name"],
        start=span["start_time_unix_nano"],
        end=span["end_time_unix_nano"],
        failed=span["status"]["code"] == "ERROR",
        attributes={key: tuple(v) if isinstance(v, list) else v for key, v in span["attributes"].items()},
        resource=resource,
        dropped_attributes=span.get("dropped_attributes") or 0,
    )
