"""`seer-otel doctor`: the real command in a process of its own, with real servers; and what its answers mean."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider, sampling

from seer_otel import cli
from seer_otel.config import Config
from seer_otel.delivery.survey import Found
from seer_otel.doctor import installed, network, passages, provider, settings, spool
from seer_otel.doctor.lines import Line, Mark, as_json, as_text, no, note, yes

if TYPE_CHECKING:
    from conftest import Recorder

KEY = "seer_canary_0123456789"


@dataclass
class Told:
    """What the command said."""

    status: int
    out: str
    err: str

    @property
    def checks(self) -> dict[str, dict[str, str]]:
        return {line["check"]: line for line in json.loads(self.out)["checks"]}

    def mark(self, check: str) -> str:
        return self.checks[check]["mark"]


@pytest.fixture
def doctor(tmp_path: Path) -> Callable[..., Told]:
    """`doctor(*arguments, **environment)` runs the command, with JSON unless told otherwise."""

    def ask(*arguments: str, text: bool = False, before: tuple[str, ...] = (), **environment: str) -> Told:
        done = subprocess.run(
            [*before, sys.executable, "-W", "error", "-m", "seer_otel.cli", "doctor", *arguments]
            + ([] if text else ["--json"]),
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=55,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                **environment,
            },
        )
        return Told(done.returncode, done.stdout, done.stderr)

    return ask


@pytest.fixture
def refusing() -> Iterator[str]:
    """The URL of a backend that refuses every key, and of a proxy that lets nobody through."""

    class Refuse(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_CONNECT = do_POST  # noqa: N815 - the base class's name

        def log_message(self, *args: object) -> None:
            pass

    yield from _serve(Refuse)


def _serve(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None = None) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        if context is not None:
            # Its handshake comes with the first byte that is read, so that a client that gives up breaks no loop.
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def dead_port() -> int:
    """A port of this machine where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def certificate(tmp_path: Path, require_binary: Callable[[str], str]) -> Path:
    """A certificate that nobody signed, for 127.0.0.1 and for 0.0.0.0, which is this machine and not loopback."""
    path = tmp_path / "certificate.pem"
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    command = [
        require_binary("openssl"),
        *options.split(),
        "-addext",
        "subjectAltName=IP:127.0.0.1,IP:0.0.0.0",
    ]
    command += ["-keyout", str(path.with_suffix(".key")), "-out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture
def tls_port(certificate: Path) -> Iterator[int]:
    """The port of a backend that speaks TLS with that certificate."""

    class Quiet(BaseHTTPRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):  # whoever does not trust the certificate hangs up
                super().handle()

        def finish(self) -> None:
            with suppress(OSError):
                super().finish()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    for url in _serve(Quiet, context):
        yield int(url.rpartition(":")[2])


def test_a_working_backend(doctor: Callable[..., Told], recorder: Recorder) -> None:
    """With a backend on this machine nothing is in the way, nothing is sent unasked, and the status is 0."""
    told = doctor(SEER_INGESTION_URL=recorder.url, SEER_SAMPLE_RATE="1")
    assert (told.status, told.err, recorder.bodies) == (0, "", {})
    assert json.loads(told.out)["ok"] is True
    for check in ("switched on", "settings", "key", "URL", "host", "connection", "zero-code", "sampling"):
        assert told.mark(check) == "yes", told.checks[check]
    assert told.checks["test event"]["value"] == "not tried; --send tries it"
    assert told.checks["URL"]["value"].startswith(f"{recorder.url}/v1/log")


def test_the_test_event(doctor: Callable[..., Told], recorder: Recorder) -> None:
    """`--send` sends one event, which says what it is."""
    told = doctor("--send", SEER_INGESTION_URL=recorder.url)
    assert told.mark("test event") == "yes"
    [event] = recorder.events
    assert (event["task"], event["metadata"]) == (
        "Test event of seer-otel doctor",
        {"seer_otel.test": True},
    )
    assert event["trace_id"] in told.checks["test event"]["value"]


@pytest.mark.e2e
def test_a_key_that_is_refused(doctor: Callable[..., Told], refusing: str) -> None:
    """A backend that answers 401 is in the way, the advice names the key's setting, and the key is never shown."""
    for text in (False, True):
        told = doctor("--send", text=text, SEER_INGESTION_URL=refusing, SEER_API_KEY=KEY)
        assert told.status == 1
        assert "HTTP 401" in told.out
        assert "SEER_API_KEY" in told.out
        assert KEY not in told.out + told.err
    assert "In the way: test event." in told.out


def test_nothing_set(doctor: Callable[..., Told], dead_port: int) -> None:
    """Without a key for Seer's own host the key is in the way, and the advice says how to do without an account."""
    # A proxy that is not there keeps this test from asking a name server.
    told = doctor(HTTPS_PROXY=f"http://127.0.0.1:{dead_port}")
    assert told.status == 1
    assert told.mark("key") == "no"
    assert "seer-otel serve" in told.checks["key"]["advice"]
    assert told.mark("zero-code") == "note"
    assert told.checks["URL"]["value"] == "https://api.seersearch.com/v1/log, the default"


@pytest.mark.e2e
def test_no_backend(doctor: Callable[..., Told], dead_port: int) -> None:
    """Where nothing listens the connection is in the way, and what depends on it is not tried."""
    told = doctor(SEER_INGESTION_URL=f"http://127.0.0.1:{dead_port}/")
    assert json.loads(told.out)["in_the_way"] == ["connection"]
    assert "seer-otel serve" in told.checks["connection"]["advice"]
    assert told.checks["TLS"]["value"].startswith("not tried")


@pytest.mark.parametrize(
    ("environment", "blocked"),
    [
        ({"SEER_INGESTION_URL": "api.example.com"}, "URL"),
        ({"SEER_INGESTION_URL": "http://backend.example.com"}, "URL"),
        ({"SEER_SAMPLE_RATE": "2"}, "settings"),
        ({"SEER_SAMPLE_RATE": "0"}, "sampling"),
        ({"SEER_OTEL_ENABLED": "no"}, "switched on"),
        ({"SEER_OTEL_ENABLED": "perhaps"}, "switched on"),
        ({"OTEL_SDK_DISABLED": "true"}, "switched on"),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, "head sampler"),
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "8"}, "attribute limit"),
        ({"OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS": "true"}, "masking"),
        ({"SEER_OTEL_SPOOL_DIR": "/dev/null"}, "spool"),
        ({"OTEL_TRACES_EXPORTER": "nothing_of_the_kind, seer"}, None),
        ({"SEER_OTEL_ENABLED": "perhaps", "SEER_OTEL_TIMEOUT": "never", "SEER_API_KEY": "a b"}, "settings"),
    ],
)
def test_settings_in_the_way(
    recorder: Recorder,
    environment: dict[str, str],
    blocked: str | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A setting that cannot work, or that keeps all events away, is in the way under its name, and has an advice."""
    for name, value in {"SEER_INGESTION_URL": recorder.url, **environment}.items():
        monkeypatch.setenv(name, value)
    status = cli.main(["doctor", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert status == bool(answer["in_the_way"])
    assert blocked is None or blocked in answer["in_the_way"]
    assert all(line["advice"] for line in answer["checks"] if line["mark"] == "no")


@pytest.mark.parametrize(
    ("environment", "check", "says"),
    [
        ({"HTTPS_PROXY": "http://user:pass-word@h:no"}, "host", "HTTPS_PROXY"),
        ({"HTTPS_PROXY": "http://user:pass-word@[h"}, "host", "HTTPS_PROXY"),
        ({"HTTPS_PROXY": "http://user:pass-word@h:99999"}, "host", "HTTPS_PROXY"),
        pytest.param(
            {"SSL_CERT_FILE": "/nowhere"},
            "test event",
            "SSL_CERT_FILE",
            # Before, a file that is not there was passed over.
            marks=pytest.mark.skipif(
                tuple(map(int, httpx.__version__.split(".")[:2])) < (0, 28), reason="httpx 0.28"
            ),
        ),
        ({"SEER_OTEL_TIMEOUT": "1e12"}, "connection", "SEER_INGESTION_URL"),
    ],
)
def test_settings_that_break_a_connection(
    environment: dict[str, str],
    check: str,
    says: str,
    dead_port: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What no connection can be made with is in the way, with the setting that cures it, and without a password."""
    url = f"https://0.0.0.0:{dead_port}"  # this machine, and not loopback
    for name, value in {"SEER_INGESTION_URL": url, "SEER_API_KEY": KEY, **environment}.items():
        monkeypatch.setenv(name, value)
    send = ["--send"] if check == "test event" else []
    assert cli.main(["doctor", "--json", *send]) == 1
    out = capsys.readouterr().out
    (line,) = (each for each in json.loads(out)["checks"] if each["check"] == check)
    assert line["mark"] == "no"
    assert says in line["value"] + line["advice"]
    assert "pass-word" not in out


def test_a_home_of_nobody(
    recorder: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder in the home of a user who is not there is a folder of that name, as it is for the processor."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEER_INGESTION_URL", recorder.url)
    monkeypatch.setenv("SEER_OTEL_SPOOL_DIR", "~nobody-of-that-name/spool")
    cli.main(["doctor", "--json"])
    checks = {each["check"]: each["value"] for each in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["spool"] == f"{tmp_path}/~nobody-of-that-name/spool, which is made"
    assert cli.main(["spool", "show"]) == 0


@pytest.mark.e2e
def test_an_unknown_certificate(doctor: Callable[..., Told], tls_port: int) -> None:
    """A certificate of an unknown CA is in the way, and the advice names the setting."""
    told = doctor(SEER_INGESTION_URL=f"https://0.0.0.0:{tls_port}", SEER_API_KEY=KEY)
    assert json.loads(told.out)["in_the_way"] == ["TLS"]
    assert "certifi" in told.checks["TLS"]["value"]
    assert "SSL_CERT_FILE" in told.checks["TLS"]["advice"]


@pytest.mark.e2e
def test_a_known_certificate(doctor: Callable[..., Told], certificate: Path, tls_port: int) -> None:
    """With SSL_CERT_FILE the same certificate is verified, and the line says against what."""
    told = doctor(
        SEER_INGESTION_URL=f"https://0.0.0.0:{tls_port}", SEER_API_KEY=KEY, SSL_CERT_FILE=str(certificate)
    )
    assert told.mark("TLS") == "yes"
    assert str(certificate) in told.checks["TLS"]["value"]


@pytest.mark.e2e
def test_what_is_no_tls(doctor: Callable[..., Told], refusing: str) -> None:
    """https to a server that speaks plain HTTP is in the way."""
    told = doctor(SEER_INGESTION_URL=refusing.replace("http", "https"))
    assert json.loads(told.out)["in_the_way"] == ["TLS"]


@pytest.mark.e2e
def test_a_proxy(doctor: Callable[..., Told], refusing: str) -> None:
    """Through a proxy, the proxy's address is looked up, and its refusal is told with the proxy's variables."""
    proxy = refusing.replace("http://", "http://user:canary_password@")
    told = doctor(SEER_API_KEY=KEY, SEER_INGESTION_URL="https://backend.example.com", HTTPS_PROXY=proxy)
    assert told.checks["host"]["value"].startswith("proxy 127.0.0.1")
    assert told.mark("connection") == "yes"
    assert told.mark("TLS") == "no"
    assert "401" in told.checks["TLS"]["value"]
    assert "proxy" in told.checks["TLS"]["advice"]
    assert "canary" not in told.out


APP = """
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
import seer_otel

print("this is not for whoever reads JSON")
provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=45))
provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(), max_export_batch_size=64))
"""


def test_the_provider_of_an_application(
    doctor: Callable[..., Told], recorder: Recorder, tmp_path: Path
) -> None:
    """`--app` tells what sits on the provider that the application sets, in order, and the limit in force there."""
    (tmp_path / "app.py").write_text(
        f"{APP}\nseer_otel.attach(provider)\ntrace.set_tracer_provider(provider)\n"
    )
    told = doctor("--app", "app", SEER_INGESTION_URL=recorder.url)
    assert told.status == 0
    assert told.checks["processor 1"]["value"].startswith(
        "BatchSpanProcessor to ConsoleSpanExporter, batches of 64"
    )
    assert told.checks["processor 2"]["value"] == "SeerSpanProcessor"
    assert told.checks["seer-otel on it"]["value"] == "processor 2 of 2"
    assert "room for 10 documents (LlamaIndex) to 20" in told.checks["attribute limit"]["value"]


@pytest.mark.e2e
def test_an_attribute_of_an_application(
    doctor: Callable[..., Told], recorder: Recorder, tmp_path: Path
) -> None:
    """`--app module:attribute` looks at that provider; where nothing of ours is on it, that is in the way."""
    (tmp_path / "app.py").write_text(APP)
    told = doctor("--app", "app:provider", SEER_INGESTION_URL=recorder.url)
    assert json.loads(told.out)["in_the_way"] == ["seer-otel on it"]
    assert "attach()" in told.checks["seer-otel on it"]["advice"]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("code", "why"),
    [("1 / 0", "ZeroDivisionError"), ("raise SystemExit(3)", "SystemExit"), ("a = 1", "none is set")],
)
def test_an_application_that_fails(
    doctor: Callable[..., Told], recorder: Recorder, tmp_path: Path, code: str, why: str
) -> None:
    """An application that cannot be imported, or sets no provider, is in the way; the other lines are there."""
    (tmp_path / "app.py").write_text(code)
    told = doctor("--app", "app", SEER_INGESTION_URL=recorder.url)
    assert json.loads(told.out)["in_the_way"] == ["provider"]
    assert why in told.checks["provider"]["value"]
    assert told.mark("connection") == "yes"


@pytest.mark.zero_code
@pytest.mark.e2e
def test_zero_code(doctor: Callable[..., Told], recorder: Recorder) -> None:
    """Under `opentelemetry-instrument` the provider is there, and so is our processor."""
    others = {each.name for each in entry_points(group="opentelemetry_instrumentor")} - {"seer"}
    none = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    told = doctor(
        before=(str(Path(sys.executable).parent / "opentelemetry-instrument"),),
        SEER_INGESTION_URL=recorder.url,
        OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=",".join(sorted(others)),
        **none,
    )
    assert told.status == 0, told.out + told.err
    assert told.mark("entry points") == "yes"
    assert told.checks["seer-otel on it"]["value"] == "processor 1 of 1"


def test_recorded_events(doctor: Callable[..., Told], recorder: Recorder, tmp_path: Path) -> None:
    """`--events` tells which share of the passages is shorter or longer than recommended, or cut."""
    texts: list[Any] = [{"text": "a" * length} for length in (10, 199, 200, 600, 1_000, 1_001, 4_000)]
    lines = [
        json.dumps({"task": "a", "context": [*texts, "a" * 500]}),
        json.dumps({"record_id": "r", "event": {"task": "b", "context": [{"text": "a" * 300}] * 50}}),
        "no JSON",
        "",
    ]
    (tmp_path / "events.jsonl").write_text("\n".join(lines))
    told = doctor("--events", "events.jsonl", SEER_INGESTION_URL=recorder.url)
    assert told.status == 0
    assert told.checks["passages"]["value"] == (
        "58 passages of 2 events; 1 line without one: 3% shorter than 200 characters, 3% longer than 1,000"
    )
    assert told.checks["long passages"]["value"].startswith("2% at the limit of 4,000")
    assert told.checks["many passages"]["value"].startswith("1 event with 50 passages or more")


@pytest.mark.e2e
def test_wrong_usage(doctor: Callable[..., Told]) -> None:
    """A file that is not there, or an option that does not exist, is status 2, said on standard error."""
    for arguments in (("--events", "nowhere.jsonl"), ("--nothing",)):
        told = doctor(*arguments)
        assert (told.status, told.out) == (2, "")
        assert "seer-otel" in told.err


@pytest.mark.e2e
@pytest.mark.parametrize("columns", ["40", "80", "100", "300"])
def test_text(doctor: Callable[..., Told], recorder: Recorder, columns: str) -> None:
    """The text is plain, aligned, no wider than the terminal between 60 and 100 columns, and sums up at the end."""
    told = doctor(text=True, SEER_INGESTION_URL=recorder.url, COLUMNS=columns)
    assert told.out.isascii()
    *body, empty, end = told.out.splitlines()
    assert (empty, end) == ("", "Nothing stands in the way.")
    assert max(map(len, body)) <= max(60, min(100, int(columns)))
    starts = {line[:6] for line in body}
    assert starts == {"yes   ", "note  ", "      "}


@pytest.mark.e2e
def test_all_lines(doctor: Callable[..., Told], recorder: Recorder) -> None:
    """Text and JSON say the same checks, in the same order, each once."""
    told = doctor(SEER_INGESTION_URL=recorder.url)
    text = doctor(text=True, SEER_INGESTION_URL=recorder.url).out
    lines = json.loads(told.out)["checks"]
    assert len(told.checks) == len(lines)
    named = [line for line in text.splitlines() if line and not line.startswith(" ")][:-1]
    assert [line[6:].startswith(check["check"]) for line, check in zip(named, lines, strict=True)] == [
        True
    ] * len(lines)


@given(key=st.text(min_size=4), url=st.sampled_from(["", "http://127.0.0.1:1", "https://b.example.com", "x"]))
def test_the_key_is_never_shown(key: str, url: str) -> None:
    """No line about the settings holds the key, whatever it is."""
    canary = f"canary{key}canary"
    for each in (canary, f"seer_{canary}"):
        found = settings.look({"SEER_API_KEY": each, "SEER_INGESTION_URL": url})
        assert "canary" not in as_text(found.lines, 100) + as_json(found.lines)


def test_every_setting_by_itself() -> None:
    """Each setting that cannot work is named, though a processor stops at the first."""
    found = settings.look({"SEER_API_KEY": "a b", "SEER_INGESTION_URL": "x", "SEER_OTEL_NESTED": "y"})
    assert [line.check for line in found.lines if line.mark is Mark.NO] == ["settings", "URL"]
    assert (found.config.nested, found.endpoint, found.sends) == (Config().nested, None, False)


@pytest.mark.parametrize(
    ("environment", "mark", "words"),
    [
        ({}, Mark.YES, "not set"),
        ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, Mark.NO, "no trace"),
        (
            {"OTEL_TRACES_SAMPLER": "TraceIdRatio", "OTEL_TRACES_SAMPLER_ARG": "0.1"},
            Mark.NOTE,
            "1 trace of 100 ",
        ),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, Mark.NO, "no trace"),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "x"}, Mark.YES, "every trace"),
        ({"OTEL_TRACES_SAMPLER": "jaeger_remote"}, Mark.NOTE, "multiplies"),
    ],
)
def test_head_sampler(environment: dict[str, str], mark: Mark, words: str) -> None:
    """The sampler of the environment is read as the SDK reads it, and its share multiplies with ours."""
    line = settings.sampling(0.1, environment)[1]
    assert line.mark is mark
    assert words in line.value


@pytest.mark.parametrize(
    ("sampler", "mark", "words"),
    [
        (sampling.ALWAYS_ON, Mark.YES, "every trace"),
        (sampling.DEFAULT_ON, Mark.YES, "every trace"),
        (sampling.DEFAULT_OFF, Mark.NO, "no trace"),
        (sampling.TraceIdRatioBased(0.5), Mark.NOTE, "1 trace of 20 "),
        (sampling.ParentBasedTraceIdRatio(0.25), Mark.NOTE, "1 trace of 40 "),
    ],
)
def test_sampler_of_a_provider(sampler: sampling.Sampler, mark: Mark, words: str) -> None:
    """A real provider's sampler is told by what it says of itself."""
    at = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    line = settings.sampling(0.1, {"OTEL_TRACES_SAMPLER": "always_off"}, provider.sampler_of(at))[1]
    assert (line.mark, words in line.value) == (mark, True), line


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (0, "no trace"),
        (1, "every trace"),
        (0.75, "75% of the traces"),
        (0.5, "1 trace of 2"),
        (0.1, "1 trace of 10"),
        (0.03, "1 trace of 33.3"),
        (0.0001, "1 trace of 10,000"),
    ],
)
def test_one_of(rate: float, words: str) -> None:
    """A share is told as one trace of how many."""
    assert settings.one_of(rate) == words


@pytest.mark.parametrize(
    ("limit", "mark", "words"),
    [
        (None, Mark.YES, "every document fits"),
        (128, Mark.NOTE, "30 documents (LlamaIndex) to 61 documents (LangChain)"),
        (10_000, Mark.YES, "2,498 documents"),
        (8, Mark.NO, "0 documents (LlamaIndex)"),
    ],
)
def test_documents(limit: int | None, mark: Mark, words: str) -> None:
    """The limit of attributes is told in documents; 50, the most that are sent, are enough."""
    line = provider.documents(limit, "here")
    assert (line.mark, words in line.value) == (mark, True), line


@pytest.mark.parametrize(
    ("status", "mark", "words"),
    [
        (200, Mark.YES, ""),
        (202, Mark.YES, ""),
        (302, Mark.NO, "Redirects"),
        (401, Mark.NO, "SEER_API_KEY"),
        (404, Mark.NO, "SEER_INGESTION_URL"),
        (422, Mark.NO, "SEER_INGESTION_URL"),
        (503, Mark.NO, "tried again"),
    ],
)
def test_answers(status: int, mark: Mark, words: str) -> None:
    """Any 2xx is yes; each other answer names what to do."""
    line = network.answer(status, "a")
    assert line.mark is mark
    assert words in line.advice


def test_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy is that of the scheme, else the one for all, unless NO_PROXY or loopback says otherwise."""
    monkeypatch.setenv("ALL_PROXY", "all.example.com:1")
    monkeypatch.setenv("HTTPS_PROXY", "http://one.example.com:2")
    monkeypatch.setenv("NO_PROXY", "near.example.com")
    found = [
        (proxy := network.proxy_for(url)) and proxy.netloc
        for url in (
            "https://far.example.com/v1/log",
            "http://far.example.com",
            "https://near.example.com",
            "https://127.0.0.1:3",
        )
    ]
    assert found == ["one.example.com:2", "all.example.com:1", None, None]


def entry_point_lines(environment: dict[str, str], *, seer: bool = True, launcher: bool = True) -> list[Line]:
    names = {installed.INSTRUMENTOR: {"seer"} if seer else set(), installed.EXPORTER: {"console"}}
    names[installed.EXPORTER] |= {"seer"} if seer else set()
    return installed.zero_code(environment, names, launcher)


def test_entry_points() -> None:
    """What zero-code lacks is noted, with what installs it; to name our exporter where it is missing is in the way."""
    asked = {"SEER_API_KEY": KEY}
    assert [line.mark for line in entry_point_lines({**asked, "OTEL_TRACES_EXPORTER": "console"})] == [
        Mark.YES
    ] * 4
    for lines in (entry_point_lines(asked, seer=False), entry_point_lines(asked, launcher=False)):
        assert lines[1].mark is Mark.NOTE
        assert "pip install 'seer-otel[zero-code]'" in lines[1].advice
    assert entry_point_lines({"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "a, seer"})[2].mark is Mark.NOTE
    assert entry_point_lines({"OTEL_TRACES_EXPORTER": "seer"}, seer=False)[3].mark is Mark.NO
    assert "otlp_proto_grpc is not installed" in entry_point_lines(asked)[3].value
    assert entry_point_lines({})[3].mark is Mark.YES


def test_what_waits_in_a_spool() -> None:
    """The events in all files are counted; those for another URL, and files that cannot be read, are told apart."""
    here, there = "https://here", "https://there"
    found = [
        Found(Path("a"), here, False, 2, 20, 1_000.0, 2_000.0),
        Found(Path("b"), there, True, 1, 10, 900.0, 900.0),
        Found(Path("c"), trouble="c: no database"),
    ]
    lines = {line.check: line for line in spool.waiting(found, here, now=900.0 + 3 * 3_600)}
    assert lines["in the spool"].value == "3 events, the oldest for 3 hours"
    assert lines["for others"].value.startswith("1 event for another URL")
    assert (lines["spool files"].mark, lines["spool files"].value) == (Mark.NO, "c: no database")
    assert spool.waiting([], here, 0.0) == [yes("in the spool", "no event waits")]


@given(st.lists(st.text(max_size=300), max_size=5), st.integers(0, 200))
def test_any_value(values: list[str], width: int) -> None:
    """Whatever a value holds, nothing that steers a terminal gets there, and each line begins with its mark."""
    lines = [no("a", value, value) for value in values] + [note("b", "c")]
    text = as_text(lines, width)
    assert all(character.isprintable() for character in text.replace("\n", ""))
    assert sum(line.startswith("no    a") for line in text.splitlines()) == len(values)


@given(st.text() | st.recursive(st.none() | st.text(), st.lists, max_leaves=5).map(json.dumps))
def test_any_line(line: str) -> None:
    """A line that is no event is counted as such, and raises nothing."""
    lengths = passages.count([line])
    assert lengths.events == 0
    assert lengths.others == bool(line.strip())
