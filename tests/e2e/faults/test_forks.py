"""Forks, pools and workers: each process sends its own, once, and flushes when its pool ends it."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from .conftest import Fault, eventually

pytestmark = pytest.mark.e2e

METHODS = ["fork", "spawn", "forkserver"]
FORKS = {"PYTHONWARNINGS": "error,ignore:This process:DeprecationWarning"}
"""Python warns of a fork beside threads, and rightly; it happens all the same."""


@pytest.mark.fault("os.fork: a parent and three children, each at work")
def test_fork(fault: Fault) -> None:
    """After a fork each process sends its own, once, whatever the parent had under way; children need no flush."""
    fault.run(
        """
        retrieve(50, "before")
        children = []
        for child in range(3):
            pid = os.fork()
            if not pid:
                work(f"child {child}", 10)
                sys.exit()
            children.append(pid)
            retrieve(1, f"parent {child}")
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0, 0]
        retrieve(7, "after")
        flush()
        assert stats().seen == stats().sent == 60, stats()
        """,
        **FORKS,
    )
    assert fault.sink.repeated == 0
    fault.ends(90)


@pytest.mark.fault("a fork of which Python knows nothing, made in C: a parent and a child")
def test_a_fork_without_hooks(fault: Fault) -> None:
    """Where a fork runs no hooks, as some servers make it, the child notices by its pid, and takes nothing along."""
    fault.run(
        """
        import ctypes
        retrieve(30, "parent")
        flush()
        pid = ctypes.PyDLL(None).fork()
        if not pid:
            retrieve(30, "child")
            os._exit(0 if processor.flush(20).complete and stats().seen == stats().sent == 30 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        """
    )
    assert fault.sink.repeated == 0
    fault.ends(60)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.fault("multiprocessing.Process (fork, spawn and forkserver)")
def test_processes(fault: Fault, method: str) -> None:
    """A child process of multiprocessing flushes at its end, though it runs no exit handlers."""
    fault.run(
        f"""
        context = multiprocessing.get_context({method!r})
        children = [context.Process(target=work, args=[f"child {{i}}"]) for i in range(3)]
        [child.start() for child in children]
        [child.join() for child in children]
        assert [child.exitcode for child in children] == [0, 0, 0]
        """,
        **FORKS,
    )
    assert fault.sink.repeated == 0
    fault.ends(60)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.fault("multiprocessing.Pool, closed and joined (fork, spawn and forkserver)")
def test_a_pool(fault: Fault, method: str) -> None:
    """Workers of a pool that are replaced after a task, or end with the pool, flush."""
    fault.run(
        f"""
        pool = multiprocessing.get_context({method!r}).Pool(2, maxtasksperchild=1)
        pool.map(work, ["one", "two", "three"], chunksize=1)
        pool.close()
        pool.join()
        """,
        **FORKS,
    )
    assert fault.sink.repeated == 0
    fault.ends(60)


@pytest.mark.fault(
    "multiprocessing.Pool in a with-block, which ends workers by SIGTERM, with flush_on_sigterm()"
)
def test_a_pool_in_a_with_block(fault: Fault) -> None:
    """Such a pool needs the helper in its workers."""
    fault.run(
        """
        with multiprocessing.get_context("spawn").Pool(2, flush_on_sigterm) as pool:
            pool.map(work, ["one", "two", "three"], chunksize=1)
        pool.join()
        """
    )
    fault.ends(60)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.fault("concurrent.futures.ProcessPoolExecutor (fork and spawn)")
def test_an_executor(fault: Fault, method: str) -> None:
    """Workers of an executor flush when it shuts down."""
    fault.run(
        f"""
        with ProcessPoolExecutor(2, multiprocessing.get_context({method!r})) as pool:
            list(pool.map(work, ["one", "two", "three"]))
        """,
        **FORKS,
    )
    assert fault.sink.repeated == 0
    fault.ends(60)


@pytest.mark.frameworks
@pytest.mark.fault("Celery, prefork, max_tasks_per_child=1")
def test_celery(fault: Fault, tmp_path: Path) -> None:
    """A worker of Celery's flushes when it is replaced after its one task."""
    broker = tmp_path / "broker"
    broker.mkdir()
    settings = {"BROKER": str(broker), "PYTHONWARNINGS": "default"}
    celery = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--without-gossip", "--without-mingle"]
    celery += ["--pool=prefork", "--concurrency=2", "--max-tasks-per-child=1", "--loglevel=warning"]
    worker = fault.start_command(celery, **settings)
    fault.run("import tasks\nfor i in range(10): tasks.work.delay(f'task {i}')", **settings)
    eventually(lambda: len(fault.sink.taken) == 10, 30)
    worker.gets(signal.SIGTERM)
    worker.ends()
    assert fault.sink.repeated == 0
    fault.ends(10)
