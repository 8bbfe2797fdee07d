"""The local backend: in a thread for what it answers, in a process of its own for how it starts, stops and dies."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn

from seer_otel.local.app import create_app
from seer_otel.local.serve import _listen
from seer_otel.local.store import Store

Serving = Callable[..., "Process"]


@dataclass
class Backend:
    """A backend in a thread of this process."""

    url: str
    store: Store


@contextmanager
def _in_thread(folder: Path, key: str | None = None) -> Iterator[Backend]:
    with closing(Store(folder)) as store, _listen("127.0.0.1", 0, None) as listener:
        server = uvicorn.Server(
            uvicorn.Config(create_app(store, key), log_config=None, lifespan="off", ws="none")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Backend(f"http://127.0.0.1:{listener.getsockname()[1]}", store)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    """A backend without a key."""
    with _in_thread(tmp_path / "data") as running:
        yield running


@pytest.fixture
def locked_backend(tmp_path: Path) -> Iterator[Backend]:
    """A backend whose key is `seer_test_key`."""
    with _in_thread(tmp_path / "locked", "seer_test_key") as running:
        yield running


@dataclass
class Process:
    """`seer-otel serve` in a process of its own, and what it said at its start."""

    process: subprocess.Popen[str]
    said: str
    url: str

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=30)


@pytest.fixture
def serving() -> Iterator[Serving]:
    """`serving(folder, *options)` starts a server on a free port, and waits until it answers."""
    with ExitStack() as stack:

        def start(folder: Path, *options: str) -> Process:
            command = [sys.executable, "-W", "error", "-m", "seer_otel.cli", "serve", "--port", "0"]
            process = stack.enter_context(
                subprocess.Popen(
                    [*command, "--data", str(folder), *options],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            said = "".join(iter(process.stdout.readline, "Stop: Ctrl-C\n"))
            found = re.search("Listening on (http://[^ \n]+)", said)
            assert found is not None, process.stderr and process.stderr.read()
            _wait_until_it_answers(found[1])
            return Process(process, said, found[1])

        yield start


def _wait_until_it_answers(url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/healthz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.02)
    raise AssertionError(f"{url} does not answer")
