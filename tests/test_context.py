"""The `using_*` blocks: on real spans, in threads, tasks and generators, and with mistakes."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import gc
import inspect
import logging
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.context import Context, attach, detach, get_current, set_value
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from seer_otel.context import (
    Using,
    attributes_in,
    using_final_context,
    using_ground_truth,
    using_metadata,
    using_sample_rate,
    using_subquery,
    using_task,
    values,
)

IDS, ANSWER = "seer.ground_truth.gold_doc_ids", "seer.ground_truth.answer"


class Marking(SpanProcessor):
    """Writes the blocks' attributes on each span that starts, and keeps those that ended."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        span.set_attributes(attributes_in(parent_context))

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


class Traced:
    """A provider with the processor, and what its spans carry."""

    def __init__(self) -> None:
        self.processor = Marking()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer(__name__)

    def retrieve(self, parent: Context | None = None) -> dict[str, Any]:
        """Return the attributes of a span that starts here."""
        span = self.tracer.start_span("retrieve", context=parent)
        span.end()
        assert isinstance(span, ReadableSpan)
        return dict(span.attributes or {})


@pytest.fixture
def traced() -> Traced:
    return Traced()


@pytest.fixture(autouse=True)
def forgotten_warnings() -> Iterator[None]:
    values.warn.cache_clear()
    before = get_current()
    yield
    left = attributes_in(None)
    attach(before)
    assert left == {}, "the test left a block open"


def here() -> dict[str, Any]:
    """Return the attributes that a span would get here."""
    return dict(attributes_in(None))


def task() -> object:
    """Return the task in force here."""
    return attributes_in(None).get("seer.task")


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


# --- On spans ---


@pytest.mark.parametrize(
    ("block", "attributes"),
    [
        (using_task("Why?"), {"seer.task": "Why?"}),
        (using_subquery("why"), {"seer.subquery": "why"}),
        (using_final_context(), {"seer.is_final_context": True}),
        (using_final_context(final=False), {"seer.is_final_context": False}),
        (using_sample_rate(0.25), {"seer.sample_rate": 0.25}),
        (using_sample_rate(1), {"seer.sample_rate": 1.0}),
        (
            using_metadata({"env": "prod", "top_k": 5}),
            {"seer.metadata.env": "prod", "seer.metadata.top_k": 5},
        ),
        (using_ground_truth(["a", 7]), {IDS: ("a", "7")}),
        (using_ground_truth("a", answer="Yes."), {IDS: ("a",), ANSWER: "Yes."}),
    ],
)
def test_spans_inside_carry_the_values(traced: Traced, block: Using, attributes: dict[str, Any]) -> None:
    """A span carries what the block says if it starts inside, and nothing of it if it starts after."""
    with block:
        assert traced.retrieve() == attributes
    assert traced.retrieve() == {}


def test_spans_below_carry_the_values(traced: Traced) -> None:
    """The values reach each span below, whatever spans lie between."""
    span = traced.tracer.start_as_current_span
    with using_task("Why?"), span("chain"), span("step"):
        assert traced.retrieve() == {"seer.task": "Why?"}


def test_parent_context_decides() -> None:
    """The parent context of a span decides, and only without one does the current context."""
    with using_task("carried"):
        carried = get_current()
    with using_task("current"):
        assert attributes_in(carried) == {"seer.task": "carried"}
        assert attributes_in(Context()) == {}
        assert attributes_in(None) == {"seer.task": "current"}
    assert attributes_in(carried) == {"seer.task": "carried"}


def test_nothing_set_costs_nothing() -> None:
    """Where no block is open the answer is one shared mapping, which nobody can change."""
    nothing = attributes_in(None)
    assert nothing is attributes_in(Context()) is attributes_in(set_value("other", 1))
    with pytest.raises(TypeError):
        nothing["seer.task"] = "x"  # type: ignore[index]


def test_values_are_taken_when_the_block_is_made() -> None:
    """What the application changes in its own mapping or list later changes nothing here."""
    metadata, ids = {"tags": ["a"]}, ["1"]
    blocks = using_metadata(metadata), using_ground_truth(ids)
    metadata["tags"].append("b")
    ids.append("2")
    with blocks[0], blocks[1]:
        assert here() == {"seer.metadata.tags": ("a",), IDS: ("1",)}


# --- Nesting ---


def test_inner_block_overrides_and_outer_returns() -> None:
    """An inner block wins for its own field until it ends."""
    with using_task("outer"), using_sample_rate(0.5):
        with using_task("inner"):
            assert here() == {"seer.task": "inner", "seer.sample_rate": 0.5}
        assert task() == "outer"


def test_metadata_merges_by_key() -> None:
    """Metadata of nested blocks is merged, the inner value wins, and None hides nothing."""
    with using_metadata({"env": "prod", "index": "a"}), using_metadata({"index": "b", "env": None, "n": 1}):
        assert here() == {"seer.metadata.env": "prod", "seer.metadata.index": "b", "seer.metadata.n": 1}


def test_answer_belongs_to_its_ids() -> None:
    """Ground truth without an answer does not take the outer block's answer, which returns afterwards."""
    with using_ground_truth(["a"], answer="A"):
        with using_ground_truth(["b"]):
            assert here() == {IDS: ("b",)}
        assert here() == {IDS: ("a",), ANSWER: "A"}


def test_same_instance_inside_itself() -> None:
    """One instance can be entered again inside itself, with another block between."""
    outer, inner = using_task("outer"), using_task("inner")
    with outer, inner, outer:
        assert task() == "outer"
        with inner:
            assert task() == "inner"
        assert task() == "outer"


def test_error_in_block_passes_and_cleans_up() -> None:
    """An error leaves the block unchanged, and nothing of the block stays."""
    before, error = get_current(), KeyError("theirs")
    with pytest.raises(KeyError) as caught, using_task("x"), using_metadata({"a": 1}):
        raise error
    assert caught.value is error
    assert get_current() == before


def test_other_values_in_the_context_stay() -> None:
    """What the application attaches or detaches inside a block is not undone by the block's end."""
    token = attach(set_value("theirs", 1))
    with using_task("x"):
        inside = attach(set_value("theirs", 2))
    assert get_current().get("theirs") == 2
    with using_task("x"):
        detach(inside)
    assert get_current().get("theirs") == 1
    detach(token)


def test_blocks_that_end_in_the_wrong_order() -> None:
    """Blocks that end first in, first out, as in interleaved generators, leave nothing behind."""
    before = get_current()
    one, two = using_task("one"), using_subquery("two")
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert here() == {"seer.subquery": "two"}
    two.__exit__(None, None, None)
    assert get_current() == before


TEXTS = st.sampled_from(["a", "b", "c"])
LABELS = st.tuples(st.lists(TEXTS, max_size=2), st.none() | TEXTS)
LAYERS = st.one_of(
    st.tuples(st.just("task"), TEXTS),
    st.tuples(st.just("subquery"), TEXTS),
    st.tuples(st.just("final"), st.booleans()),
    st.tuples(st.just("rate"), st.floats(0, 1)),
    st.tuples(st.just("metadata"), st.dictionaries(TEXTS, st.none() | st.integers(0, 9), max_size=2)),
    st.tuples(st.just("truth"), LABELS),
)
HELPERS: dict[str, Callable[[Any], Using]] = {
    "task": using_task,
    "subquery": using_subquery,
    "final": using_final_context,
    "rate": using_sample_rate,
    "metadata": using_metadata,
    "truth": lambda labels: using_ground_truth(labels[0], answer=labels[1]),
}


def expected(layers: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return what nested blocks say, worked out field by field from the outermost in."""
    fields: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for name, value in layers:
        if name == "metadata":
            metadata.update({key: item for key, item in value.items() if item is not None})
        else:
            fields[name] = value
    names = {"task": "seer.task", "subquery": "seer.subquery", "final": "seer.is_final_context"}
    names["rate"] = "seer.sample_rate"
    result = {names[name]: value for name, value in fields.items() if name in names}
    result |= {f"seer.metadata.{key}": value for key, value in metadata.items()}
    if "truth" in fields:
        ids, answer = fields["truth"]
        result |= {IDS: tuple(ids)} | ({} if answer is None else {ANSWER: answer})
    return result


@given(layers=st.lists(LAYERS, max_size=8), fails=st.booleans())
def test_any_nesting(layers: list[tuple[str, Any]], fails: bool) -> None:
    """At each depth of any nesting the innermost value of each field holds, on the way in and out."""
    before = get_current()

    def descend(depth: int) -> None:
        assert here() == expected(layers[:depth])
        if depth < len(layers):
            name, value = layers[depth]
            with HELPERS[name](value):
                descend(depth + 1)
            assert here() == expected(layers[:depth])
        elif fails:
            raise LookupError

    with contextlib.ExitStack() as stack:
        if fails:
            stack.enter_context(pytest.raises(LookupError))
        descend(0)
    assert get_current() == before


@given(layers=st.lists(LAYERS, max_size=6))
def test_decorators_nest_as_blocks_do(layers: list[tuple[str, Any]]) -> None:
    """Stacked decorators say the same as nested blocks, the topmost being the outermost."""
    function = here
    for name, value in reversed(layers):
        function = HELPERS[name](value)(function)
    assert function() == expected(layers)


@given(layers=st.lists(LAYERS, max_size=6), data=st.data())
def test_any_order_of_ends(layers: list[tuple[str, Any]], data: st.DataObject) -> None:
    """In whatever order open blocks end, those still open hold, and in the end nothing does."""
    before = get_current()
    order = data.draw(st.permutations(range(len(layers))))
    blocks = [HELPERS[name](value) for name, value in layers]
    for block in blocks:
        block.__enter__()
    still_open = dict(enumerate(layers))
    for number in order:
        blocks[number].__exit__(None, None, None)
        del still_open[number]
        assert here() == expected(list(still_open.values()))
    assert get_current() == before


# --- Threads and tasks ---


def test_threads_share_an_instance(traced: Traced) -> None:
    """Threads that hold one instance at the same time do not disturb each other."""
    shared, workers = using_metadata({"env": "prod"}), 8
    barrier = threading.Barrier(workers)

    def work(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
        with shared, using_task(str(number)):
            barrier.wait(10)
            inside = traced.retrieve()
            barrier.wait(10)
        return inside, traced.retrieve()

    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(work, range(workers)))
    assert results == [({"seer.metadata.env": "prod", "seer.task": str(n)}, {}) for n in range(workers)]


def test_threads_see_what_is_carried_to_them(traced: Traced) -> None:
    """A thread sees the values if the context was carried there, and none in a bare thread."""
    with using_task("Why?"), ThreadPoolExecutor(2) as pool:
        carried = pool.submit(contextvars.copy_context().run, traced.retrieve).result(10)
        by_parent = pool.submit(traced.retrieve, get_current()).result(10)
        bare = pool.submit(traced.retrieve).result(10)
    assert (carried, by_parent, bare) == ({"seer.task": "Why?"}, {"seer.task": "Why?"}, {})


def test_gathered_tasks_keep_their_own_values(traced: Traced) -> None:
    """Tasks that run in turns see the block around them and each its own, as a block and a decorator."""

    async def main() -> list[list[dict[str, Any]]]:
        turns = [asyncio.Event() for _ in range(4)]

        async def work(number: int) -> list[dict[str, Any]]:
            async with using_task(str(number)):
                first = traced.retrieve()
                turns[number].set()
                await turns[(number + 1) % len(turns)].wait()
                return [first, traced.retrieve()]

        @using_final_context()
        async def decorated(number: int) -> list[dict[str, Any]]:
            return await work(number)

        async with using_metadata({"env": "prod"}):
            return await asyncio.gather(*(decorated(number) for number in range(len(turns))))

    for number, seen in enumerate(asyncio.run(main())):
        one = {"seer.metadata.env": "prod", "seer.task": str(number), "seer.is_final_context": True}
        assert seen == [one, one]


def test_task_may_outlive_the_block() -> None:
    """A task that began inside a block keeps its values after the block has ended."""

    async def main() -> object:
        ended = asyncio.Event()

        async def background() -> object:
            await ended.wait()
            return task()

        async with using_task("x"):
            running = asyncio.create_task(background())
        ended.set()
        return await running

    assert asyncio.run(main()) == "x"


def test_block_that_ends_in_another_context(caplog: pytest.LogCaptureFixture) -> None:
    """A block that ends in another context than it began in logs nothing and touches nothing there."""

    def body() -> Generator[object, None, None]:
        with using_task("x"):
            yield task()

    running = body()
    assert contextvars.copy_context().run(next, running) == "x"
    with using_task("elsewhere"):
        running.close()
        assert task() == "elsewhere"
    assert caplog.records == []


# --- Decorators ---


def plain_function(text: str, *, times: int = 1) -> str:
    """Repeat."""
    return text * times


async def coroutine_function(text: str) -> str:
    return text


def generator_function(text: str) -> Generator[str, None, None]:
    yield text


async def async_generator_function(text: str) -> AsyncGenerator[str, None]:
    yield text


class Callables:
    """The ways in which a class offers functions."""

    @using_task("method")
    def method(self) -> object:
        return self, task()

    @using_task("static")
    @staticmethod
    def above_static() -> object:
        return task()

    @using_task("class")
    @classmethod
    def above_class(cls) -> object:
        return cls, task()

    @staticmethod
    @using_task("static")
    def below_static() -> object:
        return task()

    def __call__(self) -> object:
        return task()


@pytest.mark.parametrize(
    "function", [plain_function, coroutine_function, generator_function, async_generator_function]
)
def test_decorator_keeps_the_kind(function: Callable[..., object]) -> None:
    """The decorated function has the name, signature and kind of the original."""
    decorated = using_task("x")(function)
    assert decorated is not function
    assert inspect.unwrap(decorated) is function
    assert (decorated.__name__, decorated.__doc__) == (function.__name__, function.__doc__)
    assert inspect.signature(decorated) == inspect.signature(function)
    for kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        assert kind(decorated) == kind(function)


def test_decorated_function_runs_in_the_block() -> None:
    """A decorated function takes its arguments, runs in the block and returns its value at each call."""

    @using_task("x")
    def function(text: str, *, times: int) -> tuple[str, object]:
        return text * times, task()

    for _ in range(2):
        assert function("a", times=2) == ("aa", "x")
        assert task() is None


def test_decorated_function_may_recur() -> None:
    """A decorated function may call itself."""

    @using_task("x")
    def function(depth: int) -> list[object]:
        return [task(), *(function(depth - 1) if depth else []), task()]

    assert function(2) == ["x"] * 6


def test_decorated_coroutine_runs_in_the_block() -> None:
    """A decorated coroutine runs in the block up to its end, also after it waited, and errors pass."""

    async def main() -> None:
        waited = asyncio.Event()

        @using_task("x")
        async def function() -> object:
            await waited.wait()
            if task() != "x":
                raise AssertionError
            raise LookupError(task())

        running = asyncio.create_task(function())
        waited.set()
        with pytest.raises(LookupError, match="x"):
            await running
        with pytest.raises(LookupError, match="x"):
            await function()
        assert task() is None

    asyncio.run(main())


def test_decorated_methods() -> None:
    """Methods, static methods and class methods can be decorated, in either order."""
    one = Callables()
    assert one.method() == (one, "method")
    assert (one.above_static(), Callables.above_static()) == ("static", "static")
    assert one.above_class() == (Callables, "class")
    assert one.below_static() == "static"


def test_decorated_callables() -> None:
    """Partial functions and callable objects can be decorated."""
    assert using_task("x")(functools.partial(here))() == {"seer.task": "x"}
    assert using_task("x")(Callables())() == "x"


def test_what_is_no_function_stays(caplog: pytest.LogCaptureFixture) -> None:
    """A class or an object that cannot be called comes back as it is, with a warning."""
    assert using_task("x")(Callables) is Callables
    value: Any = 5
    assert using_task("x")(value) is value
    assert [message.split(";")[1] for message in warnings_of(caplog)] == [
        " got type, which is ignored (said once)",
        " got int, which is ignored (said once)",
    ]


def test_types_are_kept() -> None:
    """To a type checker a decorated function takes and returns what the original does."""
    text: str = using_task("x")(plain_function)("a", times=2)
    texts: Generator[str, None, None] = using_task("x")(generator_function)("a")
    awaitable: Awaitable[str] = using_task("x")(coroutine_function)("a")
    assert (text, list(texts), asyncio.run(_awaited(awaitable))) == ("aa", ["a"], "a")


async def _awaited(awaitable: Awaitable[str]) -> str:
    return await awaitable


# --- Generators ---


def test_generator_values_hold_in_the_body_only() -> None:
    """The values hold while the body runs and not in the consumer between two steps."""

    @using_task("x")
    def body() -> Generator[object, None, None]:
        yield task()
        yield task()

    assert [(item, task()) for item in body()] == [("x", None), ("x", None)]


def test_generator_sees_the_consumer_of_each_step() -> None:
    """Beneath its own values the body sees those in force where each step is asked for."""

    @using_task("body")
    def body() -> Generator[dict[str, Any], None, None]:
        while True:
            yield here()

    running = body()
    with using_subquery("one"), using_task("consumer"):
        assert next(running) == {"seer.task": "body", "seer.subquery": "one"}
        assert here() == {"seer.task": "consumer", "seer.subquery": "one"}
    with using_subquery("two"):
        assert next(running) == {"seer.task": "body", "seer.subquery": "two"}
    assert next(running) == {"seer.task": "body"}
    running.close()


def test_block_in_a_body_stays_inner_over_a_yield() -> None:
    """A block that the body holds over a yield still overrides the decorator's, unseen by the consumer."""

    @using_metadata({"step": "outer", "env": "prod"})
    def body() -> Generator[dict[str, Any], None, None]:
        with using_metadata({"step": "inner"}):
            yield here()
            yield here()
        yield here()

    running, seen = body(), []
    for item in running:
        seen.append(item["seer.metadata.step"])
        assert here() == {}
    assert seen == ["inner", "inner", "outer"]


def test_span_in_a_body_stays_current_over_a_yield(traced: Traced) -> None:
    """A span that the body opens is its current span after a yield too, as without the decorator."""

    @using_task("x")
    def body() -> Generator[object, None, None]:
        with traced.tracer.start_as_current_span("chain") as span:
            yield trace.get_current_span() is span
            yield trace.get_current_span() is span
            traced.retrieve()
        yield trace.get_current_span() is span

    before = get_current()
    assert list(body()) == [True, True, False]
    assert get_current() == before
    retrieval, chain = traced.processor.ended
    assert retrieval.parent == chain.context
    assert dict(retrieval.attributes or {}) == dict(chain.attributes or {}) == {"seer.task": "x"}


def test_span_in_a_body_brings_no_ended_block_back(traced: Traced) -> None:
    """A span in a body that outlives the consumer's block does not bring this block back where it ends."""

    @using_task("x")
    def body() -> Generator[None, None, None]:
        with traced.tracer.start_as_current_span("chain"):
            yield
        yield

    running = body()
    with using_subquery("consumer"):
        next(running)
    next(running)
    assert here() == {}


def test_generators_may_be_interleaved_and_nested() -> None:
    """Generators that run in turns, or in one another, each see their own values."""

    def body() -> Generator[object, None, None]:
        yield task()
        yield task()

    one, two = using_task("one")(body), using_task("two")(body)

    @using_task("outer")
    def outer() -> Generator[object, None, None]:
        yield task()
        yield from one()
        yield task()

    assert list(zip(one(), two(), one(), strict=True)) == [("one", "two", "one")] * 2
    assert list(outer()) == ["outer", "one", "one", "outer"]


ECHO_STEPS = st.lists(st.sampled_from(["next", "send", "throw", "stop", "exit", "close"]), max_size=6)
MANNERS = st.sampled_from(["ends", "catches", "refuses", "fails"])


def echo(manner: str, ran: list[object]) -> Generator[object, Any, str]:
    """Answer each step with what was sent; on an error or a close do as `manner` says."""
    ran.append(task())
    got: object = "begun"
    try:
        while got != 3:
            try:
                got = yield got
            except GeneratorExit:
                if manner == "refuses" and "refused" not in ran:
                    ran.append(got := "refused")
                    continue
                if manner == "catches":
                    return "closed"
                raise
            except Exception as error:
                if manner == "fails":
                    raise LookupError from error
                if manner == "ends":
                    return "ended"
                got = repr(error)
    finally:
        ran.append(task())
    return "done"


async def async_echo(manner: str, ran: list[object]) -> AsyncGenerator[object, Any]:
    """Do as `echo` does, waiting before each answer to a value."""
    body = echo(manner, ran)
    item = next(body)
    while True:
        await asyncio.sleep(0)
        try:
            step = functools.partial(body.send, (yield item))
        except BaseException as error:
            step = functools.partial(body.throw, error)
        try:
            item = step()
        except StopIteration:
            return


def outcomes(running: Generator[object, Any, str], steps: list[str]) -> list[object]:
    """Return what each of `steps` gave or raised."""
    actions: dict[str, Callable[[], object]] = {
        "next": lambda: next(running),
        "throw": lambda: running.throw(KeyError("k")),
        "stop": lambda: running.throw(StopIteration("s")),
        "exit": lambda: running.throw(GeneratorExit()),
        "close": running.close,
    }
    results: list[object] = []
    for number, step in enumerate([*steps, "close", "close"]):
        action = actions.get(step, functools.partial(running.send, number or None))
        try:
            results.append(action())
        except BaseException as error:
            results.append((type(error), str(error), type(error.__cause__)))
    return results


async def async_outcomes(running: AsyncGenerator[object, Any], steps: list[str]) -> list[object]:
    """Return what each of `steps` gave or raised."""
    actions: dict[str, Callable[[], Awaitable[object]]] = {
        "next": running.__anext__,
        "throw": lambda: running.athrow(KeyError("k")),
        "stop": lambda: running.athrow(StopAsyncIteration("s")),
        "exit": lambda: running.athrow(GeneratorExit()),
        "close": running.aclose,
    }
    results: list[object] = []
    for number, step in enumerate([*steps, "close", "close"]):
        action = actions.get(step, functools.partial(running.asend, number or None))
        try:
            results.append(await action())
        except BaseException as error:
            results.append((type(error), str(error), type(error.__cause__)))
        assert task() is None
    return results


@given(steps=ECHO_STEPS, manner=MANNERS)
def test_generator_behaves_as_the_original(steps: list[str], manner: str) -> None:
    """Whatever is done to a decorated generator gives what it gives with the original."""
    ran: list[object] = []
    original = outcomes(echo(manner, []), steps)
    decorated = outcomes(using_task("x")(echo)(manner, ran), steps)
    assert decorated == original
    assert set(ran) <= {"x", "refused"}
    assert task() is None


@given(steps=ECHO_STEPS, manner=MANNERS)
def test_async_generator_behaves_as_the_original(steps: list[str], manner: str) -> None:
    """Whatever is done to a decorated async generator gives what it gives with the original."""
    ran: list[object] = []

    async def main() -> tuple[list[object], list[object]]:
        original, decorated = async_echo(manner, []), using_task("x")(async_echo)(manner, ran)
        return await async_outcomes(original, steps), await async_outcomes(decorated, steps)

    original, decorated = asyncio.run(main())
    assert decorated == original
    assert set(ran) <= {"x", "refused"}


def test_generator_returns_and_delegates() -> None:
    """The value that the body returns reaches `yield from`, and what is sent reaches the body."""

    @using_task("x")
    def body() -> Generator[int, int, int]:
        first = yield 0
        second = yield first
        return first + second

    def outer() -> Generator[int, int, int]:
        return (yield from body())

    running = outer()
    assert [next(running), running.send(1)] == [0, 1]
    with pytest.raises(StopIteration) as stop:
        running.send(2)
    assert stop.value.value == 3


@pytest.mark.skipif(sys.version_info < (3, 13), reason="close returns no value there")
def test_generator_close_returns() -> None:
    """A body that returns when it is closed gives its value to `close`."""
    running = using_task("x")(echo)("catches", [])
    next(running)
    assert running.close() == "closed"  # type: ignore[func-returns-value,unused-ignore]


def test_dropped_generator_cleans_up_in_the_block() -> None:
    """A generator that nobody holds any more runs its clean-up in the block, at once."""
    ran: list[object] = []
    running = using_task("x")(echo)("ends", ran)
    next(running)
    del running
    assert ran == ["x", "x"]


def test_thrown_error_is_freed() -> None:
    """An error that was thrown into a generator is freed without the help of the garbage collector."""

    class TheirError(Exception):
        pass

    @using_task("x")
    def body() -> Generator[None, None, None]:
        yield

    def throw() -> weakref.ref[TheirError]:
        running = body()
        next(running)
        with contextlib.suppress(TheirError):
            error = TheirError()
            reference = weakref.ref(error)
            running.throw(error)
        del error
        return reference

    gc.disable()
    try:
        assert throw()() is None
    finally:
        gc.enable()


def test_async_generator_values_hold_in_the_body_only() -> None:
    """The values hold while the body runs, also after it waited, and not in the consumer."""

    async def main() -> list[tuple[object, object]]:
        ready = asyncio.Event()

        @using_task("x")
        async def body() -> AsyncGenerator[object, None]:
            yield task()
            await ready.wait()
            with using_subquery("inner"):
                yield here()
                yield here()

        seen: list[tuple[object, object]] = []
        async for item in body():
            seen.append((item, here()))
            asyncio.get_running_loop().call_soon(ready.set)
        return seen

    inner = {"seer.task": "x", "seer.subquery": "inner"}
    assert asyncio.run(main()) == [("x", {}), (inner, {}), (inner, {})]


def test_async_generator_steps_in_several_tasks(caplog: pytest.LogCaptureFixture) -> None:
    """An async generator may be driven from one task, closed by another, and nothing is logged."""
    ran: list[object] = []

    async def main() -> None:
        @using_task("x")
        async def body() -> AsyncGenerator[object, None]:
            try:
                while True:
                    yield task()
            finally:
                await asyncio.sleep(0)
                ran.append(task())

        running = body()

        async def step() -> object:
            return await running.__anext__()

        async def close() -> object:
            with using_task("closer"):
                await running.aclose()
                return task()

        assert [await asyncio.create_task(step()) for _ in range(3)] == ["x"] * 3
        assert await running.__anext__() == "x"
        assert await asyncio.create_task(close()) == "closer"
        assert task() is None

    asyncio.run(main(), debug=True)
    assert ran == ["x"]
    assert warnings_of(caplog) == []


def test_async_generators_left_open_at_the_end_of_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    """The loop closes generators that nobody finished, each once, and their clean-up runs in the block."""
    ran: list[object] = []
    kept: list[AsyncGenerator[None, None]] = []

    @using_task("x")
    async def body() -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await asyncio.sleep(0)
            ran.append(task())

    async def main() -> None:
        hooks = sys.get_asyncgen_hooks()
        for _ in range(4):
            kept.append(body())
            await kept[-1].__anext__()
        assert sys.get_asyncgen_hooks() == hooks

    asyncio.run(main())
    assert ran == ["x"] * 4
    assert warnings_of(caplog) == []


def test_async_generator_step_that_ends_in_another_context(caplog: pytest.LogCaptureFixture) -> None:
    """A step that began in one context and is cancelled from another one touches nothing there."""

    @using_task("x")
    async def body() -> AsyncGenerator[None, None]:
        await asyncio.sleep(0)
        yield

    step: Any = body().__anext__()
    contextvars.copy_context().run(step.send, None)
    with using_task("elsewhere"):
        with pytest.raises(asyncio.CancelledError):
            step.throw(asyncio.CancelledError())
        assert task() == "elsewhere"
    assert caplog.records == []


def test_cancelled_step_reaches_the_body() -> None:
    """A task that is cancelled while the body waits ends the body with the cancellation."""
    ran: list[object] = []

    async def main() -> None:
        waiting = asyncio.Event()

        @using_task("x")
        async def body() -> AsyncGenerator[None, None]:
            try:
                waiting.set()
                await asyncio.Event().wait()
                yield
            except asyncio.CancelledError:
                ran.append(task())
                raise

        async def consume() -> None:
            async for _ in body():
                pass

        running = asyncio.create_task(consume())
        await waiting.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert ran == ["x"]


# --- Values that nobody should give ---


class Hostile:
    """A value all of whose own methods fail."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __len__ = __iter__ = __bool__ = __float__ = __str__


class HostileMapping(Mapping[str, object]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> object:
        raise RuntimeError

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


NAN, HUGE = float("nan"), 10**400
MISTAKES: dict[Callable[[Any], Using], list[object]] = {
    using_task: [None, 5, b"x", ["x"], "", " \n", "\0", Hostile()],
    using_subquery: [None, 5, " "],
    using_final_context: [None, 1, 0, "true", [], Hostile()],
    using_sample_rate: [None, "0.5", True, -0.1, 1.1, NAN, HUGE, 1j, Hostile()],
    using_metadata: [None, "a", [("a", 1)], Hostile(), HostileMapping()],
    using_ground_truth: [None, 5, b"a", {"a": 1}, " ", [" "], ["a", None], [["a"]], [NAN], [True], iter("a")],
}


def mistake_name(part: object) -> str:
    """Return what a test of a mistake is called, as not all values can be shown."""
    return getattr(part, "__name__", type(part).__name__)


@pytest.mark.parametrize(
    ("helper", "value"),
    [(helper, value) for helper, values in MISTAKES.items() for value in values],
    ids=mistake_name,
)
def test_mistake_sets_nothing_and_is_said_once(
    helper: Callable[[Any], Using], value: object, caplog: pytest.LogCaptureFixture
) -> None:
    """A value that a helper does not take changes nothing, and one warning names the helper."""
    with using_task("outer"), helper(value), helper(value):
        assert here() == {"seer.task": "outer"}
    assert helper(value)(here) is here
    (message,) = warnings_of(caplog)
    assert message.startswith(f"{helper.__name__} takes ")
    assert caplog.records[0].name == "seer_otel.context"


def test_each_kind_of_mistake_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """Another kind of mistake, or the same one with another helper, has its own warning without the value."""
    for _ in range(3):
        using_task(5)  # type: ignore[arg-type]
        using_task(" ")
        using_subquery(" ")
        using_sample_rate(7.25)
    said = [message.removesuffix(", which is ignored (said once)") for message in warnings_of(caplog)]
    assert said == [
        "using_task takes a text that is not blank; got int",
        "using_task takes a text that is not blank; got blank text",
        "using_subquery takes a text that is not blank; got blank text",
        "using_sample_rate takes a number from 0 to 1; got a number outside 0 to 1",
    ]


def test_bad_part_spoils_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    """A bad answer leaves the ids, and a bad key of metadata, or a value that cannot be read, leaves the others."""
    metadata: Any = {"a": 1, 5: 2, " ": 3, "bad": HostileMapping(), "gone": Hostile()}
    with using_ground_truth(["a"], answer=5), using_metadata(metadata):  # type: ignore[arg-type]
        assert here() == {IDS: ("a",), "seer.metadata.a": 1}
    assert [message.split(" ")[0] for message in warnings_of(caplog)] == [
        "using_ground_truth",
        "using_metadata",
        "using_metadata",
    ]


@pytest.mark.parametrize(
    ("ids", "stored"),
    [
        (["a", "b"], ("a", "b")),
        (("a",), ("a",)),
        ({"a"}, ("a",)),
        ({"a": 1}.keys(), ("a",)),
        ([0, 1.5], ("0", "1.5")),
        ("one", ("one",)),
        ([], ()),
    ],
)
def test_ids_become_a_tuple_of_text(ids: Any, stored: tuple[str, ...]) -> None:
    """Any collection of texts or numbers is a list of ids, and a single text is one id."""
    with using_ground_truth(ids):
        assert here() == {IDS: stored}


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("text", "text"),
        (True, True),
        (2**63 - 1, 2**63 - 1),
        (2**63, str(2**63)),
        (1.5, 1.5),
        (["a", "b"], ("a", "b")),
        ((1, 2), (1, 2)),
        ([True], (True,)),
        ([0.5], (0.5,)),
        ([], ()),
        ([1, "a"], '[1,"a"]'),
        ([1, True], "[1,true]"),
        ([1, None], "[1,null]"),
        ([2**63], f"[{2**63}]"),
        ({"a": [1]}, '{"a":[1]}'),
        ([{"a": 1}], '[{"a":1}]'),
        (b"bytes", "bytes"),
        (1j, "1j"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_metadata_values_become_attributes(traced: Traced, value: object, stored: object) -> None:
    """A value that a span takes stays what it is, and any other one becomes text."""
    with using_metadata({"key": value}):
        (written,) = traced.retrieve().values()
    assert (written, type(written)) == (stored, type(stored))


@pytest.mark.parametrize("value", [None, NAN, float("inf")])
def test_absent_metadata(value: object, caplog: pytest.LogCaptureFixture) -> None:
    """None and numbers that are not finite are absent, and no mistake."""
    with using_metadata({"key": value}):
        assert here() == {}
    assert caplog.records == []


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.frozensets(st.text(max_size=2), max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


def is_attribute(value: object) -> bool:
    """Whether any SDK and exporter takes `value`."""
    if isinstance(value, tuple):
        return len({type(item) for item in value}) <= 1 and all(map(is_attribute, value))
    if isinstance(value, str):
        return value.encode().decode() == value
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, float)


@given(value=ANYTHING)
def test_no_value_harms_the_application(value: Any) -> None:
    """Whatever is given, no helper raises, and what is stored is what any exporter takes."""
    blocks = [
        helper(value) for helper in (using_task, using_subquery, using_final_context, using_sample_rate)
    ]
    blocks += [using_metadata(value), using_metadata({"key": value}), using_ground_truth(value, answer=value)]
    with contextlib.ExitStack() as stack:
        for block in blocks:
            stack.enter_context(block)
        assert all(is_attribute(stored) for stored in here().values())


# --- LangChain ---


@pytest.mark.frameworks
class TestLangChain:
    """Real runnables with OpenInference's instrumentation."""

    @pytest.fixture
    def instrumented(self, traced: Traced) -> Iterator[Traced]:
        from openinference.instrumentation.langchain import LangChainInstrumentor

        instrumentor = LangChainInstrumentor()
        instrumentor.instrument(tracer_provider=traced.provider)
        yield traced
        instrumentor.uninstrument()

    @pytest.fixture
    def retriever(self) -> Any:
        from langchain_core.callbacks import CallbackManagerForRetrieverRun
        from langchain_core.documents import Document
        from langchain_core.retrievers import BaseRetriever

        class Shelf(BaseRetriever):
            def _get_relevant_documents(
                self, query: str, *, run_manager: CallbackManagerForRetrieverRun
            ) -> list[Document]:
                return [Document(page_content=query)]

        return Shelf()

    @staticmethod
    def tasks(traced: Traced) -> set[object]:
        """Return the tasks on all spans that ended; there is at least one."""
        assert traced.processor.ended
        return {(span.attributes or {}).get("seer.task") for span in traced.processor.ended}

    def test_root_retriever(self, instrumented: Traced, retriever: Any) -> None:
        """A retriever that is a root carries the values, alone, in a batch of threads, and awaited."""
        with using_task("x"):
            retriever.invoke("q")
            retriever.batch(["q", "q"])
        asyncio.run(using_task("x")(_ainvoke)(retriever))
        assert len(instrumented.processor.ended) == 4
        assert self.tasks(instrumented) == {"x"}

    def test_chain_and_parallel_branches(self, instrumented: Traced, retriever: Any) -> None:
        """Chains carry the values down to retrievers in parallel branches, and nothing of them afterwards."""
        from langchain_core.runnables import RunnableLambda, RunnableParallel

        chain = RunnableLambda(str) | RunnableParallel(one=retriever, two=retriever)
        with using_task("x"):
            chain.invoke("q")
        assert len(instrumented.processor.ended) >= 5
        assert self.tasks(instrumented) == {"x"}
        instrumented.processor.ended.clear()
        chain.invoke("q")
        assert self.tasks(instrumented) == {None}

    def test_streams_in_decorated_generators(self, instrumented: Traced, retriever: Any) -> None:
        """Streams of two questions that are read in turns each carry their own values."""

        def stream() -> Generator[object, None, None]:
            for query in ("a", "b"):
                yield from retriever.stream(query)

        one, two = using_task("one")(stream), using_task("two")(stream)
        assert len(list(zip(one(), two(), strict=True))) == 2
        assert sorted(str((span.attributes or {})["seer.task"]) for span in instrumented.processor.ended) == [
            "one",
            "one",
            "two",
            "two",
        ]


async def _ainvoke(retriever: Any) -> object:
    return await retriever.ainvoke("q")
