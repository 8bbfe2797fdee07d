"""What becomes of a span once it is taken: read, built into an event, written as JSON. CPU of one thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.sdk.trace.export import BatchSpanProcessor

from seer_otel.assembly import Rules, assemble
from seer_otel.assembly.assemble import _passages, timestamp
from seer_otel.conventions import convention
from seer_otel.event import Event, clamp, encode
from seer_otel.pipeline.sdk import read

from . import arrangements, spans
from .child import fresh
from .figure import Goal, Row, Scale, row
from .hooks import ROOM, cpu

RULES = Rules()
SIZES = (1, 10, 50, 500)


def one_event(ended: Any) -> bytes:
    """The documents of one span as an event: unflatten, build, encode."""
    span = read(ended)
    found = convention.retrieval(span)
    assert found is not None
    event = Event(
        task=found.query.text or "",
        context=_passages(found.documents, RULES.passage_metadata_keys),
        trace_id=f"{span.trace_id:032x}",
        span_id=f"{span.span_id:016x}",
        span_name=span.name,
        is_final_context=True,
        created_at=timestamp(span.end),
        sample_rate=1.0,
    )
    return encode(clamp(event).event)


def one_trace(ended: Any) -> bytes:
    """The same, with all that the assembly of a trace decides."""
    (event,) = assemble([read(ended)], RULES).events
    return encode(clamp(event).event)


def costs(rounds: int, count: int) -> dict[str, list[float]]:
    """Run in a fresh process: microseconds an event, by what is done."""
    by_size = {size: spans.ended(max(4, count * 10 // max(size, 10)), size) for size in SIZES}
    ten = by_size[10]
    bodies = [json.loads(one_event(span)) for span in ten]
    work: dict[str, tuple[Callable[[Any], object], Sequence[Any]]] = {
        "event": (one_event, ten),
        "trace": (one_trace, ten),
        "json": (json.dumps, bodies),
    }
    work |= {f"{size} documents": (one_event, made) for size, made in by_size.items() if size != 10}
    found: dict[str, list[float]] = {name: [] for name in (*work, "batch")}
    for turn in range(rounds + 1):
        took = {
            name: cpu([(call, each) for each in made], len(made)) / 1000
            for name, (call, made) in work.items()
        }
        processor = BatchSpanProcessor(
            arrangements.Discard(), max_queue_size=ROOM, max_export_batch_size=ROOM
        )
        took["batch"] = cpu([(processor.on_end, each) for each in ten], len(ten)) / 1000
        processor.shutdown()
        if turn:
            for name, each in took.items():
                found[name].append(each)
    return found


def encoding(scale: Scale) -> list[Row]:
    """Unflatten, build and encode."""
    found = fresh("encoding:costs", rounds=scale.rounds(15), count=scale.count(100))
    events, stdlib = found["event"], "json.dumps of the event"
    rows = [
        row(
            "encode",
            "unflatten + build + encode, 10 documents",
            "us",
            events,
            found["json"],
            stdlib,
            goal=Goal("value", "<=", 20, "us"),
        ),
        row("encode", "the same", "us", events, found["batch"], "BatchSpanProcessor.on_end"),
        row("encode", "the same, and the assembly of its trace", "us", found["trace"], found["json"], stdlib),
    ]
    ten = [each / 10 for each in events]
    for size in SIZES:
        if size != 10:
            each = [took / size for took in found[f"{size} documents"]]
            flat = Goal("ratio", "<=", 1.25) if size > 10 else None
            note = "with all that an event costs once" if size == 1 else ""
            words = f"a document, of {size}"
            rows.append(row("encode", words, "us", each, ten, "a document, of 10", goal=flat, note=note))
    return rows
