"""The `using_*` helpers as decorators: functions, coroutines, generators and async generators."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any

from .stored import Block, current, put


class _Steps:
    """The block of one running generator, opened around each step of its body.

    Blocks that the body opens and holds over a `yield` are put aside with it and come back in the same order:
    they stay inner ones, and the consumer does not see them.
    """

    def __init__(self, block: Block) -> None:
        self._block = block
        self._inner: tuple[Block, ...] = (block,)
        self._outer: tuple[Block, ...] = ()

    def __enter__(self) -> None:
        self._outer = current()
        put(self._outer + self._inner)

    def __exit__(self, *_: object) -> None:
        blocks = current()
        if self._block in blocks:
            self._inner = blocks[blocks.index(self._block) :]
            put(self._outer)


def decorated(function: Callable[..., Any], block: Callable[[], Block]) -> Callable[..., Any]:
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
    function: Callable[..., Generator[Any, Any, Any]], block: Callable[[], Block]
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
    function: Callable[..., AsyncGenerator[Any, Any]], block: Callable[[], Block]
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
