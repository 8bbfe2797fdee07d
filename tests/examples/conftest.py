"""A backend that only records, and a way to run a program as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


class Recorder(ThreadingHTTPServer):
    """Takes whatever is posted and keeps it by path: events, and the requests of an OTLP exporter."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Recording)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.bodies: dict[str, list[bytes]] = {}

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies.get("/v1/log", ())]


class _Recording(BaseHTTPRequestHandler):
    server: Recorder

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.setdefault(self.path, []).append(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """A recording backend."""
    server = Recorder()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass(frozen=True)
class Shell:
    """The environment of an example: this Python first on the path, and the recording backend."""

    environment: dict[str, str]

    def command(self, name: str) -> list[str]:
        return ["sh" if name.endswith(".sh") else sys.executable, str(EXAMPLES / name)]

    def run(self, name: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run an example to its end."""
        environment = {**self.environment, **more}
        return subprocess.run(
            self.command(name), env=environment, capture_output=True, text=True, timeout=150, check=False
        )


@pytest.fixture
def shell(recorder: Recorder) -> Shell:
    """What a user has who set `SEER_INGESTION_URL`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return Shell({**os.environ, "PATH": path, "SEER_INGESTION_URL": f"{recorder.url}/v1/log"})
