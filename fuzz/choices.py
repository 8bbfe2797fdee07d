"""Decisions out of bytes: the same bytes always decide the same, and used up they decide for what is ordinary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Each decision takes a byte or two; the first option is what is decided once there are none left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, count: int) -> int:
        """A number from 0 to `count - 1`, of at most 65,536."""
        return int.from_bytes(self._take(1 if count <= 256 else 2), "big") % count

    def pick(self, options: Sequence[T]) -> T:
        """One of some options; the ordinary one stands first."""
        return options[self.below(len(options))]

    def one_in(self, count: int) -> bool:
        """Whether something happens that does so once in `count` times."""
        return self.below(count) == count - 1

    def text(self) -> str:
        """Up to 255 of the bytes as text; what is no UTF-8 becomes lone surrogates."""
        return self._take(self.below(256)).decode("utf-8", "surrogateescape")

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken
