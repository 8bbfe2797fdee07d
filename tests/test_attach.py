"""`attach()`: one processor for each provider, whoever made it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ConcurrentMultiSpanProcessor, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from seer_otel import ConfigurationError, InMemoryTransport, SeerSpanProcessor, attach

if TYPE_CHECKING:
    from conftest import Recorder

KEY = "seer_the_secret_of_this_test"


def ask(provider: Any, question: str = "Who directed Inception?") -> None:
    """Trace one answer with one retrieval."""
    tracer = provider.get_tracer("app")
    chain = {"openinference.span.kind": "CHAIN", "input.value": question}
    retriever = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": question,
        "retrieval.documents.0.document.content": "Christopher Nolan did.",
    }
    with tracer.start_as_current_span("chain", attributes=chain):
        tracer.start_span("retriever", attributes=retriever).end()


@pytest.fixture
def closing() -> Iterator[Callable[[Any], Any]]:
    """`closing(provider)` is that provider, shut down after the test."""
    with ExitStack() as stack:

        def close(provider: Any) -> Any:
            stack.callback(provider.shutdown)
            return provider

        yield close


@pytest.fixture
def provider(closing: Callable[[Any], Any]) -> TracerProvider:
    made: TracerProvider = closing(TracerProvider(shutdown_on_exit=False))
    return made


@pytest.fixture
def memory() -> InMemoryTransport:
    return InMemoryTransport()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged at WARNING or above."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_events_of_a_provider(provider: TracerProvider, memory: InMemoryTransport) -> None:
    """What is retrieved under a provider becomes events of the processor that attach() returns."""
    processor = attach(provider, transport=memory, sample_rate=1.0)
    ask(provider)
    assert processor.flush(5.0).sent == 1
    assert [event["task"] for event in memory.events] == ["Who directed Inception?"]


def test_twice(provider: TracerProvider, memory: InMemoryTransport, caplog: pytest.LogCaptureFixture) -> None:
    """A second call with the same settings, or with none, returns the first processor, quietly, and adds none."""
    first = attach(provider, transport=memory, sample_rate=1.0, metadata_keys=["env"])
    assert attach(provider) is first
    assert attach(provider, transport=memory, sample_rate="1.0", metadata_keys=("env",)) is first
    assert attach(provider, redact=None, api_key=None) is first
    ask(provider)
    first.flush(5.0)
    assert len(memory.requests) == 1
    assert caplog.records == []


def test_twice_with_a_key_of_the_first_call(
    provider: TracerProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """A second call need not repeat what the first one needed, such as the key."""
    first = attach(provider, api_key=KEY)
    assert attach(provider) is first
    assert attach(provider, sample_rate=0.1) is first
    assert attach(provider, endpoint="https://api.seersearch.com", api_key=f" {KEY}\n") is first
    assert caplog.records == []


def test_other_settings(provider: TracerProvider, caplog: pytest.LogCaptureFixture) -> None:
    """A second call with other settings returns the first processor, and one warning names them without values."""
    first = attach(provider, api_key=KEY, sample_rate=0.25)
    other = attach(provider, sample_rate=0.5, api_key="seer_another_secret", nested="all")
    assert other is first
    assert first.config.sample_rate == 0.25
    [line] = warnings(caplog)
    assert line.endswith("and these differ: api_key, nested, sample_rate.")
    assert "secret" not in line


def test_a_late_hook(provider: TracerProvider, caplog: pytest.LogCaptureFixture) -> None:
    """A hook that only a later call has is taken over, as the first may be zero-code's; one that differs is not."""
    memory = InMemoryTransport()
    first = attach(provider, transport=memory, sample_rate=1.0)
    assert attach(provider, redact=lambda event: replace(event, task="hidden")) is first
    assert attach(provider, redact=lambda event: event) is first
    ask(provider)
    assert first.flush(10).complete
    assert [event["task"] for event in memory.events] == ["hidden"]
    [line] = warnings(caplog)
    assert line.endswith("and these differ: redact.")


def test_another_memory(provider: TracerProvider, caplog: pytest.LogCaptureFixture) -> None:
    """A second transport is another one, even while both are empty."""
    attach(provider, transport=InMemoryTransport())
    attach(provider, transport=InMemoryTransport())
    assert len(warnings(caplog)) == 1


def test_a_bad_setting_the_second_time(provider: TracerProvider, memory: InMemoryTransport) -> None:
    """A setting that cannot work is refused in a second call as in a first, and changes nothing."""
    first = attach(provider, transport=memory, sample_rate=1.0)
    with pytest.raises(ConfigurationError, match="sample_rate"):
        attach(provider, sample_rate=7)
    with pytest.raises(TypeError, match="sampel_rate"):
        attach(provider, sampel_rate=1)
    assert attach(provider) is first


@pytest.mark.parametrize("settings", [{"sample_rate": 7}, {"endpoint": "http://example.com"}, {}])
def test_a_bad_setting(provider: TracerProvider, memory: InMemoryTransport, settings: dict[str, Any]) -> None:
    """After a call that was refused the provider is as before, and a better call works."""
    with pytest.raises(ConfigurationError):
        attach(provider, **settings)
    ask(provider)
    attach(provider, transport=memory, sample_rate=1.0)
    ask(provider)
    provider.force_flush()
    assert len(memory.requests) == 1


def test_two_providers(closing: Callable[[Any], Any]) -> None:
    """Each provider has a processor of its own, with its own settings."""
    providers = [closing(TracerProvider(shutdown_on_exit=False)) for _ in range(2)]
    memories = [InMemoryTransport(), InMemoryTransport()]
    first, second = (
        attach(provider, transport=memory, sample_rate=1.0)
        for provider, memory in zip(providers, memories, strict=True)
    )
    assert first is not second
    ask(providers[1], "second")
    providers[1].force_flush()
    assert [len(memory.events) for memory in memories] == [0, 1]


def test_processors_made_by_hand_run_too(provider: TracerProvider, memory: InMemoryTransport) -> None:
    """A processor that the user constructed is not attach()'s: both run."""
    by_hand = InMemoryTransport()
    provider.add_span_processor(SeerSpanProcessor(transport=by_hand, sample_rate=1.0))
    attach(provider, transport=memory, sample_rate=1.0)
    ask(provider)
    provider.force_flush()
    assert (len(by_hand.events), len(memory.events)) == (1, 1)


def test_racing_threads(provider: TracerProvider, memory: InMemoryTransport) -> None:
    """Threads that call attach() at once get one processor between them."""
    barrier = threading.Barrier(16)
    got: list[SeerSpanProcessor] = []

    def race() -> None:
        barrier.wait(10)
        got.append(attach(provider, transport=memory, sample_rate=1.0))

    threads = [threading.Thread(target=race) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ask(provider)
    provider.force_flush()
    assert len(got) == 16
    assert len(set(map(id, got))) == 1
    assert len(memory.requests) == 1


def test_a_provider_is_not_kept_alive(memory: InMemoryTransport) -> None:
    """attach() keeps no provider from being collected, and a new one at its address is a new one."""
    first = attach(TracerProvider(shutdown_on_exit=False), transport=memory)
    second = attach(TracerProvider(shutdown_on_exit=False), transport=memory)
    assert first is not second
    first.shutdown()
    second.shutdown()


class TestNoPlace:
    """Providers that no processor can be added to."""

    @pytest.mark.filterwarnings("ignore:.*NoOpTracerProvider:DeprecationWarning")
    @pytest.mark.parametrize("make", [trace.ProxyTracerProvider, trace.NoOpTracerProvider])
    def test_none_is_set(self, make: Callable[[], Any]) -> None:
        """A proxy or a provider that does nothing is refused, and the error says what to do."""
        with pytest.raises(ConfigurationError, match=r"set_tracer_provider\(\).* or pass it to attach\(\)"):
            attach(make(), transport=InMemoryTransport())

    def test_the_global_one_is_a_proxy(self) -> None:
        """Without an argument it is the global provider that counts, which a program must have set."""
        code = """
            import opentelemetry.trace as trace, seer_otel
            from opentelemetry.sdk.trace import TracerProvider
            try:
                seer_otel.attach(endpoint="http://127.0.0.1:1")
            except seer_otel.ConfigurationError as error:
                assert "set_tracer_provider" in str(error)
                trace.set_tracer_provider(TracerProvider())
                processor = seer_otel.attach(endpoint="http://127.0.0.1:1")
                assert processor is seer_otel.attach(trace.get_tracer_provider())
                print("as it should")
        """
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "as it should\n", "")

    def test_no_method(self) -> None:
        """A provider without `add_span_processor` is named, with what to pass instead."""

        class Foreign:
            pass

        with pytest.raises(ConfigurationError, match=r"Foreign takes no span processor\. Pass attach\(\)"):
            attach(Foreign(), transport=InMemoryTransport())


class Foreign:
    """A provider of another make: it passes spans on to whatever was added, and nothing else."""

    def __init__(self) -> None:
        self.sdk = TracerProvider(shutdown_on_exit=False)

    def add_span_processor(self, processor: SpanProcessor) -> None:
        self.sdk.add_span_processor(processor)

    def get_tracer(self, name: str) -> trace.Tracer:
        return self.sdk.get_tracer(name)


class Unhashable(Foreign):
    """One that cannot be remembered in a dictionary."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("make", [Foreign, Unhashable])
def test_a_provider_of_another_make(make: type[Foreign], memory: InMemoryTransport) -> None:
    """Whatever has `add_span_processor` will do, and gets one processor, too."""
    provider = make()
    processor = attach(provider, transport=memory, sample_rate=1.0)
    assert attach(provider, transport=memory) is processor
    ask(provider)
    processor.flush(5.0)
    assert len(memory.requests) == 1
    provider.sdk.shutdown()


def test_a_concurrent_provider(closing: Callable[[Any], Any], memory: InMemoryTransport) -> None:
    """Under a ConcurrentMultiSpanProcessor, whose hooks run in other threads, every retrieval is an event."""
    provider = closing(
        TracerProvider(active_span_processor=ConcurrentMultiSpanProcessor(), shutdown_on_exit=False)
    )
    others = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(others))
    attach(provider, transport=memory, sample_rate=1.0)
    for number in range(20):
        ask(provider, f"question {number}")
    provider.force_flush()
    assert len(memory.events) == 20
    assert len(others.get_finished_spans()) == 40


class TestDisabled:
    """The switches over everything."""

    @pytest.mark.parametrize(
        ("name", "value"), [("SEER_OTEL_ENABLED", "false"), ("OTEL_SDK_DISABLED", "true")]
    )
    def test_inert(
        self, name: str, value: str, monkeypatch: pytest.MonkeyPatch, provider: TracerProvider
    ) -> None:
        """Switched off, attach() asks for no key and no provider, adds nothing, and its processor does nothing."""
        monkeypatch.setenv(name, value)
        memory = InMemoryTransport()
        for each in (trace.ProxyTracerProvider(), provider, object()):
            processor = attach(each, sample_rate=1.0, transport=memory)
            assert processor.flush(1.0).complete
            assert processor.force_flush()
        ask(provider)
        provider.force_flush()
        assert memory.requests == []

    def test_for_a_while(
        self, monkeypatch: pytest.MonkeyPatch, provider: TracerProvider, memory: InMemoryTransport
    ) -> None:
        """A call made while it was switched off does not count as the first."""
        monkeypatch.setenv("SEER_OTEL_ENABLED", "false")
        attach(provider)
        monkeypatch.delenv("SEER_OTEL_ENABLED")
        attach(provider, transport=memory, sample_rate=1.0)
        ask(provider)
        provider.force_flush()
        assert len(memory.events) == 1

    def test_neither_yes_nor_no(self, monkeypatch: pytest.MonkeyPatch, provider: TracerProvider) -> None:
        """A switch that is neither yes nor no is refused by its name."""
        monkeypatch.setenv("SEER_OTEL_ENABLED", "perhaps")
        with pytest.raises(ConfigurationError, match="SEER_OTEL_ENABLED"):
            attach(provider, transport=InMemoryTransport())


def phoenix_provider(url: str) -> Any:
    from phoenix.otel import TracerProvider as PhoenixTracerProvider

    return PhoenixTracerProvider(endpoint=f"{url}/v1/traces", verbose=False, shutdown_on_exit=False)


def phoenix_register(url: str) -> Any:
    from phoenix.otel import register

    return register(
        endpoint=f"{url}/v1/traces", set_global_tracer_provider=False, verbose=False, shutdown_on_exit=False
    )


def arize_provider(url: str) -> Any:
    from arize.otel import TracerProvider as ArizeTracerProvider
    from arize.otel import Transport

    return ArizeTracerProvider(
        space_id="space",
        api_key="key",
        endpoint=f"{url}/v1/traces",
        transport=Transport.HTTP,
        verbose=False,
        shutdown_on_exit=False,
    )


def arize_register(url: str) -> Any:
    from arize.otel import Transport, register

    return register(
        space_id="space",
        api_key="key",
        endpoint=f"{url}/v1/traces",
        transport=Transport.HTTP,
        log_to_console=True,  # with one processor alone this version cannot describe itself
        batch=False,
        set_global_tracer_provider=False,
        verbose=False,
    )


@pytest.mark.frameworks
@pytest.mark.parametrize("make", [phoenix_provider, phoenix_register, arize_provider, arize_register])
def test_phoenix_and_arize(
    make: Callable[[str], Any],
    closing: Callable[[Any], Any],
    recorder: Recorder,
    memory: InMemoryTransport,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Phoenix's and Arize's providers, whose own processor gives way to one added by hand, keep it and send both."""
    provider = closing(make(recorder.url))
    processor = attach(provider, transport=memory, sample_rate=1.0)
    assert attach(provider) is processor
    ask(provider)
    provider.force_flush()
    assert len(memory.events) == 1
    spans = b"".join(recorder.bodies["/v1/traces"])
    assert (spans.count(b"retriever"), spans.count(b"chain")) == (1, 1)
    assert capfd.readouterr().err == ""


@pytest.mark.frameworks
def test_a_processor_added_afterwards(
    closing: Callable[[Any], Any], recorder: Recorder, memory: InMemoryTransport
) -> None:
    """A processor that is added by hand later takes the place of Phoenix's own as ever, and ours stays."""
    provider, others = closing(phoenix_register(recorder.url)), InMemorySpanExporter()
    attach(provider, transport=memory, sample_rate=1.0)
    provider.add_span_processor(SimpleSpanProcessor(others))
    ask(provider)
    provider.force_flush()
    assert len(others.get_finished_spans()) == 2
    assert len(memory.events) == 1
    assert "/v1/traces" not in recorder.bodies


def test_what_an_import_costs() -> None:
    """To import seer_otel imports neither httpx nor the embedded backend nor any instrumentation."""
    code = "import json, seer_otel, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    packages = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert packages.isdisjoint({"httpx", "starlette", "sqlalchemy", "uvicorn", "rich", "grpc"})
    assert not any(name.startswith("opentelemetry.instrumentation") for name in json.loads(done.stdout))
