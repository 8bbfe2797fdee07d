"""A backend on loopback that answers by a script, and processes of their own that send to it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

ACCEPTED = b'{"record_id": "rec_1", "accepted": true}'


@dataclass
class Answer:
    """What the server answers; `raw` is written as it stands, `until` and `seconds` hold the answer back."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = ACCEPTED
    raw: bytes | None = None
    until: threading.Event | None = None
    seconds: float = 0.0


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: tuple[str, int]
    answered: int | None

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event


class Server:
    """Answers the first requests by `script`, later ones by `default`; keeps them all."""

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.default = Answer()
        self.requests: list[Request] = []
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with server._lock:
                    answer = server.script.pop(0) if server.script else server.default
                    status = answer.status if answer.until is None and answer.raw is None else None
                    headers = {key.lower(): value for key, value in self.headers.items()}
                    server.requests.append(
                        Request(self.command, self.path, headers, body, self.client_address, status)
                    )
                    server.at_once += 1
                    server.most_at_once = max(server.most_at_once, server.at_once)
                if answer.until is not None:
                    answer.until.wait(30)
                time.sleep(answer.seconds)
                with server._lock:
                    server.at_once -= 1
                try:
                    self._answer(answer)
                except OSError:
                    self.close_connection = True

            do_GET = do_CONNECT = do_POST  # noqa: N815 - the base class's names

            def _answer(self, answer: Answer) -> None:
                if answer.raw is not None:
                    self.wfile.write(answer.raw)
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for key, value in answer.headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        class Http(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                return  # a client that is killed, or has waited long enough

        self._http = Http(("127.0.0.1", 0), Handler)
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1/log"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def delivered(self) -> list[dict[str, Any]]:
        """The events of all requests that were answered with 2xx at once."""
        taken = [each for each in self.requests if each.answered is not None and 200 <= each.answered < 300]
        return [each.event for each in taken]

    @property
    def tasks(self) -> list[str]:
        return sorted(event["task"] for event in self.delivered)

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def elsewhere() -> Iterator[Server]:
    """A second server: a proxy, or the target of a redirect."""
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def dead_url() -> str:
    """The address of a server that is no more."""
    gone = Server()
    gone.stop()
    return gone.url


@pytest.fixture
def answer() -> type[Answer]:
    return Answer


@pytest.fixture
def eventually() -> Callable[..., None]:
    """`eventually(condition)` waits until it holds, and fails after ten seconds."""

    def wait(condition: Callable[[], object], seconds: float = 10.0) -> None:
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "this did not come true in time"
            time.sleep(0.005)

    return wait


PREAMBLE = """
import os, signal, sys, threading, time
from opentelemetry.sdk.trace import TracerProvider, ConcurrentMultiSpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from seer_otel import SeerSpanExporter, SeerSpanProcessor

def retrieve(tracer, question):
    with tracer.start_as_current_span("chain", attributes={"input.value": question}):
        with tracer.start_as_current_span("retriever", attributes={
            "openinference.span.kind": "RETRIEVER",
            "input.value": question,
            "retrieval.documents.0.document.content": "a text",
            "retrieval.documents.0.document.metadata": '{"password": "canary_secret"}',
        }):
            pass
"""


@dataclass
class Program:
    """A process of its own that began with `PREAMBLE`."""

    process: subprocess.Popen[str]

    def ends(self, seconds: float = 30.0) -> tuple[int, str, str]:
        """Wait for its end; return its status and what it wrote."""
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, out, err


@pytest.fixture
def program(server: Server) -> Iterator[Callable[..., Program]]:
    """`program(code)` runs code in a process of its own that sends to the server."""
    running: list[Program] = []

    def start(code: str, url: str | None = None) -> Program:
        environment = {"SEER_INGESTION_URL": url or server.url, "SEER_SAMPLE_RATE": "1"}
        environment |= {"PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": "/usr/bin:/bin"}
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PREAMBLE + textwrap.dedent(code)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        running.append(Program(process))
        return running[-1]

    yield start
    for each in running:
        each.process.kill()
        each.process.communicate()
