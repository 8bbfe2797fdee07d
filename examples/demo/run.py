"""The whole way in one command: a traced RAG application, its events, the backend that receives, judges and shows them.

    python examples/demo/run.py [--once]

Everything runs on this machine and needs no account, key or model. With --once, without a terminal or where CI is
set it ends after the table; else the backend and its page go on until Ctrl-C. The exit status is 1 if an event is
missing or was not judged.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

import questions
import server
from report import Ran, console, report, where_next
from rich.progress import track

SAMPLE_RATE = 0.5
SEED = 60
"""Of the trace ids, which decide what is sampled: each run has the same counts."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description="A traced RAG application and what becomes of its retrievals."
    )
    parser.add_argument("--once", action="store_true", help="end after the table")
    once = parser.parse_args().once or bool(os.environ.get("CI")) or not sys.stdout.isatty()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a pipe may be in an encoding of few characters
    # What is set in this shell is meant for other applications; the demo is the same everywhere.
    for variable in [name for name in os.environ if name.startswith(("SEER_", "OTEL_", "OPENINFERENCE_"))]:
        del os.environ[variable]
    folder, port = server.place()
    with server.running(folder, port) as (process, url):
        console.print(f"The backend listens on {url} and stores in {folder}.")
        ran = run_application(url)
        server.wait_until_judged(url)
        events = server.received(folder)
        complete = report(ran, events)
        where_next(folder, url if not once else None, events)
        if not once:
            with contextlib.suppress(KeyboardInterrupt):
                process.wait()
    return 0 if complete else 1


class Notes(logging.Handler):
    """Keeps what seer-otel says in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def run_application(url: str) -> Ran:
    """Trace the application, ask it everything in both variants, and return what it did."""
    console.print("Loading LlamaIndex ...")
    import app
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
    from opentelemetry.sdk.trace import IdGenerator, SpanLimits, TracerProvider

    from seer_otel import SeerSpanProcessor, using_ground_truth, using_metadata, using_sample_rate

    class SameIds(IdGenerator):
        """The same ids in each run; an application leaves this to the SDK, whose ids are random."""

        traces, spans = random.Random(SEED), random.Random(SEED)

        def generate_trace_id(self) -> int:
            return self.traces.getrandbits(128) or 1

        def generate_span_id(self) -> int:
            return self.spans.getrandbits(64) or 1

    rows = questions.load()
    passages = {passage["id"]: passage["text"] for row in rows for passage in row["context"]}
    began = time.monotonic()
    engines = app.build(passages)
    console.print(f"Indexed {len(passages)} passages in {time.monotonic() - began:.1f} s.")

    notes = Notes()
    logging.getLogger("seer_otel").addHandler(notes)
    # A span of 60 passages has more attributes than the SDK's limit of 128.
    limits = SpanLimits(max_span_attributes=10_000)
    provider = TracerProvider(id_generator=SameIds(), span_limits=limits)
    seer = SeerSpanProcessor(endpoint=f"{url}/v1/log", sample_rate=SAMPLE_RATE)
    provider.add_span_processor(seer)
    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    tracer = provider.get_tracer("demo")

    asked: list[questions.Asked] = []

    def ask(question: str, engine: str, gold: Sequence[str] = ()) -> None:
        with tracer.start_as_current_span("POST /ask") as span:
            engines[engine].query(question)
        asked.append(questions.Asked(question, span.get_span_context().trace_id, engine, tuple(gold)))

    began = time.monotonic()
    asking = f"Asking {len(rows)} questions in {len(questions.VARIANTS)} variants"
    if not console.is_terminal:
        console.print(f"{asking} ...")
    for number, row in enumerate(track(rows, asking, console=console, disable=not console.is_terminal), 1):
        labels: dict[str, Any] = row["ground_truth"]
        for variant in questions.VARIANTS:
            with using_metadata({"feature_flag": variant}):
                if number % 3:
                    with using_ground_truth(labels["gold_doc_ids"], labels["answer"]):
                        ask(row["task"], variant, labels["gold_doc_ids"])
                else:  # ordinary traffic: nobody knows what should be found
                    ask(row["task"], variant)
    with using_sample_rate(1.0):  # one that finds more than the backend takes
        ask(rows[-1]["task"], "wide")
    console.print(f"Answered in {time.monotonic() - began:.1f} s.")
    provider.force_flush()
    stats = seer.stats()
    provider.shutdown()
    return Ran(asked, stats, notes.texts, SAMPLE_RATE)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
