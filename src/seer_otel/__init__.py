"""Retrieval evaluation for applications traced with OpenTelemetry and OpenInference."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .attach import attach  # at once: the module bears the same name

if TYPE_CHECKING:
    from .context import (
        using_final_context,
        using_ground_truth,
        using_metadata,
        using_sample_rate,
        using_subquery,
        using_task,
    )
    from .delivery.transport import HttpTransport, InMemoryTransport, Reply, Transport, TransportError
    from .endpoint import ConfigurationError
    from .event import Event, GroundTruth, Passage
    from .exits import flush_on_sigterm
    from .exporter import SeerSpanExporter
    from .processor import SeerContextProcessor, SeerSpanProcessor
    from .reasons import DropReason
    from .stats import FlushResult, Stats

__all__ = [
    "ConfigurationError",
    "DropReason",
    "Event",
    "FlushResult",
    "GroundTruth",
    "HttpTransport",
    "InMemoryTransport",
    "Passage",
    "Reply",
    "SeerContextProcessor",
    "SeerSpanExporter",
    "SeerSpanProcessor",
    "Stats",
    "Transport",
    "TransportError",
    "__version__",
    "attach",
    "flush_on_sigterm",
    "using_final_context",
    "using_ground_truth",
    "using_metadata",
    "using_sample_rate",
    "using_subquery",
    "using_task",
]

# Where each name is. Importing them when they are first asked for keeps `import seer_otel` at a few milliseconds.
_HOMES = {
    "context": (
        "using_final_context",
        "using_ground_truth",
        "using_metadata",
        "using_sample_rate",
        "using_subquery",
        "using_task",
    ),
    "delivery.transport": ("HttpTransport", "InMemoryTransport", "Reply", "Transport", "TransportError"),
    "endpoint": ("ConfigurationError",),
    "event": ("Event", "GroundTruth", "Passage"),
    "exits": ("flush_on_sigterm",),
    "exporter": ("SeerSpanExporter",),
    "processor": ("SeerContextProcessor", "SeerSpanProcessor"),
    "reasons": ("DropReason",),
    "stats": ("FlushResult", "Stats"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
