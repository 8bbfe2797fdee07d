"""`attach()`: add the processor to a provider once, whoever made the provider."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

if TYPE_CHECKING:
    from .processor import SeerSpanProcessor

logger = logging.getLogger("seer_otel")
_attached: WeakKeyDictionary[Any, SeerSpanProcessor] = WeakKeyDictionary()
_attached_for_good: list[tuple[Any, SeerSpanProcessor]] = []
"""Providers of another make that cannot be hashed or referred to weakly."""
_lock = threading.Lock()


def attach(tracer_provider: Any = None, **settings: Any) -> SeerSpanProcessor:
    """Add a `SeerSpanProcessor` to a tracer provider, beside what is on it already.

    Called again for the same provider it returns the processor that is there, and warns of settings that differ.
    Call it after other processors were added: Arize's `TracerProvider` removes all that it has for the first one.

    Args:
        tracer_provider: the provider; the global one by default.
        settings: those of `SeerSpanProcessor`.

    Returns:
        The processor, for `stats()` and `flush()`.

    Raises:
        ConfigurationError: a setting cannot work, or the provider takes no span processor.
    """
    from .config import is_enabled  # noqa: PLC0415 - `import seer_otel` takes a few milliseconds without
    from .processor import SeerSpanProcessor  # noqa: PLC0415

    if not is_enabled(os.environ):
        return SeerSpanProcessor()
    provider = trace.get_tracer_provider() if tracer_provider is None else tracer_provider
    if not callable(getattr(provider, "add_span_processor", None)):
        from .endpoint import ConfigurationError  # noqa: PLC0415

        raise ConfigurationError(_no_place(provider))
    with _lock:
        first = attached_to(provider)
        if first is not None:
            _compare(first, settings)
            return first
        processor = SeerSpanProcessor(**settings)
        _append(provider, processor)
        try:
            _attached[provider] = processor
        except TypeError:
            _attached_for_good.append((provider, processor))
        return processor


def attached_to(provider: object) -> SeerSpanProcessor | None:
    """Return the processor that `attach()` put on a provider, if it did."""
    try:
        return _attached.get(provider)
    except TypeError:
        return next((processor for each, processor in _attached_for_good if each is provider), None)


def forget(provider: object) -> None:
    """Let the next `attach()` add a processor again, after the one that is there was shut down."""
    with _lock, suppress(TypeError):
        _attached.pop(provider, None)


def _append(provider: Any, processor: SpanProcessor) -> None:
    """Add a processor without taking one away.

    Phoenix's and Arize's providers replace their default processor by the first one that is added
    (Arize-ai/phoenix#5201). The method that they override only appends.
    """
    if isinstance(provider, TracerProvider):
        if type(provider).add_span_processor is not TracerProvider.add_span_processor:
            logger.info("Added to %s beside the processors that it has.", type(provider).__name__)
        TracerProvider.add_span_processor(provider, processor)
    else:
        provider.add_span_processor(processor)


def _no_place(provider: object) -> str:
    name = f"{type(provider).__module__}.{type(provider).__qualname__}"
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return (
            "No tracer provider is set yet. Call opentelemetry.trace.set_tracer_provider() with one of"
            " opentelemetry.sdk.trace.TracerProvider first, or pass it to attach()"
        )
    return (
        f"{name} takes no span processor. Pass attach() the opentelemetry.sdk.trace.TracerProvider that makes the"
        " spans"
    )


def _compare(first: SeerSpanProcessor, settings: dict[str, Any]) -> None:
    """Warn of settings that differ; those that a later call leaves out are the first call's.

    A hook that the first call did not have is taken over: under zero-code, where the first call is not the
    application's, its events would leave unredacted.
    """
    from .config import load  # noqa: PLC0415

    have = {name: value for name, value in vars(first.config).items() if name not in ("enabled", "hiding")}
    given = {name: value for name, value in settings.items() if value is not None}
    wanted = vars(load({**have, **given}, {}))
    late = {name: given[name] for name in ("redact", "filter") if name in given and have[name] is None}
    if late:
        first.use_hooks(**late)
    differing = sorted(name for name in given if name not in late and wanted[name] != have[name])
    if differing:
        logger.warning(
            "This provider has a seer-otel processor, from an earlier attach() or from zero-code; its settings stay,"
            " and these differ: %s.",
            ", ".join(differing),
        )
