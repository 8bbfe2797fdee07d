"""A backend on loopback that keeps what it takes by idempotency key, and that fails in every way there is."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What becomes of a request.

    Attributes:
        status: of the answer; an event is taken if it is a 2xx.
        headers: of the answer.
        raw: written instead of an answer, as it stands; then the connection is closed.
        reset: whether it is closed with a reset.
        hangs: whether there is no answer at all, and nothing is taken, until the sink is well again.
        seconds: between the request and its answer; the event is taken at once.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    reset: bool = False
    hangs: bool = False
    seconds: float = 0.0


WELL = Answer()


class Sink:
    """A backend that is up, or gone.

    Attributes:
        answer: to every request that nothing below says more of.
        first: answers to the next requests, in this order.
        by_task: answers to every request with an event of that question.
        key: the only bearer key that is not answered with 401; None takes any.
        taken: how often each event was taken, by idempotency key.
        events: what was taken, by idempotency key.
        requests: how many came.
    """

    def __init__(self) -> None:
        self.answer = WELL
        self.first: list[Answer] = []
        self.by_task: dict[str, Answer] = {}
        self.key: str | None = None
        self.taken: Counter[str] = Counter()
        self.events: dict[str, dict[str, Any]] = {}
        self.requests = 0
        self._lock = threading.Lock()
        self._well = threading.Event()
        self._connections: set[socket.socket] = set()
        self._place = _bound(0)
        self.port: int = self._place.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1/log"
        self.comes_back()

    @property
    def tasks(self) -> list[str]:
        """The questions of all events that were taken, each event once."""
        return sorted(event["task"] for event in self.events.values())

    @property
    def repeated(self) -> int:
        """How many events were taken more than once."""
        return sum(times > 1 for times in self.taken.values())

    def goes_away(self) -> None:
        """Refuse connections from now on, and break those that are there. Nobody else gets the port."""
        self._stop()
        self._place = _bound(self.port)

    def comes_back(self) -> None:
        """Take connections again."""
        self._http = _Http(("127.0.0.1", self.port), _handler(self), bind_and_activate=False)
        self._http.socket.close()
        self._http.socket = self._place
        self._http.server_activate()
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def fails(self, answer: Answer | None) -> None:
        """Answer so from now on; None is no connection at all."""
        if answer is None:
            self.goes_away()
        else:
            self._well.clear()
            self.answer = answer

    def is_well(self) -> None:
        """Take everything again."""
        if self._http.fileno() < 0:
            self.comes_back()
        self.answer = WELL
        self._well.set()

    def close(self) -> None:
        self._well.set()
        self._stop()
        self._place.close()

    def _stop(self) -> None:
        if self._http.fileno() < 0:
            return
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _decide(self, task: str, key: str, authorization: str | None, event: dict[str, Any]) -> Answer:
        with self._lock:
            self.requests += 1
            answer = self.by_task.get(task) or (self.first.pop(0) if self.first else self.answer)
            if self.key is not None and authorization != f"Bearer {self.key}":
                answer = Answer(401)
            if 200 <= answer.status < 300 and not answer.hangs:
                self.taken[key] += 1
                self.events[key] = event
        return answer


def _bound(port: int) -> socket.socket:
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind(("127.0.0.1", port))
    return place


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        return  # a client that is killed, or has waited long enough


def _handler(sink: Sink) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            sink._connections.add(self.connection)

        def finish(self) -> None:
            sink._connections.discard(self.connection)
            with suppress(OSError):
                super().finish()

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            self.close_connection = True
            if len(body) < length:
                return  # whoever sent it was killed in the middle
            event = json.loads(body)
            key = self.headers["Idempotency-Key"]
            answer = sink._decide(event["task"], key, self.headers["Authorization"], event)
            if answer.hangs:
                sink._well.wait(30)
                return
            time.sleep(answer.seconds)
            if answer.raw is not None or answer.reset:
                self.wfile.write(answer.raw or b"")
                if answer.reset:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            self.close_connection = False
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    return Handler
