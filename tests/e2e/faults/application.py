"""The application of the fault tests, in a process of its own: it retrieves, tells what `stats()` says, and waits.

Its programs begin with `from application import *`. Settings come from the environment.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from seer_otel import SeerSpanProcessor, Stats, flush_on_sigterm
from seer_otel.delivery import backlog, outbox

__all__ = [
    "ProcessPoolExecutor",
    "backlog",
    "by_a_caller",
    "flush",
    "flush_on_sigterm",
    "gc",
    "multiprocessing",
    "os",
    "outbox",
    "processor",
    "provider",
    "retrieve",
    "say",
    "signal",
    "stats",
    "sys",
    "taken",
    "threading",
    "time",
    "until",
    "wait",
    "work",
]

random.random = lambda: 0.05  # what is drawn for pauses: they are real, but short

provider = TracerProvider()
processor = SeerSpanProcessor()
provider.add_span_processor(processor)
tracer = provider.get_tracer("application")


def retrieve(number: int = 1, name: str = "question", context: object = None) -> None:
    """Answer so many questions with a retrieval each."""
    for i in range(number):
        task = f"{name} {i:04}"
        with (
            tracer.start_as_current_span("chain", context, attributes={"input.value": task}),
            tracer.start_as_current_span("retriever") as span,
        ):
            span.set_attributes(
                {
                    "openinference.span.kind": "RETRIEVER",
                    "input.value": task,
                    "retrieval.documents.0.document.content": "a text",
                    "retrieval.documents.0.document.metadata": '{"password": "canary_secret"}',
                }
            )


def by_a_caller(name: str = "question") -> None:
    """Answer one question in a trace that began elsewhere, and so waits for more: only a flush sends it at once."""
    caller = SpanContext(random.getrandbits(128), 1, is_remote=True, trace_flags=TraceFlags(1))
    retrieve(1, name, trace.set_span_in_context(NonRecordingSpan(caller)))


def work(name: str, number: int = 20) -> None:
    """A task of a worker, which leaves open traces behind."""
    for i in range(number):
        by_a_caller(f"{name} {i}")


def stats() -> Stats:
    return processor.stats()


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"this did not come true in time: {stats()}")
        time.sleep(0.005)


def taken(number: int) -> None:
    """Wait until that many retrievals are through the queue: from here on the spool has them, if there is one."""
    spools = processor.config.spool_dir is not None
    until(lambda: stats().seen >= number and (not spools or stats().spooled + stats().sent >= number))


def flush(seconds: float = 20.0) -> None:
    processor.flush(seconds)


def say() -> None:
    """Print what `stats()` says."""
    print(json.dumps(asdict(stats())), flush=True)


def wait() -> None:
    """Wait until the test says go."""
    sys.stdin.readline()
