"""`seer-otel spool`: what it says of the events on disk, and what it does with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seer_otel import cli
from seer_otel.delivery.spool import Spool
from seer_otel.delivery.spool_file import UNREADABLE

KEY = "seer_canary_5f3a9d"
OTHER = "http://127.0.0.1:1/typo"


def put(folder: Path, endpoint: str, *tasks: str, born: float | None = None) -> Spool:
    """Put events there; they belong to a running process until the result is closed."""
    clock = {} if born is None else {"clock": lambda: born}
    spool = Spool(str(folder), endpoint, max_bytes=1 << 28, max_age=1e9, **clock)
    for task in tasks:
        spool.add(event(task), f"key {task}", False)
    return spool


def event(task: str) -> bytes:
    return json.dumps({"task": task, "context": [{"text": "a text"}]}).encode()


def size(*tasks: str) -> int:
    return sum(len(event(task)) for task in tasks)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Any) -> Path:
    """The folder of the settings, whose endpoint is the recorder's."""
    monkeypatch.setenv("SEER_OTEL_SPOOL_DIR", str(tmp_path / "spool"))
    monkeypatch.setenv("SEER_INGESTION_URL", f"{recorder.url}/v1/log")
    monkeypatch.setenv("SEER_API_KEY", KEY)
    return tmp_path / "spool"


@pytest.fixture
def url(recorder: Any) -> str:
    return f"{recorder.url}/v1/log"


@pytest.fixture
def running(folder: Path, url: str) -> Iterator[Spool]:
    """What a running process has on disk."""
    spool = put(folder, url, "of a running process")
    yield spool
    spool.close()


def spool(*arguments: str) -> int:
    return cli.main(["spool", *arguments])


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert spool("show", "--json") == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_without_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    """Where no setting names the folder, that is said, and the status is 2."""
    assert spool("show") == 2
    assert capsys.readouterr().err == (
        "seer-otel spool: which folder? Set SEER_OTEL_SPOOL_DIR, or give --dir.\n"
    )


@pytest.mark.parametrize("action", ["show", "export", "clear"])
def test_nothing_there(folder: Path, action: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that does not exist is no error, and is not made; no key is needed to look at it."""
    del os.environ["SEER_API_KEY"], os.environ["SEER_INGESTION_URL"]
    assert spool(action) == 0
    assert (
        capsys.readouterr().out
        == {
            "show": f"{folder} does not exist: nothing has been spooled there yet.\n",
            "export": "",
            "clear": "0 events deleted.\n",
        }[action]
    )
    assert not folder.exists()


def test_show(folder: Path, url: str, running: Spool, capsys: pytest.CaptureFixture[str]) -> None:
    """It says for each endpoint how many events there are, how old, and whose; and it changes none."""
    put(folder, url, "left", "left too", born=1_000_000_000).close()
    put(folder, OTHER, "elsewhere", born=1_000_000_000).close()
    before = shown(capsys)
    assert spool("show") == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{folder}: 4 events, ")
    assert f"\n{url}\n  3 events, {size('of a running process', 'left', 'left too')} bytes, 0 s to " in text
    assert "  1 of running processes, which send them themselves\n" in text
    assert (
        "  2 of no running process; the next with this URL sends them, or `seer-otel spool drain`\n" in text
    )
    assert f"\n{OTHER}\n  1 event, {size('elsewhere')} bytes, " in text
    assert shown(capsys)["endpoints"] == before["endpoints"]
    assert [(each["endpoint"], each["events"], each["running"]) for each in before["endpoints"]] == sorted(
        [(OTHER, 1, 0), (url, 3, 1)]
    )
    assert before["endpoints"][0 if url > OTHER else 1]["oldest"] == 1_000_000_000


def test_show_damage(folder: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read, and one that was moved aside, are named."""
    put(folder, url, "left").close()
    (folder / "spool-0.db").write_bytes(b"no database" * 1000)
    (folder / UNREADABLE).write_bytes(b"")
    assert spool("show") == 0
    text = capsys.readouterr().out
    assert f"\nCannot be read: {folder / 'spool-0.db'}: file is not a database\n" in text
    assert f"\nA damaged file was moved to {folder / UNREADABLE}; " in text
    report = shown(capsys)
    assert report["unreadable"] == {"spool-0.db": f"{folder / 'spool-0.db'}: file is not a database"}
    assert report["moved_aside"] == str(folder / UNREADABLE)


def test_a_file_in_place_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be a spool is said, and the status is 1."""
    (tmp_path / "spool").write_text("")
    for action in ("show", "export", "clear"):
        assert spool(action, "--dir", str(tmp_path / "spool")) == 1
        assert capsys.readouterr().err == f"seer-otel spool: {tmp_path / 'spool'}: Not a directory\n"


def test_drain(
    folder: Path, url: str, running: Spool, recorder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """It sends what belongs to no running process, oldest first and each once, and leaves no file of it."""
    put(folder, url, *(f"left {i:03}" for i in range(300))).close()
    assert spool("drain") == 0
    assert capsys.readouterr().out == f"300 events sent to {url}, 0 left.\n"
    assert recorder.tasks == [f"left {i:03}" for i in range(300)]
    assert [each.body for each in running.read(9, ())] != []
    assert len(list(folder.glob("spool-*.db"))) == 1


def test_drain_another_endpoint(
    folder: Path, url: str, recorder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was meant for another endpoint stays, and is said; `--all` sends it to the one that is configured."""
    put(folder, OTHER, "elsewhere").close()
    assert spool("drain") == 0
    assert capsys.readouterr().out == (
        f"0 events sent to {url}, 0 left.\n1 event meant for another endpoint; --all sends them here, too.\n"
    )
    assert recorder.tasks == []
    assert spool("drain", "--all") == 0
    assert capsys.readouterr().out == f"1 event sent to {url}, 0 left.\n"
    assert recorder.tasks == ["elsewhere"]
    assert shown(capsys)["endpoints"] == []


def test_drain_in_vain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What could not be sent in time stays for another time, and the status is 1."""
    os.environ["SEER_INGESTION_URL"] = OTHER
    put(folder, OTHER, "one", "two").close()
    assert spool("drain", "--timeout", "1") == 1
    assert capsys.readouterr().out == f"0 events sent to {OTHER}, 2 left.\n"
    (left,) = shown(capsys)["endpoints"]
    assert (left["events"], left["running"]) == (2, 0)


def test_drain_what_is_too_old(
    folder: Path, url: str, recorder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is older than the settings allow is dropped, with the reason."""
    put(folder, url, "old", born=1_000_000_000).close()
    put(folder, url, "young").close()
    assert spool("drain") == 0
    assert capsys.readouterr().out == f"1 event sent to {url}, 0 left.\n1 event dropped: expired.\n"
    assert recorder.tasks == ["young"]


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("SEER_INGESTION_URL", "http://example.com", "SEER_INGESTION_URL"),
        ("SEER_OTEL_ENABLED", "false", "switches seer-otel off"),
    ],
)
def test_drain_under_bad_settings(
    folder: Path, url: str, variable: str, value: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Settings under which nothing can be sent are said, the status is 2, and nothing is touched."""
    put(folder, url, "left").close()
    os.environ[variable] = value
    assert spool("drain") == 2
    assert says in capsys.readouterr().err
    assert [each["events"] for each in shown(capsys)["endpoints"]] == [1]


def test_export(
    folder: Path, url: str, running: Spool, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """All events, also those of running processes, one a line as the backend would get them, oldest first."""
    put(folder, url, "b", "c", born=2_000).close()
    put(folder, OTHER, "a", born=1_000).close()
    assert spool("export") == 0
    lines = capfdbinary.readouterr().out.splitlines()
    assert [json.loads(line)["task"] for line in lines] == ["a", "b", "c", "of a running process"]
    assert lines[3] == running.read(1, ())[0].body
    assert spool("export", "--out", str(tmp_path / "events.jsonl")) == 0
    assert capfdbinary.readouterr().out.decode() == f"4 events written to {tmp_path / 'events.jsonl'}.\n"
    assert (tmp_path / "events.jsonl").read_bytes().splitlines() == lines


def test_export_what_can_be_read(folder: Path, url: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A damaged file does not hide the others; it is said, and the status is 1."""
    put(folder, url, "left").close()
    (folder / "spool-0.db").write_bytes(b"no database" * 1000)
    assert spool("export") == 1
    out, err = capfdbinary.readouterr()
    assert json.loads(out)["task"] == "left"
    assert b"spool-0.db: file is not a database" in err
    assert (folder / "spool-0.db").exists()


def test_clear(folder: Path, url: str, running: Spool, capsys: pytest.CaptureFixture[str]) -> None:
    """Without `--yes` nothing goes; with it, what belongs to no running process."""
    put(folder, url, "left", "left too").close()
    put(folder, OTHER, "elsewhere").close()
    assert spool("clear") == 1
    much = size("left", "left too", "elsewhere")
    assert capsys.readouterr().out == f"3 events, {much} bytes, would be deleted for good; --yes does it.\n"
    assert sum(each["events"] for each in shown(capsys)["endpoints"]) == 4
    assert spool("clear", "--yes") == 0
    assert capsys.readouterr().out == "3 events deleted.\n1 event of running processes kept.\n"
    (left,) = shown(capsys)["endpoints"]
    assert (left["events"], left["running"]) == (1, 1)


@pytest.mark.e2e
def test_no_key_on_disk(folder: Path, url: str, recorder: Any) -> None:
    """No file of the spool holds the key: not of a processor that was killed, and not while it is drained."""
    program = (
        "import os, time; from opentelemetry.sdk.trace import TracerProvider\n"
        "from seer_otel import SeerSpanProcessor\n"
        "provider = TracerProvider(); processor = SeerSpanProcessor(sample_rate=1.0)\n"
        "provider.add_span_processor(processor)\n"
        "provider.get_tracer('test').start_span('retriever', attributes={\n"
        "    'openinference.span.kind': 'RETRIEVER', 'input.value': 'a question',\n"
        "    'retrieval.documents.0.document.content': 'a text'}).end()\n"
        "processor.force_flush(1000); print('flushed', flush=True); time.sleep(60)\n"
    )
    environment = {**os.environ, "SEER_INGESTION_URL": OTHER, "SEER_API_KEY": KEY}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == b"flushed\n"
    everything = b"".join(each.read_bytes() for each in folder.iterdir())
    process.kill()
    process.communicate()
    assert b"a question" in everything
    assert KEY.encode() not in everything
    assert spool("drain", "--all") == 0
    assert recorder.tasks == ["a question"]


@pytest.mark.e2e
def test_a_reader_that_has_seen_enough(folder: Path, url: str) -> None:
    """A pipe that is closed early ends an export quietly."""
    put(folder, url, *(f"{i:0100}" for i in range(5_000))).close()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "seer_otel.cli", "spool", "export"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b'{"task": "000')
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) == 0
    process.stderr.close()
