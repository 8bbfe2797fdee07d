"""Spans of the SDK as the core sees them: what is read of hostile ones."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider

from seer_otel.pipeline.sdk import MAX_ATTRIBUTES, MAX_NAME, read, size_of


def ended(**attributes: Any) -> ReadableSpan:
    limits = SpanLimits(max_span_attributes=SpanLimits.UNSET)
    span = TracerProvider(span_limits=limits, shutdown_on_exit=False).get_tracer("test").start_span("span")
    for name, value in attributes.items():
        span.set_attribute(name, value)
    span.end()
    assert isinstance(span, ReadableSpan)
    return span


def test_names_are_bounded() -> None:
    """An attribute with a name longer than any convention's is not read; the others are."""
    span = ended(**{"a" * MAX_NAME: 1, "b" * (MAX_NAME + 1): 2})
    assert read(span).attributes == {"a" * MAX_NAME: 1}


def test_names_that_are_no_text() -> None:
    """A processor may replace the attributes by a mapping with any keys; those that are text are read."""
    span = ended()
    span._attributes = {1: "a", "b": 2}
    assert read(span).attributes == {"b": 2}


def test_attributes_are_bounded() -> None:
    """Of very many attributes the first are read, and the others count as dropped, so that the event says so."""
    span = ended(**{f"a.{number}": number for number in range(MAX_ATTRIBUTES + 3)})
    found = read(span)
    assert (len(found.attributes), found.dropped_attributes) == (MAX_ATTRIBUTES, 3)


@pytest.mark.parametrize(
    ("value", "least"),
    [
        ("a" * 1000, 2_000),
        (("ab",) * 1_000, 4_000),
        ((("ab",) * 1_000,) * 1_000, 4_000_000),
        ({"a": {"b": "x" * 1_000}}, 2_000),
        ((), 0),
        ({}, 0),
    ],
)
def test_size(value: object, least: int) -> None:
    """The size of a span grows with all that is in it, lists in lists included."""
    without = size_of({"a": b""})
    assert least <= size_of({"a": value}) - without <= 20 * least + 100


def test_size_of_names() -> None:
    """A long name takes memory as a long value does."""
    assert size_of({"a" * 10_000: 1}) > 10_000
