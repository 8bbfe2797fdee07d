"""Which words of a passage are words of the query. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape

from seer_otel.evaluation.evaluators.words import STOP, stem, words

HEAD = 700
"""Characters of a passage that are shown at once; the rest can be opened."""

# Of a script without spaces, a whole run: it is marked where each of its signs is one of the query.
_WORD = re.compile(r"[^\W_]+")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Highlighted:
    """A text as HTML, in which words of the query are `mark` elements.

    Attributes:
        head: its beginning; `rest`: what follows, empty where that is all.
        left: how many characters `rest` shows, and `found`, how many marked words are among them.
    """

    head: Markup
    rest: Markup
    left: int
    found: int


class Highlighter:
    """Finds the words whose stems are stems of `queries`, but for those that say nothing."""

    def __init__(self, queries: Iterable[str]) -> None:
        self._wanted = {stem(word) for query in queries for word in words(query) if word.lower() not in STOP}
        # Once for each word that is met: a context repeats most of its words.
        self._known: dict[str, bool] = {}

    def _matches(self, word: str) -> bool:
        if word not in self._known:
            parts = words(word[:_LONGEST])
            self._known[word] = bool(parts) and all(stem(part) in self._wanted for part in parts)
        return self._known[word]

    def __call__(self, text: str) -> Highlighted:
        """Return `text`, escaped, with its marks."""
        cut = _end_of_head(text)
        head, _ = self._marked(text[:cut])
        rest, found = self._marked(text[cut:])
        return Highlighted(head, rest, len(text) - cut, found)

    def _marked(self, text: str) -> tuple[Markup, int]:
        parts: list[str] = []
        end = found = 0
        for word in _WORD.finditer(text):
            if self._matches(word[0]):
                parts += (escape(text[end : word.start()]), "<mark>", escape(word[0]), "</mark>")
                end = word.end()
                found += 1
        parts.append(escape(text[end:]))
        return Markup("".join(parts)), found  # noqa: S704 - each part is escaped, or a tag of ours


def _end_of_head(text: str) -> int:
    # Not for a few words more.
    if len(text) <= HEAD + HEAD // 4:
        return len(text)
    space = text.rfind(" ", HEAD - 100, HEAD)
    return space if space > 0 else HEAD
