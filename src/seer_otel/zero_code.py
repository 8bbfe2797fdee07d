"""Zero-code: the entry points that `opentelemetry-instrument` and the declarative configuration file load.

Nothing here raises, and an installed package is not a request: without a key, a URL or a setting nothing happens.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from .attach import attach, attached_to, forget
from .config import is_enabled, load
from .endpoint import KEY_PREFIX
from .exporter import SeerSpanExporter
from .notices import logger
from .processor import SeerSpanProcessor

try:
    from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]
except ImportError:  # the exporter works without it, for programs that read the declarative file themselves
    BaseInstrumentor = object


class SeerInstrumentor(BaseInstrumentor):  # type: ignore[misc]  # the base is untyped
    """Adds the processor to the provider that zero-code set up; entry point `seer` of `opentelemetry_instrumentor`.

    Options come from the environment or from the declarative file (`instrumentation/development`, `python`, `seer`).
    """

    has_options: ClassVar[bool] = False
    """Whether the file gave options to us or to the exporter; they beat what the environment asks for."""

    _processor: SeerSpanProcessor | None = None
    _provider: Any = None

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return nothing: it instruments no library."""
        return ()

    def instrument(self, **kwargs: Any) -> None:
        """Add the processor if something asks for it. A second call is quiet: the loader makes one after the file's.

        Args:
            kwargs: `tracer_provider`, and settings of `SeerSpanProcessor`; others are the loader's own.
        """
        if self.is_instrumented_by_opentelemetry:
            return
        try:
            provider = kwargs.pop("tracer_provider", None) or trace.get_tracer_provider()
            given = ((name, value) for name, value in kwargs.items() if name not in _LOADERS)
            settings = {name: value for name, value in given if value is not None}
            asked = settings or (is_asked(os.environ) and not self.has_options)
            if not is_enabled(os.environ) or not asked:
                logger.debug(
                    "Not asked: no options here, neither SEER_API_KEY nor SEER_INGESTION_URL is set."
                )
                return
            SeerInstrumentor.has_options = bool(settings)
            self._processor, self._provider = attach(provider, **settings), provider
            limit = self._processor.config.raise_attribute_limit
            if limit is not None:
                _raise_attribute_limit(provider, limit)
            self._is_instrumented_by_opentelemetry = True
        except Exception as error:  # noqa: BLE001 - it is logged
            _refuse(error)

    def _uninstrument(self, **_: Any) -> None:
        if self._processor is not None:
            self._processor.shutdown()
            forget(self._provider)
        self._processor = self._provider = None
        SeerInstrumentor.has_options = False


class SeerEntryPointExporter(SeerSpanExporter):
    """The exporter named `seer` in `OTEL_TRACES_EXPORTER` and in the declarative file.

    Unlike its base it never raises: a bad setting is said in one log line, and nothing is sent. It is quiet where
    the processor is on the global provider as well.
    """

    def __init__(self, **settings: Any) -> None:
        SeerInstrumentor.has_options |= bool(settings)
        try:
            super().__init__(**settings)
        except Exception as error:  # noqa: BLE001 - it is logged
            _refuse(error)
            self._config, self._pipeline = load({}, {"SEER_OTEL_ENABLED": "false"}), None

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take ended spans, unless the processor does. Never raises, never waits."""
        if attached_to(trace.get_tracer_provider()) is not None:
            return SpanExportResult.SUCCESS
        return super().export(spans)


_LOADERS = ("skip_dep_check", "raise_exception_on_conflict")
_said: set[str] = set()


def _refuse(error: Exception) -> None:
    """Say what is wrong, once: both doors read the same environment."""
    text = str(error).rstrip(".")
    if text not in _said:
        _said.add(text)
        logger.warning("seer-otel sends nothing: %s.", text)


def is_asked(environment: Mapping[str, str]) -> bool:
    """Return whether the environment asks for events: by a URL, or by a key that is Seer's and no other product's."""
    key = environment.get("SEER_API_KEY", "").strip()
    return key.startswith(KEY_PREFIX) or bool(environment.get("SEER_INGESTION_URL", "").strip())


def _raise_attribute_limit(provider: object, limit: int) -> None:
    """Lift the SDK's limit of 128 attributes a span, which eats the best documents first.

    The limits were read from the environment before anything of ours was loaded; they are shared by all tracers of
    the provider, and there is no public way to them.
    """
    limits: Any = getattr(provider, "_span_limits", None)
    if not hasattr(limits, "max_span_attributes"):
        logger.warning("SEER_OTEL_RAISE_ATTRIBUTE_LIMIT has no effect on this provider.")
    elif limits.max_span_attributes is not None:  # None is no limit at all
        limits.max_span_attributes = max(limit, limits.max_span_attributes)
