"""No spans of our own requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.context import (
    _SUPPRESS_HTTP_INSTRUMENTATION_KEY,
    _SUPPRESS_INSTRUMENTATION_KEY,
    attach,
    detach,
    set_value,
)


@contextmanager
def suppressed_instrumentation() -> Iterator[None]:
    """Make no spans of what runs inside: a traced HTTP client would feed us our own requests for ever."""
    context = set_value(_SUPPRESS_INSTRUMENTATION_KEY, True)
    context = set_value(_SUPPRESS_HTTP_INSTRUMENTATION_KEY, True, context)
    token = attach(set_value("suppress_instrumentation", True, context))
    try:
        yield
    finally:
        detach(token)
