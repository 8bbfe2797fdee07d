"""The spool's disk fails: the application is unharmed, it is said once, and what memory holds arrives."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Fault

pytestmark = pytest.mark.e2e

GOES_ON = """
retrieve(60)
flush()
say()
"""


@pytest.mark.fault("a file in the spool's folder is corrupt", spool_only=True)
def test_a_corrupt_file(fault: Fault) -> None:
    """A file that is no database is moved aside and said once; events are kept and sent as ever."""
    fault.folder.mkdir()
    (fault.folder / "spool-0.db").write_bytes(b"no database" * 1000)
    child = fault.start(GOES_ON)
    said = child.says()
    assert (said.seen, said.sent) == (60, 60)
    child.ends()
    assert child.log.count("The spool in") == 1
    assert [path.name for path in fault.folder.iterdir()] == ["spool.db.unreadable"]
    fault.ends(60)


@pytest.mark.fault("the spool's own file becomes corrupt during an outage", spool_only=True)
def test_the_own_file_becomes_corrupt(fault: Fault) -> None:
    """What was on disk and in memory waits in memory alone and arrives; what comes after gets a new file."""
    fault.sink.goes_away()
    child = fault.start(
        """
        retrieve(60)
        taken(60)
        say()
        wait()
        retrieve(60, "after")
        until(lambda: stats().seen == 120)
        say()
        wait()
        flush()
        say()
        """
    )
    assert child.says().spooled == 60
    (file,) = fault.folder.glob("spool-*.db")
    for path in fault.folder.glob("spool-*"):  # the write-ahead log, too
        with path.open("r+b") as damaged:
            damaged.write(b"\xff" * path.stat().st_size)
    child.go()
    said = child.says()
    assert (said.held, said.dropped) == (120, {})
    fault.sink.is_well()
    child.go()
    said = child.says()
    assert (said.seen, said.sent) == (120, 120)
    child.ends()
    assert child.log.count("The spool in") == 1
    assert (fault.folder / "spool.db.unreadable").exists()
    assert not file.exists()
    fault.ends(120)


@pytest.mark.fault("the disk is full during an outage", spool_only=True)
def test_a_full_disk(fault: Fault) -> None:
    """What finds no room on the disk waits in memory, and arrives when the backend is back."""
    fault.sink.goes_away()
    child = fault.start(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
        retrieve(200)
        until(lambda: stats().seen == 200)
        say()
        wait()
        flush()
        say()
        """
    )
    said = child.says()
    assert said.held == 200
    assert 0 < said.spooled < 200
    fault.sink.is_well()
    child.go()
    said = child.says()
    assert (said.seen, said.sent) == (200, 200)
    child.ends()
    assert child.log.count("The spool in") == 1
    fault.ends(200)


@pytest.mark.fault("the spool is at its own limit during an outage", spool_only=True)
def test_a_full_spool(fault: Fault) -> None:
    """Beyond SEER_OTEL_SPOOL_MAX_BYTES events wait in memory; what is on disk stays, and all arrive."""
    fault.sink.goes_away()
    child = fault.start(
        "retrieve(200); until(lambda: stats().seen == 200); say(); wait(); flush(); say()",
        SEER_OTEL_SPOOL_MAX_BYTES="65536",
    )
    said = child.says()
    assert said.held == 200
    assert 0 < said.spooled < 200
    fault.sink.is_well()
    child.go()
    said = child.says()
    assert (said.seen, said.sent) == (200, 200)
    child.ends()
    assert child.log.count("SEER_OTEL_SPOOL_MAX_BYTES") == 1
    fault.ends(200)


@pytest.mark.fault("the spool's folder is read-only", spool_only=True)
def test_a_read_only_folder(fault: Fault, tmp_path: Path) -> None:
    """Without a folder to write to everything goes on in memory, and it is said once."""
    fault.folder.mkdir(mode=0o500)
    # Root may write anywhere, so the program becomes somebody else; what it needs is imported before.
    child = fault.start(
        """
        import seer_otel.delivery.spool
        if os.getuid() == 0:
            os.setuid(65534)
        retrieve(60)
        flush()
        say()
        """
    )
    said = child.says()
    assert (said.seen, said.sent, said.spooled) == (60, 60, 0)
    child.ends()
    assert child.log.count("The spool in") == 1
    fault.ends(60)
