"""What a fault test works with: a sink, processes of its own, and a row of the table in docs/reliability.md."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seer_otel.delivery import spool_file

from . import table
from .sink import Sink

HERE = Path(__file__).parent
KEY = "seer_canary_right"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-table", action="store_true", help="write what the fault tests find to docs/reliability.md"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "fault(name, varies=False, spool_only=False): the row of docs/reliability.md that this test makes; `varies`"
        " says that its numbers are not the same each time, `spool_only` that there is no such fault without a spool",
    )
    config.stash[table.FOUND] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "fault" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("fault")
        spool_only = marker is not None and marker.kwargs.get("spool_only", False)
        metafunc.parametrize("spools", [True] if spool_only else [False, True], ids=lambda on: f"spool={on}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("write_table", False):
        table.write(session.config.stash[table.FOUND])


def eventually(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not come true in time"
        time.sleep(0.005)


@dataclass
class Said:
    """What `stats()` said in a child; it always adds up."""

    seen: int
    sent: int
    held: int
    dropped: dict[str, int]
    spooled: int
    recovered: int
    retries: int


class Child:
    """A process that runs a program.

    Attributes:
        process: the process.
        log: what it wrote to standard error so far.
    """

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def says(self) -> Said:
        """Return what it says next."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"it ended instead: {self.log}"
        stats = json.loads(line)
        said = Said(**{name: stats[name] for name in Said.__annotations__})
        assert said.seen == said.sent + said.held + sum(said.dropped.values())
        assert 0 <= said.spooled <= said.held
        return said

    def go(self) -> None:
        """Let it go on after a `wait()`."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def ends(self, status: int = 0) -> None:
        """Wait for its end, which must be this one."""
        assert self.process.wait(30) == status, self.log

    def gets(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)


class Fault:
    """One story, with or without a spool.

    Attributes:
        sink: the backend.
        spools: whether there is a spool.
        folder: where it is then.
    """

    def __init__(self, request: pytest.FixtureRequest, sink: Sink, spools: bool, tmp_path: Path) -> None:
        marker = request.node.get_closest_marker("fault")
        self.name: str = marker.args[0] if marker is not None else ""
        self.varies: bool = marker is not None and marker.kwargs.get("varies", False)
        self.sink = sink
        self.spools = spools
        self.folder = tmp_path / "spool"
        self._config = request.config
        self._tmp_path = tmp_path
        self.children: list[Child] = []

    @property
    def environment(self) -> dict[str, str]:
        """The settings of every process of this story."""
        settings = {
            "SEER_API_KEY": KEY,
            "SEER_INGESTION_URL": self.sink.url,
            "SEER_SAMPLE_RATE": "1",
            "PYTHONPATH": os.pathsep.join([str(HERE), *(path for path in sys.path if path)]),
            "PYTHONWARNINGS": "error",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        return settings | ({"SEER_OTEL_SPOOL_DIR": str(self.folder)} if self.spools else {})

    def start(self, program: str, *options: str, **more: str) -> Child:
        """Start a process that runs a program; `options` are the interpreter's, `more` is its environment's."""
        code = "from application import *\n" + textwrap.dedent(program)
        return self.start_command([sys.executable, *options, "-c", code], **more)

    def start_command(self, command: list[str], **more: str) -> Child:
        """Start any other process, in a session of its own."""
        log = self._tmp_path / f"log {len(self.children)}"
        with log.open("w") as err:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
                cwd=self._tmp_path,
                env={**self.environment, **more},
                start_new_session=True,
            )
        self.children.append(Child(process, log))
        return self.children[-1]

    def run(self, program: str, status: int = 0, *options: str, **more: str) -> Child:
        """Run a program to its end."""
        child = self.start(program, *options, **more)
        child.ends(status)
        return child

    def tells(self, program: str, **more: str) -> Said:
        """Run a program that says something once, to its end, and return what it says."""
        child = self.start(program, **more)
        said = child.says()
        child.ends()
        return said

    def keys_on_disk(self) -> set[str]:
        """The idempotency keys of all events in the spool; whoever ends just now must have ended."""
        keys = set()
        for path in spool_file.files(self.folder):
            with spool_file.look(path) as file:
                keys |= {key for _, key, _, _ in file.rows(1_000_000)}
        return keys

    def ends(self, retrievals: int, *, held: int = 0, lost: int | None = 0) -> None:
        """Make the row of the table, and compare it with the one that is there.

        Args:
            retrievals: how many there were.
            held: how many a process that still runs holds in memory.
            lost: how many are lost without a spool; None if that varies. With one it must be none.
        """
        sent = len(self.sink.taken)
        held += len(self.keys_on_disk() - set(self.sink.taken))
        found = table.Outcome(sent, held, retrievals - sent - held)
        assert found.lost == (0 if self.spools else lost if lost is not None else found.lost)
        row = self._config.stash[table.FOUND].setdefault(self.name, table.Row(retrievals))
        if self.spools:
            row.with_spool = found
        else:
            row.without = found
        if not self._config.getoption("write_table", False):
            there = table.read().get(self.name)
            assert there is not None, "docs/reliability.md has no such row; `make reliability` writes it"
            before = there.with_spool if self.spools else there.without
            assert before == found or self.varies, "`make reliability` writes this row anew"


@pytest.fixture
def sink() -> Iterator[Sink]:
    running = Sink()
    yield running
    running.close()


@pytest.fixture
def fault(request: pytest.FixtureRequest, sink: Sink, spools: bool, tmp_path: Path) -> Iterator[Fault]:
    story = Fault(request, sink, spools, tmp_path)
    yield story
    for child in story.children:
        kill_all(child.process)


def kill_all(process: subprocess.Popen[Any]) -> None:
    """Kill a process and those that it started, which are of its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
