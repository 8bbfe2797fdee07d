"""The `using_*` blocks: what the application knows about its retrievals, written on the spans started inside.

    with using_task("What is the refund policy?"), using_metadata({"env": "prod"}):
        chain.invoke(...)

    @using_ground_truth(["doc-7"], answer="30 days")
    async def answer(): ...

Each is a block for `with` and `async with`, and a decorator for functions, coroutine functions, generator
functions and async generator functions. The values travel in the OpenTelemetry context: they reach what is
called inside, and the tasks and threads that carry this context. A span processor writes them on each span
that starts (`attributes_in`).

Nothing here raises: a value that cannot be used is named in one warning, and then counts as not given.
"""

from __future__ import annotations

import functools
import inspect
import logging
import math
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeVar, cast

import orjson
from opentelemetry.context import Context, attach, create_key, get_current, set_value
from opentelemetry.util.types import AttributeValue

from . import marks
from .event import clean_text, plain

__all__ = [
    "Using",
    "attributes_in",
    "using_final_context",
    "using_ground_truth",
    "using_metadata",
    "using_sample_rate",
    "using_subquery",
    "using_task",
]

_log = logging.getLogger(__name__)

_KEY = create_key("seer-otel")
_NOTHING: Mapping[str, AttributeValue] = MappingProxyType({})

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def attributes_in(context: Context | None) -> Mapping[str, AttributeValue]:
    """Return the attributes for a span that starts with the parent context `context`.

    Without one the current context counts: LangChain starts its root spans with none.
    """
    blocks = (get_current() if context is None else context).get(_KEY)
    return blocks.attributes if isinstance(blocks, _Blocks) else _NOTHING


# --- The helpers ---


def using_task(text: str) -> Using:
    """Name the question that the user asked, for all retrievals inside.

    Args:
        text: the question, not blank.
    """
    return Using({marks.TASK: _valid("using_task takes a text that is not blank", _text, text)})


def using_subquery(text: str) -> Using:
    """Name what the retrievals inside ask, where that is not the task.

    Args:
        text: the query, not blank.
    """
    return Using({marks.SUBQUERY: _valid("using_subquery takes a text that is not blank", _text, text)})


def using_final_context(final: bool = True) -> Using:
    """Say whether the model answers from what is retrieved inside.

    Args:
        final: true marks the last retrieval inside, false rules all of them out.
    """
    return Using({marks.IS_FINAL_CONTEXT: _valid("using_final_context takes True or False", _flag, final)})


def using_ground_truth(gold_doc_ids: Collection[str | float] | str, answer: str | None = None) -> Using:
    """Label the retrievals inside. Traces with labels are always kept, whatever the sample rate.

    Args:
        gold_doc_ids: the ids of the relevant documents; numbers become text, and a single text is one id.
        answer: the right answer, if known. An outer block's answer does not count: it belongs to other ids.
    """
    ids = _valid("using_ground_truth takes a list of ids, each a text or a number", _ids, gold_doc_ids)
    if ids is None:
        return Using({})
    if answer is not None:
        answer = _valid("using_ground_truth takes as answer a text that is not blank", _text, answer)
    return Using({marks.GROUND_TRUTH_IDS: ids, marks.GROUND_TRUTH_ANSWER: answer})


def using_metadata(metadata: Mapping[str, object]) -> Using:
    """Put `metadata` on the events of the retrievals inside, merged key by key with that of outer blocks.

    Args:
        metadata: text, booleans, numbers and lists of one of them stay what they are, anything else is stored
            as text, in JSON where it has parts. None and numbers that are not finite count as absent.
    """
    takes = "using_metadata takes a mapping whose keys are texts that are not blank"
    attributes: dict[str, AttributeValue | None] = {}
    for key, value in (_valid(takes, _items, metadata) or {}).items():
        name = _valid(takes, _text, key)
        if name is not None:
            attribute = _valid("using_metadata takes values that JSON can hold", _attribute, value)
            attributes[marks.METADATA_PREFIX + name] = attribute
    return Using(attributes)


def using_sample_rate(rate: float) -> Using:
    """Keep this share of the traces whose spans start inside, instead of the configured one.

    Args:
        rate: 0 (none) to 1 (all).
    """
    return Using({marks.SAMPLE_RATE: _valid("using_sample_rate takes a number from 0 to 1", _rate, rate)})


# --- Blocks ---


class Using:
    """What each `using_*` helper returns: a block, and a decorator that opens one for each call.

    It keeps no state of its own: what is in force stands in the OpenTelemetry context alone. So one instance
    can be entered again inside itself, and in many threads and tasks at once.

    A plain block in a generator's body that spans a `yield` is in force in the consumer too until the next
    step, as any context variable is; the decorator confines it to the body.
    """

    __slots__ = ("attributes",)

    def __init__(self, attributes: Mapping[str, AttributeValue | None]) -> None:
        """Hold `attributes`; those that are None count as absent."""
        self.attributes = {name: value for name, value in attributes.items() if value is not None}

    def __enter__(self) -> None:
        if self.attributes:
            _put((*_current(), self))

    def __exit__(self, *_: object) -> None:
        blocks = _current()
        # Found by identity, without a token: a block may end in another context than it began in (a generator
        # closed by another task), where a token fails loudly. What is not in force there needs no removal.
        if self in blocks:
            last = len(blocks) - 1 - blocks[::-1].index(self)
            _put(blocks[:last] + blocks[last + 1 :])

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    def __call__(self, function: F) -> F:
        """Return `function` with this block around each call; for generators around each step of the body."""
        if not self.attributes:
            return function
        target: object = function
        if isinstance(target, (staticmethod, classmethod)):
            return cast(F, type(target)(self(target.__func__)))
        if not callable(target) or inspect.isclass(target):
            _warn("a using_* decorator takes a function", type(target).__name__)
            return function
        return cast(F, _decorated(target, lambda: Using(self.attributes)))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """What stands in the OpenTelemetry context: the blocks in force, outermost first, and what they say."""

    blocks: tuple[Using, ...]
    attributes: Mapping[str, AttributeValue]


def _current() -> tuple[Using, ...]:
    value = get_current().get(_KEY)
    return value.blocks if isinstance(value, _Blocks) else ()


def _put(blocks: tuple[Using, ...]) -> None:
    """Make `blocks` those in force here, and leave all else in the context (spans, baggage) as it is."""
    if not blocks:
        attach(Context({key: value for key, value in get_current().items() if key != _KEY}))
        return
    merged: dict[str, AttributeValue] = {}
    for block in blocks:
        if marks.GROUND_TRUTH_IDS in block.attributes:
            merged.pop(marks.GROUND_TRUTH_ANSWER, None)
        merged |= block.attributes
    attach(set_value(_KEY, _Blocks(blocks, MappingProxyType(merged))))


# --- Decorators ---


class _Steps:
    """The block of one running generator, opened around each step of its body.

    Blocks that the body opens and holds over a `yield` are put aside with it and come back in the same order:
    they stay inner ones, and the consumer does not see them.
    """

    def __init__(self, block: Using) -> None:
        self._block = block
        self._inner: tuple[Using, ...] = (block,)
        self._outer: tuple[Using, ...] = ()

    def __enter__(self) -> None:
        self._outer = _current()
        _put(self._outer + self._inner)

    def __exit__(self, *_: object) -> None:
        blocks = _current()
        if self._block in blocks:
            self._inner = blocks[blocks.index(self._block) :]
            _put(self._outer)


def _decorated(function: Callable[..., Any], block: Callable[[], Using]) -> Callable[..., Any]:
    """Return a function of the same kind as `function` that runs it in a new `block()` for each call."""
    if inspect.isasyncgenfunction(function):
        return _decorated_async_generator(function, block)
    if inspect.isgeneratorfunction(function):
        return _decorated_generator(function, block)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with block():
                return await function(*args, **kwargs)

        return coroutine

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with block():
            return function(*args, **kwargs)

    return call


def _decorated_generator(
    function: Callable[..., Generator[Any, Any, Any]], block: Callable[[], Using]
) -> Callable[..., Generator[Any, Any, Any]]:
    @functools.wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        body, steps = function(*args, **kwargs), _Steps(block())
        step: Callable[[Any], Any] = body.send
        value: Any = None
        while True:
            try:
                with steps:
                    item = step(value)
            except StopIteration as stop:
                return stop.value
            finally:
                value = None  # an error held here would hold this frame, and neither would be freed
            try:
                value = yield item
                step = body.send
            except BaseException as error:  # noqa: BLE001 - the body's to handle; GeneratorExit ends it
                step, value = body.throw, error

    return generator


def _decorated_async_generator(
    function: Callable[..., AsyncGenerator[Any, Any]], block: Callable[[], Using]
) -> Callable[..., AsyncGenerator[Any, Any]]:
    @functools.wraps(function)
    async def generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        body, steps = function(*args, **kwargs), _Steps(block())
        step: Callable[[Any], Awaitable[Any]] = functools.partial(_first_step, body)
        value: Any = None
        while True:
            try:
                with steps:
                    item = await step(value)
            except StopAsyncIteration:
                return
            finally:
                value = None
            try:
                value = yield item
                step = body.asend
            except BaseException as error:  # noqa: BLE001
                step, value = body.athrow, error

    return generator


def _first_step(body: AsyncGenerator[Any, Any], _: None) -> Awaitable[Any]:
    """Begin `body` unseen by the event loop.

    At its end a loop closes at once all generators that it saw begin. This one is closed by the generator
    around it, and closing it twice at the same time is an error.
    """
    firstiter = sys.get_asyncgen_hooks().firstiter
    sys.set_asyncgen_hooks(firstiter=None)
    try:
        return body.asend(None)
    finally:
        sys.set_asyncgen_hooks(firstiter=firstiter)


# --- Values ---


class _MistakeError(ValueError):
    """A value that a helper does not take; the message says what it is, without its content."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _MistakeError(type(value).__name__)
    # Half a surrogate pair in an attribute would make the application's own exporter fail.
    text = clean_text(value)
    if not text.strip():
        raise _MistakeError("blank text")
    return text


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _MistakeError(type(value).__name__)
    return value


def _number(value: object) -> Real:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _MistakeError(type(value).__name__)
    if not math.isfinite(value):
        raise _MistakeError("a number that is not finite")
    return value


def _rate(value: object) -> float:
    rate = float(_number(value))
    if not 0 <= rate <= 1:
        raise _MistakeError("a number outside 0 to 1")
    return rate


def _ids(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = (value,)
    # An iterator may have no end, and iterating over a mapping or bytes gives what nobody meant.
    if not isinstance(value, Collection) or isinstance(value, (Mapping, bytes, bytearray)):
        raise _MistakeError(type(value).__name__)
    return tuple(_text(item) if isinstance(item, str) else str(_number(item)) for item in value)


def _items(value: object) -> dict[object, object]:
    if not isinstance(value, Mapping):
        raise _MistakeError(type(value).__name__)
    return dict(value)


def _attribute(value: object) -> AttributeValue | None:
    """Return `value` as one that every SDK and exporter takes; None if nothing is left of it."""
    data = plain(value)
    if data is None or isinstance(data, (str, bool, float)):
        return data
    if isinstance(data, int):
        return data if -(2**63) <= data < 2**63 else str(data)
    if isinstance(data, list):
        kinds = {type(item) for item in data}
        if kinds <= {str} or kinds <= {bool} or kinds <= {float}:
            return tuple(data)
        if kinds == {int} and all(-(2**63) <= item < 2**63 for item in data):
            return tuple(data)
    return orjson.dumps(data).decode()


def _valid(takes: str, read: Callable[[object], T], value: object) -> T | None:
    """Return `read(value)`; where that fails, warn, naming what the helper `takes`, and return None."""
    try:
        return read(value)
    except Exception as error:  # noqa: BLE001 - an application's own types may fail in any way
        _warn(takes, str(error) if isinstance(error, _MistakeError) else type(value).__name__)
        return None


@functools.cache
def _warn(takes: str, got: str) -> None:
    """Log this kind of mistake, the first time it is made."""
    _log.warning("%s; got %s, which is ignored (said once)", takes, got)
