"""Real servers under `opentelemetry-instrument`: what their workers retrieve arrives, also when they are stopped."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Recorder

pytestmark = [pytest.mark.e2e, pytest.mark.frameworks, pytest.mark.zero_code, pytest.mark.timeout(180)]

BIN = Path(sys.executable).parent
REQUESTS = 60
TRACEPARENT = "00-{:032x}-00f067aa0ba902b7-01"
APP = """
import os
from contextlib import asynccontextmanager

from fastapi import FastAPI
from opentelemetry import trace

tracer = trace.get_tracer("app")


def answer(question):
    attributes = {"openinference.span.kind": "CHAIN", "input.value": question}
    with tracer.start_as_current_span("chain", attributes=attributes):
        attributes = {"openinference.span.kind": "RETRIEVER", "input.value": question}
        with tracer.start_as_current_span("retriever", attributes=attributes) as span:
            span.set_attribute("retrieval.documents.0.document.content", f"about {question}")
    return str(os.getpid())


def wsgi(environ, start_response):
    question = environ["QUERY_STRING"]
    body = answer(question).encode() if question else b""
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


@asynccontextmanager
async def lifespan(app):
    yield
    if os.environ.get("APP_SHUTS_DOWN"):
        trace.get_tracer_provider().shutdown()


asgi = FastAPI(lifespan=lifespan)


@asgi.get("/")
def ask(question: str = "") -> str:
    return answer(f"question={question}") if question else ""
"""
GUNICORN = ("gunicorn", "--bind", "127.0.0.1:0", "--workers", "2")
UVICORN = ("uvicorn", "--host", "127.0.0.1", "--port", "0")
SERVERS = {
    "gunicorn": (*GUNICORN, "app:wsgi"),
    "gunicorn --preload": (*GUNICORN, "--preload", "app:wsgi"),
    "gunicorn --max-requests": (*GUNICORN, "--max-requests", "5", "app:wsgi"),
    "gunicorn -k uvicorn": (*GUNICORN, "-k", "uvicorn.workers.UvicornWorker", "app:asgi"),
    "uvicorn": (*UVICORN, "app:asgi"),
    "uvicorn --workers": (*UVICORN, "--workers", "2", "app:asgi"),
}


@dataclass
class Server:
    """A running server and what it wrote."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def get(self, question: int | None, **headers: str) -> str:
        """Ask over a connection of its own; return the pid that answered. Without a question nothing is retrieved."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(
                "GET", f"/?question={question}" if question is not None else "/", headers=headers
            )
            response = connection.getresponse()
            assert response.status == 200, self.log.read_text()
            return response.read().decode().strip('"')
        finally:
            connection.close()

    def answers(self) -> bool:
        """Return whether it has said where it listens, and does."""
        said = re.search(r"(?:Listening at:|running on) http://127\.0\.0\.1:(\d+)", self.log.read_text())
        if said is None:
            return False
        self.port = int(said[1])
        try:
            self.get(None)
        except ConnectionError:
            return False
        return True

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(timeout=60)


@pytest.fixture
def serve(tmp_path: Path, recorder: Recorder) -> Iterator[Callable[..., Server]]:
    """`serve(name)` starts a server on a free port and waits until it answers; none of its processes survives."""
    (tmp_path / "app.py").write_text(APP)
    others = {each.name for each in entry_points(group="opentelemetry_instrumentor")} - {"seer", "fastapi"}
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        # The module is deprecated in favour of a package of its own, and does the same.
        "PYTHONWARNINGS": "error,ignore::DeprecationWarning:uvicorn.workers",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": ",".join(others),
        "SEER_INGESTION_URL": recorder.url,
        "SEER_SAMPLE_RATE": "1",
    }
    with ExitStack() as stack:

        def start(name: str, **more: str) -> Server:
            log = tmp_path / "log"
            with log.open("wb") as out:
                process = subprocess.Popen(
                    ["opentelemetry-instrument", *SERVERS[name]],
                    cwd=tmp_path,
                    env={**environment, **more},
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            stack.callback(_kill_all, process)
            server = Server(process, 0, log)
            deadline = time.monotonic() + 60
            while not server.answers():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.02)
            return server

        yield start


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group that this test started, the workers of a server that died, too."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def arrived(recorder: Recorder, questions: int = REQUESTS) -> list[str]:
    """Return the questions of all events, after waiting for as many as there should be."""
    deadline = time.monotonic() + 10
    while len(recorder.events) < questions and time.monotonic() < deadline:
        time.sleep(0.02)
    return recorder.tasks


def asked(questions: int = REQUESTS) -> list[str]:
    return sorted(f"question={number}" for number in range(questions))


def warm_up(server: Server, workers: int, recorder: Recorder) -> None:
    """Let each worker send an event, and so connect."""
    pids: set[str] = set()
    asked = 0
    with ThreadPoolExecutor(8) as pool:  # one after the other, one worker would get nearly all
        while len(pids) < workers and asked < 400:
            pids.update(pool.map(server.get, range(1000 + asked, 1008 + asked)))
            asked += 8
    assert len(arrived(recorder, asked)) == asked
    recorder.bodies.clear()


@pytest.mark.parametrize("name", ["gunicorn", "gunicorn --preload", "gunicorn --max-requests"])
def test_a_stop_runs_exit_handlers(name: str, serve: Callable[..., Server], recorder: Recorder) -> None:
    """Of workers that run exit handlers, every retrieval becomes one final event, however soon they are stopped."""
    server = serve(name)
    pids = {server.get(number) for number in range(REQUESTS)}
    server.stop()
    assert arrived(recorder) == asked()
    assert all(event["is_final_context"] is True for event in recorder.events)
    assert len({event["trace_id"] for event in recorder.events}) == REQUESTS
    assert len(pids) >= (8 if "max-requests" in name else 1)
    assert "seer" not in server.log.read_text()


@pytest.mark.parametrize(
    ("name", "workers"), [("uvicorn", 1), ("uvicorn --workers", 2), ("gunicorn -k uvicorn", 2)]
)
def test_a_stop_runs_no_exit_handlers(
    name: str, workers: int, serve: Callable[..., Server], recorder: Recorder
) -> None:
    """Of workers that have sent before and are killed at the end of a stop, every retrieval arrives in time."""
    server = serve(name)
    warm_up(server, workers, recorder)
    for number in range(REQUESTS):
        server.get(number)
    server.stop()
    assert arrived(recorder) == asked()
    assert "seer" not in server.log.read_text()


@pytest.mark.parametrize("name", ["gunicorn", "uvicorn --workers"])
def test_they_arrive_while_it_runs(name: str, serve: Callable[..., Server], recorder: Recorder) -> None:
    """Workers send while they run, and need no stop for it."""
    server = serve(name)
    for number in range(REQUESTS):
        server.get(number)
    assert arrived(recorder) == asked()
    assert server.process.poll() is None


@pytest.mark.parametrize("name", ["uvicorn", "uvicorn --workers", "gunicorn -k uvicorn"])
def test_callers_with_traces(name: str, serve: Callable[..., Server], recorder: Recorder) -> None:
    """Retrievals in traces that began elsewhere, and wait for more, arrive if the app shuts the provider down."""
    server = serve(name, APP_SHUTS_DOWN="yes")
    for number in range(REQUESTS):
        server.get(number, traceparent=TRACEPARENT.format(number + 1))
    server.stop()
    assert arrived(recorder) == asked()
    assert {event["trace_id"] for event in recorder.events} == {
        f"{number + 1:032x}" for number in range(REQUESTS)
    }


def test_interrupt(serve: Callable[..., Server], recorder: Recorder) -> None:
    """Ctrl-C right after the last answer loses nothing, either."""
    server = serve("uvicorn")
    for number in range(REQUESTS):
        server.get(number, traceparent=TRACEPARENT.format(number + 1))
    server.stop(signal.SIGINT)
    assert arrived(recorder) == asked()
