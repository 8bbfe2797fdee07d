"""Zero-code: the two entry points, under `opentelemetry-instrument` in processes of their own, and by themselves."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

from seer_otel import InMemoryTransport, attach

if TYPE_CHECKING:
    from conftest import Recorder

pytestmark = pytest.mark.zero_code

BIN = Path(sys.executable).parent
QUESTION = "Who directed Inception?"
APP = """
import json, sys
from opentelemetry import trace

tracer = trace.get_tracer("app")
for question in sys.argv[2:]:
    with tracer.start_as_current_span("chain") as chain:
        chain.set_attribute("openinference.span.kind", "CHAIN")
        chain.set_attribute("input.value", question)
        with tracer.start_as_current_span("retriever") as span:
            span.set_attribute("input.value", question)
            for i in range(int(sys.argv[1])):
                document = f"retrieval.documents.{i}.document"
                span.set_attribute(f"{document}.content", f"text {i}")
                span.set_attribute(f"{document}.id", f"doc-{i}")
                span.set_attribute(f"{document}.metadata", '{"source": "a book"}')
                span.set_attribute(f"{document}.score", 1 / (1 + i))
            span.set_attribute("openinference.span.kind", "RETRIEVER")
processors = getattr(trace.get_tracer_provider(), "_active_span_processor", None)
print(json.dumps([type(each).__name__ for each in getattr(processors, "_span_processors", ())]))
sys.exit(7)
"""
THEIRS = (
    "OTEL_CONFIG_FILE is set; ignoring configurator kwargs: ['auto_instrumentation_version']",
    "SDK is disabled.",
)
"""What OpenTelemetry itself logs wherever there is a declarative file, and where it is disabled."""


@dataclass
class Ran:
    """What an application left behind: the names of its span processors, and what it logged."""

    processors: list[str]
    log: list[str]


@pytest.fixture
def run(recorder: Recorder, tmp_path: Path) -> Callable[..., Ran]:
    """`run(**environment)` runs an application with one retrieval that ends with status 7, as it must."""

    def start(
        *, questions: tuple[str, ...] = (QUESTION,), documents: int = 2, before: str = "", **more: str | None
    ) -> Ran:
        app = tmp_path / "app.py"
        app.write_text(before + APP)
        ours = {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONWARNINGS": "error",
            "OTEL_TRACES_EXPORTER": "none",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
            "SEER_INGESTION_URL": recorder.url,
            "SEER_SAMPLE_RATE": "1",
        }
        environment = {**os.environ, **ours, **more}
        # Those of the libraries that happen to be here cost seconds.
        others = {each.name for each in entry_points(group="opentelemetry_instrumentor")} - {"seer"}
        disabled = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
        environment[disabled] = ", ".join([*sorted(others), *filter(None, [environment.get(disabled)])])
        done = subprocess.run(
            [str(BIN / "opentelemetry-instrument"), sys.executable, str(app), str(documents), *questions],
            env={name: value for name, value in environment.items() if value is not None},
            capture_output=True,
            text=True,
            timeout=55,
            check=False,
        )
        assert done.returncode == 7, done.stderr
        log = [line for line in done.stderr.splitlines() if line not in THEIRS]
        return Ran(json.loads(done.stdout), log)

    return start


def test_a_url(run: Callable[..., Ran], recorder: Recorder) -> None:
    """With a URL, an application without a line of ours sends its retrievals, and says nothing."""
    ran = run()
    [event] = recorder.events
    assert event["task"] == QUESTION
    assert [passage["id"] for passage in event["context"]] == ["doc-0", "doc-1"]
    assert event["is_final_context"] is True
    assert ran == Ran(["SeerSpanProcessor"], [])


@pytest.mark.e2e
def test_a_key_of_seers(run: Callable[..., Ran]) -> None:
    """A key with Seer's prefix alone is a request, too."""
    assert run(SEER_INGESTION_URL=None, SEER_API_KEY="seer_key", questions=()) == Ran(
        ["SeerSpanProcessor"], []
    )


def test_not_asked(run: Callable[..., Ran], recorder: Recorder) -> None:
    """That the package is installed adds nothing, sends nothing and says nothing."""
    assert run(SEER_INGESTION_URL=None) == Ran([], [])
    assert recorder.bodies == {}


@pytest.mark.e2e
@pytest.mark.parametrize(
    "environment",
    [
        {"SEER_INGESTION_URL": " "},
        {"SEER_INGESTION_URL": None, "SEER_API_KEY": "sk-of-another-product"},
        {"SEER_INGESTION_URL": None, "SEER_SAMPLE_RATE": "often"},
        {"SEER_OTEL_ENABLED": "false"},
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "seer"},
    ],
    ids=",".join,
)
def test_inert(run: Callable[..., Ran], recorder: Recorder, environment: dict[str, str | None]) -> None:
    """Where nothing that is Seer's asks for events, or a switch is off, nothing is added, sent or said."""
    assert run(**environment) == Ran([], [])
    assert recorder.bodies == {}


@pytest.mark.e2e
@pytest.mark.parametrize(
    "environment", [{"SEER_OTEL_ENABLED": "false"}, {"OTEL_SDK_DISABLED": "true"}], ids=str
)
def test_an_inert_exporter(run: Callable[..., Ran], recorder: Recorder, environment: dict[str, str]) -> None:
    """The switches turn the exporter off, too, also where no key would let it work."""
    for url in (None, recorder.url):
        ran = run(OTEL_TRACES_EXPORTER="seer", SEER_INGESTION_URL=url, **environment)
        assert ran == Ran(["BatchSpanProcessor"], [])
    assert recorder.bodies == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SEER_SAMPLE_RATE", "7"),
        *(
            pytest.param(*each, marks=pytest.mark.e2e)
            for each in (
                ("SEER_OTEL_TIMEOUT", "soon"),
                ("SEER_OTEL_ENABLED", "perhaps"),
                ("SEER_INGESTION_URL", "http://example.com/v1/log"),
                ("SEER_API_KEY", "seer_secret\nseer_secret"),
            )
        ),
    ],
)
def test_a_bad_setting(run: Callable[..., Ran], recorder: Recorder, name: str, value: str) -> None:
    """A setting that cannot work is named in one log line, by both doors together, and the application runs on."""
    ran = run(OTEL_TRACES_EXPORTER="seer", **{name: value})
    [line] = ran.log
    assert line.startswith(f"seer-otel sends nothing: {name} ")
    assert line.endswith(".")
    assert not line.endswith("..")
    assert "secret" not in line
    assert recorder.bodies == {}


@pytest.mark.e2e
def test_a_key_of_another_product(run: Callable[..., Ran]) -> None:
    """A key of another product is not sent to Seer, and one line says what to do."""
    ran = run(SEER_INGESTION_URL="https://api.seersearch.com", SEER_API_KEY="sk-secret")
    [line] = ran.log
    assert "SEER_API_KEY does not begin with 'seer_'" in line
    assert line.endswith("it is Seer's.")
    assert "secret" not in line


@pytest.mark.e2e
class TestExporter:
    """The exporter `seer`."""

    def test_alone(self, run: Callable[..., Ran], recorder: Recorder) -> None:
        """Without the instrumentor, the exporter behind a batch processor sends what it held at the exit."""
        ran = run(
            OTEL_TRACES_EXPORTER="seer",
            OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="seer",
            questions=("first", "second"),
        )
        assert recorder.tasks == ["first", "second"]
        assert all(event["is_final_context"] is True for event in recorder.events)
        assert ran == Ran(["BatchSpanProcessor"], [])

    def test_both_doors(self, run: Callable[..., Ran], recorder: Recorder) -> None:
        """Where the processor is on the provider, too, the exporter is quiet, and each event is sent once."""
        ran = run(OTEL_TRACES_EXPORTER="seer", questions=("first", "second"))
        assert recorder.tasks == ["first", "second"]
        assert ran == Ran(["BatchSpanProcessor", "SeerSpanProcessor"], [])

    def test_asked_by_name_only(self, run: Callable[..., Ran]) -> None:
        """The exporter's name without a key or a URL is one line that says what is needed."""
        [line] = run(OTEL_TRACES_EXPORTER="seer", SEER_INGESTION_URL=None).log
        assert line.startswith("seer-otel sends nothing: SEER_API_KEY ")

    @pytest.mark.frameworks
    @pytest.mark.parametrize("disabled", ["", "seer"])
    def test_beside_otlp(self, run: Callable[..., Ran], recorder: Recorder, disabled: str) -> None:
        """Beside OTLP, both get what they should: OTLP every span, we each retrieval once."""
        ran = run(
            OTEL_TRACES_EXPORTER="otlp,seer",
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
            OTEL_EXPORTER_OTLP_ENDPOINT=recorder.url,
            OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=disabled,
            questions=("first", "second"),
        )
        assert recorder.tasks == ["first", "second"]
        spans = b"".join(recorder.bodies["/v1/traces"])
        assert (spans.count(b"chain"), spans.count(b"retriever")) == (2, 2)
        assert ran.log == []


@pytest.mark.e2e
def test_attach_as_well(run: Callable[..., Ran], recorder: Recorder) -> None:
    """An application that calls attach() itself gets the processor that zero-code made: each event is sent once."""
    ran = run(OTEL_TRACES_EXPORTER="seer", before="import seer_otel\nseer_otel.attach()\n")
    assert recorder.tasks == [QUESTION]
    assert ran == Ran(["BatchSpanProcessor", "SeerSpanProcessor"], [])


@pytest.mark.e2e
def test_attach_with_the_exporter(run: Callable[..., Ran], recorder: Recorder) -> None:
    """Where the application attaches the processor and the exporter is named, the processor alone sends."""
    ran = run(
        OTEL_TRACES_EXPORTER="seer",
        OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="seer",
        before="import seer_otel\nseer_otel.attach()\n",
    )
    assert recorder.tasks == [QUESTION]
    assert ran == Ran(["BatchSpanProcessor", "SeerSpanProcessor"], [])


@pytest.mark.e2e
def test_no_provider(run: Callable[..., Ran], recorder: Recorder) -> None:
    """Where zero-code set no provider up, one line of ours says so."""
    ran = run(OTEL_PYTHON_CONFIGURATOR="none")
    [line] = [line for line in ran.log if "seer" in line]
    assert line.startswith("seer-otel sends nothing: No tracer provider is set yet.")
    assert recorder.bodies == {}


@pytest.mark.e2e
class TestAttributeLimit:
    """`SEER_OTEL_RAISE_ATTRIBUTE_LIMIT`."""

    def test_raised(self, run: Callable[..., Ran], recorder: Recorder) -> None:
        """Raised, 40 documents of 4 attributes all arrive, with the question and without a warning."""
        ran = run(SEER_OTEL_RAISE_ATTRIBUTE_LIMIT="1000", documents=40)
        [event] = recorder.events
        assert [passage["id"] for passage in event["context"]] == [f"doc-{i}" for i in range(40)]
        assert all(set(passage) >= {"text", "id", "score", "source"} for passage in event["context"])
        assert event["task"] == QUESTION
        assert "seer_otel.attributes_dropped" not in event["metadata"]
        assert ran.log == []

    @pytest.mark.parametrize("limit", ["", "1000"])
    def test_never_lowered(self, run: Callable[..., Ran], recorder: Recorder, limit: str) -> None:
        """A limit of OpenTelemetry's that is higher, or none at all, stays."""
        ran = run(OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=limit, SEER_OTEL_RAISE_ATTRIBUTE_LIMIT="5", documents=40)
        [event] = recorder.events
        assert len(event["context"]) == 40
        assert ran.log == []


@pytest.fixture
def configured(run: Callable[..., Ran], recorder: Recorder, tmp_path: Path) -> Callable[..., Ran]:
    """`configured(text, **environment)` runs with a declarative file; URL in it stands for the recorder's."""

    def start(text: str, **more: Any) -> Ran:
        file = tmp_path / "otel.yaml"
        file.write_text('file_format: "1.0"\n' + textwrap.dedent(text).replace("URL", recorder.url))
        settings = {"SEER_INGESTION_URL": None, "SEER_SAMPLE_RATE": None, "OTEL_TRACES_EXPORTER": None}
        return run(**{**settings, "OTEL_CONFIG_FILE": str(file), **more})

    return start


@pytest.mark.e2e
@pytest.mark.frameworks
class TestFile:
    """The declarative configuration file of the package opentelemetry-configuration."""

    def test_options_of_the_instrumentor(self, configured: Callable[..., Ran], recorder: Recorder) -> None:
        """The instrumentor takes its options from the file, and the file's other exporters get their spans."""
        ran = configured("""
            tracer_provider:
              processors:
                - batch: {exporter: {otlp_http: {endpoint: URL/v1/traces}}}
            instrumentation/development:
              python:
                seer: {endpoint: URL, sample_rate: 1}
            """)
        assert recorder.tasks == [QUESTION]
        assert b"retriever" in b"".join(recorder.bodies["/v1/traces"])
        assert ran == Ran(["BatchSpanProcessor", "SeerSpanProcessor"], [])

    @pytest.mark.parametrize("quote", ["", '"'])
    def test_variables(self, configured: Callable[..., Ran], recorder: Recorder, quote: str) -> None:
        """A variable in the file works as a number and as text, and one that is not set counts as not given."""
        ran = configured(
            f"""
            tracer_provider:
              processors:
                - batch: {{exporter: {{otlp_http: {{endpoint: URL/v1/traces}}}}}}
            instrumentation/development:
              python:
                seer:
                  endpoint: URL
                  sample_rate: {quote}${{RATE}}{quote}
                  max_queue_size: {quote}${{SIZE}}{quote}
                  id_keys: ${{UNSET}}
                  metadata_keys: [model, env]
            """,
            RATE="1.0",
            SIZE="1000",
        )
        assert recorder.tasks == [QUESTION]
        assert ran == Ran(["BatchSpanProcessor", "SeerSpanProcessor"], [])

    def test_the_exporter(self, configured: Callable[..., Ran], recorder: Recorder) -> None:
        """The exporter takes its options from the file, and sends what it held at the exit."""
        ran = configured("""
            tracer_provider:
              processors:
                - batch: {exporter: {seer: {endpoint: URL, sample_rate: 1.0}}}
            """)
        assert recorder.tasks == [QUESTION]
        assert ran == Ran(["BatchSpanProcessor"], [])

    def test_its_options_beat_the_environment(
        self, configured: Callable[..., Ran], recorder: Recorder
    ) -> None:
        """An exporter with options in the file is what sends, also where the environment would ask for a processor."""
        text = """
            tracer_provider:
              processors:
                - simple: {exporter: {seer: {endpoint: URL, api_key: "${SEER_API_KEY}", sample_rate: 1.0}}}
            """
        ran = configured(text, SEER_API_KEY="seer_key")
        assert recorder.tasks == [QUESTION]
        assert ran == Ran(["SimpleSpanProcessor"], [])

    def test_both_doors(self, configured: Callable[..., Ran], recorder: Recorder) -> None:
        """With both in the file the processor sends, and each event is sent once."""
        ran = configured("""
            tracer_provider:
              processors:
                - batch: {exporter: {seer: {endpoint: URL/other, sample_rate: 1.0}}}
            instrumentation/development:
              python:
                seer: {endpoint: URL, sample_rate: 1.0}
            """)
        assert recorder.tasks == [QUESTION]
        assert list(recorder.bodies) == ["/v1/log"]
        assert ran == Ran(["BatchSpanProcessor", "SeerSpanProcessor"], [])

    @pytest.mark.parametrize("option", ["sampel_rate: 1", "sample_rate: 7"])
    def test_a_bad_option(self, configured: Callable[..., Ran], recorder: Recorder, option: str) -> None:
        """An option that cannot work is one line at either door, and tracing is set up all the same.

        What the environment says does not take its place.
        """
        exporter = f"""
            tracer_provider:
              processors:
                - batch: {{exporter: {{otlp_http: {{endpoint: URL/v1/traces}}}}}}
                - batch: {{exporter: {{seer: {{{option}, endpoint: URL}}}}}}
            """
        instrumentor = f"""
            tracer_provider:
              processors:
                - batch: {{exporter: {{otlp_http: {{endpoint: URL/v1/traces}}}}}}
            instrumentation/development:
              python:
                seer: {{{option}, endpoint: URL}}
            """
        for text in (exporter, instrumentor):
            [line] = configured(text, SEER_INGESTION_URL=recorder.url, SEER_SAMPLE_RATE="1").log
            assert line.startswith("seer-otel sends nothing: ")
            assert option.partition(":")[0] in line
        assert recorder.events == []
        assert b"".join(recorder.bodies["/v1/traces"]).count(b"retriever") == 2

    def test_disabled(self, configured: Callable[..., Ran], recorder: Recorder) -> None:
        """A file that disables OpenTelemetry leaves no provider, and one line of ours says so."""
        ran = configured("disabled: true", SEER_INGESTION_URL=recorder.url)
        [line] = [line for line in ran.log if "seer" in line]
        assert line.startswith("seer-otel sends nothing: No tracer provider is set yet.")
        assert recorder.bodies == {}


def ask(provider: TracerProvider, question: str = QUESTION) -> None:
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": question,
        "retrieval.documents.0.document.content": "Christopher Nolan did.",
    }
    provider.get_tracer("app").start_span("retriever", attributes=attributes).end()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture
def provider() -> Iterator[TracerProvider]:
    made = TracerProvider(shutdown_on_exit=False)
    yield made
    made.shutdown()


@pytest.fixture
def doors(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of both entry points, as in a process that has not used them."""
    from seer_otel import zero_code

    monkeypatch.setattr(zero_code.SeerInstrumentor, "_instance", None)
    monkeypatch.setattr(zero_code.SeerInstrumentor, "has_options", False)
    monkeypatch.setattr(zero_code, "_said", set())
    return zero_code


class TestInstrumentor:
    """The instrumentor, called by a program."""

    def test_by_hand(self, doors: Any, provider: TracerProvider, caplog: pytest.LogCaptureFixture) -> None:
        """It takes a provider and settings as arguments, and calling it again is quiet."""
        memory = InMemoryTransport()
        for _ in range(2):
            doors.SeerInstrumentor().instrument(
                tracer_provider=provider, transport=memory, sample_rate=1.0, skip_dep_check=True
            )
        ask(provider)
        provider.force_flush()
        assert len(memory.requests) == 1
        assert warnings(caplog) == []

    def test_taken_away_and_added_again(
        self, doors: Any, provider: TracerProvider, caplog: pytest.LogCaptureFixture
    ) -> None:
        """After uninstrument() nothing is sent, and after a new instrument() every retrieval once."""
        memory = InMemoryTransport()
        instrumentor = doors.SeerInstrumentor()
        instrumentor.instrument(tracer_provider=provider, transport=memory, sample_rate=1.0)
        ask(provider, "first")
        instrumentor.uninstrument()
        ask(provider, "between")
        instrumentor.instrument(tracer_provider=provider, transport=memory, sample_rate=1.0)
        ask(provider, "last")
        provider.force_flush()
        assert [event["task"] for event in memory.events] == ["first", "last"]
        assert len(memory.requests) == 2
        assert warnings(caplog) == []

    @pytest.mark.parametrize("foreign", [trace.ProxyTracerProvider(), object()], ids=["proxy", "object"])
    def test_never_raises(self, doors: Any, foreign: object, caplog: pytest.LogCaptureFixture) -> None:
        """What attach() would refuse is one log line, however often it is tried."""
        for _ in range(2):
            doors.SeerInstrumentor().instrument(tracer_provider=foreign, transport=InMemoryTransport())
        [line] = warnings(caplog)
        assert line.startswith("seer-otel sends nothing: ")

    def test_no_limit_to_raise(self, doors: Any, caplog: pytest.LogCaptureFixture) -> None:
        """A provider of another make without limits gets its processor, and one line about the limit."""

        class Foreign:
            def __init__(self) -> None:
                self.processors: list[object] = []

            def add_span_processor(self, processor: object) -> None:
                self.processors.append(processor)

        foreign = Foreign()
        doors.SeerInstrumentor().instrument(
            tracer_provider=foreign, transport=InMemoryTransport(), raise_attribute_limit=1000
        )
        assert len(foreign.processors) == 1
        assert warnings(caplog) == ["SEER_OTEL_RAISE_ATTRIBUTE_LIMIT has no effect on this provider."]

    @pytest.mark.parametrize(
        ("before", "after"), [(128, 1000), (2000, 2000), (SpanLimits.UNSET, None)], ids=str
    )
    def test_limits(self, doors: Any, before: int, after: int | None) -> None:
        """The limit is raised for tracers that there are already, and never lowered."""
        limits = SpanLimits(max_span_attributes=before)
        provider = TracerProvider(span_limits=limits, shutdown_on_exit=False)
        tracer = provider.get_tracer("app")
        doors.SeerInstrumentor().instrument(
            tracer_provider=provider, transport=InMemoryTransport(), raise_attribute_limit=1000
        )
        with tracer.start_as_current_span("span") as span:
            for number in range(3000):
                span.set_attribute(f"key {number}", number)
        assert len(span.attributes) == (after or 3000)  # type: ignore[attr-defined]
        provider.shutdown()


class TestEntryPointExporter:
    """The exporter's class."""

    @pytest.mark.parametrize("settings", [{"sampel_rate": 1}, {"sample_rate": 7}, {}])
    def test_never_raises(
        self, doors: Any, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        """What its base refuses is one log line, and an exporter that does nothing, successfully."""
        exporter = doors.SeerEntryPointExporter(**settings)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        ask(provider)
        assert exporter.export([]) is SpanExportResult.SUCCESS
        assert provider.force_flush()
        provider.shutdown()
        [line] = warnings(caplog)
        assert line.startswith("seer-otel sends nothing: ")

    def test_another_provider(self, doors: Any, provider: TracerProvider) -> None:
        """A processor on a provider that is not the global one does not silence the exporter."""
        memory = InMemoryTransport()
        attach(TracerProvider(shutdown_on_exit=False), transport=InMemoryTransport())
        exporter = doors.SeerEntryPointExporter(transport=memory, sample_rate=1.0)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        ask(provider)
        provider.shutdown()
        assert len(memory.requests) == 1

    def test_without_the_instrumentation_package(self, recorder: Recorder) -> None:
        """The exporter's entry point loads without opentelemetry-instrumentation, which its program may not have."""
        code = """
            import sys
            sys.modules["opentelemetry.instrumentation"] = None
            from importlib.metadata import entry_points
            [exporter] = entry_points(group="opentelemetry_traces_exporter", name="seer")
            print(exporter.load()().config.endpoint)
        """
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
            env={**os.environ, "SEER_INGESTION_URL": recorder.url},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{recorder.url}/v1/log\n", "")


def test_what_an_import_costs() -> None:
    """To import the module of the entry points imports nothing that sends."""
    code = "import json, seer_otel.zero_code, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    packages = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert packages.isdisjoint({"httpx", "requests", "starlette", "sqlalchemy", "grpc"})
