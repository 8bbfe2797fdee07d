"""The span exporter: for applications that can only name one, and for `OTEL_TRACES_EXPORTER`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from .config import Config, load
from .pipeline.pipeline import ENDED, Pipeline
from .stats import FlushResult, Stats


class SeerSpanExporter(SpanExporter):
    """Does what `SeerSpanProcessor` does, behind a batch processor.

    Prefer the processor: an exporter sees spans late, never sees them start, and so waits two quiet seconds after
    a root; spans that the batch processor drops never get here.

    Args:
        settings: those of `SeerSpanProcessor`.

    Raises:
        ConfigurationError: a setting cannot work; its text names it.
    """

    def __init__(self, **settings: Any) -> None:
        self._config = load(settings)
        self._pipeline = Pipeline(self._config, sees_starts=False) if self._config.enabled else None

    @property
    def config(self) -> Config:
        """The settings in force."""
        return self._config

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

    def stats(self) -> Stats:
        """Return what became of every retrieval span so far."""
        return self._pipeline.stats() if self._pipeline is not None else Stats()

    def flush(self, timeout: float = 30.0) -> FlushResult:
        """Send everything that got here, open traces too, and say what happened.

        The SDK's batch processor keeps spans of its own that only its `force_flush` or `shutdown` hands over.

        Args:
            timeout: seconds.
        """
        if self._pipeline is None:
            return FlushResult(0, 0, {}, 0.0)
        return self._pipeline.flush(timeout)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send everything that got here; return whether nothing is left unsent at the deadline. Never raises."""
        try:
            return self.flush(timeout_millis / 1000).complete
        except Exception:  # noqa: BLE001 - it would reach the application
            return False

    def shutdown(self) -> None:
        """Send what can be sent within 5 seconds and take nothing more. Never raises."""
        if self._pipeline is None:
            return
        try:
            self._pipeline.shutdown()
        except Exception:  # noqa: BLE001 - it would reach the application
            return
