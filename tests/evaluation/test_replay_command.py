"""`seer-otel replay`: what it sends of a labelled file, and what it says of what was not taken."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from seer_otel import cli
from seer_otel.evaluation import datasets, replay_command
from seer_otel.evaluation.replay_command import encode, identity

KEY = "seer_canary_5f3a9d"
Answer = Callable[[dict[str, Any]], int]


def line(task: str, **more: Any) -> dict[str, Any]:
    return {
        "task": task,
        "context": [{"text": f"about {task}", "id": "a"}],
        "ground_truth": {"gold_doc_ids": ["a"], "answer": "yes"},
    } | more


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def replay(*arguments: str | Path) -> int:
    return cli.main(["replay", *map(str, arguments)])


class Backend(ThreadingHTTPServer):
    """Answers each event with the status that `answer` gives, and keeps all requests."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.url = f"http://127.0.0.1:{self.server_port}/v1/log"
        self.answer = answer
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []


class _Answering(BaseHTTPRequestHandler):
    server: Backend
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((dict(self.headers), event))
        self.send_response(self.server.answer(event))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def answering(answer: Answer) -> Iterator[Backend]:
    server = Backend(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_what_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each example is a trace of its own, its final context, judged for certain, and names its dataset."""
    file = written(
        tmp_path / "set.jsonl",
        line("one", metadata={"source": "here"}),
        line(
            "two", trace_id="0" * 31 + "1", span_id="0" * 15 + "1", created_at="2020-01-01", sample_rate=0.1
        ),
        {"task": "three", "context": ["only a text"], "subquery": "hop", "later": "field"},
    )
    with answering(lambda event: 200) as backend:
        monkeypatch.setenv("SEER_INGESTION_URL", backend.url)
        monkeypatch.setenv("SEER_API_KEY", KEY)
        assert replay(file) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (f"3 of 3 examples sent to {backend.url} as dataset set.\n", "")
    events = {event["task"]: event for _, event in backend.requests}
    assert all(headers["Authorization"] == f"Bearer {KEY}" for headers, _ in backend.requests)
    assert len({event["trace_id"] for event in events.values()}) == 3
    assert events["one"] == line("one") | {
        "metadata": {"source": "here", "dataset": "set"},
        "is_final_context": True,
        "sample_rate": 1.0,
        "trace_id": events["one"]["trace_id"],
    }
    assert not {"span_id", "created_at"} & set(events["two"])
    assert events["two"]["trace_id"] != "0" * 31 + "1"
    assert events["two"]["sample_rate"] == 1.0
    assert (events["three"]["subquery"], events["three"]["later"]) == ("hop", "field")
    assert "ground_truth" not in events["three"]


def test_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--endpoint beats SEER_INGESTION_URL, and --dataset the file's name."""
    file = written(tmp_path / "set.jsonl", line("one"))
    with answering(lambda event: 202) as backend:
        monkeypatch.setenv("SEER_INGESTION_URL", "http://127.0.0.1:1/v1/log")
        assert replay(file, "--endpoint", backend.url.removesuffix("/v1/log"), "--dataset", "v1") == 0
    assert backend.requests[0][1]["metadata"] == {"dataset": "v1"}


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """A file's name may hold bytes that are no UTF-8, which no JSON can: a question mark stands for each."""
    file = written(tmp_path / "set.jsonl", line("one"))
    with answering(lambda event: 200) as backend:
        assert replay(file, "--endpoint", backend.url, "--dataset", "s\udcfft") == 0
    assert backend.requests[0][1]["metadata"] == {"dataset": "s?t"}


def test_the_same_again(tmp_path: Path) -> None:
    """A second replay sends the same requests; another dataset, line or text is another trace and key."""
    file = written(tmp_path / "set.jsonl", line("one"), line("one"), line("two"))
    with answering(lambda event: 200) as backend:
        for _ in range(2):
            assert replay(file, "--endpoint", backend.url) == 0
        assert replay(file, "--endpoint", backend.url, "--dataset", "other") == 0
    sent = sorted((headers["Idempotency-Key"], event["trace_id"]) for headers, event in backend.requests)
    assert len(sent) == 9
    assert len(set(sent)) == len({key for key, _ in sent}) == len({trace for _, trace in sent}) == 6
    same = datasets.example("set.jsonl", 1, json.dumps(dict(reversed(line("one").items()))).encode())
    assert identity(same, "set") in {key for key, _ in sent}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (line("x", context=["a"] * 51), "context: 51 passages, and a backend takes 50"),
        (
            line("x", context=["a", "b" * 4_001]),
            "context[1].text: 4,001 characters, and a backend takes 4,000",
        ),
        (line(" "), "task: expected text that is not blank"),
    ],
)
def test_what_no_backend_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: dict[str, Any], said: str
) -> None:
    """A line beyond the limits is named, and nothing of the file is sent."""
    file = written(tmp_path / "set.jsonl", line("one"), bad)
    with answering(lambda event: 200) as backend:
        assert replay(file, "--endpoint", backend.url) == 1
    assert capsys.readouterr().err == f"seer-otel replay: {file}, line 2: {said}\n"
    assert backend.requests == []


def test_at_the_limits(tmp_path: Path) -> None:
    """50 passages of 4,000 characters are sent as they are, and so is an empty context."""
    full = line("full", context=["\N{GRINNING FACE}" * 4_000] * 50)
    file = written(tmp_path / "set.jsonl", full, line("empty", context=[]))
    with answering(lambda event: 200) as backend:
        assert replay(file, "--endpoint", backend.url) == 0
    assert [event["context"] for _, event in backend.requests] == [full["context"], []]


def test_what_is_nested_too_deeply(tmp_path: Path) -> None:
    """An object that can be read but not be written again is an error that names the line."""
    text = b'{"task": "?", "context": [], "metadata": ' + b'{"a":' * 400 + b"1" + b"}" * 401
    example = datasets.example("set.jsonl", 7, text)
    with pytest.raises(datasets.DatasetError, match="line 7: objects or lists are nested too deeply"):
        encode(example, "set")


def test_what_the_backend_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused examples are told by status with their lines, the others are sent, and the status is 1."""
    file = written(tmp_path / "set.jsonl", *(line(str(number)) for number in range(1, 31)))
    with answering(lambda event: 422 if int(event["task"]) % 2 else 200) as backend:
        assert replay(file, "--endpoint", backend.url) == 1
    out, err = capsys.readouterr()
    assert out == f"15 of 30 examples sent to {backend.url} as dataset set.\n"
    assert err == (
        "seer-otel replay: refused with status 422 (for the backend it is no event): 15,"
        " lines 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and 5 more.\n"
        "seer-otel replay: run it again once that is put right: what is stored already is not stored twice.\n"
    )


def test_a_wrong_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused key is told with its setting, and the rest is not tried."""
    monkeypatch.setenv("SEER_API_KEY", KEY)
    file = written(tmp_path / "set.jsonl", *(line(str(number)) for number in range(1_000)))
    with answering(lambda event: 401) as backend:
        assert replay(file, "--endpoint", backend.url) == 1
    out, err = capsys.readouterr()
    assert out.startswith("0 of 1,000 examples sent")
    assert "refused with status 401 (look at SEER_API_KEY): " in err
    assert "not sent: " in err
    assert len(backend.requests) < 20


def test_a_backend_that_recovers(tmp_path: Path) -> None:
    """What a busy backend turns away at first is sent again, and nothing is lost."""
    tries: dict[str, int] = {}

    def answer(event: dict[str, Any]) -> int:
        tries[event["task"]] = tries.get(event["task"], 0) + 1
        return 503 if event["task"] in {"3", "7"} and tries[event["task"]] == 1 else 200

    file = written(tmp_path / "set.jsonl", *(line(str(number)) for number in range(10)))
    with answering(answer) as backend:
        assert replay(file, "--endpoint", backend.url) == 0
    assert tries == {str(number): 1 + (number in {3, 7}) for number in range(10)}


def test_no_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody answers for a while the rest is not tried, and what to look at is said."""
    monkeypatch.setattr(replay_command, "PATIENCE", 0.3)
    with answering(lambda event: 200) as gone:
        pass
    file = written(tmp_path / "set.jsonl", *(line(str(number)) for number in range(300)))
    assert replay(file, "--endpoint", gone.url) == 1
    out, err = capsys.readouterr()
    assert out.startswith("0 of 300 examples sent")
    assert "no answer (is the backend running? is SEER_INGESTION_URL right?): " in err
    assert "not sent: " in err


@pytest.mark.e2e
def test_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C ends it, with status 130 and what was delivered until then."""
    busy = threading.Event()
    file = written(tmp_path / "set.jsonl", *(line(str(number)) for number in range(3_000)))

    def answer(event: dict[str, Any]) -> int:
        if event["task"] == "1500":
            busy.set()
        return 200

    with answering(answer) as backend:
        command = [sys.executable, "-W", "error", "-m", "seer_otel.cli", "replay", str(file)]
        with subprocess.Popen(
            [*command, "--endpoint", backend.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert busy.wait(50)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    delivered = int(out.split(" of ")[0].replace(",", ""))
    assert 1_000 < delivered < 3_000
    assert f"not sent: {3_000 - delivered:,}, lines " in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("variables", "arguments", "said"),
    [
        ({}, [], "SEER_API_KEY (or api_key=) is needed to send to api.seersearch.com."),
        ({"SEER_INGESTION_URL": "nowhere"}, [], "SEER_INGESTION_URL must be a complete http or https URL"),
        ({}, ["--endpoint", "http://elsewhere.example"], "endpoint must be https"),
        ({"SEER_OTEL_ENABLED": "no"}, [], "SEER_OTEL_ENABLED or OTEL_SDK_DISABLED switches seer-otel off."),
    ],
)
def test_settings_that_cannot_be(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variables: dict[str, str],
    arguments: list[str],
    said: str,
) -> None:
    """Where it is not clear where to send, the setting is named, and the status is 2."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert replay(written(tmp_path / "set.jsonl", line("one")), *arguments) == 2
    assert capsys.readouterr().err.startswith(f"seer-otel replay: {said}")


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there is named."""
    assert replay(tmp_path / "no.jsonl", "--endpoint", "http://127.0.0.1:1") == 1
    assert str(tmp_path / "no.jsonl") in capsys.readouterr().err


@pytest.mark.e2e
def test_only_what_it_says_is_needed(tmp_path: Path) -> None:
    """Of the extra it needs `rich` alone."""
    file = written(tmp_path / "set.jsonl", line("one"))
    others = ("starlette", "uvicorn", "msgspec", "sqlalchemy", "jinja2", "numpy")
    with answering(lambda event: 200) as backend:
        arguments = ["replay", str(file), "--endpoint", backend.url]
        program = (
            f"import sys; sys.modules.update(dict.fromkeys({others!r})); from seer_otel import cli;"
            f" sys.exit(cli.main({arguments!r}))"
        )
        command = [sys.executable, "-W", "error", "-c", program]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(backend.requests) == 1
