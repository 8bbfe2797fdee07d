"""A passage, taken apart: sentences, stems, heading, names. Pure."""

from __future__ import annotations

import re

from .words import STOP, sentences, stem, words

_LONGEST_HEADING = 100
_BRACKETS = re.compile(r"\s*[(\[].*?[)\]]")


class Passage:
    """What can be known of a passage without a query.

    Attributes:
        sentences: the words of each sentence, as written, the heading's being the first where there is one.
        stems: the stems of each sentence.
        line: all stems in order.
        known: the distinct stems.
        names: the stems that are written like names anywhere but at the start of a sentence.
        heading: the stems of its heading, or of the name that it begins with; may be empty.
        titled: whether that is a heading.
    """

    __slots__ = ("heading", "known", "line", "names", "sentences", "spaced", "stems", "titled")

    def __init__(self, text: str) -> None:
        self.sentences = sentences(text)
        self.stems = [list(map(stem, said)) for said in self.sentences]
        self.line = [word for part in self.stems for word in part]
        self.known = frozenset(self.line)
        self.spaced = f" {' '.join(self.line)} "
        # In this order, as most words are in lower case.
        self.names = frozenset(
            [
                stem(word)
                for said in self.sentences
                for word in said[1:]
                if not word.islower() and word[0].isupper() and word.lower() not in STOP
            ]
        )
        self.titled, self.heading = _heading(text, self.sentences)


def _heading(text: str, said: list[list[str]]) -> tuple[bool, tuple[str, ...]]:
    """The first line, if it is short and more follows; else the name that the first sentence starts with."""
    first, line_break, rest = text[: 4 * _LONGEST_HEADING].lstrip("# \t\n").partition("\n")
    first = first.strip("#* \t\r=-")
    if (
        line_break
        and rest.strip()
        and len(first) <= _LONGEST_HEADING
        and not first.endswith((".", "!", ";", ","))
    ):
        found = tuple(map(stem, words(_BRACKETS.sub("", first) or first)))
        if found:
            return True, found
    name = []
    for word in said[0] if said else ():
        if word[0].isupper():
            name.append(word)
        elif name or word.lower() not in {"the", "a", "an"}:
            break
    if name and name[0].lower() in STOP:
        name = name[1:]
    return False, tuple(map(stem, name))
