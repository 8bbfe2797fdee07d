"""What holds for every test: a clean environment, no network but loopback, and no skip that nobody sees.

`SEER_TEST_REQUIRE=all` makes a failure of each skip, so that nothing is left out unnoticed where all should run.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from .canaries import Watch, canary_in

REQUIRE_ALL = os.environ.get("SEER_TEST_REQUIRE") == "all"
FOREIGN = ("SEER_", "OTEL_", "OPENINFERENCE_")
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
MISSING: dict[str, list[str]] = {}
"""Binary: the tests that asked for it in vain."""

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("here", deadline=None)
# For versions other than the newest: what a property's examples find is hardly ever a matter of the version.
settings.register_profile("few", settings.get_profile("ci"), max_examples=10)
settings.load_profile(os.environ.get("SEER_TEST_EXAMPLES") or ("ci" if os.environ.get("CI") else "here"))


def _clean_environment() -> None:
    for name in [name for name in os.environ if name.startswith(FOREIGN) or name.lower() in PROXIES]:
        del os.environ[name]


_clean_environment()  # the SDK reads some of these when it is imported


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """Each test starts without our variables and OpenTelemetry's, and leaves the environment as it found it."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def _address(host: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that `host` spells out; a name that must be looked up has none, but `localhost` has."""
    text = host.decode() if isinstance(host, bytes) else str(host or "127.0.0.1")
    try:
        return ipaddress.ip_address("127.0.0.1" if text == "localhost" else text.partition("%")[0])
    except ValueError:
        return None


def _is_here(host: object) -> bool:
    address = _address(host)
    return address is not None and (address.is_loopback or address.is_unspecified)


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A connection to elsewhere, or a look-up of its name, is refused, and fails the test even if nobody notices."""
    refused: list[object] = []

    def check(allowed: bool, host: object) -> None:
        if not allowed:
            refused.append(host)
            raise ConnectionRefusedError(f"a test may reach loopback only, not {host!r}")

    def connecting(call: Callable[..., Any]) -> Callable[..., Any]:
        def connect(sock: socket.socket, address: Any) -> Any:
            if sock.family in (socket.AF_INET, socket.AF_INET6):
                check(_is_here(address[0]), address[0])
            return call(sock, address)

        return connect

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        check(_address(host) is not None, host)
        return look_up(host, *args, **kwargs)

    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", connecting(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", connecting(socket.socket.connect_ex))
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    assert not refused, f"this test tried to reach {refused}"


@pytest.fixture(autouse=True)
def canaries(request: pytest.FixtureRequest) -> Iterator[Watch]:
    """A test fails in whose time a canary key or secret is logged, written by a process, or left in a file."""
    watch = Watch()
    with watch.watching():
        yield watch
    if folder := request.node.funcargs.get("tmp_path"):
        watch.look_into(folder)
    assert not watch.found, f"a secret shows: {watch.found}"


class Recorder(ThreadingHTTPServer):
    """A backend on loopback that takes whatever is posted and keeps it by path: events, and OTLP requests."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Recording)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.bodies: dict[str, list[bytes]] = {}

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies.get("/v1/log", ())]

    @property
    def tasks(self) -> list[str]:
        return sorted(event["task"] for event in self.events)


class _Recording(BaseHTTPRequestHandler):
    server: Recorder
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # whoever sent it was killed in the middle
            self.close_connection = True
            return
        self.server.bodies.setdefault(self.path, []).append(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """A backend that records."""
    server = Recorder()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def require_binary(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """`require_binary("psql")` is the path of that program; without it the test is skipped and the summary names it."""

    def find(name: str) -> str:
        if path := shutil.which(name):
            return path
        MISSING.setdefault(name, []).append(request.node.nodeid)
        pytest.skip(f"there is no {name} on this machine")

    return find


def _refuse_skip(report: Report) -> Report:
    # A test of what only a newer Python has may say so.
    older = sys.version_info < (3, 13) and "skipif" in getattr(report, "keywords", ())
    if REQUIRE_ALL and report.skipped and not older and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"nothing may be skipped here (SEER_TEST_REQUIRE=all): {reason}"
    return report


def _refuse_canary(report: pytest.TestReport) -> pytest.TestReport:
    """What this process writes, and its children that write to the same streams, is searched here."""
    if report.passed and (canary := canary_in(report.capstdout) or canary_in(report.capstderr)):
        report.outcome = "failed"
        report.longrepr = f"a secret shows: {canary} in what was written to stdout or stderr"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _refuse_canary(_refuse_skip((yield)))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _refuse_skip((yield))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def pytest_report_header() -> str:
    packages = ("seer-otel", "opentelemetry-sdk", "openinference-semantic-conventions", "httpx", "orjson")
    return "tested: " + ", ".join(f"{name} {_version(name)}" for name in packages)


def pytest_sessionstart() -> None:
    import seer_otel

    sources = Path(__file__).parent.parent / "src"
    if sources in Path(seer_otel.__file__).parents and REQUIRE_ALL:
        pytest.exit("these tests are to run against the installed wheel, not against src/", returncode=4)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for name, tests in sorted(MISSING.items()):
        terminalreporter.write_line(f"missing on this machine: {name}, needed by {', '.join(sorted(tests))}")
