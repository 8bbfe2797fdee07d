"""Processes that end, die or share a folder: the spool hands every event on, and each to one process only."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from seer_otel.delivery.transport import CONNECTIONS

from .conftest import Fault, eventually
from .sink import Answer

pytestmark = pytest.mark.e2e

RETRIEVES = "retrieve(60); taken(60); say(); wait()"
NEXT = "flush(); say()"
"""A process that takes over what is there, without a retrieval of its own."""


def dies_in_an_outage(fault: Fault) -> None:
    """A process retrieves 60 times while the backend is away, says how many are on disk, and is killed."""
    fault.sink.goes_away()
    child = fault.start(RETRIEVES)
    said = child.says()
    assert (said.held, said.spooled) == (60, 60 if fault.spools else 0)
    child.gets(signal.SIGKILL)
    child.ends(-signal.SIGKILL)


@pytest.mark.fault("the process ends during an outage; the next one starts after it")
def test_an_end_in_an_outage(fault: Fault) -> None:
    """What a process could not send before its end is sent by the next one with the same folder."""
    fault.sink.goes_away()
    child = fault.run("retrieve(60)")
    assert len(fault.keys_on_disk()) == (60 if fault.spools else 0)
    assert child.log.count("The backend at") == 1
    assert ("SEER_OTEL_SPOOL_DIR" in child.log) == (not fault.spools)  # the cure of what is lost
    fault.sink.is_well()
    said = fault.tells(NEXT)
    assert (said.seen, said.recovered, said.sent) == ((60, 60, 60) if fault.spools else (0, 0, 0))
    fault.ends(60, lost=60)


@pytest.mark.fault("kill -9 during an outage")
def test_killed_in_an_outage(fault: Fault) -> None:
    """All that `stats()` says is on disk is there after the kill."""
    dies_in_an_outage(fault)
    fault.ends(60, lost=60)


@pytest.mark.fault("kill -9 during an outage; the next process starts after it")
def test_the_next_after_a_kill(fault: Fault) -> None:
    """All that `stats()` said was on disk is sent by the next process, with its own, each event once."""
    dies_in_an_outage(fault)
    fault.sink.is_well()
    said = fault.tells("retrieve(5, 'own'); flush(); say()")
    assert said.sent == said.seen == (65 if fault.spools else 5)
    assert said.recovered == (60 if fault.spools else 0)
    assert fault.sink.repeated == 0
    fault.ends(65, lost=60)


@pytest.mark.fault(
    "kill -9 while 400 are being sent to a slow backend; the next process goes on", varies=True
)
def test_killed_while_sending(fault: Fault) -> None:
    """Of events that were being sent none is lost, and only those on their way are sent twice, with their key."""
    fault.sink.answer = Answer(seconds=0.05)
    child = fault.start("retrieve(400); taken(400); say(); wait()")
    assert child.says().seen == 400
    eventually(lambda: len(fault.sink.taken) >= 30)
    child.gets(signal.SIGKILL)
    child.ends(-signal.SIGKILL)
    assert len(fault.sink.taken) < 400
    fault.sink.is_well()
    fault.tells(NEXT)
    assert fault.sink.repeated <= CONNECTIONS
    assert max(fault.sink.taken.values()) <= 2
    fault.ends(400, lost=None)


@pytest.mark.fault("kill -9 while the first request hangs")
def test_killed_while_a_request_hangs(fault: Fault) -> None:
    """A backend that begins to hang keeps nothing from the disk."""
    fault.sink.fails(Answer(hangs=True))
    child = fault.start(
        "retrieve(1, 'first'); wait(); retrieve(60); processor.config.spool_dir and taken(61); say(); wait()",
        SEER_OTEL_TIMEOUT="60",
    )
    eventually(lambda: fault.sink.requests == 1)
    child.go()
    assert child.says().spooled == (61 if fault.spools else 0)
    child.gets(signal.SIGKILL)
    child.ends(-signal.SIGKILL)
    fault.ends(61, lost=61)


@pytest.mark.fault("two processes on one folder, during an outage and after it")
def test_two_processes(fault: Fault) -> None:
    """Two processes that share a folder through an outage send each event once."""
    fault.sink.goes_away()
    program = "retrieve(60, {!r}); taken(60); say(); wait(); flush(); say()"
    children = [fault.start(program.format(name)) for name in ("one", "other")]
    for child in children:
        assert child.says().held == 60
    fault.sink.is_well()
    for child in children:
        child.go()
    for child in children:
        said = child.says()
        assert (said.seen, said.sent) == (60, 60)
        child.ends()
    assert fault.sink.repeated == 0
    fault.ends(120)


@pytest.mark.fault("two processes on one folder; one is killed, and the other goes on")
def test_one_of_two_is_killed(fault: Fault) -> None:
    """What a killed process has left is sent by one that still runs, and once."""
    fault.sink.goes_away()
    killed = fault.start(RETRIEVES)
    survivor = fault.start(
        """
        outbox.TENDING = 0.05  # else it looks every half minute
        retrieve(60, 'own')
        taken(60)
        say()
        wait()
        until(lambda: stats().recovered == (60 if processor.config.spool_dir else 0))
        flush()
        say()
        """
    )
    assert killed.says().held == survivor.says().held == 60
    killed.gets(signal.SIGKILL)
    killed.ends(-signal.SIGKILL)
    fault.sink.is_well()
    survivor.go()
    said = survivor.says()
    survivor.ends()
    assert said.sent == said.seen == (120 if fault.spools else 60)
    assert fault.sink.repeated == 0
    fault.ends(120, lost=60)


@pytest.mark.fault("`seer-otel spool drain` in place of a next process")
def test_drained_by_hand(fault: Fault, tmp_path: Path) -> None:
    """The command sends what a process has left behind."""
    dies_in_an_outage(fault)
    fault.sink.is_well()
    command = "import sys; from seer_otel.cli import main; sys.exit(main(['spool', 'drain']))"
    drain = fault.start_command(["python", "-c", command])
    drain.ends(0 if fault.spools else 2)
    fault.ends(60, lost=60)
