"""Real servers under `opentelemetry-instrument`: what their workers retrieve arrives, also when they are stopped."""

from __future__ import annotations

import http.client
import os
import re
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from .conftest import Child, Fault, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.frameworks, pytest.mark.zero_code, pytest.mark.timeout(180)]

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


if __name__ == "__main__":
    import uvicorn
    from seer_otel import flush_on_sigterm

    flush_on_sigterm()
    uvicorn.run(asgi, host="127.0.0.1", port=0)
"""
GUNICORN = ("gunicorn", "--bind", "127.0.0.1:0", "--workers", "2")
UVICORN = ("uvicorn", "--host", "127.0.0.1", "--port", "0")
SERVERS = {
    "gunicorn": (*GUNICORN, "app:wsgi"),
    "gunicorn --preload": (*GUNICORN, "--preload", "app:wsgi"),
    "gunicorn --max-requests": (*GUNICORN, "--max-requests", "15", "app:wsgi"),
    "gunicorn -k uvicorn": (*GUNICORN, "-k", "uvicorn.workers.UvicornWorker", "app:asgi"),
    "uvicorn": (*UVICORN, "app:asgi"),
    "uvicorn --workers": (*UVICORN, "--workers", "2", "app:asgi"),
    "uvicorn.run": (sys.executable, "app.py"),
}


class Server:
    """A running server.

    Attributes:
        child: its process.
    """

    def __init__(self, child: Child) -> None:
        self.child = child
        self._port = 0

    def get(self, question: int | None, **headers: str) -> str:
        """Ask over a connection of its own; return the pid that answered. Without a question nothing is retrieved."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request(
                "GET", f"/?question={question}" if question is not None else "/", headers=headers
            )
            response = connection.getresponse()
            assert response.status == 200, self.child.log
            return response.read().decode().strip('"')
        finally:
            connection.close()

    def answers(self) -> bool:
        """Return whether it has said where it listens, and does."""
        assert self.child.process.poll() is None, self.child.log
        said = re.search(r"(?:Listening at:|running on) http://127\.0\.0\.1:(\d+)", self.child.log)
        if said is None:
            return False
        self._port = int(said[1])
        try:
            self.get(None)
        except ConnectionError:
            return False
        return True

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.child.gets(number)
        self.child.process.wait(60)
        assert "seer" not in self.child.log


@pytest.fixture
def serve(fault: Fault, tmp_path: Path) -> Callable[..., Server]:
    """`serve(name)` starts a server on a free port and waits until it answers; none of its processes survives."""
    (tmp_path / "app.py").write_text(APP)
    others = {each.name for each in entry_points(group="opentelemetry_instrumentor")} - {"seer", "fastapi"}
    environment = {
        # The module is deprecated in favour of a package of its own, and does the same.
        "PYTHONWARNINGS": "error,ignore::DeprecationWarning:uvicorn.workers",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": ",".join(others),
    }

    def start(name: str, **more: str) -> Server:
        command = ["opentelemetry-instrument", *SERVERS[name]]
        server = Server(fault.start_command(command, **environment, **more))
        eventually(server.answers, 60)
        return server

    return start


def asked(questions: int = REQUESTS) -> list[str]:
    return sorted(f"question={number}" for number in range(questions))


def ask_in_traces_of_callers(server: Server) -> None:
    """Ask in traces that began elsewhere, and so wait for more: only a flush sends their retrievals at once."""
    for number in range(REQUESTS):
        server.get(number, traceparent=TRACEPARENT.format(number + 1))


def warm_up(server: Server, workers: int, fault: Fault) -> None:
    """Let each worker send an event, and so connect."""
    pids: set[str] = set()
    asked = 0
    with ThreadPoolExecutor(8) as pool:  # one after the other, one worker would get nearly all
        while len(pids) < workers and asked < 400:
            pids.update(pool.map(server.get, range(1000 + asked, 1008 + asked)))
            asked += 8
    eventually(lambda: len(fault.sink.taken) == asked)
    fault.sink.taken.clear()
    fault.sink.events.clear()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("gunicorn", marks=pytest.mark.fault("SIGTERM to gunicorn")),
        pytest.param("gunicorn --preload", marks=pytest.mark.fault("SIGTERM to gunicorn --preload")),
        pytest.param(
            "gunicorn --max-requests", marks=pytest.mark.fault("gunicorn --max-requests 15, and SIGTERM")
        ),
    ],
)
def test_a_stop_runs_exit_handlers(name: str, serve: Callable[..., Server], fault: Fault) -> None:
    """Of workers that run exit handlers, every retrieval becomes one final event, however soon they are stopped."""
    server = serve(name)
    pids = {server.get(number) for number in range(REQUESTS)}
    server.stop()
    assert fault.sink.tasks == asked()
    assert all(event["is_final_context"] is True for event in fault.sink.events.values())
    assert len({event["trace_id"] for event in fault.sink.events.values()}) == REQUESTS
    assert len(pids) >= (4 if "max-requests" in name else 1)
    fault.ends(REQUESTS)


@pytest.mark.parametrize(
    ("name", "workers"),
    [
        pytest.param(
            "uvicorn", 1, marks=pytest.mark.fault("SIGTERM to uvicorn, workers that have sent before")
        ),
        pytest.param(
            "gunicorn -k uvicorn",
            2,
            marks=pytest.mark.fault("SIGTERM to gunicorn -k UvicornWorker, workers that have sent before"),
        ),
    ],
)
def test_a_stop_runs_no_exit_handlers(
    name: str, workers: int, serve: Callable[..., Server], fault: Fault
) -> None:
    """Of workers that have sent before and are killed at the end of a stop, every retrieval arrives in time."""
    server = serve(name)
    warm_up(server, workers, fault)
    for number in range(REQUESTS):
        server.get(number)
    server.stop()
    assert fault.sink.tasks == asked()
    fault.ends(REQUESTS)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "uvicorn",
            marks=pytest.mark.fault("SIGTERM to uvicorn, with a shutdown in the lifespan, open traces"),
        ),
        pytest.param(
            "uvicorn --workers",
            marks=pytest.mark.fault(
                "SIGTERM to uvicorn --workers, with a shutdown in the lifespan, open traces"
            ),
        ),
        pytest.param(
            "gunicorn -k uvicorn",
            marks=pytest.mark.fault(
                "SIGTERM to gunicorn -k UvicornWorker, with a shutdown in the lifespan, open traces"
            ),
        ),
    ],
)
def test_a_shutdown_in_the_lifespan(name: str, serve: Callable[..., Server], fault: Fault) -> None:
    """Retrievals in traces that began elsewhere, and wait for more, arrive if the app shuts the provider down."""
    server = serve(name, APP_SHUTS_DOWN="yes")
    ask_in_traces_of_callers(server)
    server.stop()
    assert fault.sink.tasks == asked()
    fault.ends(REQUESTS)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(
            "uvicorn.run",
            signal.SIGTERM,
            id="helper",
            marks=pytest.mark.fault("SIGTERM to uvicorn.run() after flush_on_sigterm(), open traces"),
        ),
        pytest.param(
            "uvicorn",
            signal.SIGINT,
            id="interrupt",
            marks=pytest.mark.fault("Ctrl-C to uvicorn, open traces"),
        ),
    ],
)
def test_a_stop_flushes(name: str, number: int, serve: Callable[..., Server], fault: Fault) -> None:
    """With the helper called first, or with Ctrl-C, uvicorn's end flushes, and open traces arrive, too."""
    server = serve(name)
    ask_in_traces_of_callers(server)
    server.stop(number)
    assert fault.sink.tasks == asked()
    fault.ends(REQUESTS)


@pytest.mark.fault("kill -9 to all of gunicorn during an outage")
def test_a_server_is_killed(serve: Callable[..., Server], fault: Fault) -> None:
    """Workers send while they run; what those of a server that is killed had on disk is there for the next ones."""
    server = serve("gunicorn")
    warm_up(server, 2, fault)
    fault.sink.goes_away()
    for number in range(REQUESTS):
        server.get(number)
    if fault.spools:
        eventually(lambda: len(fault.keys_on_disk()) == REQUESTS)
    os.killpg(server.child.process.pid, signal.SIGKILL)
    server.child.process.wait(60)
    fault.ends(REQUESTS, lost=REQUESTS)
