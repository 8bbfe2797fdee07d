"""The span exporter: for applications that can only name one, and for `OTEL_TRACES_EXPORTER`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from .door import Door
from .pipeline.pipeline import ENDED


class SeerSpanExporter(Door, SpanExporter):
    """Does what `SeerSpanProcessor` does, behind a batch processor.

    Prefer the processor: an exporter sees spans late, never sees them start, and so waits two quiet seconds after
    a root; spans that the batch processor drops never get here.

    Args:
        settings: those of `SeerSpanProcessor`.

    Raises:
        ConfigurationError: a setting cannot work; its text names it.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(settings, sees_starts=False)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take ended spans; delivery goes on in the background. Never raises, never waits."""
        if self._pipeline is None:
            return SpanExportResult.SUCCESS
        try:
            self._pipeline.check_process()
            for span in spans:
                self._pipeline.take(span, ENDED)
        except Exception:  # noqa: BLE001 - it would reach the application
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS
