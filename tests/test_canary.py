"""The key and a secret of a document, through every failure: they show nowhere but where they belong."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from .canaries import KEY, SECRET, Watch, canary_in

PROGRAM = """
import faulthandler, json, logging, os, sys, traceback

faulthandler.enable()
logging.basicConfig(level=logging.DEBUG)

import httpx
from opentelemetry.sdk.trace import TracerProvider
from seer_otel import ConfigurationError, SeerSpanProcessor

KEY, SECRET = os.environ["KEY"], os.environ["SECRET"]

class Failing:
    def send(self, body, idempotency_key):
        raise RuntimeError(f"Authorization: Bearer {KEY}")
    def close(self):
        raise RuntimeError(KEY)

def failing(event):
    raise ValueError(KEY, SECRET, event)

try:
    processor = SeerSpanProcessor(**{"api_key": KEY, "sample_rate": 1.0, "timeout": 2.0, **eval(sys.argv[1])})
except ConfigurationError:
    traceback.print_exc()
    sys.exit("refused")
provider = TracerProvider()
provider.add_span_processor(processor)
for question in ("one", "two"):
    with provider.get_tracer("test").start_as_current_span("retriever", attributes={
        "openinference.span.kind": "RETRIEVER",
        "input.value": question,
        "metadata": json.dumps({"env": f"password={SECRET}"}),
        "retrieval.documents.0.document.content": "a text",
        "retrieval.documents.0.document.metadata": json.dumps(
            {"db_password": SECRET, "source": f"postgres://app:{SECRET}@db/x", "notes": [f"api_key={SECRET}"]}
        ),
    }):
        pass
    processor.flush(1.0)
pipeline = processor._pipeline
for each in (processor, processor.config, pipeline, pipeline._transport, pipeline._outbox):
    print(repr(each))
for each in (processor, pipeline, pipeline._transport, pipeline._outbox):
    print(vars(each))
provider.shutdown()
print(processor.stats())
faulthandler.dump_traceback()
print("done")
"""

REFUSED = {
    "a setting": "{'sample_rate': 7}",
    "a key with another line": r"{'api_key': KEY + '\n' + KEY}",
    "a key with NUL": r"{'api_key': KEY + '\0' + KEY}",
    "a key in the URL": "{'endpoint': f'https://{KEY}:{SECRET}@example.com/v1/log'}",
    "plain HTTP": "{'endpoint': 'http://example.com/v1/log'}",
}
SENT = {
    "taken": "{}",
    "at info only": "logging.getLogger().setLevel('INFO') or {}",
    "no TLS": "{'endpoint': URL.replace('http:', 'https:')}".replace(
        "URL", "os.environ['SEER_INGESTION_URL']"
    ),
    "no backend": "{'endpoint': 'http://127.0.0.1:1/v1/log'}",
    "a failing transport": "{'transport': Failing()}",
    "a failing redact": "{'redact': failing}",
    "a failing filter": "{'filter': failing}",
    "an own client": "{'http_client': httpx.Client(trust_env=False)}",
    "synchronous": "{'synchronous': True}",
}


class Sink(ThreadingHTTPServer):
    """Answers everything with one status, and keeps each request as it came, header by header."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.status = 200
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/v1/log"

    def handle_error(self, request: object, client_address: object) -> None:
        return  # a handshake


class _Answering(BaseHTTPRequestHandler):
    server: Sink

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.requestline, dict(self.headers.items()), body))
        self.send_response(self.server.status)
        self.end_headers()
        # What an answer says is not to be repeated.
        self.wfile.write(self.headers["Authorization"].encode())

    def log_message(self, *args: object) -> None:
        return


@pytest.fixture
def sink() -> Iterator[Sink]:
    server = Sink()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def run(sink: Sink, tmp_path: Path) -> Run:
    """`run(settings)` runs `PROGRAM` with these settings, given as code, against the sink, with a spool."""

    def run(settings: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-X", "dev", "-c", PROGRAM, settings],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "KEY": f"{KEY}_key_0123456789",
                "SECRET": f"{SECRET}_0123456789",
                "SEER_INGESTION_URL": sink.url,
                "SEER_OTEL_SPOOL_DIR": str(tmp_path / "spool"),
                **environment,
            },
            capture_output=True,
            timeout=50,
            check=False,
        )

    return run


def assert_only_in_header(sink: Sink) -> None:
    for line, headers, body in sink.requests:
        assert headers.pop("Authorization") == f"Bearer {KEY}_key_0123456789"
        assert canary_in(f"{line} {headers}") is None
        assert canary_in(body) is None


@pytest.mark.parametrize("settings", REFUSED.values(), ids=REFUSED)
def test_refused_settings(run: Run, sink: Sink, settings: str) -> None:
    """The error of a setting that cannot work shows neither key nor secret, in no exception of its chain."""
    done = run(settings)
    assert b"ConfigurationError" in done.stderr
    assert done.returncode == 1
    assert canary_in(done.stdout + done.stderr) is None
    assert sink.requests == []


def test_a_malformed_proxy(run: Run) -> None:
    """A proxy that cannot be used is refused without its password."""
    done = run("{'endpoint': 'https://seer.example.com'}", HTTPS_PROXY=f"http://{KEY}:{SECRET}@proxy:port")
    assert b"ConfigurationError" in done.stderr
    assert canary_in(done.stdout + done.stderr) is None


@pytest.mark.e2e
@pytest.mark.parametrize("status", [200, 401, 403, 413, 422, 429, 500])
def test_answers(run: Run, sink: Sink, tmp_path: Path, status: int) -> None:
    """Whatever the backend answers, everything logged at DEBUG: the key is in its header, and the secret nowhere."""
    sink.status = status
    done = run("{}")
    assert done.stdout.endswith(b"done\n"), done.stderr.decode()
    assert len(sink.requests) >= 1
    assert_only_in_header(sink)
    assert canary_in(done.stdout + done.stderr) is None


@pytest.mark.e2e
@pytest.mark.parametrize("settings", SENT.values(), ids=SENT)
def test_failures(run: Run, sink: Sink, settings: str) -> None:
    """Whatever fails on the way, no output shows the key or the secret."""
    done = run(settings)
    assert done.stdout.endswith(b"done\n"), done.stderr.decode()
    assert_only_in_header(sink)
    assert canary_in(done.stdout + done.stderr) is None


@pytest.mark.e2e
def test_the_spool(run: Run, sink: Sink, tmp_path: Path) -> None:
    """Events on disk hold what would have been sent, without the key and the secret."""
    assert run("{'endpoint': 'http://127.0.0.1:1/v1/log'}").stdout.endswith(b"done\n")
    files = [path.read_bytes() for path in (tmp_path / "spool").rglob("*") if path.is_file()]
    assert any(b"a text" in data for data in files)
    assert not any(canary_in(data) for data in files)


def test_the_watch(canaries: Watch, tmp_path: Path) -> None:
    """What watches all tests finds a canary in a log record that nobody sees, in what a process writes, in a file."""
    logger = logging.getLogger("of.nobody")
    logger.propagate = False
    logger.debug("Bearer %s", f"{KEY}_1")
    error = ValueError(f"{SECRET}_1")
    logger.debug("it failed", exc_info=(ValueError, error, None))
    for stream in ("stdout", "stderr"):
        code = f"import sys; print('seer_' + 'canary', file=sys.{stream})"
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    file = tmp_path / "spool" / "spool.db-wal"
    file.parent.mkdir()
    file.write_bytes(b"\0\xff" + KEY.encode())
    canaries.look_into(tmp_path)
    file.unlink()
    places = [found.partition(" of process")[0] for found in canaries.found]
    assert places == [
        f"{KEY} in a log record of of.nobody",
        f"{SECRET} in a log record of of.nobody",
        f"{KEY} in the stdout",
        f"{KEY} in the stderr",
        f"{KEY} in the file spool/spool.db-wal",
    ]
    canaries.found.clear()
    logging.getLogger("of.somebody").debug("nothing of interest")
    assert canaries.found == []
