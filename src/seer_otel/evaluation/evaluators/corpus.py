"""How common words are among the passages at hand. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping


class Corpus:
    """In how many passages each stem was seen.

    Args:
        documents: how many passages were counted.
        frequencies: of each stem, how many of them hold it.
    """

    __slots__ = ("documents", "frequencies")

    def __init__(self, documents: int = 0, frequencies: Mapping[str, int] | None = None) -> None:
        self.documents = documents
        self.frequencies = Counter(frequencies or {})

    def add(self, stems: Iterable[str]) -> None:
        """Count one more passage, given its stems, of which each counts once."""
        self.documents += 1
        self.frequencies.update(set(stems))
