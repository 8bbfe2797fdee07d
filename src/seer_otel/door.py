"""What the doors through which spans come in have in common: the settings, the pipeline, and ways to ask and to end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import metrics
from .config import Config, load
from .exits import alive
from .pipeline.pipeline import Pipeline
from .stats import FlushResult, Stats


class Door:
    """A pipeline and its settings; without a pipeline where seer-otel is switched off.

    Args:
        settings: see `SeerSpanProcessor`; None means not given.
        sees_starts: whether spans come in when they start, too.

    Raises:
        ConfigurationError: a setting cannot work; its text names it.
    """

    def __init__(self, settings: Mapping[str, Any], *, sees_starts: bool) -> None:
        self._config = load(settings)
        self._pipeline = Pipeline(self._config, sees_starts=sees_starts) if self._config.enabled else None
        if self._pipeline is not None:
            alive.add(self)
            metrics.observe(self._pipeline, metrics.PROCESSOR if sees_starts else metrics.EXPORTER)

    @property
    def config(self) -> Config:
        """The settings in force."""
        return self._config if self._pipeline is None else self._pipeline.config

    def stats(self) -> Stats:
        """Return what became of every retrieval span so far."""
        return self._pipeline.stats() if self._pipeline is not None else Stats()

    @property
    def is_interrupted(self) -> bool:
        """Whether this thread is in the middle of a flush: so it is in signal handlers and users' hooks."""
        return self._pipeline is not None and self._pipeline.is_interrupted

    def flush(self, timeout: float = 30.0) -> FlushResult:
        """Send everything that got here now, open traces too, and say what happened.

        In front of an exporter the SDK's batch processor keeps spans of its own, which only its `force_flush` or
        `shutdown` hands over.

        Args:
            timeout: seconds.
        """
        if self._pipeline is None:
            return FlushResult()
        return self._pipeline.flush(timeout)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send everything that got here now; return whether nothing is left unsent at the deadline. Never raises."""
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
