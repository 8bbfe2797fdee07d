"""Awkward cases, each after a public bug report, against a scripted backend; see cases/README.md."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from seer_otel import SeerSpanProcessor

CASES = Path(__file__).parent / "cases"
SET_UP = "47-set-up-twice-or-on-a-stub"
NAMES = sorted(path.stem for path in CASES.glob("*.json") if path.stem != SET_UP)

Json = dict[str, Any]


def read(name: str) -> Json:
    case: Json = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    return case


# --- The backend ---


@dataclass
class Request:
    when: float
    body: bytes
    status: int


class Backend(BaseHTTPRequestHandler):
    """Answers as its server's `script` says, and keeps what it was asked."""

    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            answer = next(self.server.script, self.server.default)
            self.server.requests.append(Request(time.monotonic(), body, answer["status"]))
        self.send_response(answer["status"])
        for name, value in {"Content-Length": "2", **answer.get("headers", {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Json) -> None:
        super().__init__(("127.0.0.1", 0), Backend)
        self.lock = threading.Lock()
        self.requests: list[Request] = []
        self.script: Iterator[Json] = iter(script.get("script", ()))
        self.default: Json = script.get("default", {"status": 200})
        self.url = f"http://127.0.0.1:{self.server_port}/v1/log"

    def events(self) -> list[Json]:
        """What was delivered: the bodies of the requests that were answered with 2xx."""
        return [strict(request.body) for request in list(self.requests) if request.status // 100 == 2]


@contextmanager
def serving(script: Json) -> Iterator[Server]:
    server = Server(script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def strict(body: bytes) -> Json:
    """The event in `body`, which must be strict JSON without half a surrogate pair."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = body.decode("utf-8")
    event: Json = json.loads(text, parse_constant=refuse)
    json.dumps(event, ensure_ascii=False, allow_nan=False).encode("utf-8")
    return event


# --- The spans ---


def value(data: Any) -> Any:
    """A case's JSON as the value of an attribute."""
    if isinstance(data, dict):
        return (
            float(data["$float"])
            if set(data) == {"$float"}
            else {key: value(each) for key, each in data.items()}
        )
    return tuple(map(value, data)) if isinstance(data, list) else data


def copied(trace_id: str, copy: int) -> str:
    return hashlib.sha256(f"{trace_id}:{copy}".encode()).hexdigest()[:32] if copy else trace_id


def built(span: Json, copy: int) -> ReadableSpan:
    """A span as a processor sees it, with values that no tracer would let through."""
    trace_id, sampled = int(copied(span["trace_id"], copy), 16), TraceFlags(TraceFlags.SAMPLED)
    parent = span["parent_span_id"]
    attributes = span["attributes"]
    return ReadableSpan(
        name=span["name"],
        context=SpanContext(trace_id, int(span["span_id"], 16), False, sampled),
        parent=SpanContext(trace_id, int(parent, 16), span["parent_is_remote"], sampled) if parent else None,
        resource=Resource(span["resource"]),
        attributes=attributes and {key.lstrip("@"): value(each) for key, each in attributes.items()},
        status=Status(StatusCode[span["status"]]),
        start_time=span["start_ns"],
        end_time=span["end_ns"],
    )


def play(case: Json, processor: SeerSpanProcessor) -> None:
    for copy in range(case.get("copies", 1)):
        waiting = sorted(case["spans"], key=lambda span: int(span["start_ns"]))
        spans: dict[int, ReadableSpan] = {}
        for span in case["spans"]:
            for other in [each for each in waiting if each is span or each["start_ns"] < span["end_ns"]]:
                waiting.remove(other)
                spans[id(other)] = built(other, copy)
                processor.on_start(spans[id(other)], None)  # type: ignore[arg-type]
            processor.on_end(spans[id(span)])


# --- What must hold ---


@dataclass
class Outcome:
    """What a case led to."""

    events: list[Json]
    requests: list[Request] = field(default_factory=list)
    log: list[logging.LogRecord] = field(default_factory=list)
    elapsed: float = 0.0
    before_flush: int = 0
    setup_error: str | None = None
    provider_replaced: bool = False

    @property
    def warnings(self) -> int:
        return sum(record.levelno >= logging.WARNING for record in self.log)


def within(bounds: Json | int, number: int) -> bool:
    if isinstance(bounds, int):
        return number == bounds
    return bool(bounds.get("min", 0) <= number <= bounds.get("max", math.inf))


def same(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and set(wanted) == {"any_of"}:
        return any(same(got, each) for each in wanted["any_of"])
    if isinstance(wanted, float):
        return not isinstance(got, bool) and got == pytest.approx(wanted)
    return bool(got == wanted)


class Expectation:
    """Each method is a key of `expect` and says whether it holds; what needs no check is named in `SETTLED`."""

    # `by_span` is checked by `Wanted`; one span, one event is our own promise, stricter than this one.
    SETTLED = frozenset({"split_ok"})

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def faults(self, expected: Json) -> list[str]:
        faults = []
        for key, wanted in expected.items():
            if key == "by_span":
                for span_id, each in wanted.items():
                    faults += Wanted(span_id, self._outcome.events).faults(each)
            elif key not in self.SETTLED and not getattr(self, key)(wanted):
                faults.append(f"{key}: {wanted!r}"[:200])
        return faults

    def one_of(self, alternatives: list[Json]) -> bool:
        return any(not self.faults(each) for each in alternatives)

    def events(self, number: Json | int) -> bool:
        return within(number, len({(event["trace_id"], event["span_id"]) for event in self._outcome.events}))

    def every_event(self, values: Json) -> bool:
        events = self._outcome.events
        return bool(events) and all(
            same(event.get(key), each) for event in events for key, each in values.items()
        )

    def before_flush(self, wanted: Json) -> bool:
        return within(wanted["events"], self._outcome.before_flush)

    def warns(self, wanted: bool) -> bool:
        return wanted == (self._outcome.warnings > 0)

    def warnings_max(self, number: int) -> bool:
        return self._outcome.warnings <= number

    def must_not_log(self, texts: list[str]) -> bool:
        return not any(text in record.getMessage() for text in texts for record in self._outcome.log)

    def elapsed_max_s(self, seconds: float) -> bool:
        return self._outcome.elapsed <= seconds

    def http(self, wanted: Json) -> bool:
        requests = self._outcome.requests
        gap = wanted.get("gap_after_first_min_s", 0.0)
        too_soon = [
            later
            for number, earlier in enumerate(requests)
            for later in requests[number + 1 :]
            if earlier.status == 429 and later.body == earlier.body and later.when - earlier.when < gap
        ]
        bounds = {"min": wanted.get("requests_min", 0), "max": wanted.get("requests_max", math.inf)}
        return within(bounds, len(requests)) and not too_soon

    def setup_error(self, wanted: bool) -> bool:
        return wanted == (self._outcome.setup_error is not None)

    def provider_replaced(self, wanted: bool) -> bool:
        return wanted == self._outcome.provider_replaced


class Wanted:
    """Each method is a key of one span under `by_span`; other keys are fields of the event."""

    def __init__(self, span_id: str, events: list[Json]) -> None:
        self._span_id = span_id
        self._events = [event for event in events if event["span_id"] == span_id]

    def faults(self, wanted: Json) -> list[str]:
        delivered = wanted.get("delivered", True)
        if delivered not in (bool(self._events), "any"):
            return [f"{self._span_id}: delivered {bool(self._events)}"]
        if not self._events:
            return []
        self._event = self._events[0]
        self._context = self._event["context"]
        return [
            f"{self._span_id}: {key}: {each!r}"[:300]
            for key, each in wanted.items()
            if key != "delivered" and not self._holds(key, each)
        ]

    def _holds(self, key: str, wanted: Any) -> bool:
        check = getattr(self, key, None)
        return bool(check(wanted)) if check is not None else same(self._event.get(key), wanted)

    def _all(self, name: str) -> list[Any]:
        return [passage.get(name) for passage in self._context]

    def _by_text(self, text: str) -> Json:
        return next(passage for passage in self._context if passage["text"] == text)

    def final(self, wanted: bool) -> bool:
        return wanted == bool(self._event.get("is_final_context"))

    def task_any_of(self, tasks: list[str]) -> bool:
        return self._event["task"] in tasks

    def query(self, text: str) -> bool:
        return text in (self._event["task"], self._event.get("subquery"))

    def context_len(self, number: Json | int) -> bool:
        return within(number, len(self._context))

    def texts(self, wanted: list[str]) -> bool:
        return self._all("text") == wanted

    def ids(self, wanted: list[str]) -> bool:
        return self._all("id") == wanted

    def scores(self, wanted: list[float]) -> bool:
        return self._all("score") == pytest.approx(wanted)

    def texts_start_with(self, wanted: list[str]) -> bool:
        return self._all("text")[: len(wanted)] == wanted

    def ids_start_with(self, wanted: list[str]) -> bool:
        return self._all("id")[: len(wanted)] == wanted

    def texts_in_order(self, wanted: list[str]) -> bool:
        return [text for text in self._all("text") if text in wanted] == wanted

    def ids_by_text(self, wanted: Json) -> bool:
        return all(self._by_text(text).get("id") == each for text, each in wanted.items())

    def scores_by_text(self, wanted: Json) -> bool:
        return all(same(self._by_text(text).get("score"), each) for text, each in wanted.items())

    def metadata_by_text(self, wanted: Json) -> bool:
        return all(each.items() <= self._by_text(text)["metadata"].items() for text, each in wanted.items())


def check_always(case: Json, events: list[Json]) -> None:
    """What holds for the events of every case: the schema, one event a span, one final context a trace."""
    retrievers = {
        (copied(span["trace_id"], copy), span["span_id"])
        for span in case["spans"]
        for copy in range(case.get("copies", 1))
    }
    keys = [(event["trace_id"], event["span_id"]) for event in events]
    assert set(keys) <= retrievers
    assert len(keys) == len(set(keys))
    finals = [event["trace_id"] for event in events if event.get("is_final_context")]
    assert len(finals) == len(set(finals))
    for event in events:
        assert event["task"].strip()
        assert len(event["context"]) <= 50
        assert isinstance(event.get("metadata", {}), dict)
        assert 0 <= event["sample_rate"] <= 1
        assert re.fullmatch("[0-9a-f]{16}", event.get("parent_span_id", "0" * 16))
        datetime.fromisoformat(event["created_at"].replace("Z", "+00:00"))
        for passage in event["context"]:
            assert isinstance(passage["text"], str)
            assert len(passage["text"]) <= 4000
            assert type(passage.get("score", 0.0)) in (int, float)
            assert isinstance(passage.get("metadata", {}), dict)
            assert all(isinstance(passage.get(name, ""), str) for name in ("id", "source"))


# --- The tests ---


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The case leads to what it expects and what it prefers."""
    case = read(name)
    expected = case["expect"]
    caplog.set_level(logging.INFO, "seer_otel")
    with serving(case.get("backend", {})) as server:
        began = time.monotonic()
        processor = SeerSpanProcessor(
            api_key=case["config"].get("api_key", "seer_test_key"),
            endpoint=server.url,
            sample_rate=case["config"]["sample_rate"],
        )
        play(case, processor)
        outcome = Outcome([])
        if "before_flush" in expected:
            outcome.before_flush = wait_for(server, expected["before_flush"])
        assert processor.force_flush(30_000)
        processor.shutdown()
        outcome.elapsed = time.monotonic() - began
        outcome.events, outcome.requests = server.events(), server.requests
    outcome.log = caplog.records

    check_always(case, outcome.events)
    assert Expectation(outcome).faults(expected) == []
    assert Expectation(outcome).faults(case.get("should", {})) == []


def wait_for(server: Server, wanted: Json) -> int:
    """How many events came before the deadline, or the wanted number as soon as it is there."""
    deadline = time.monotonic() + wanted["within_s"]
    while not within(wanted["events"], len(server.events())) and time.monotonic() < deadline:
        time.sleep(0.02)
    return len(server.events())


@pytest.mark.e2e
@pytest.mark.parametrize("part", read(SET_UP)["process"]["parts"])
def test_set_up(part: str) -> None:
    """Set up twice, on the API's proxy, or on a provider of another make, attach() works once or says why not."""
    expected = read(SET_UP)["expect"]
    with serving({}) as server:
        command = [sys.executable, str(CASES / "set_up.py"), part, server.url]
        finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)
        events = server.events()
    result = json.loads(finished.stdout)
    # The span has an id of its own here, as a real tracer made it.
    events = [{**event, "span_id": "21c08a45b7667a07"} for event in events[:1]] + events[1:]
    outcome = Outcome(events, setup_error=result["error"], provider_replaced=result["replaced"])

    assert Expectation(outcome).faults(expected["parts"][part]) == []
    assert result["error"] not in expected["setup_error_not"]
    assert result["error"] in (None, "ConfigurationError")
