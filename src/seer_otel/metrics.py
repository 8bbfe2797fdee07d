"""The counters as OpenTelemetry metrics, on the global meter `seer_otel`.

What the semantic conventions of the SDK's own metrics have a name for bears that name, counted in retrieval spans:

| processor | exporter | what |
| --- | --- | --- |
| `otel.sdk.processor.span.processed` | `otel.sdk.exporter.span.exported` | what has become of a span: sent, or not \
an event by design; with `error.type`, a `DropReason`, it was lost |
| `otel.sdk.processor.span.queue.size` | `otel.sdk.exporter.span.inflight` | spans that wait, `Stats.held` |

The sum of both is `Stats.seen`. There is no `queue.capacity`: what waits is bounded in bytes, in several places.
The others are in `OURS`. Each bears `otel.component.type` and `otel.component.name`.

The instruments are observed: they cost nothing until a metric reader of the application's asks, and nothing is asked
where no metrics SDK is set up. A series ends with its processor; after a shutdown it keeps its last values.
"""

from __future__ import annotations

import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from ._version import __version__
from .stats import Stats

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation

PROCESSOR = "seer_span_processor"
"""`otel.component.type` of the processor."""
EXPORTER = "seer_span_exporter"
"""`otel.component.type` of the exporter."""


class Source(Protocol):
    """Whose counters are observed; held weakly."""

    def stats(self) -> Stats:
        """Return the counts of this moment."""
        ...


OURS: Mapping[str, tuple[str, str, Callable[[Stats], int]]] = {
    # Traces that sampling left out can come back; these two only grow.
    "seer_otel.traces.seen": (
        "{trace}",
        "Traces of which a span was taken.",
        lambda stats: stats.traces_seen,
    ),
    "seer_otel.traces.kept": (
        "{trace}",
        "Of these, those that sampling kept.",
        lambda stats: stats.traces_seen - stats.traces_sampled_out,
    ),
    "seer_otel.passages.cut": (
        "{passage}",
        "Passages beyond the backend's limit.",
        lambda stats: stats.passages_cut,
    ),
    "seer_otel.texts.cut": (
        "{text}",
        "Texts cut to the backend's limit.",
        lambda stats: stats.texts_cut,
    ),
    "seer_otel.secrets.scrubbed": (
        "{value}",
        "Values in which something that looks like a secret was replaced.",
        lambda stats: stats.secrets_scrubbed,
    ),
    "seer_otel.events.incomplete": (
        "{event}",
        "Events whose span lost attributes to the SDK's limit.",
        lambda stats: stats.attributes_dropped,
    ),
    "seer_otel.events.unlabelled": (
        "{event}",
        "Events without their ground truth, as it could not be read.",
        lambda stats: stats.labels_unreadable,
    ),
    "seer_otel.spool.recovered": (
        "{span}",
        "Retrieval spans that an earlier process had left in the spool.",
        lambda stats: stats.recovered,
    ),
    "seer_otel.requests.retried": (
        "{request}",
        "Requests sent again.",
        lambda stats: stats.retries,
    ),
}
"""Name to unit, description and value of what has no name in the conventions; each only grows."""

_observed: dict[str, tuple[weakref.ref[Source], dict[str, str]]] = {}
"""By name, so that taking one out is one step: a collection may run anywhere, in the middle of anything."""
_numbers: defaultdict[str, Iterator[int]] = defaultdict(count)
_first = deque([True])
"""Empty once the instruments are made. Taking from it needs no lock, which a fork could leave locked in the child."""


def observe(source: Source, component_type: str) -> None:
    """Let the metrics tell what `source.stats()` says, until it is collected. Never raises.

    Args:
        source: whose counters.
        component_type: `PROCESSOR` or `EXPORTER`.
    """
    with suppress(Exception):
        name = f"{component_type}/{next(_numbers[component_type])}"
        attributes = {"otel.component.type": component_type, "otel.component.name": name}
        forget = partial(_forget, _observed, name)
        _observed[name] = weakref.ref(source, forget), attributes
        with suppress(IndexError):
            _first.pop()
            # Here, as importing us shall not take longer for it.
            from opentelemetry.metrics import get_meter  # noqa: PLC0415

            make_instruments(get_meter("seer_otel", __version__))


def make_instruments(meter: Meter) -> None:
    """Make every instrument on `meter`; for tests, as there is one global meter provider a process."""
    spans: list[tuple[str, str, str]] = [
        (PROCESSOR, "otel.sdk.processor.span.processed", "otel.sdk.processor.span.queue.size"),
        (EXPORTER, "otel.sdk.exporter.span.exported", "otel.sdk.exporter.span.inflight"),
    ]
    for component_type, finished, waiting in spans:
        meter.create_observable_counter(
            finished,
            callbacks=[_callback(_outcomes, component_type)],
            unit="{span}",
            description="Retrieval spans for which the processing has finished, either successful or failed.",
        )
        meter.create_observable_up_down_counter(
            waiting,
            callbacks=[_callback(_held, component_type)],
            unit="{span}",
            description="Retrieval spans that wait: in an open trace, or for the backend.",
        )
    meter.create_observable_up_down_counter(
        "seer_otel.spool.size",
        callbacks=[_callback(_value(lambda stats: stats.spooled))],
        unit="{span}",
        description="Retrieval spans of those that wait whose event is in the spool.",
    )
    for name, (unit, description, value) in OURS.items():
        meter.create_observable_counter(
            name, callbacks=[_callback(_value(value))], unit=unit, description=description
        )


def _forget(observed: dict[str, Any], name: str, _: object) -> None:
    observed.pop(name, None)  # not a global: while the interpreter ends there is none


def _callback(
    read: Callable[[Stats], Iterable[tuple[int, Mapping[str, str]]]], component_type: str | None = None
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    """What an instrument calls: `read` of every source, of one type or of all, with the source's attributes."""

    def observations(_: CallbackOptions) -> Iterable[Observation]:
        from opentelemetry.metrics import Observation  # noqa: PLC0415

        return [
            Observation(value, {**attributes, **more})
            for attributes, stats in _all_stats(component_type)
            for value, more in read(stats)
        ]

    return observations


def _all_stats(component_type: str | None) -> Iterator[tuple[Mapping[str, str], Stats]]:
    for reference, attributes in _observed.copy().values():
        source = reference()
        if source is not None and component_type in (None, attributes["otel.component.type"]):
            with suppress(Exception):  # one that is broken costs no other
                yield attributes, source.stats()


def _outcomes(stats: Stats) -> Iterator[tuple[int, Mapping[str, str]]]:
    by_design = sum(number for reason, number in stats.dropped.items() if reason.by_design)
    yield stats.sent + by_design, {}
    for reason, number in stats.dropped.items():
        if not reason.by_design:
            yield number, {"error.type": reason.value}


def _held(stats: Stats) -> Iterator[tuple[int, Mapping[str, str]]]:
    yield stats.held, {}


def _value(of: Callable[[Stats], int]) -> Callable[[Stats], Iterator[tuple[int, Mapping[str, str]]]]:
    def read(stats: Stats) -> Iterator[tuple[int, Mapping[str, str]]]:
        yield of(stats), {}

    return read
