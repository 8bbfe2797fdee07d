"""Retrieval evaluation for applications traced with OpenTelemetry and OpenInference."""

from ._version import __version__
from .attach import attach
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
