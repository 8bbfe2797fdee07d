"""Recorded traces of real frameworks, replayed through a real provider and both doors; see recorded/README.md."""

from __future__ import annotations

import json
import re
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags

from seer_otel import InMemoryTransport, SeerSpanExporter, SeerSpanProcessor

RECORDED = Path(__file__).parent / "recorded"
NAMES = sorted(path.relative_to(RECORDED).with_suffix("").as_posix() for path in RECORDED.glob("*/*.json"))
OTHER_CONVENTIONS = ("otel_genai", "openllmetry", "mlflow")

Record = dict[str, Any]


class AsRecorded(IdGenerator, Sampler):
    """Gives the next span the ids and the sampling decision that it had."""

    next: Record

    def generate_span_id(self) -> int:
        return int(self.next["span_id"], 16)

    def generate_trace_id(self) -> int:
        return int(self.next["trace_id"], 16)

    def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
        sampled = self.next["trace_flags"] & TraceFlags.SAMPLED
        return SamplingResult(Decision.RECORD_AND_SAMPLE if sampled else Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "as recorded"


class Replay:
    """Makes the spans of one recording again, with their ids, times and order."""

    def __init__(self, recording: Record, processor: SpanProcessor) -> None:
        self._recorded = AsRecorded()
        self._spans = recording["spans"]
        self._live: dict[str, Any] = {}
        self._provider = TracerProvider(
            id_generator=self._recorded,
            sampler=self._recorded,
            resource=Resource(recording["resource"]["attributes"]),
            span_limits=SpanLimits(max_span_attributes=SpanLimits.UNSET),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(processor)

    def run(self) -> None:
        waiting = deque(sorted(self._spans, key=lambda span: span["start_order"]))
        for span in sorted(self._spans, key=lambda span: span["end_order"]):
            while waiting and (self._is_before(waiting[0], span) or span["span_id"] not in self._live):
                self._start(waiting.popleft())
            self._end(span)
        self._provider.force_flush()
        self._provider.shutdown()

    @staticmethod
    def _is_before(start: Record, end: Record) -> bool:
        return bool(start["start_time_unix_nano"] <= end["end_time_unix_nano"])

    def _start(self, span: Record) -> None:
        self._recorded.next = span
        scope = span.get("scope") or {}
        tracer = self._provider.get_tracer(scope.get("name") or "recorded", scope.get("version"))
        self._live[span["span_id"]] = tracer.start_span(
            span["name"],
            context=trace.set_span_in_context(self._parent(span)),
            kind=SpanKind[span["kind"]],
            attributes={key: span["attributes"][key] for key in span["attribute_keys_at_start"]},
            start_time=span["start_time_unix_nano"],
        )

    def _parent(self, span: Record) -> trace.Span:
        if not span["parent_id"]:
            return trace.INVALID_SPAN
        live: trace.Span | None = self._live.get(span["parent_id"])
        if live is not None and not span["parent_is_remote"]:
            return live
        ids = int(span["trace_id"], 16), int(span["parent_id"], 16)
        return NonRecordingSpan(SpanContext(*ids, span["parent_is_remote"], TraceFlags(span["trace_flags"])))

    def _end(self, span: Record) -> None:
        live = self._live[span["span_id"]]
        live.set_attributes(span["attributes"])
        live._attributes.dropped = span.get("dropped_attributes") or 0
        for event in span.get("events") or ():
            live.add_event(event["name"], event.get("attributes"), event.get("time_unix_nano"))
        status = span["status"]
        live.set_status(StatusCode[status["code"]], status["description"])
        live.end(span["end_time_unix_nano"])


class Comparison:
    """What is wrong with the events of a replay; `faults` says it in words.

    Args:
        lenient: whether the values under `*_also_accepted` will do, and events that `should` be may be missing.
    """

    def __init__(self, expected: Record, events: list[Record], lenient: bool) -> None:
        self.faults: list[str] = []
        self._lenient = lenient
        wanted = {(each["trace_id"], each["span_id"]): each for each in expected["events"]}
        got = [(event["trace_id"], event["span_id"]) for event in events]
        self.faults += [f"{key}: two events" for key in set(got) if got.count(key) > 1]
        self.faults += [f"{key}: an event that nobody wants" for key in set(got) - set(wanted)]
        demanded = ("must",) if lenient else ("must", "should")
        self.faults += [
            f"{key}: no event" for key, each in wanted.items() if each["need"] in demanded and key not in got
        ]
        for key, event in zip(got, events, strict=True):
            if key in wanted:
                self._event(str(key), event, wanted[key])

    def _event(self, where: str, event: Record, wanted: Record) -> None:
        for field in ("task", "subquery", "is_final_context", "parent_span_id", "span_name"):
            self._value(where, field, event.get(field), wanted)
        context = event["context"]
        if len(context) != wanted["passages"]:
            self.faults.append(f"{where}: {len(context)} passages instead of {wanted['passages']}")
            return
        for number, (passage, want) in enumerate(zip(context, wanted["context"] or (), strict=False)):
            place = f"{where} passage {number}"
            if not passage["text"].startswith(want["text_starts"]):
                self.faults.append(f"{place}: {passage['text'][:40]!r} instead of {want['text_starts']!r}")
            for field in ("id", "score", "source"):
                self._value(place, field, passage.get(field), want)

    def _value(self, where: str, field: str, got: object, wanted: Record) -> None:
        right = [wanted[field], *wanted.get(f"{field}_equally_right", ())]
        if self._lenient:
            right += wanted.get(f"{field}_also_accepted", ())
        if not any(got == (pytest.approx(value) if isinstance(value, float) else value) for value in right):
            self.faults.append(f"{where}: {field} {got!r} instead of {wanted[field]!r}")


def test_all_recordings_are_here() -> None:
    """There are 99 recordings, each with its expectation."""
    assert len(NAMES) == 99
    assert all((RECORDED / f"{name}.expected.md").is_file() for name in NAMES)


@pytest.mark.parametrize("door", ["processor", "exporter"])
@pytest.mark.parametrize("name", NAMES)
def test_recorded_trace(name: str, door: str) -> None:
    """The trace gives the events that its expectation names, and every retrieval span is accounted for."""
    recording = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    judgment = (RECORDED / f"{name}.expected.md").read_text(encoding="utf-8")
    expected = json.loads(re.findall(r"```json\n(.*?)\n```", judgment, re.DOTALL)[-1])
    transport = InMemoryTransport()
    settings: Record = {"transport": transport, "sample_rate": 1.0}
    seer = SeerSpanProcessor(**settings) if door == "processor" else SeerSpanExporter(**settings)

    Replay(recording, seer if isinstance(seer, SpanProcessor) else BatchSpanProcessor(seer)).run()

    assert Comparison(expected, transport.events, name.startswith(OTHER_CONVENTIONS)).faults == []
    stats = seer.stats()
    assert stats.held == 0
    assert stats.sent == len(transport.events)
    assert stats.seen == stats.sent + sum(stats.dropped.values())
