from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import uuid
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
import sqlalchemy as sa

from seer_otel import cli
from seer_otel.local.schema import parse
from seer_otel.local.serve import _listen
from seer_otel.local.storage.store import Store
from seer_otel.local.storage.tables import arrivals

from .waiting import wait_until

if TYPE_CHECKING:
    from conftest import Process, Serving

HEADERS = {"Content-Type": "application/json"}


def ids(folder: Path) -> list[str]:
    """Return the record ids in a folder."""
    with closing(Store(folder)) as store:
        return [record.record_id for records in store.traces(1_000_000) for record in records]


@pytest.mark.e2e
def test_what_it_says_at_its_start(serving: Serving, tmp_path: Path) -> None:
    """The server says where it listens and stores, and the lines to point an application at it."""
    folder = tmp_path / "my data"
    server = serving(folder)
    lines = server.said.splitlines()
    assert f"Storing in {folder / 'events.db'}" in lines
    assert f"  export SEER_INGESTION_URL={server.url}/v1/log" in lines
    assert "  export SEER_SAMPLE_RATE=1.0" in lines
    assert f"  or, in a terminal: seer-otel show --data '{folder}'" in lines


@pytest.mark.e2e
def test_the_hint_holds_everywhere(serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint names the folder in full, also where the server was told a relative one."""
    monkeypatch.chdir(tmp_path)
    said = serving(Path("here")).said
    assert f"in a terminal: seer-otel show --data {tmp_path / 'here'}\n" in said


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly(serving: Serving, tmp_path: Path, number: int) -> None:
    """Ctrl-C and SIGTERM end it with status 0 and without a word, even while a client keeps a connection."""
    server = serving(tmp_path / "data")
    with httpx.Client(base_url=server.url) as client:
        assert client.post("/v1/log", json={"task": "a", "context": []}).status_code == 200
        assert server.stop(number) == 0
    assert server.process.stderr is not None
    assert server.process.stderr.read() == ""
    assert len(ids(tmp_path / "data")) == 1


@pytest.mark.e2e
def test_accepted_survives_kill(serving: Serving, tmp_path: Path) -> None:
    """After kill -9 under load, everything that was answered is there once, and a repeat gets its old record id."""
    folder = tmp_path / "data"
    server = serving(folder)
    accepted: dict[str, str] = {}
    enough = threading.Event()

    def send() -> None:
        with httpx.Client(base_url=server.url, headers=HEADERS) as client:
            try:
                while True:
                    key = str(uuid.uuid4())
                    accepted[key] = post(client, key)
                    if len(accepted) >= 60:
                        enough.set()
            except httpx.TransportError:
                pass

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert enough.wait(timeout=45)
    server.stop(signal.SIGKILL)
    for thread in threads:
        thread.join()

    again = serving(folder)
    with httpx.Client(base_url=again.url, headers=HEADERS) as client:
        for key, record_id in list(accepted.items())[-20:]:
            assert post(client, key) == record_id
    found = ids(folder)
    assert set(accepted.values()) <= set(found)
    assert len(found) == len(set(found))


def post(client: httpx.Client, key: str) -> str:
    response = client.post(
        "/v1/log", json={"task": key, "context": ["a" * 1_000]}, headers={"Idempotency-Key": key}
    )
    assert response.status_code == 200
    return str(response.json()["record_id"])


@pytest.mark.e2e
def test_show_reads_while_it_serves(serving: Serving, tmp_path: Path) -> None:
    """Another process lists an event as soon as it was accepted."""
    server = serving(tmp_path / "data")
    httpx.post(f"{server.url}/v1/log", json={"task": "question", "context": []})
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "seer_otel.cli",
        "show",
        "--json",
        "--data",
        str(tmp_path / "data"),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(shown.stdout)["event"] == {"task": "question", "context": []}
    assert shown.stderr == ""


@pytest.mark.e2e
def test_a_key_from_the_environment(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key in the environment is asked for, also on a host that others reach, and is never printed."""
    monkeypatch.setenv("SEER_OTEL_SERVE_KEY", " seer_secret\n")
    server: Process = serving(tmp_path / "data", "--host", "0.0.0.0")
    event = {"task": "a", "context": []}
    assert server.url.startswith("http://127.0.0.1:")
    assert httpx.post(f"{server.url}/v1/log", json=event).status_code == 401
    headers = {"Authorization": "Bearer seer_secret"}
    assert httpx.post(f"{server.url}/v1/log", json=event, headers=headers).status_code == 200
    assert "SEER_API_KEY" in server.said
    assert "seer_secret" not in server.said


def test_a_port_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A port in use is one line and status 1, and leaves no folder behind."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.main(["serve", "--port", str(port), "--data", str(tmp_path / "data")]) == 1
    assert capsys.readouterr() == (
        "",
        f"seer-otel serve: port {port} of 127.0.0.1 is in use; choose another with --port\n",
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.e2e
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_a_host_that_others_reach(host: str) -> None:
    """A host that is not loopback is refused without a key, also a blank one, and the line names the setting."""
    command = [sys.executable, "-m", "seer_otel.cli", "serve", "--host", host, "--port", "0", "--key", " "]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "SEER_OTEL_SERVE_KEY" in ended.stderr


def test_a_key_that_cannot_be_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A key of bytes that are no text is refused in one line that does not show it, before anything is made."""
    arguments = ["serve", "--port", "0", "--data", str(tmp_path / "data"), "--key", "secret\udcff"]
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "SEER_OTEL_SERVE_KEY" in err
    assert "secret" not in err
    assert not (tmp_path / "data").exists()


def test_a_store_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that cannot be made is one line and status 1."""
    (tmp_path / "file").touch()
    assert cli.main(["serve", "--port", "0", "--data", str(tmp_path / "file")]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "cannot store events" in err


def test_the_socket_names_its_protocol() -> None:
    """The listening socket is one on whose connections asyncio switches Nagle's delay off."""
    with _listen("127.0.0.1", 0, None) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_an_evaluator_that_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown evaluator is one line that names the choices, and status 2, before anything is made."""
    assert cli.main(["serve", "--port", "0", "--data", str(tmp_path / "data"), "--evaluator", "none"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "lexical" in err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("days", ["0", "-1", "36501", "many"])
def test_days_that_make_no_sense(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Days to keep are from 1 to a hundred years."""
    with pytest.raises(SystemExit):
        cli.main(["serve", "--keep-days", days])
    assert "--keep-days" in capsys.readouterr().err


@pytest.mark.e2e
def test_what_is_too_old_goes_by_itself(serving: Serving, tmp_path: Path) -> None:
    """With --keep-days a running server deletes what is older, and what was refused is counted in any case."""
    folder = tmp_path / "data"
    with closing(Store(folder)) as store:
        for year in (2020, 2990):
            body = json.dumps({"task": "a", "context": [], "created_at": f"{year}-01-01T00:00:00Z"})
            store.add(parse(body), body)
        server = serving(folder, "--keep-days", "30")
        assert httpx.post(f"{server.url}/v1/log", content="{", headers=HEADERS).status_code == 400

        def refused() -> int:
            with store.engine.connect() as connection:
                query = sa.select(sa.func.count()).where(arrivals.c.outcome == "invalid_json")
                return connection.execute(query).scalar() or 0

        wait_until(lambda: len(ids(folder)) == 1 and refused() == 1)
