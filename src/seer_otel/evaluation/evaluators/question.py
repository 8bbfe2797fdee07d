"""A query, taken apart: the stems that it is about, its named things, and the kind of answer that it wants. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from .words import STOP, listed, stem, words

# A query longer than this is read at both ends: instructions and chat history often surround the question.
_LONGEST = 4000
_MOST_TERMS = 64

MONTHS = listed(
    """january february march april may june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec"""
)
NUMBERS = listed(
    """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands million
    millions billion billions half third quarter dozen twice once double triple first second percent"""
)
_KINDS = (
    ("number", re.compile(
        r"\bhow (?:many|much|long|far|old|tall|high|large|big|deep|wide|fast|often|heavy|hot|cold|late|early)\b"
        r"|\b(?:what|which)(?: \w+){0,3}? (?:number|percentage|percent|population|amount|age|length|height|size|speed"
        r"|temperature|price|cost|rate|ratio|fraction|distance|weight|limit|port|timeout|version)\b")),
    ("date", re.compile(
        r"\bwhen\b|\b(?:what|which)(?: \w+){0,2}? (?:year|date|month|day|century|decade|time|era|season)s?\b")),
    ("person", re.compile(r"\b(?:who|whom|whose)\b")),
    ("place", re.compile(
        r"\bwhere\b|\b(?:what|which)(?: \w+){0,2}? (?:city|country|state|county|town|place|region|continent|river"
        r"|nation|village|district|province|island|location|ocean|sea)\b")),
)  # fmt: skip
# What is mostly spelt out where it is explained.
_SHORT = (
    (re.compile(r"\b(?:USA?|[Uu]\.[Ss]\.(?:[Aa]\.)?|usa|(?<=the )us)(?!\w)"), "United States"),
    (re.compile(r"\b(?:UK|uk|[Uu]\.[Kk]\.)(?!\w)"), "United Kingdom"),
)
_NEGATES = re.compile(r"\b(?:not|never|no|without|except|cannot|unlike)\b|n't\b|n\u2019t\b")
_COMPARES = re.compile(
    r"\b(?:both|same|or|either|older|younger|first|more|larger|longer|earlier|later|between)\b"
)


@dataclass(frozen=True, slots=True)
class Question:
    """What a query asks.

    Attributes:
        text: the query, cut at both ends' limit.
        terms: what it is about: its distinct stems that are no stop words, in order; a query of nothing but stop words
            is about those.
        pairs: neighbours among the terms, as the query has them.
        names: those terms that the query writes like names or numbers.
        kind: `number`, `date`, `person`, `place`, or empty where the query wants something else.
        compares: whether it sets things side by side.
        negated: whether it asks for what is not.
        distinct: the terms as a set.
        beginnings: of each term of four letters or more, its first five, and itself.
    """

    text: str
    terms: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    names: frozenset[str]
    kind: str
    compares: bool
    negated: bool
    distinct: frozenset[str]
    beginnings: dict[str, str]

    def alike(self, stems: Iterable[str]) -> set[str]:
        """The terms of which these stems are related forms, by their first five letters."""
        known = self.beginnings
        return {
            known.get(stem[:5]) or known[stem[:4]] for stem in stems if stem[:5] in known or stem[:4] in known
        }


def question(query: str) -> Question:
    """Take a query apart; any text is one."""
    if len(query) > _LONGEST:
        query = query[: _LONGEST // 2 - 1] + " " + query[-_LONGEST // 2 :]
    return _question(query)


@lru_cache(maxsize=256)
def _question(query: str) -> Question:
    for pattern, full in _SHORT:
        query = pattern.sub(full, query)
    said = words(query)
    about = [word for word in said if word.lower() not in STOP] or said
    line = [stem(word) for word in about][:_MOST_TERMS]
    names = {
        stem(word)
        for place, word in enumerate(said)
        if word.lower() not in STOP
        and ((place and word[0].isupper()) or any(sign.isdigit() for sign in word))
    }
    lower = query.lower()
    kind = next((kind for kind, pattern in _KINDS if pattern.search(lower)), "")
    terms = tuple(dict.fromkeys(line))
    return Question(
        text=query,
        terms=terms,
        pairs=tuple(dict.fromkeys(pair for pair in pairwise(line) if pair[0] != pair[1])),
        names=frozenset(names.intersection(terms)),
        kind=kind,
        compares=bool(_COMPARES.search(lower)),
        negated=bool(_NEGATES.search(lower)),
        distinct=frozenset(terms),
        beginnings={term[:5]: term for term in terms if len(term) > 3},
    )
