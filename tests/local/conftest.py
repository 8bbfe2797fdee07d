"""The local backend: in a thread for what it answers, in a process of its own for how it starts, stops and dies."""

from __future__ import annotations

import importlib
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
from types import ModuleType
from typing import Any

import httpx
import pytest
import uvicorn

from seer_otel.local.api.app import create_app
from seer_otel.local.api.inbox import ROOM
from seer_otel.local.judging.judge import Judge, count_pending
from seer_otel.local.serve import _listen
from seer_otel.local.storage.store import Store

from .waiting import wait_until

Serving = Callable[..., "Process"]


@dataclass
class Backend:
    """A backend in a thread of this process."""

    url: str
    store: Store


@contextmanager
def _in_thread(folder: Path, key: str | None = None, room: int = ROOM) -> Iterator[Backend]:
    with closing(Store(folder)) as store, _listen("127.0.0.1", 0, None) as listener:
        app = create_app(store, key, room)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
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


@pytest.fixture
def small_backend(tmp_path: Path) -> Iterator[Backend]:
    """A backend in which two events can wait for the writer."""
    with _in_thread(tmp_path / "small", room=2) as running:
        yield running


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module `stand_in`, which other processes find, too."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    return importlib.import_module("stand_in")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with closing(Store(tmp_path / "store")) as opened:
        yield opened


@pytest.fixture
def judging() -> Iterator[Callable[..., Judge]]:
    """`judging(store, make, **settings)` starts a judge, and waits until nothing is pending."""
    with ExitStack() as stack:

        def start(store: Store, make: Any, **settings: Any) -> Judge:
            judge = Judge(store, make, **settings)
            judge.start()
            stack.callback(judge.stop)
            wait_until(lambda: count_pending(store.engine) == 0)
            return judge

        yield start


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
