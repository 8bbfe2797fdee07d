"""The ways in which a process ends: what it has retrieved arrives, or waits on disk for the next one."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import ModuleType

import pytest

import seer_otel

from .conftest import HERE, Fault
from .sink import Answer

pytestmark = pytest.mark.e2e


def load_environment() -> ModuleType:
    """`scripts/environment.py` as a module."""
    spec = importlib.util.spec_from_file_location(
        "environment", HERE.parents[2] / "scripts" / "environment.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


environment = load_environment()


@pytest.mark.parametrize(
    ("program", "status"),
    [
        pytest.param("retrieve(60)", 0, id="exit", marks=pytest.mark.fault("normal exit")),
        pytest.param("retrieve(60); sys.exit(3)", 3, id="sys.exit", marks=pytest.mark.fault("sys.exit")),
        pytest.param("retrieve(60); 1 / 0", 1, id="exception", marks=pytest.mark.fault("an exception")),
        pytest.param(
            "for _ in range(60): by_a_caller()",
            0,
            id="open",
            marks=pytest.mark.fault("normal exit, in traces that began elsewhere and wait for more"),
        ),
        pytest.param(
            "retrieve(60); flush(); os._exit(7)",
            7,
            id="os._exit",
            marks=pytest.mark.fault("os._exit after a flush"),
        ),
        pytest.param(
            "retrieve(60); processor.shutdown(); provider.shutdown(); processor.shutdown()",
            0,
            id="twice",
            marks=pytest.mark.fault("shutdown, more than once"),
        ),
        pytest.param(
            "flush_on_sigterm(); [by_a_caller() for _ in range(60)]; os.kill(os.getpid(), signal.SIGTERM); wait()",
            -signal.SIGTERM,
            id="helper",
            marks=pytest.mark.fault("SIGTERM, with flush_on_sigterm()"),
        ),
        pytest.param(
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
            "[by_a_caller() for _ in range(60)]; os.kill(os.getpid(), signal.SIGTERM); wait()",
            0,
            id="handler",
            marks=pytest.mark.fault("SIGTERM, with a handler of the application's that calls sys.exit"),
        ),
    ],
)
def test_an_end(fault: Fault, program: str, status: int) -> None:
    """A process that ends in one of these ways right after its retrievals keeps its status, and loses none."""
    child = fault.run(program, status)
    assert ("ZeroDivisionError" in child.log) == (status == 1)
    assert not child.log or status == 1
    assert fault.sink.repeated == 0
    fault.ends(60)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        pytest.param(
            "os._exit(7)",
            7,
            id="os._exit",
            marks=pytest.mark.fault("os._exit without a flush, with 60 under way to a backend that is away"),
        ),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGTERM)",
            -signal.SIGTERM,
            id="sigterm",
            marks=pytest.mark.fault(
                "SIGTERM without flush_on_sigterm(), with 60 under way to a backend that is away"
            ),
        ),
    ],
)
def test_an_end_without_a_flush(fault: Fault, end: str, status: int) -> None:
    """Whoever ends so leaves on disk what it had taken from the queue; without a spool that is lost."""
    fault.sink.goes_away()
    fault.run(f"retrieve(60); taken(60); {end}; wait()", status)
    fault.ends(60, lost=60)


@pytest.mark.fault("SIGTERM in the middle of a flush, with flush_on_sigterm()")
def test_sigterm_in_the_middle_of_a_flush(fault: Fault) -> None:
    """A process that is told to end while it flushes, once or more often, does so when all is sent."""
    fault.sink.answer = Answer(seconds=0.05)
    child = fault.start("flush_on_sigterm(); retrieve(60); taken(60); say(); flush(); wait()")
    child.says()
    for _ in range(3):
        child.gets(signal.SIGTERM)
        time.sleep(0.02)
    child.ends(-signal.SIGTERM)
    assert fault.sink.repeated == 0
    fault.ends(60)


def test_sigterm_with_an_open_trace(fault: Fault) -> None:
    """Without the helper, SIGTERM costs what is in an open trace, with a spool or without: it is no event yet."""
    fault.run("by_a_caller(); until(lambda: stats().seen); os.kill(os.getpid(), signal.SIGTERM); wait()", -15)
    assert not fault.sink.taken
    assert not fault.keys_on_disk()


@pytest.mark.fault("a daemon thread still retrieves at exit; the 60 of the main thread")
def test_a_daemon_thread(fault: Fault) -> None:
    """A thread that goes on while the interpreter ends neither holds it up nor costs what the others retrieved."""
    child = fault.run(
        """
        def goes_on():
            while True:
                retrieve(1, "daemon")
                time.sleep(0.001)
        threading.Thread(target=goes_on, daemon=True).start()
        time.sleep(0.05)
        retrieve(60)
        """,
        # Its last event may be on its way when the interpreter is gone.
        PYTHONWARNINGS="error,ignore::ResourceWarning",
    )
    assert not child.log
    for key in [key for key, event in fault.sink.events.items() if event["task"].startswith("daemon")]:
        del fault.sink.taken[key]
    fault.ends(60)


@pytest.mark.fault("a function that is frozen between calls, and flushes at the end of each")
def test_frozen_with_a_flush(fault: Fault) -> None:
    """Each call's retrievals are with the backend when its handler returns, however long the freeze after it."""
    frozen(fault, "flush(2.0)")
    fault.ends(10)


@pytest.mark.fault("a function that is frozen between calls, with SEER_OTEL_SYNCHRONOUS")
def test_frozen_synchronous(fault: Fault) -> None:
    """Each call's retrieval is with the backend when its trace has ended; the handler need not flush."""
    frozen(fault, "pass", SEER_OTEL_SYNCHRONOUS="true")
    fault.ends(10)


def frozen(fault: Fault, end: str, **settings: str) -> None:
    """Ten calls of a handler, each followed by a freeze; in the end the runtime kills the process."""
    child = fault.start(
        f"for i in range(10):\n    retrieve(1, f'call {{i}}')\n    {end}\n    say()\n    wait()", **settings
    )
    for call in range(1, 11):
        said = child.says()
        child.gets(signal.SIGSTOP)
        assert (said.seen, said.sent) == (call, call)
        assert len(fault.sink.taken) == call
        child.gets(signal.SIGCONT)
        if call < 10:
            child.go()
    child.gets(signal.SIGKILL)
    child.ends(-signal.SIGKILL)
    assert fault.sink.repeated == 0


@pytest.mark.fault("a function that is frozen in the middle of a request, longer than its time-out")
def test_frozen_while_sending(fault: Fault) -> None:
    """A request that a freeze breaks off is sent again after it, with the same key."""
    fault.sink.fails(Answer(hangs=True))
    child = fault.start(
        "retrieve(10); until(lambda: stats().seen == 10); say(); flush(); say()", SEER_OTEL_TIMEOUT="0.5"
    )
    child.says()
    child.gets(signal.SIGSTOP)
    fault.sink.goes_away()
    fault.sink.is_well()
    child.gets(signal.SIGCONT)
    assert child.says().sent == 10
    child.ends()
    fault.ends(10)


@pytest.mark.fault("retrievals in an exit handler: where Python 3.12 starts no thread any more")
def test_no_thread_can_start(fault: Fault, tmp_path: Path) -> None:
    """The flush at exit works on the main thread where it must: 3.12.0 and 3.12.1 start no other by then."""
    late = """
    import atexit
    def late():
        retrieve(60)
        try:
            threading.Thread(target=time.sleep, args=[0]).start()
            print("a thread could start")
        except RuntimeError:
            print("no thread could start")
    print(sys.version_info[:3] in ((3, 12, 0), (3, 12, 1)))
    atexit.register(late)  # last, so it comes first
    """
    if sys.version_info[:2] == (3, 12) or "3.12" not in environment.interpreters():
        child = fault.start(late)
    else:
        make = [sys.executable, environment.__file__, "core", "--python", "3.12", "--without-wheel"]
        other = subprocess.run(make, capture_output=True, text=True, check=True).stdout.strip()
        # Its own libraries, and of this one's nothing but the package.
        (tmp_path / "package").mkdir()
        (tmp_path / "package" / "seer_otel").symlink_to(Path(seer_otel.__file__).parent)
        code = "from application import *\n" + textwrap.dedent(late)
        child = fault.start_command(
            [other, "-c", code], PYTHONPATH=f"{HERE}{os.pathsep}{tmp_path / 'package'}"
        )
    child.ends()
    assert child.process.stdout is not None
    refuses, what = child.process.stdout.read().splitlines()
    assert what == ("no thread could start" if refuses == "True" else "a thread could start")
    fault.ends(60)


@pytest.mark.frameworks
@pytest.mark.fault("a gevent-patched process, 60 greenlets")
def test_gevent(fault: Fault) -> None:
    """Where gevent has replaced threads, locks and sockets, greenlets retrieve, and a flush sends."""
    code = """
    import gevent
    gevent.joinall([gevent.spawn(retrieve, 1, f'greenlet {i}') for i in range(60)])
    flush()
    say()
    """
    first = "from gevent import monkey\nmonkey.patch_all()\nfrom application import *\n"
    child = fault.start_command([sys.executable, "-c", first + textwrap.dedent(code)])
    said = child.says()
    assert (said.seen, said.sent) == (60, 60)
    child.ends()
    assert not child.log
    fault.ends(60)
