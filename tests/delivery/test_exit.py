"""How processes end, and fork, in detail; the plain ways are in tests/e2e/faults."""

from __future__ import annotations

import signal
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

Program = Callable[..., Any]
Eventually = Callable[..., None]

PROCESSOR = """
provider = TracerProvider()
processor = SeerSpanProcessor()
provider.add_span_processor(processor)
tracer = provider.get_tracer("test")
"""


def test_an_open_trace_at_exit(server: Any, program: Program) -> None:
    """What has been retrieved in a trace that is still open at exit is delivered, as partial."""
    code = """
    root = tracer.start_span("never ended")
    from opentelemetry.trace import set_span_in_context
    tracer.start_span("retriever", context=set_span_in_context(root), attributes={
        "openinference.span.kind": "RETRIEVER", "input.value": "a question",
        "retrieval.documents.0.document.content": "a text"}).end()
    """
    assert program(PROCESSOR + textwrap.dedent(code)).ends() == (0, "", "")
    (event,) = server.delivered
    assert event["metadata"]["seer_otel.partial"] == "flush"


def test_nobody_shuts_the_provider_down(server: Any, program: Program) -> None:
    """A provider that does not shut down at exit, and whose program does not either, loses nothing."""
    code = PROCESSOR.replace("TracerProvider()", "TracerProvider(shutdown_on_exit=False)")
    assert program(code + "retrieve(tracer, 'a question')").ends() == (0, "", "")
    assert server.tasks == ["a question"]


def test_concurrent_processors(server: Any, program: Program) -> None:
    """Behind the SDK's concurrent processor, whose own shutdown at exit cannot work, nothing is lost."""
    code = PROCESSOR.replace(
        "TracerProvider()", "TracerProvider(active_span_processor=ConcurrentMultiSpanProcessor())"
    )
    status, _, _ = program(code + "retrieve(tracer, 'a question')").ends()
    assert status == 0
    assert server.tasks == ["a question"]


def test_the_exporter(server: Any, program: Program) -> None:
    """An exporter behind the SDK's batch processor delivers at exit all that the batch processor still holds, whole."""
    code = """
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(SeerSpanExporter(), schedule_delay_millis=60_000))
    tracer = provider.get_tracer("test")
    for i in range(20):
        retrieve(tracer, f"question {i:02}")
    """
    assert program(code).ends() == (0, "", "")
    assert server.tasks == [f"question {i:02}" for i in range(20)]
    assert all(event["is_final_context"] for event in server.delivered)


def test_killed(server: Any, program: Program, eventually: Eventually) -> None:
    """A process that is killed has delivered what it retrieved, as events do not wait for an end."""
    running = program(PROCESSOR + "retrieve(tracer, 'a question')\ntime.sleep(60)")
    eventually(lambda: server.tasks == ["a question"])
    running.process.send_signal(signal.SIGKILL)
    assert running.ends()[0] == -signal.SIGKILL


def test_sigterm_in_the_middle_of_a_flush(server: Any, program: Program) -> None:
    """A signal that shuts down and exits in the middle of a flush costs at most the one trace in hand."""
    code = """
    signal.signal(signal.SIGTERM, lambda *_: (processor.shutdown(), sys.exit(0)))
    for i in range(60):
        retrieve(tracer, f"question {i:03}")
    threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM)).start()
    while True:
        processor.force_flush()
    """
    assert program(PROCESSOR + textwrap.dedent(code)).ends() == (0, "", "")
    assert len(server.delivered) >= 59
    assert len(set(server.tasks)) == len(server.tasks)


def test_signals_in_the_middle(server: Any, program: Program) -> None:
    """Signal handlers that trace, flush and read counts block nothing and lose nothing, whatever they interrupt."""
    code = """
    done, inside = 0, False
    def handler(*_):
        global done, inside
        if not inside:
            inside = True
            done += 1
            retrieve(tracer, f"signal {done}")
            processor.stats()
            processor.flush(0.0)
            inside = False
    signal.signal(signal.SIGALRM, handler)
    tracer.start_span("first").end()  # OpenTelemetry sets itself up under a lock
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    i = 0
    while done < 60:
        i += 1
        retrieve(tracer, f"question {i}")
        processor.stats()
        processor.flush(0.0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert processor.flush(20).complete, processor.stats()
    stats = processor.stats()
    by_design = stats.dropped.pop("nested", 0)  # the handler ran in the middle of a retriever
    assert not stats.dropped, stats
    print(i + done, stats.seen, stats.sent + by_design, stats.held)
    """
    status, out, err = program(PROCESSOR + textwrap.dedent(code)).ends()
    assert (status, err) == (0, "")
    made, seen, accounted, held = map(int, out.split())
    assert made == seen == accounted
    assert held == 0


@pytest.mark.parametrize("door", ["processor", "exporter"])
def test_a_hanging_backend_delays_the_end_once(server: Any, answer: Any, program: Program, door: str) -> None:
    """With a backend that never answers a program ends all the same, after one deadline and not two."""
    gate = threading.Event()
    server.default = answer(until=gate)
    code = PROCESSOR.replace("SeerSpanProcessor()", "SeerSpanProcessor(timeout=60)")
    if door == "exporter":
        code = code.replace(
            "SeerSpanProcessor(timeout=60)",
            "BatchSpanProcessor(SeerSpanExporter(timeout=60), schedule_delay_millis=50)",
        )
    # Registered first, so it runs last.
    first = "import atexit\natexit.register(lambda: print(time.monotonic() - began < 8.0))\n"
    wait = "\nretrieve(tracer, 'a question')\ntime.sleep(0.2)\nbegan = time.monotonic()"
    status, out, _ = program(first + code + wait).ends()
    gate.set()
    assert (status, out) == (0, "True\n")


# --- Fork ---


def test_fork_while_the_first_event_is_sent(server: Any, program: Program) -> None:
    """Children forked at any moment while their parent prepares and sends its first event can all send."""
    code = """
    retrieve(tracer, "parent")
    children = []
    for child in range(12):
        time.sleep(0.006)
        pid = os.fork()
        if not pid:
            retrieve(tracer, f"child {child:02}")
            os._exit(0 if processor.flush(20).complete else 1)
        children.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * 12
    """
    status, _, err = program(
        "import warnings; warnings.simplefilter('ignore')\n" + PROCESSOR + textwrap.dedent(code)
    ).ends()
    assert status == 0, err
    assert server.tasks == [*(f"child {child:02}" for child in range(12)), "parent"]


def test_a_child_takes_over_what_its_dead_parent_left(
    server: Any, answer: Any, program: Program, tmp_path: Path
) -> None:
    """A daemon sends what the process that it was forked from has left on disk, whatever threads that one had."""
    server.script = [answer(status=401)]
    code = """
    for i in range(20):
        retrieve(tracer, f"question {i:02}")
    assert processor.flush(5).spooled == 20
    parent = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == parent:
        time.sleep(0.01)
    retrieve(tracer, "of the child")
    print(processor.flush(20).complete, processor.stats().recovered)
    """
    spooled = PROCESSOR.replace("SeerSpanProcessor()", f"SeerSpanProcessor(spool_dir={str(tmp_path)!r})")
    ignore = "import warnings; warnings.simplefilter('ignore')\n"
    status, out, _ = program(ignore + spooled + textwrap.dedent(code)).ends()
    assert (status, out) == (0, "True 20\n")
    assert server.tasks == ["of the child", *(f"question {i:02}" for i in range(20))]


def test_a_synchronous_worker_of_a_pool(server: Any, answer: Any, program: Program) -> None:
    """What a synchronous processor could not send at once is sent when its process, a worker of a pool, ends."""
    server.script = [answer(status=503)]
    code = """
    import multiprocessing
    worker = multiprocessing.get_context("fork").Process(target=retrieve, args=(tracer, "a question"))
    worker.start()
    worker.join()
    print(worker.exitcode)
    """
    synchronous = PROCESSOR.replace("SeerSpanProcessor()", "SeerSpanProcessor(synchronous=True)")
    assert program(synchronous + textwrap.dedent(code)).ends() == (0, "0\n", "")
    assert server.tasks == ["a question"]


@pytest.mark.parametrize(
    "locked", ["", "pipeline._working", "pipeline._outbox._lock", "pipeline._counters._lock"]
)
def test_a_fork_without_hooks(server: Any, program: Program, locked: str) -> None:
    """Where a fork ran no hooks, as some servers make it, the child notices by its pid, also when a lock was held."""
    code = """
    pipeline = processor._pipeline
    retrieve(tracer, "parent before")
    assert processor.force_flush()
    retrieve(tracer, "parent's own")
    state = {name: value for name, value in vars(pipeline).items()}
    lock = LOCK
    held, free = threading.Event(), threading.Event()
    def hold():
        lock and lock.acquire()
        held.set()
        free.wait()
        lock and lock.release()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    pid = os.fork()
    if not pid:
        vars(pipeline).update(state)  # as if the hook had not run
        retrieve(tracer, "child")
        flushed = processor.flush(20)
        stats = processor.stats()
        os._exit(0 if (flushed.complete and stats.sent == 1) else 1)
    free.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    retrieve(tracer, "parent after")
    """
    code = textwrap.dedent(code).replace("LOCK", locked or "None")
    status, _, err = program("import warnings; warnings.simplefilter('ignore')\n" + PROCESSOR + code).ends()
    assert status == 0, err
    assert server.tasks == ["child", "parent after", "parent before", "parent's own"]


def test_fork_after_a_shutdown(server: Any, program: Program) -> None:
    """A child forked after the shutdown is shut down, too."""
    code = """
    retrieve(tracer, "before")
    processor.shutdown()
    pid = os.fork()
    if not pid:
        retrieve(tracer, "child")
        stats = processor.stats()
        os._exit(0 if dict(stats.dropped) == {"shutdown": 1} and not processor._pipeline.queue else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    """
    status, _, err = program(
        "import warnings; warnings.simplefilter('ignore')\n" + PROCESSOR + textwrap.dedent(code)
    ).ends()
    assert status == 0, err
    assert server.tasks == ["before"]


def test_only_daemon_threads(server: Any, program: Program) -> None:
    """No thread of ours keeps a program from ending, even where the flush at exit is taken away."""
    code = "import atexit\nretrieve(tracer, 'a question')\nassert all(t.daemon for t in threading.enumerate()[1:])\n"
    assert program(PROCESSOR + code + "atexit._clear()").ends(20)[0] == 0
