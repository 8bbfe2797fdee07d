"""The whole way in one command: a traced RAG application, its events, the backend that receives and scores them.

    python examples/demo/run.py [--once]

Everything runs on this machine and needs no account, key or model. With --once, without a terminal or where CI is
set it ends after the table; else the backend goes on until Ctrl-C. The exit status is 1 if an event is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import track
from rich.table import Table
from rich.text import Text

# What is set in this shell is meant for other applications; the demo is the same everywhere.
for variable in [name for name in os.environ if name.startswith(("SEER_", "OTEL_", "OPENINFERENCE_"))]:
    del os.environ[variable]

QUESTIONS = Path(__file__).with_name("questions.jsonl")
FOLDER = Path(".seer-otel-demo")
PORT = 8790
SAMPLE_RATE = 0.5
SEED = 60
"""Of the trace ids, which decide what is sampled: each run has the same counts."""
EVENTS = {"plain": 1, "wide": 1, "multi-hop": 3}
"""Events of one question by query engine: a multi-hop one has two retrievals and a reranker."""
WORST = 5
"""Questions shown of those with the worst final contexts."""
LEFT_OUT = {
    "nested": "spans inside a retrieval that found the same (LlamaIndex traces each search twice); nothing is missing"
}
"""What a reason says about this application."""
FAULTS = 3
"""Faults shown; where one thing breaks, all the others do."""

console = Console(highlight=False, markup=False, emoji=False)


@dataclass(frozen=True)
class Asked:
    """A question that the application answered, in the trace `trace_id`, through one of its engines."""

    question: str
    trace_id: int
    engine: str
    gold: tuple[str, ...] = ()


def main() -> int:
    parser = argparse.ArgumentParser(
        description="A traced RAG application and what becomes of its retrievals."
    )
    parser.add_argument("--once", action="store_true", help="end after the table")
    once = parser.parse_args().once or bool(os.environ.get("CI")) or not sys.stdout.isatty()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a pipe may be in an encoding of few characters
    folder, port = place()
    with backend(folder, port) as (process, url):
        console.print(f"The backend listens on {url} and stores in {folder}.")
        asked, stats, notes = run_application(url)
        events = received(folder)
        complete = report(asked, stats, notes, events)
        where_next(folder, events)
        if not once:
            with contextlib.suppress(KeyboardInterrupt):
                console.print(
                    f"\nThe backend goes on at {url}, for the other examples too.\nCtrl-C stops it."
                )
                process.wait()
    return 0 if complete else 1


# --- The backend ---


def place() -> tuple[Path, int]:
    """Where to store and which port to use: the usual ones, unless another backend is there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, os.name == "posix")
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return Path(tempfile.mkdtemp(prefix="seer-otel-demo-")), 0
    for old in FOLDER.glob("events.db*"):  # the last run's
        old.unlink()
    return FOLDER, PORT


@contextlib.contextmanager
def backend(folder: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `seer-otel serve`; the values are its process and its address."""
    command = [sys.executable, "-m", "seer_otel.cli", "serve", "--port", str(port), "--data", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first.startswith("Listening on "):
            sys.exit("The backend did not start.")
        yield process, first.split()[2]
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)


def received(folder: Path) -> list[dict[str, Any]]:
    """What the backend has, with its scores."""
    command = [
        sys.executable,
        "-m",
        "seer_otel.cli",
        "show",
        "--json",
        "--limit",
        "1000",
        "--data",
        str(folder),
    ]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


# --- The application ---


class Notes(logging.Handler):
    """Keeps what seer-otel says in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def run_application(url: str) -> tuple[list[Asked], Any, list[str]]:
    """Trace the application, ask it everything, and return what was asked, the counters and the log."""
    console.print("Loading LlamaIndex ...")
    import app
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
    from opentelemetry.sdk.trace import IdGenerator, SpanLimits, TracerProvider

    from seer_otel import SeerSpanProcessor, using_ground_truth, using_sample_rate

    class SameIds(IdGenerator):
        """The same ids in each run; an application leaves this to the SDK, whose ids are random."""

        traces, spans = random.Random(SEED), random.Random(SEED)

        def generate_trace_id(self) -> int:
            return self.traces.getrandbits(128) or 1

        def generate_span_id(self) -> int:
            return self.spans.getrandbits(64) or 1

    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
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

    asked: list[Asked] = []

    def ask(question: str, engine: str, gold: Sequence[str] = ()) -> None:
        with tracer.start_as_current_span("POST /ask") as span:
            engines[engine].query(question)
        asked.append(Asked(question, span.get_span_context().trace_id, engine, tuple(gold)))

    began = time.monotonic()
    asking = f"Asking {len(rows)} questions"
    if not console.is_terminal:
        console.print(f"{asking} ...")
    for number, row in enumerate(track(rows, asking, console=console, disable=not console.is_terminal), 1):
        question, labels = row["task"], row["ground_truth"]
        engine = "multi-hop" if row["metadata"]["type"] == "bridge" else "plain"
        if number == len(rows):  # one that finds more than the backend takes
            with using_sample_rate(1.0):
                ask(question, "wide")
        elif number % 3:
            with using_ground_truth(labels["gold_doc_ids"], labels["answer"]):
                ask(question, engine, labels["gold_doc_ids"])
        else:  # ordinary traffic: nobody knows what should be found
            ask(question, engine)
    console.print(f"Answered in {time.monotonic() - began:.1f} s.")
    provider.force_flush()
    stats = seer.stats()
    provider.shutdown()
    return asked, stats, notes.texts


# --- The report ---


def report(asked: list[Asked], stats: Any, notes: list[str], events: list[dict[str, Any]]) -> bool:
    """Print what was asked and what arrived; return whether all that should have arrived did."""
    expected = Counter({f"{each.trace_id:032x}": EVENTS[each.engine] for each in asked if is_kept(each)})
    arrived = Counter(event["event"]["trace_id"] for event in events)
    finals = Counter(event["event"]["trace_id"] for event in events if event["event"].get("is_final_context"))
    scored = [
        event for event in events if event["event"].get("is_final_context") and event["gt_recall"] is not None
    ]
    labelled = sum(bool(each.gold) for each in asked)
    by_design = {reason: count for reason, count in stats.dropped.items() if reason.by_design}
    lost = {reason: count for reason, count in stats.dropped.items() if not reason.by_design}

    table = Table("", "", "", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.columns[1].justify = "right"

    def row(name: str, value: object, remark: str = "") -> None:
        table.add_row(name, str(value), Text(remark, "dim"))

    row(
        "Questions asked",
        len(asked),
        f"one trace each; {labelled} are labelled with the documents to find (gold) and always kept, "
        f"the others are sampled at {SAMPLE_RATE:.0%}",
    )
    row("Sampled out", stats.traces_sampled_out, "whole traces, chosen by their ids")
    row(
        "Events received",
        arrived.total(),
        f"{expected.total()} expected, from {len(expected)} traces: an event is one retrieval, and a multi-hop "
        "question has three (two searches and a reranker)",
    )
    row("Final contexts", finals.total(), "what the model answered from, one for each trace")
    row(
        "Mean GT recall",
        percent(mean_of(scored, "gt_recall")),
        f"share of the gold documents that were retrieved, in {len(scored)} labelled final contexts",
    )
    row(
        "Mean GT precision",
        percent(mean_of(scored, "gt_precision")),
        "share of the retrieved documents that are gold",
    )
    for reason, count in by_design.items():
        row(f"Left out: {reason.value}", count, LEFT_OUT.get(reason.value, "by design; nothing is missing"))
    row("Lost", sum(lost.values()), ", ".join(f"{reason.value} {count}" for reason, count in lost.items()))
    row("Passages cut", stats.passages_cut, "of the one retrieval that found 60")
    row("Texts cut", stats.texts_cut, "the backend takes 4,000 characters")
    console.print()
    put(table)
    for note in notes:
        put(Text(f"Note: {note}"))
    console.print()
    put(worst(scored))

    faults = [
        f"trace {trace_id}: {arrived[trace_id]} events, {expected[trace_id]} expected"
        for trace_id in sorted(expected | arrived)
        if arrived[trace_id] != expected[trace_id]
    ]
    faults += [
        f"trace {each}: {finals[each]} final contexts" for each in sorted(expected) if finals[each] != 1
    ]
    if len(scored) != labelled:
        faults.append(f"{len(scored)} final contexts have a score, {labelled} expected")
    for fault in faults[:FAULTS]:
        console.print(f"Wrong: {fault}", style="red")
    if len(faults) > FAULTS:
        console.print(f"Wrong: {len(faults) - FAULTS} more like these", style="red")
    return not faults


def is_kept(asked: Asked) -> bool:
    """Whether the trace should have been kept: labelled ones and the wide one are, the others by their id."""
    from seer_otel.sampling import keeps

    return bool(asked.gold) or asked.engine == "wide" or keeps(asked.trace_id, SAMPLE_RATE)


def put(renderable: RenderableType) -> None:
    """Print without the blanks that fill a table's lines up."""
    for line in console.render_lines(renderable, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        console.print(text, soft_wrap=True)


def percent(share: float | None) -> str:
    """As `seer-otel show` writes it."""
    return "none" if share is None else f"{share:.0%}"


def mean_of(events: Sequence[dict[str, Any]], name: str) -> float | None:
    values = [event[name] for event in events if event[name] is not None]
    return mean(values) if values else None


def ranked(scored: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The labelled final contexts, the worst first."""
    return sorted(
        scored, key=lambda event: (event["gt_recall"], event["gt_precision"], event["event"]["task"])
    )


def worst(scored: Sequence[dict[str, Any]]) -> Table:
    table = Table(
        title="The labelled questions with the worst final contexts",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column("GT recall", justify="right", no_wrap=True)
    table.add_column("GT precision", justify="right", no_wrap=True)
    table.add_column("question", ratio=3)
    table.add_column("gold documents not found", ratio=2)
    for event in ranked(scored)[:WORST]:
        found = {passage["id"] for passage in event["event"]["context"]}
        missing = [name for name in event["event"]["ground_truth"]["gold_doc_ids"] if name not in found]
        table.add_row(
            percent(event["gt_recall"]),
            percent(event["gt_precision"]),
            Text(event["event"]["task"]),
            Text(", ".join(name.removeprefix("hp:") for name in missing)),
        )
    return table


def where_next(folder: Path, events: Sequence[dict[str, Any]]) -> None:
    show = f"{program()} show --data {shlex.quote(str(folder))}"
    console.print("\nWhere to look next", style="bold")
    console.print("What arrived, the newest trace first:")
    console.print(f"  {show}", soft_wrap=True)
    scored = [
        event for event in events if event["event"].get("is_final_context") and event["gt_recall"] is not None
    ]
    if scored:
        put(Text("The worst question: all that was retrieved, and which gold documents are missing:"))
        console.print(f"  {show} --trace {ranked(scored)[0]['event']['trace_id'][:8]}", soft_wrap=True)


def program() -> str:
    """How to call `seer-otel` from this shell."""
    beside = Path(sys.executable).with_name("seer-otel")
    found = shutil.which("seer-otel")
    if found and Path(found).parent == beside.parent:
        return "seer-otel"
    if not beside.exists():
        return f"{os.path.relpath(sys.executable)} -m seer_otel.cli"
    return os.path.relpath(beside)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
