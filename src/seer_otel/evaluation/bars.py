"""A progress bar on a terminal; in a pipe, nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")


class Bar(Protocol):
    """Counts things on their way."""

    def __call__(self, name: str, things: Iterable[T], total: int | None = None, /) -> Iterator[T]:
        """Pass `things` on; `total` is how many there will be, if that is known."""
        ...


def _uncounted(_name: str, things: Iterable[T], _total: int | None = None) -> Iterator[T]:
    return iter(things)


@contextmanager
def bar() -> Iterator[Bar]:
    """Show what is counted on standard error, until the end of the block."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _uncounted
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:

        def count(name: str, things: Iterable[T], total: int | None = None, /) -> Iterator[T]:
            task = progress.add_task(name, total=total)
            for thing in things:
                yield thing
                progress.advance(task)
            progress.remove_task(task)

        yield count
