"""What the pure core knows of a span: its place in the trace, its times and its attributes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Span:
    """One ended span. Nobody changes one; it is not frozen, as that triples the cost of making it.

    Attributes:
        trace_id: 128 bits.
        span_id: 64 bits, unique within its trace.
        parent_id: the parent's span id, wherever the parent runs; None for a root.
        parent_is_remote: whether the parent belongs to another process.
        name: the span's name.
        start: Unix nanoseconds.
        end: Unix nanoseconds.
        failed: whether its status is ERROR. UNSET is no failure: hand-made spans rarely set a status.
        attributes: as the SDK keeps them: values of any type, tuples for lists.
        resource: the attributes of its resource.
        dropped_attributes: how many attributes the SDK's limit cost this span.
    """

    trace_id: int
    span_id: int
    parent_id: int | None
    parent_is_remote: bool
    name: str
    start: int
    end: int
    failed: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)
    resource: Mapping[str, Any] = field(default_factory=dict)
    dropped_attributes: int = 0
