"""What a query asks for, as a list of short requirements made by rules, and which passages cover them. Pure.

The named things are requirements, and so is what is left of each clause. No word of the query belongs to two of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..judging import Requirement
from .question import Question, question
from .words import STOP, listed, stem, words

_MOST = 8
_LONGEST = 200
# A passage covers a requirement if it holds so much of it, by weight: a surname is enough for a name.
_ENOUGH = 0.5
_CLAUSE_END = re.compile(
    r"[,;:?!()\n]+|\.\s|\b(?:and|or|but|who|whom|whose|which|that|where|when|while|because|than)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile('["\u201c\u201e\u00ab]([^"\u201c\u201d\u00bb]{2,80})["\u201d\u00bb]')
_NAME = re.compile(
    r"(?<![\w-])[A-Z0-9][\w'\u2019.&-]*(?:\s+(?:(?:of|the|de|la|le|du|van|von|der)\s+){0,2}[A-Z0-9][\w'\u2019.&-]*)*"
)
# What and which are left out: the noun that follows says it.
_ASKING = listed("who whom whose when where why how")


@dataclass(frozen=True, slots=True)
class Asked:
    """One requirement: its words as the query has them, and those of the question's terms that are its own."""

    text: str
    terms: frozenset[str]


def asked(query: str) -> tuple[Asked, ...]:
    """The requirements of a query: one at least, named things first, each in order."""
    return _asked(question(query).text)


@lru_cache(maxsize=256)
def _asked(text: str) -> tuple[Asked, ...]:
    whole = question(text)
    free = set(whole.terms)
    found: list[Asked] = []

    def take(said: str) -> None:
        own = free.intersection(map(stem, words(said)))
        if own and len(found) < _MOST:
            free.difference_update(own)
            found.append(Asked(_short(said), frozenset(own)))

    rest = text
    for pattern in (_QUOTED, _NAME):
        for match in pattern.finditer(rest):
            name = match.group(match.lastindex or 0)
            if match.start() or pattern is _QUOTED or len(words(name)) > 1:
                take(name if pattern is _QUOTED else _without_asking(name))
        rest = pattern.sub(lambda match: "\x00" * len(match.group()), rest) if pattern is _QUOTED else rest
    for clause in _clauses(text):
        own = [word for word in words(clause) if word.lower() in _ASKING or stem(word) in free]
        if any(word.lower() not in _ASKING for word in own):
            take(" ".join(own))
    return tuple(found) or (Asked(_short(text) or "an answer", frozenset(whole.terms)),)


def _clauses(text: str) -> list[str]:
    """The clauses; one that begins with a question word keeps it, as it says what is asked for."""
    found, start, opened = [], 0, ""
    for end in _CLAUSE_END.finditer(text):
        found.append(opened + text[start : end.start()])
        word = end.group().lower()
        opened = f"{word} " if word in _ASKING else ""
        start = end.end()
    return [*found, opened + text[start:]]


def _without_asking(name: str) -> str:
    """A name without what only begins the sentence: `Did Victoria` is `Victoria`."""
    parts = name.split()
    while parts and parts[0].lower() in STOP:
        parts = parts[1:]
    return " ".join(parts)


def _short(said: str) -> str:
    text = " ".join(said.split()).strip(" .,;:?!\"'")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"


def judged(
    parts: Sequence[Asked],
    whole: Question,
    weights: Mapping[str, float],
    cited: Sequence[int],
    known: Sequence[frozenset[str]],
    sufficiency: float,
) -> tuple[Requirement, ...]:
    """Say which requirements are met, and by which of the cited passages.

    A requirement is met if a cited passage covers it. Where the evidence as a whole is more likely to be insufficient
    than not, that is not believed of all of them: only so large a share of them can be met as the doubled probability
    says, those that are covered best.

    Args:
        parts: the requirements.
        whole: the question.
        weights: of its terms.
        cited: places of the cited passages.
        known: the distinct stems of each passage.
        sufficiency: the probability that the evidence suffices.
    """
    held = {place: whole.distinct & known[place] | whole.alike(known[place]) for place in cited}
    cover = []
    for part in parts:
        of = sum(sorted([weights.get(term, 1.0) for term in part.terms])) or 1.0
        cover.append(
            {at: sum(sorted([weights[term] for term in part.terms & has])) / of for at, has in held.items()}
        )
    met = [any(share >= _ENOUGH for share in shares.values()) for shares in cover]
    if sufficiency < 0.5:
        allowed = int(len(parts) * 2 * sufficiency)
        order = sorted(range(len(parts)), key=lambda part: (-max(cover[part].values(), default=0.0), part))
        believed = set([part for part in order if met[part]][:allowed])
        met = [part in believed for part in range(len(parts))]
    return tuple(
        Requirement(
            part.text, present, tuple(at for at in sorted(shares) if present and shares[at] >= _ENOUGH)
        )
        for part, present, shares in zip(parts, met, cover, strict=True)
    )
