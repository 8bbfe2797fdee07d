"""The spool on disk: what it keeps, for whom, and what a failing disk does to it. Processes here are real."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from seer_otel.delivery.spool import Spool, SpoolError, SpoolFull, SpoolLost, Stored
from seer_otel.delivery.spool_file import UNREADABLE
from seer_otel.delivery.survey import survey

URL = "http://127.0.0.1:1/v1/log"
MB = 1024 * 1024


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def make(folder: Path, endpoint: str = URL, **settings: Any) -> Spool:
    return Spool(str(folder), endpoint, **{"max_bytes": 256 * MB, "max_age": 3600.0, **settings})


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = make(tmp_path / "spool")
    yield made
    made.close()


def bodies(spool: Spool, limit: int = 100_000) -> list[bytes]:
    return [each.body for each in spool.read(limit, ())]


def own_file(folder: Path) -> Path:
    (path,) = folder.glob("spool-*.db")
    return path


PREAMBLE = f"""
import os, signal, sys, time
from seer_otel.delivery.spool import Spool, SpoolError, SpoolFull, SpoolLost
def make(endpoint={URL!r}, **settings):
    return Spool(sys.argv[1], endpoint, **{{"max_bytes": 1 << 28, "max_age": 3600.0, **settings}})
def say(*words):
    print(*words, flush=True)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(code)` runs code in a process of its own; `make()` there is a spool in the folder of `spool` here."""
    running = []

    def begin(code: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "error",
                "-c",
                PREAMBLE + textwrap.dedent(code),
                str(tmp_path / "spool"),
                *arguments,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        running.append(process)
        return process

    yield begin
    for each in running:
        each.kill()
        each.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def kill(process: subprocess.Popen[str]) -> str:
    """Kill a process and return what it had still said."""
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    assert process.stdout is not None
    return process.stdout.read()


ADD_AND_STAY = """
spool = make()
for i in range(int(sys.argv[2])):
    spool.add(b"%s %d" % (sys.argv[3].encode(), i), f"key {i}", False)
say("ready")
sys.stdin.read()
"""


def test_nothing_is_touched_before_the_first_event(tmp_path: Path) -> None:
    """A spool that is made, read, tended and closed without any event leaves no trace on disk."""
    spool = make(tmp_path / "spool")
    assert (spool.read(10, ()), spool.adopt(), spool.expire()) == ([], 0, [])
    spool.remove(1)
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_what_is_read_is_what_was_added(tmp_path: Path) -> None:
    """An event comes back with all that it was added with, and with the time of that."""
    clock = Clock()
    spool = make(tmp_path, clock=clock)
    row = spool.add(b'{"task": "\xc3\xa9"}', "key-1", True)
    assert spool.read(10, ()) == [Stored(row, b'{"task": "\xc3\xa9"}', "key-1", True, clock.now)]
    spool.close()


def test_oldest_first_without_those_in_hand(spool: Spool) -> None:
    """Events are read in the order in which they were added, as many as asked for, without those to be skipped."""
    rows = [spool.add(b"%d" % i, "key", False) for i in range(10)]
    assert rows == sorted(rows)
    assert [each.body for each in spool.read(3, {rows[0], rows[2], rows[9]})] == [b"1", b"3", b"4"]
    assert bodies(spool, 2) == [b"0", b"1"]


def test_a_clock_that_stands_or_is_set_back_keeps_the_order(tmp_path: Path) -> None:
    """The order is that of adding also where the clock stands still or goes back a little."""
    clock = Clock()
    spool = make(tmp_path, clock=clock)
    for i in range(300):
        clock.now -= 0.003 * (i % 2)
        spool.add(b"%d" % i, "key", False)
    assert bodies(spool) == [b"%d" % i for i in range(300)]
    spool.close()


def test_removed(tmp_path: Path) -> None:
    """An event that was removed is not read again; removing it twice does no harm; an empty file goes."""
    spool = make(tmp_path)
    first, second = spool.add(b"1", "a", False), spool.add(b"2", "b", False)
    spool.remove(first)
    spool.remove(first)
    assert bodies(spool) == [b"2"]
    spool.remove(second)
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_closed(tmp_path: Path) -> None:
    """A closed spool takes nothing more, and leaves its events to the next one."""
    spool = make(tmp_path)
    spool.add(b"1", "a", False)
    spool.close()
    spool.close()
    with pytest.raises(SpoolError, match="closed"):
        spool.add(b"2", "b", False)
    after = make(tmp_path)
    assert after.adopt() == 1
    assert bodies(after) == [b"1"]
    after.close()


def test_two_in_one_process(tmp_path: Path) -> None:
    """Two spools of one process on one folder see only their own events, and neither takes the other's."""
    one, two = make(tmp_path), make(tmp_path)
    one.add(b"1", "a", False)
    two.add(b"2", "b", False)
    assert (one.adopt(), two.adopt()) == (0, 0)
    assert (bodies(one), bodies(two)) == ([b"1"], [b"2"])
    one.close()
    assert two.adopt() == 1
    assert bodies(two) == [b"1", b"2"]
    two.close()


def test_another_endpoint(tmp_path: Path) -> None:
    """Events meant for another endpoint are not taken over, unless that is asked for."""
    for endpoint in ("http://127.0.0.1:1/a", "http://127.0.0.1:1/b"):
        spool = make(tmp_path, endpoint)
        spool.add(endpoint.encode(), "a", False)
        spool.close()
    b = make(tmp_path, "http://127.0.0.1:1/b")
    assert (b.adopt(), bodies(b)) == (1, [b"http://127.0.0.1:1/b"])
    b.close()
    everything = make(tmp_path, "http://127.0.0.1:1/c", any_endpoint=True)
    assert everything.adopt() == 2
    everything.close()
    assert {each.endpoint for each in survey(tmp_path)} == {"http://127.0.0.1:1/c"}


def test_age_survives_being_taken_over(tmp_path: Path) -> None:
    """What was taken over keeps its age, is read before what is younger, and expires by it."""
    clock = Clock()
    old = make(tmp_path, clock=clock)
    old.add(b"old", "a", False)
    old.close()
    clock.now += 100
    new = make(tmp_path, clock=clock, max_age=150)
    new.add(b"new", "b", False)
    assert new.adopt() == 1
    assert [(each.body, each.born) for each in new.read(9, ())] == [
        (b"old", clock.now - 100),
        (b"new", clock.now),
    ]
    clock.now += 60
    (row,) = [each.row for each in new.read(9, ()) if each.body == b"old"]
    assert new.expire() == [row]
    assert new.expire() == []
    assert bodies(new) == [b"new"]
    new.close()


def test_an_adopter_that_was_killed_in_the_middle(tmp_path: Path) -> None:
    """Events that were copied but not yet deleted where they came from are there once in the end."""
    clock = Clock()
    first = make(tmp_path, clock=clock)
    for i in range(5):
        first.add(b"%d" % i, f"key {i}", False)
    first.close()
    left = own_file(tmp_path)
    copy = left.with_name("spool-copy.db")
    copy.write_bytes(left.read_bytes())
    after = make(tmp_path, clock=clock)
    assert after.adopt() == 5
    assert bodies(after) == [b"0", b"1", b"2", b"3", b"4"]
    after.close()


def test_different_events_of_one_moment(tmp_path: Path) -> None:
    """Events that two processes added at the same microsecond are all kept."""
    clock = Clock()
    for word in (b"1", b"2", b"3"):
        spool = make(tmp_path, clock=clock)
        spool.add(word, "the same key", False)
        spool.close()
    after = make(tmp_path, clock=clock)
    assert after.adopt() == 3
    after.add(b"4", "the same key", False)
    assert sorted(bodies(after)) == [b"1", b"2", b"3", b"4"]
    after.close()


def test_byte_cap(tmp_path: Path) -> None:
    """At the cap events are refused, those on disk stay, and there is room again once some are gone."""
    spool = make(tmp_path, max_bytes=2 * MB)
    rows: list[int] = []
    with pytest.raises(SpoolFull, match="2,097,152 bytes"):
        rows.extend(spool.add(bytes(10_000), "a", False) for _ in range(1_000))
    assert 100 < len(rows) < 210
    assert len(bodies(spool)) == len(rows)
    with pytest.raises(SpoolFull):
        spool.add(bytes(10_000), "a", False)
    for row in rows[:10]:
        spool.remove(row)
    spool.add(bytes(10_000), "a", False)
    spool.close()


def test_the_cap_is_shared(tmp_path: Path) -> None:
    """What another process has on disk counts."""
    other = make(tmp_path)
    for _ in range(250):
        other.add(bytes(10_000), "a", False)
    other.close()
    spool = make(tmp_path, max_bytes=2 * MB)
    with pytest.raises(SpoolFull):
        spool.add(b"1", "a", False)
    spool.close()


def test_it_shrinks(tmp_path: Path) -> None:
    """After an outage the files become small again while the process runs on, and the log stays small during it."""
    spool = make(tmp_path)
    rows = [spool.add(bytes(10_000), "a", False) for _ in range(3_000)]
    path = own_file(tmp_path)
    logged = Path(f"{path}-wal").stat().st_size
    for row in rows:
        spool.remove(row)
    spool.expire()
    for _ in range(1_000):  # so that the log comes round
        spool.remove(spool.add(bytes(10_000), "a", False))
    assert logged < 6 * MB
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) < 12 * MB
    spool.close()


def test_private(tmp_path: Path) -> None:
    """The folder is its owner's alone, and so is each file in it."""
    spool = make(tmp_path / "a" / "b")
    spool.add(b"1", "a", False)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    modes = {
        each.name.rpartition(".")[2]: each.stat().st_mode & 0o777 for each in (tmp_path / "a/b").iterdir()
    }
    assert modes == {"db": 0o600, "db-wal": 0o600, "db-shm": 0o600}
    spool.close()


def test_home_and_relative_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` is the home folder, and a relative folder stays where it was when the process changes its directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    home, here = make(Path("~/spool")), make(Path("here"))
    monkeypatch.chdir("/")
    for spool in (home, here):
        spool.add(b"1", "a", False)
        spool.close()
    assert own_file(tmp_path / "spool").exists()
    assert own_file(tmp_path / "here").exists()


NO_DATABASE = [b"no database at all" * 1000, b"", os.urandom(100_000)]


@pytest.mark.parametrize("content", NO_DATABASE, ids=["text", "empty", "noise"])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    """A file that is no database is moved aside and said once, and hinders nothing; an empty one is only deleted."""
    healthy = make(tmp_path)
    healthy.add(b"1", "a", False)
    healthy.close()
    (tmp_path / "spool-000.db").write_bytes(content)
    (tmp_path / UNREADABLE).write_bytes(b"an older one")
    spool = make(tmp_path)
    assert spool.adopt() == 1
    if content:
        with pytest.raises(SpoolError, match=r"spool-000\.db: file is not a database; moved to") as caught:
            spool.adopt()
        assert not isinstance(caught.value, SpoolLost)  # its own are safe
        assert (tmp_path / UNREADABLE).read_bytes() == content
    assert spool.adopt() == 0
    assert bodies(spool) == [b"1"]
    assert not (tmp_path / "spool-000.db").exists()
    spool.close()


def test_a_truncated_file(tmp_path: Path) -> None:
    """Of a file that was cut off, what can be read is taken over, the rest is moved aside and said."""
    spool = make(tmp_path)
    for i in range(500):
        spool.add(b"%04d" % i + bytes(2_000), "a", False)
    spool.close()
    path = own_file(tmp_path)
    os.truncate(path, path.stat().st_size // 2)
    after = make(tmp_path)
    taken, error = 0, None
    for _ in range(2):
        try:
            taken += after.adopt()
        except SpoolError as caught:
            error = caught
    assert "malformed" in str(error)
    assert (tmp_path / UNREADABLE).exists()
    assert [int(each[:4]) for each in bodies(after)] == list(range(taken))
    assert after.adopt() == 0
    after.close()


def left_damaged(folder: Path, *statements: str) -> Path:
    """A file of three events that its owner has left, after these statements on a table that takes anything."""
    spool = make(folder)
    for body in (b"1", b"2", b"3"):
        spool.add(body, "key", False)
    spool.close()
    path = own_file(folder)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE events RENAME TO old")
        connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, key, is_empty, body)")
        connection.execute("INSERT INTO events SELECT * FROM old ORDER BY id")
        connection.execute("DROP TABLE old")
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.mark.parametrize(
    "damage", ["body = NULL", "body = 5", "body = 'text'", "key = 5", "is_empty = NULL", f"id = {2**63 - 1}"]
)
def test_a_damaged_event(tmp_path: Path, damage: str) -> None:
    """An event of which a value has become one of another type takes no other along; that one is lost is said."""
    left_damaged(tmp_path, f"UPDATE events SET {damage} WHERE body = x'32'")
    spool = make(tmp_path)
    assert spool.adopt() == 2
    with pytest.raises(SpoolError, match="1 of its events are damaged; moved to"):
        spool.adopt()
    assert spool.adopt() == 0
    assert bodies(spool) == [b"1", b"3"]
    spool.close()


def test_a_damaged_text(tmp_path: Path) -> None:
    """A byte of a key that no text has costs that key, and no event."""
    left_damaged(tmp_path, "UPDATE events SET key = CAST(x'6bff79' AS TEXT) WHERE body = x'32'")
    spool = make(tmp_path)
    assert spool.adopt() == 3
    assert [each.key for each in spool.read(9, ())] == ["key", "k\ufffdy", "key"]
    spool.close()


def test_events_that_no_id_leads_to(tmp_path: Path) -> None:
    """A file is not taken for an empty one, and deleted, where its events are there and cannot be found."""
    path = left_damaged(tmp_path, "UPDATE events SET id = -id")
    spool = make(tmp_path)
    with pytest.raises(SpoolError, match="cannot be found by their ids; moved to"):
        spool.adopt()
    assert not path.exists()
    assert (tmp_path / UNREADABLE).exists()
    spool.close()


def test_a_damaged_schema(tmp_path: Path) -> None:
    """A schema that SQLite cannot even complain about in UTF-8 is damage like any other."""
    left_damaged(
        tmp_path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET name = CAST(x'fe' AS TEXT), sql = 'CREATE TABLE' WHERE name = 'events'",
    )
    spool = make(tmp_path)
    with pytest.raises(SpoolError, match="moved to"):
        spool.adopt()
    assert spool.adopt() == 0
    spool.close()


def test_events_out_of_order(tmp_path: Path) -> None:
    """A tree that does not lead on from each event to a later one is damage, and is not followed round and round."""
    path = left_damaged(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'events'").fetchone()
    content = bytearray(path.read_bytes())
    cells = (page - 1) * 4096 + 8  # two bytes for each of the three, in their order
    content[cells : cells + 6] = (
        content[cells + 4 : cells + 6] + content[cells + 2 : cells + 4] + content[cells : cells + 2]
    )
    path.write_bytes(content)
    spool = make(tmp_path)
    with pytest.raises(SpoolError, match="out of order; moved to"):
        spool.adopt()
    spool.close()


def test_an_own_event_is_damaged(tmp_path: Path) -> None:
    """An own event of another type is damage to the own file, and reaches nobody as an event."""
    spool = make(tmp_path)
    spool.add(b"1", "a", False)
    assert spool._connection is not None
    spool._connection.execute("UPDATE events SET body = 5")
    with pytest.raises(SpoolLost, match="an event in it is damaged; moved to"):
        spool.read(9, ())
    spool.close()


@pytest.mark.parametrize("age", [1e13, 1e300])
def test_kept_for_ever(tmp_path: Path, age: float) -> None:
    """An age beyond what SQLite can count is one at which nothing is deleted."""
    spool = make(tmp_path, max_age=age)
    spool.add(b"1", "a", False)
    assert spool.expire() == []
    assert bodies(spool) == [b"1"]
    spool.close()


def test_the_own_file_is_damaged(tmp_path: Path) -> None:
    """Damage to the own file is said as the loss that it is, once; the next event is safe in a new file."""
    spool = make(tmp_path)
    for _ in range(500):
        spool.add(bytes(5_000), "a", False)
    path = own_file(tmp_path)
    fill = "import sys; f = open(sys.argv[1], 'r+b'); f.write(b'x' * int(sys.argv[2])); f.close()"
    # From another process: one that opens and closes the file in this one would lose SQLite's locks.
    for suffix in ("", "-wal"):
        each = f"{path}{suffix}"
        subprocess.run([sys.executable, "-c", fill, each, str(Path(each).stat().st_size)], check=True)
    with pytest.raises(SpoolLost, match=f"{path}: .*; moved to {UNREADABLE}"):
        bodies(spool)
    assert (bodies(spool), spool.expire()) == ([], [])
    spool.add(b"new", "a", False)
    assert bodies(spool) == [b"new"]
    assert not path.exists()
    assert (tmp_path / UNREADABLE).exists()
    spool.close()


@pytest.mark.parametrize("notices", ["when it looks after the spool", "when it adds much"])
def test_somebody_deletes_the_folder(tmp_path: Path, notices: str) -> None:
    """A folder that is deleted under the process is noticed before much is written to nowhere, and made anew."""
    spool = make(tmp_path / "spool")
    spool.add(b"1", "a", False)
    for each in (tmp_path / "spool").iterdir():
        each.unlink()
    (tmp_path / "spool").rmdir()
    with pytest.raises(SpoolLost, match="somebody has deleted it"):
        spool.adopt() if "looks" in notices else [spool.add(bytes(100_000), "a", False) for _ in range(12)]
    spool.add(b"2", "b", False)
    assert bodies(spool) == [b"2"]
    spool.close()


def test_a_newer_schema(tmp_path: Path) -> None:
    """A file of a newer version is said once and left as it is."""
    spool = make(tmp_path)
    spool.add(b"1", "a", False)
    spool.close()
    path = own_file(tmp_path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    after = make(tmp_path)
    with pytest.raises(SpoolError, match="newer seer-otel"):
        after.adopt()
    assert after.adopt() == 0
    assert path.exists()
    after.close()


def test_a_full_disk(tmp_path: Path) -> None:
    """A full disk refuses events and loses none; when there is room again, they are taken."""
    spool = make(tmp_path)
    spool.add(b"1", "a", False)
    assert spool._connection is not None
    (pages,) = spool._connection.execute("PRAGMA page_count").fetchone()
    spool._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(SpoolError, match="database or disk is full") as caught:
        spool.add(bytes(100_000), "b", False)
    assert not isinstance(caught.value, SpoolLost)
    assert bodies(spool) == [b"1"]
    spool._connection.execute("PRAGMA max_page_count = 1000000")
    spool.add(b"2", "b", False)
    assert bodies(spool) == [b"1", b"2"]
    spool.close()


@pytest.mark.e2e
def test_writes_fail(tmp_path: Path, start: Start) -> None:
    """Where the system refuses writes, from the first or later on, that is an error; after it, all is as before."""
    process = start("""
        import resource
        def limit(size):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        def attempt():
            try:
                return spool.add(bytes(10_000), "a", False) > 0
            except SpoolError as error:
                return type(error).__name__
        spool = make()
        limit(100)
        say(attempt(), os.listdir(sys.argv[1]))
        limit(resource.RLIM_INFINITY)
        say([attempt() for _ in range(20)].count(True))
        limit(300_000)
        results = [attempt() for _ in range(100)]
        say(set(results[-50:]), len(spool.read(1000, ())) == 20 + results.count(True))
        limit(resource.RLIM_INFINITY)
        say(attempt(), len(spool.read(1000, ())) == 21 + results.count(True))
        """)
    out, _ = process.communicate(timeout=60)
    assert out.splitlines() == ["SpoolError []", "20", "{'SpoolError'} True", "True True"]


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    """Where the folder cannot be made that is an error each time, and none any more once it can."""
    (tmp_path / "spool").write_text("in the way")
    spool = make(tmp_path / "spool")
    for _ in range(2):
        with pytest.raises(SpoolError, match="spool: File exists"):
            spool.add(b"1", "a", False)
        with pytest.raises(SpoolError, match="spool: Not a directory"):
            spool.adopt()
    (tmp_path / "spool").unlink()
    assert spool.adopt() == 0
    spool.add(b"1", "a", False)
    assert bodies(spool) == [b"1"]
    spool.close()


@pytest.mark.e2e
def test_killed_while_adding(spool: Spool, start: Start) -> None:
    """After `kill -9` in the middle of adding, each event whose `add` had returned is there, in order."""
    process = start("""
        spool = make()
        i = 0
        while True:
            spool.add(b"%d " % i + bytes(3_000), f"key {i}", False)
            say(i)
            i += 1
        """)
    seen = [line(process) for _ in range(4_000)]
    seen += kill(process).splitlines()
    taken = sum(iter(spool.adopt, 0))
    assert taken in (len(seen), len(seen) + 1)  # it may have been killed before it could say so
    assert [int(body.split()[0]) for body in bodies(spool)] == list(range(taken))
    assert taken >= 4_000


@pytest.mark.e2e
def test_killed_while_adding_and_removing(spool: Spool, start: Start) -> None:
    """After `kill -9` an event that had been removed does not come back, however often the log came round."""
    process = start("""
        spool = make()
        rows = []
        for i in range(1_000_000):
            rows.append(spool.add(b"%d " % i + bytes(9_000), f"key {i}", False))
            if len(rows) > 10:
                spool.remove(rows.pop(0))
            say(i)
        """)
    seen = [line(process) for _ in range(1_500)]
    seen += kill(process).splitlines()
    last = int(seen[-1])
    spool.adopt()
    left = [int(body.split()[0]) for body in bodies(spool)]
    assert left == list(range(left[0], left[-1] + 1))
    assert 10 <= len(left) <= 12
    assert last - 10 <= left[0] <= last + 2


@pytest.mark.e2e
def test_taken_over_after_the_death_not_before(spool: Spool, start: Start) -> None:
    """What belongs to a running process is not taken; once it is killed, it is, and nothing of it is left over."""
    process = start(ADD_AND_STAY, "100", "theirs")
    assert line(process) == "ready"
    spool.add(b"mine", "a", False)
    assert spool.adopt() == 0
    assert bodies(spool) == [b"mine"]
    kill(process)
    assert spool.adopt() == 100
    assert bodies(spool) == [*(b"theirs %d" % i for i in range(100)), b"mine"]
    assert spool.adopt() == 0
    assert len(list(spool.folder.glob("spool-*.db"))) == 1


@pytest.mark.e2e
def test_two_processes(spool: Spool, start: Start) -> None:
    """Two processes that add and remove in one folder at once see their own events, each all of them."""
    code = """
    spool = make()
    for i in range(300):
        row = spool.add(b"%s %d" % (sys.argv[2].encode(), i), "key", False)
        if i % 2:
            spool.remove(row)
        assert spool.adopt() == 0
    say([each.body.decode() for each in spool.read(1000, ())])
    sys.stdin.read()
    """
    first, second = start(code, "one"), start(code, "two")
    for name, process in (("one", first), ("two", second)):
        assert line(process) == str([f"{name} {i}" for i in range(0, 300, 2)])
    for process in (first, second):
        assert process.communicate(timeout=30)[0] == ""
    assert spool.adopt() == 300


@pytest.mark.e2e
def test_racing_for_what_is_left(tmp_path: Path, start: Start) -> None:
    """Of several processes that take over at once, each event goes to one, and no stray file is left."""
    dead = [start(ADD_AND_STAY, "200", f"owner-{i}") for i in range(5)]
    for each in dead:
        assert line(each) == "ready"
        kill(each)
    code = """
    spool = make()
    say("ready")
    sys.stdin.readline()
    found = sum(spool.adopt() for _ in range(20))
    assert len(spool.read(10_000, ())) == found
    say(*(each.body.decode().replace(" ", ":") for each in spool.read(10_000, ())))
    for each in spool.read(10_000, ()):
        spool.remove(each.row)
    spool.close()
    """
    racers = [start(code) for _ in range(4)]
    for each in racers:
        assert line(each) == "ready"
    for each in racers:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    got = [event for each in racers for event in each.communicate(timeout=60)[0].split()]
    assert sorted(got) == sorted(f"owner-{i}:{j}" for i in range(5) for j in range(200))
    assert list((tmp_path / "spool").iterdir()) == []


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("old", ["dropped", "kept"])
@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "os.kill(os.getpid(), 9)"])
def test_fork(spool: Spool, start: Start, old: str, end: str) -> None:
    """A child that drops (or still holds) its parent's spool and makes its own harms neither, whatever its end."""
    process = start(
        f"""
        import gc
        spool = make()
        spool.add(b"before", "a", False)
        heard, tell = os.pipe()
        spool.lock.acquire()
        child = os.fork()
        spool.lock.release()
        if not child:
            if {old!r} == "kept":
                kept = spool
            spool = None
            gc.collect()
            spool = make()
            for i in range(2_000):
                spool.add(b"child %d" % i, "a", False)
            assert spool.adopt() == 0
            os.write(tell, b"x")
            {end}
        """
        """
        for i in range(2_000):
            spool.add(b"parent %d" % i, "a", False)
        os.read(heard, 1)
        os.waitpid(child, 0)
        spool.add(b"after", "a", False)
        assert spool.read(1, ())[0].body == b"before"
        say("ready")
        sys.stdin.read()
        """.replace("\n        ", "\n        ")
    )
    assert line(process) == "ready"
    assert spool.adopt() == 2_000
    assert [body.decode() for body in bodies(spool)] == [f"child {i}" for i in range(2_000)]
    kill(process)
    assert spool.adopt() == 2_002
    rest = [body.decode() for body in bodies(spool) if not body.startswith(b"child")]
    assert rest == ["before", *(f"parent {i}" for i in range(2_000)), "after"]


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_parent_that_dies_before_its_child(spool: Spool, start: Start) -> None:
    """A child that lives on, still holding its parent's spool, does not keep the parent's events from being taken."""
    process = start("""
        spool = make()
        spool.add(b"parent", "a", False)
        heard, tell = os.pipe()
        if not os.fork():
            mine = make()
            mine.add(b"child", "a", False)
            os.write(tell, b"x")
            sys.stdin.read()
            os._exit(0)
        os.read(heard, 1)
        say("ready")
        os.kill(os.getpid(), 9)
        """)
    assert line(process) == "ready"
    process.wait(timeout=30)
    assert spool.adopt() == 1
    assert bodies(spool) == [b"parent"]


@pytest.mark.e2e
def test_threads(spool: Spool) -> None:
    """Threads that add, read and remove at once lose nothing and raise nothing."""
    from concurrent.futures import ThreadPoolExecutor

    def work(name: int) -> None:
        for i in range(200):
            row = spool.add(b"%d %d" % (name, i), "a", False)
            assert spool.read(5, ())
            if i % 2:
                spool.remove(row)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert sorted(bodies(spool)) == sorted(
        b"%d %d" % (name, i) for name in range(8) for i in range(0, 200, 2)
    )


@pytest.mark.parametrize("moment", ["PRAGMA page_size", "PRAGMA journal_mode", "PRAGMA synchronous", "BEGIN"])
def test_a_new_file_is_taken_for_one_that_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A file that somebody deletes as left over while it is being made is made once more, and loses nothing."""
    real, meddled = sqlite3.connect, []

    def connect(*args: Any, **settings: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(*args, **settings)

        def meddle(statement: str) -> None:
            if statement.startswith(moment) and not meddled:
                meddled.append(own_file(tmp_path))
                other = make(tmp_path)
                assert other.adopt() == 0
                other.close()

        if not meddled:
            connection.set_trace_callback(meddle)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
    spool = make(tmp_path)
    spool.add(b"1", "a", False)
    assert meddled
    assert own_file(tmp_path).exists()
    assert bodies(spool) == [b"1"]
    spool.close()
    assert make(tmp_path).adopt() == 1


@pytest.mark.e2e
def test_its_owner_is_killed_while_it_makes_the_file(spool: Spool, start: Start) -> None:
    """Whenever a process is killed that makes its file, the next one can take over what there is, and cleans up."""
    for delay in range(0, 12, 2):
        process = start(f"""
            import threading
            threading.Timer({delay} * 0.0005, os.kill, (os.getpid(), 9)).start()
            make().add(b"1", "a", False)
            time.sleep(10)
            """)
        process.wait(timeout=30)
        assert spool.adopt() <= 1
    spool.expire()
    assert len(list(spool.folder.glob("spool-*.db"))) <= 1


@pytest.mark.e2e
def test_files_are_made_while_somebody_looks_for_what_is_left(spool: Spool, start: Start) -> None:
    """A process that makes its file while others look for files without an owner loses nothing to them."""
    looking = start("""
        spool = make("http://127.0.0.1:1/other")
        say("ready")
        while True:
            assert spool.adopt() == 0
            time.sleep(0.001)
        """)
    assert line(looking) == "ready"
    for _ in range(60):
        own = make(spool.folder)
        row = own.add(b"1", "a", False)
        own.adopt()
        own.expire()
        assert bodies(own) == [b"1"]
        own.remove(row)
        own.close()
    assert looking.poll() is None
