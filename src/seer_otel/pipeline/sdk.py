"""Spans of the OpenTelemetry SDK as the pure core wants them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from ..spans import Span

MAX_NAME = 1_000
"""Characters of an attribute's name. What has a longer one is not read; no convention has."""
MAX_ATTRIBUTES = 25_000
"""Attributes of one span that are read, far more than its documents may have. Those beyond it count as dropped."""

_NOTHING: Mapping[str, Any] = {}


def attributes_of(span: ReadableSpan) -> Mapping[str, Any]:
    """Return a span's attributes as they are now, whoever has replaced them since the span ended.

    As a plain dict: each look-up in the SDK's own mapping is a call of several functions in Python.
    """
    attributes = span.attributes
    if not attributes:
        return _NOTHING
    copy = getattr(attributes, "copy", None)
    plain: Mapping[str, Any] = copy() if copy is not None else dict(attributes)
    return plain


def read(span: ReadableSpan) -> Span:
    """Return an ended span as plain data.

    Read as late as possible: processors that translate one convention into another replace the attributes in
    their own `on_end`, which may run after ours.
    """
    context, parent, attributes = span.context, span.parent, attributes_of(span)
    start = span.start_time or 0
    return Span(
        trace_id=context.trace_id,
        span_id=context.span_id,
        parent_id=parent.span_id if parent is not None else None,
        parent_is_remote=parent is not None and parent.is_remote,
        name=span.name if isinstance(span.name, str) else str(span.name),
        start=start,
        end=span.end_time if span.end_time is not None else start,
        failed=span.status.status_code is StatusCode.ERROR,
        attributes=_readable(attributes),
        resource=span.resource.attributes,
        dropped_attributes=span.dropped_attributes + max(0, len(attributes) - MAX_ATTRIBUTES),
    )


def _readable(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        if len(attributes) <= MAX_ATTRIBUTES and max(map(len, attributes), default=0) <= MAX_NAME:
            return attributes
    except TypeError:  # a name that is no text, which a processor put there
        pass
    first = islice(attributes.items(), MAX_ATTRIBUTES)
    return {name: value for name, value in first if isinstance(name, str) and len(name) <= MAX_NAME}


def size_of(attributes: Mapping[str, Any]) -> int:
    """Return about how many bytes a span holds: two a character, a little for each key and for the span itself."""
    size = 512 + 64 * len(attributes)
    try:
        size += sum(map(len, attributes))
        for value in attributes.values():
            kind = type(value)
            size += 2 * len(value) if kind is str else 8 if kind in _NUMBERS else _size(value)
    except Exception:  # noqa: BLE001 - a value of the application's own type; a guess does
        return 4096
    return size


_MAX_LOOKED = 100
_NUMBERS = frozenset({float, int, bool})


def _size(value: object, looked: int = _MAX_LOOKED) -> int:
    """As `size_of`. Of many values some are looked at, as the others are likely to be as long; fewer the deeper."""
    if isinstance(value, (str, bytes)):
        return 2 * len(value)
    if isinstance(value, (Mapping, list, tuple)):
        each, items = (64, value.values()) if isinstance(value, Mapping) else (8, value)
        sizes = [each + _size(item, looked // 4) for item in islice(items, looked)]
        return sum(sizes) * len(value) // len(sizes) if sizes else each * len(value)
    return 8
