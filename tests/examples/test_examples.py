"""Every example as it stands, in a process of its own, against a recording backend."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

QUESTION = "Who directed Inception?"

pytestmark = [pytest.mark.e2e, pytest.mark.frameworks, pytest.mark.timeout(200)]


def ids(event: dict[str, Any]) -> list[str]:
    return [passage["id"] for passage in event["context"]]


def finals(events: list[dict[str, Any]]) -> list[bool]:
    return [event["is_final_context"] for event in events]


@pytest.mark.parametrize("name", ["manual_spans.py", "llama_index_rag.py", "langchain_rag.py"])
def test_one_retrieval(name: str, shell: Any, recorder: Any) -> None:
    """One question gives one event, which is final and holds the passages with their ids."""
    finished = shell.run(name)

    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.endswith(
        "Events sent: 1. `seer-otel serve` printed at its start how to see them.\n"
    )
    [event] = recorder.events
    assert event["task"] == QUESTION
    assert "subquery" not in event
    assert event["is_final_context"] is True
    assert ids(event)[0] == "inception"
    assert len(set(ids(event))) == 2


def test_frozen_function(shell: Any, recorder: Any) -> None:
    """Each call of the function has sent its event when it returns."""
    finished = shell.run("frozen_function.py")

    assert (finished.returncode, finished.stderr) == (0, "")
    assert "Who directed Inception? Sent so far: 1\nWhere is London? Sent so far: 2\n" in finished.stdout
    assert [event["task"] for event in recorder.events] == ["Who directed Inception?", "Where is London?"]


def test_multi_hop(shell: Any, recorder: Any) -> None:
    """Three hops share one question, each with its own query, and the marked one is final."""
    finished = shell.run("multi_hop.py")

    assert (finished.returncode, finished.stderr) == (0, "")
    events = sorted(recorder.events, key=lambda event: event["created_at"])
    assert {event["task"] for event in events} == {"What awards did the director of Inception win?"}
    assert [event["subquery"] for event in events] == [
        QUESTION,
        "What awards did Christopher Nolan win?",
        "Which films are like Inception?",
    ]
    assert finals(events) == [False, True, False]
    assert len({event["trace_id"] for event in events}) == 1


def test_ground_truth(shell: Any, recorder: Any) -> None:
    """At sample rate 0 the labelled trace alone is sent, with its labels."""
    finished = shell.run("ground_truth.py")

    assert (finished.returncode, finished.stderr) == (0, "")
    [event] = recorder.events
    assert event["task"] == QUESTION
    assert event["ground_truth"] == {"gold_doc_ids": ["inception"], "answer": "Christopher Nolan"}
    assert event["metadata"]["seer_otel.sampled_by"] == "label"


def test_beside_otlp(shell: Any, recorder: Any) -> None:
    """The OTLP collector gets the span and the backend its event."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    finished = shell.run("beside_otlp.py", OTEL_EXPORTER_OTLP_ENDPOINT=recorder.url)

    assert (finished.returncode, finished.stderr) == (0, "")
    [event] = recorder.events
    assert (event["task"], ids(event)[0]) == (QUESTION, "inception")
    [body] = recorder.bodies["/v1/traces"]
    request = ExportTraceServiceRequest.FromString(body)
    spans = [
        span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans
    ]
    assert [span.span_id.hex() for span in spans] == [event["span_id"]]


def test_beside_otlp_alone(shell: Any, recorder: Any) -> None:
    """Without a collector its own stand-in takes the spans."""
    finished = shell.run("beside_otlp.py")

    assert (finished.returncode, finished.stderr) == (0, "")
    assert "The collector received " in finished.stdout
    assert len(recorder.events) == 1


@pytest.mark.zero_code
def test_zero_code(shell: Any, recorder: Any) -> None:
    """Under opentelemetry-instrument an application without a line of ours sends its retrieval."""
    finished = shell.run("zero_code/run.sh")

    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "Christopher Nolan.\n", "")
    [event] = recorder.events
    assert (event["task"], event["span_name"], event["is_final_context"]) == (QUESTION, "Shelf", True)
    assert ids(event) == ["0"]


def test_zero_code_app_knows_nothing() -> None:
    """The zero-code application names neither seer-otel nor OpenTelemetry."""
    source = (Path(__file__).parents[2] / "examples" / "zero_code" / "app.py").read_text(encoding="utf-8")
    assert not {"seer", "opentelemetry", "openinference"} & set(source.lower().replace("_", " ").split())


def test_fastapi(shell: Any, recorder: Any) -> None:
    """A request to the server gives an event whose question is what was asked, sent when the server stops."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {**shell.environment, "PORT": port}
    server = subprocess.Popen(
        shell.command("fastapi_app.py"), env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        answer = ask(f"http://127.0.0.1:{port}/search?question=Who+directed+Inception%3F", server)
        assert answer["inception"].startswith("Inception is a film")
    finally:
        server.terminate()
        _, errors = server.communicate(timeout=20)

    assert errors == ""
    [event] = recorder.events
    assert (event["task"], event["subquery"]) == (QUESTION, "who directed inception")
    assert ids(event)[0] == "inception"
    assert event["is_final_context"] is True


def ask(url: str, server: subprocess.Popen[str]) -> dict[str, str]:
    """The answer at `url`, as soon as the server is there."""
    deadline = time.monotonic() + 120
    while True:
        try:
            with urlopen(url, timeout=10) as response:
                answer: dict[str, str] = json.load(response)
                return answer
        except URLError:
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.parametrize("name", ["manual_spans.py", "fastapi_app.py"])
def test_nobody_listens(name: str, shell: Any) -> None:
    """Without a backend an example says what to do and ends with status 1."""
    with socket.socket() as unused:  # bound, but it does not listen
        unused.bind(("127.0.0.1", 0))
        finished = shell.run(name, SEER_INGESTION_URL=f"http://127.0.0.1:{unused.getsockname()[1]}/v1/log")

    assert finished.returncode == 1
    assert "seer-otel serve" in finished.stderr
    assert "Traceback" not in finished.stderr
