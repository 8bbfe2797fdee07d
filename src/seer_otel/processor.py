"""The span processor: the one line that an application adds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from .context import attributes_in, stored
from .delivery.transport import Transport
from .door import Door
from .event import Event
from .pipeline.pipeline import ENDED, LOOK, STARTED, Pipeline


class SeerContextProcessor(SpanProcessor):
    """Writes what the `using_*` blocks say on every span started inside them, and does nothing else.

    For those who use the exporter alone, which sees no spans start.
    """

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Write the attributes; never raises."""
        try:
            attributes = attributes_in(parent_context)
            if attributes:
                span.set_attributes(attributes)
        except Exception:  # noqa: BLE001 - whatever leaves a hook reaches the application
            return

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - the signature is the SDK's
        """There is nothing to flush. The SDK's own method says so only in newer versions."""
        return True


class SeerSpanProcessor(Door, SeerContextProcessor):
    """Turns the retrieval spans of a provider into Seer events and delivers them in the background.

    ```python
    provider.add_span_processor(SeerSpanProcessor())
    ```

    Every argument may come from its environment variable instead; see the README's table.

    Args:
        api_key: bearer key (`SEER_API_KEY`). None is enough for a backend on this machine.
        endpoint: the complete URL (`SEER_INGESTION_URL`); Seer's own by default.
        sample_rate: share of traces kept, 0 to 1 (`SEER_SAMPLE_RATE`), 0.1 by default.
        nested: `"outermost"`, or `"all"` to send other results found inside a retrieval, too.
        final_context: `"last"`: how the final context is inferred where nothing marks it.
        redact: called with each event before it is sent; what it returns is sent, and nothing if it fails.
        filter: called with each event before the final context is chosen; a false answer drops the event.
        transport: takes the events instead of HTTP, such as `InMemoryTransport` in tests.
        settings: the other settings of the README's table, by the lower-case name without `SEER_OTEL_`.

    Raises:
        ConfigurationError: a setting cannot work; its text names it.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        endpoint: str | None = None,
        sample_rate: float | None = None,
        nested: str | None = None,
        final_context: str | None = None,
        redact: Callable[[Event], Event | None] | None = None,
        filter: Callable[[Event], bool] | None = None,  # noqa: A002 - the setting's name
        transport: Transport | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            {
                "api_key": api_key,
                "endpoint": endpoint,
                "sample_rate": sample_rate,
                "nested": nested,
                "final_context": final_context,
                "redact": redact,
                "filter": filter,
                "transport": transport,
                **settings,
            },
            sees_starts=True,
        )
        self._queue: deque[ReadableSpan] = deque()
        self._take: Callable[[ReadableSpan, bool], None] = _pass
        if self._pipeline is not None:
            self._hand_to(self._pipeline)

    def _hand_to(self, pipeline: Pipeline) -> None:
        """Keep what the hooks need where they find it fastest; an empty queue always leads to `take`."""
        self._pipeline, self._take = pipeline, pipeline.take
        if not pipeline.config.synchronous:
            self._queue = pipeline.queue

    def use_hooks(self, **hooks: Any) -> None:
        """Take over `redact` or `filter` where `attach()` got one only when it was called again."""
        if self._pipeline is not None:
            self._pipeline.use_hooks(**hooks)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Note that a span is open; never raises, never waits."""
        if stored.in_use:
            super().on_start(span, parent_context)
        try:
            queue = self._queue
            if len(queue) % LOOK:
                queue.append(span)
            else:
                self._take(span, STARTED)
        except Exception:  # noqa: BLE001 - it would reach the application
            return

    def on_end(self, span: ReadableSpan) -> None:
        """Take an ended span; never raises, and never waits unless it was asked to (`synchronous`)."""
        try:
            queue = self._queue
            if len(queue) % LOOK:
                queue.append(span)
            else:
                self._take(span, ENDED)
        except Exception:  # noqa: BLE001 - it would reach the application
            return


def _pass(span: ReadableSpan, phase: bool) -> None:
    """Take nothing: seer-otel is switched off."""
