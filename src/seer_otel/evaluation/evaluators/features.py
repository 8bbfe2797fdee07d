"""What a question and its passages look like in numbers: one row for each passage. Pure.

Thresholds on scores do not carry over from one collection to the next, so most numbers are taken relative to the other
passages at hand. The second hop of a question hardly ever resembles it: such a passage is known by its links, the
passage that names its heading or is named by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from .corpus import Corpus
from .matching import Match, Weights
from .passage import Passage
from .question import Question
from .words import STOP

_SCORES = ("cover", "bm25", "topic", "window", "pairs", "exclusive", "base", "soft", "heading")
FIRST = (
    *(name + suffix for name in _SCORES for suffix in ("", "_ahead", "_rank")),
    "sentence", "rest", "names", "named", "heading_asked", "link_in", "link_out", "union", "union_gain", "shared",
    "linked", "kind", "kind_near", "negated", "passages", "terms", "proper", "compares", "length", "titled", "found",
)  # fmt: skip
"""The columns of `Context.first`."""
SECOND = (
    *FIRST, "chance", "chance_ahead", "chance_rank", "chances", "top_rest", "names_top", "top_names", "chance_in",
    "chance_out", "top_shared", "top_heading",
)  # fmt: skip
"""The columns of `Context.second`."""


class Context:
    """A question and its passages, matched.

    Attributes:
        asked: the question.
        passages: at least one.
        weights: of the question's terms.
        matches: one for each passage.
    """

    def __init__(self, asked: Question, passages: Sequence[Passage], corpus: Corpus) -> None:
        self.asked, self.passages = asked, passages
        self.weights = Weights(asked, passages, corpus)
        mean = sum(len(passage.line) for passage in passages) / len(passages) or 1.0
        self.lengths = [log(max(len(passage.line), 1) / mean) for passage in passages]
        self.matches = [Match(asked, passage, self.weights, mean) for passage in passages]
        self._link()
        self._rows: list[list[float]] = []

    def _link(self) -> None:
        """Find which passage names which other's heading, or the name that it starts with."""
        keys = [f" {' '.join(passage.heading)} " for passage in self.passages]
        telling = [
            len(key) > 5 and not self.asked.distinct.issuperset(passage.heading)
            for key, passage in zip(keys, self.passages, strict=True)
        ]
        everyone = range(len(keys))
        self.named_by: list[list[int]] = [
            [j for j in everyone if keys[i] in self.passages[j].spaced and keys[j] != keys[i]]
            if telling[i]
            else []
            for i in everyone
        ]
        self.naming: list[list[int]] = [[] for _ in everyone]
        for i, others in enumerate(self.named_by):
            for j in others:
                self.naming[j].append(i)
        self._fresh = [passage.names - self.asked.distinct for passage in self.passages]

    def first(self) -> list[list[float]]:
        """One row for each passage, with the columns FIRST; computed once."""
        if not self._rows:
            self._rows = self._first()
        return self._rows

    def _first(self) -> list[list[float]]:
        matches, share, n = self.matches, self.weights.share, len(self.passages)
        scarce = {
            term: weight / max(self.weights.here(term), 1) for term, weight in self.weights.terms.items()
        }
        scarcity = sum(scarce.values()) or 1.0
        scores = {
            "cover": [match.cover for match in matches],
            "bm25": [match.bm25 for match in matches],
            "topic": [match.topic for match in matches],
            "window": [match.window for match in matches],
            "pairs": [match.pairs for match in matches],
            "exclusive": [sum(sorted([scarce[term] for term in match.held])) / scarcity for match in matches],
            "base": [match.cover + match.bm25 + match.topic for match in matches],
            "soft": [match.soft for match in matches],
            "heading": [match.heading for match in matches],
        }
        base, cover = scores["base"], scores["cover"]
        top, second = _two_best(base)
        names, proper = self.asked.names, share(self.asked.names)
        union = [
            max([share(match.held | matches[j].held) for j in (*named, *naming)], default=match.cover)
            for match, named, naming in zip(matches, self.named_by, self.naming, strict=True)
        ]
        best = max(cover)
        columns: list[Sequence[float]] = []
        for name in _SCORES:
            columns += _relative(scores[name])
        columns += [
            [match.sentence for match in matches],
            self._rest(top, second),
            [share(names & match.held) / proper if proper else -1.0 for match in matches],
            [match.named for match in matches],
            [self._heading_asked(passage) for passage in self.passages],
            [max([base[j] for j in named], default=0.0) for named in self.named_by],
            [max([base[j] for j in naming], default=0.0) for naming in self.naming],
            union,
            [both - best for both in union],
            self._shared(top, second),
            [
                (top in self.named_by[i]) + 2.0 * (top in self.naming[i]) if i != top else -1.0
                for i in range(n)
            ],
            [match.kind for match in matches],
            [match.kind_near for match in matches],
            [match.negated for match in matches],
            [log(n)] * n,
            [len(self.asked.terms)] * n,
            [len(names)] * n,
            [self.asked.compares] * n,
            self.lengths,
            [passage.titled for passage in self.passages],
            [share(frozenset().union(*[match.held for match in matches]))] * n,
        ]
        return [list(map(float, row)) for row in zip(*columns, strict=True)]

    def second(self, chances: Sequence[float]) -> list[list[float]]:
        """The rows of `first`, with more columns that look at each passage beside those that seem to be cited."""
        n = len(chances)
        top, second = _two_best(chances)
        others = [second if i == top else top for i in range(n)]
        columns: list[Sequence[float]] = [
            *_relative(chances),
            [sum(chances)] * n,
            self._rest(top, second),
            [other in self.naming[i] for i, other in enumerate(others)],
            [other in self.named_by[i] for i, other in enumerate(others)],
            [max([chances[j] for j in named], default=0.0) for named in self.named_by],
            [max([chances[j] for j in naming], default=0.0) for naming in self.naming],
            self._shared(top, second),
            [self.passages[i].heading == self.passages[other].heading for i, other in enumerate(others)],
        ]
        return [
            row + list(map(float, more))
            for row, more in zip(self.first(), zip(*columns, strict=True), strict=True)
        ]

    def _rest(self, top: int, second: int) -> list[float]:
        """Of each passage, the share of what the top one (for itself, the second) leaves open and it holds."""
        matches, share = self.matches, self.weights.share
        return [
            share(match.held - matches[second if i == top else top].held)
            if i != top or top != second
            else match.cover
            for i, match in enumerate(matches)
        ]

    def _shared(self, top: int, second: int) -> list[float]:
        """Of each passage, the weight of the names that it shares with the top one and the question does not have."""
        if top == second:
            return [0.0]
        fresh, weight = (
            self._fresh,
            {word: self.weights.of(word) for word in self._fresh[top] | self._fresh[second]},
        )
        return [
            sum(sorted([weight[word] for word in names & fresh[second if i == top else top]]))
            for i, names in enumerate(fresh)
        ]

    def _heading_asked(self, passage: Passage) -> float:
        """The share of its heading that the question has."""
        weights = {word: self.weights.of(word) for word in passage.heading if word not in STOP}
        whole = sum(weights.values())
        return (
            sum([weight for word, weight in weights.items() if word in self.asked.distinct]) / whole
            if whole
            else 0.0
        )


def _two_best(scores: Sequence[float]) -> tuple[int, int]:
    """The places of the best and the second best; twice the same if there is one only."""
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    return order[0], order[min(1, len(order) - 1)]


def _relative(scores: Sequence[float]) -> list[list[float]]:
    """The scores; how far each is ahead of the best of the others; the share of the others that beat it."""
    order = sorted(scores, reverse=True)
    if len(order) < 2:
        return [list(scores), list(scores), [0.0] * len(order)]
    best, second, others = order[0], order[1], len(order) - 1
    rank = {score: place / others for place, score in reversed(list(enumerate(order)))}
    ahead = [score - (second if score == best else best) for score in scores]
    return [list(scores), ahead, [rank[score] for score in scores]]
