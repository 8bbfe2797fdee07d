"""One passage against the question: the terms that it holds, and whether an answer may be near. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import log

from .corpus import Corpus
from .passage import Passage
from .question import MONTHS, NUMBERS, Question
from .words import STOP, listed

# BM25's usual settings, but for a milder view of length: the passages of one context are mostly cut alike.
_K1, _B = 1.2, 0.5
# A term that is there only in a related form, such as `Mexican` for `Mexico`, counts for so much.
_ALIKE = 0.6
_NEGATIONS = listed("no not never none neither nor without cannot except unlike t")


class Weights:
    """How much stems tell: their inverse document frequency in the corpus and the passages at hand together.

    Attributes:
        terms: the weight of each term of the question.
        total: of all of them; never 0.
    """

    __slots__ = ("_documents", "_elsewhere", "_here", "terms", "total")

    def __init__(self, asked: Question, passages: Iterable[Passage], corpus: Corpus) -> None:
        self._here: Counter[str] = Counter()
        self._documents = corpus.documents
        for passage in passages:
            self._here.update(passage.known)
            self._documents += 1
        self._elsewhere = corpus.frequencies
        self.terms = {term: self.of(term) for term in asked.terms}
        self.total = sum(self.terms.values()) or 1.0

    def of(self, stem: str) -> float:
        """The weight of any stem."""
        seen = self._elsewhere.get(stem, 0) + self._here[stem]
        return log(1 + max(self._documents - seen + 0.5, 0.5) / (seen + 0.5))

    def here(self, stem: str) -> int:
        """How many of the passages at hand hold it."""
        return self._here[stem]

    def share(self, terms: Iterable[str]) -> float:
        """Which share of the question these terms are, by weight."""
        # Summed in one order whatever the order of the set, so that the last digit is always the same.
        return sum(sorted([self.terms[term] for term in terms])) / self.total


class Match:
    """What one passage has of the question. Shares are by weight and from 0 to 1.

    Attributes:
        held: the terms that it holds.
        soft: the share of the question that it holds, related forms counting in part.
        cover: the share that it holds as it stands.
        heading: the share that its heading holds, in whatever form.
        bm25: Okapi's score, as a share of the most that is possible.
        pairs: which share of the question's neighbours stand close together here, too.
        sentence: the share in its best sentence; `topic` counts the heading's terms in, `window` takes three sentences.
        best: the place of that best sentence, with the heading's terms counted in.
        kind: how many words there could be what is asked for, at most 3; -1 where the kind of answer is not known.
        kind_near: the same with the sentences on both sides, at most 5.
        named: the share of the question's names and numbers that stand in or beside that sentence, or in the heading;
            -1 where it has none.
        negated: whether either the question or that sentence has a negation, and not both.
    """

    __slots__ = (
        "best", "bm25", "cover", "heading", "held", "kind", "kind_near", "named", "negated", "pairs", "sentence",
        "soft", "topic", "window",
    )  # fmt: skip

    def __init__(self, asked: Question, passage: Passage, weights: Weights, mean_length: float) -> None:
        terms, share = asked.distinct, weights.share
        self.held = terms & passage.known
        self.cover = share(self.held)
        alike = asked.alike(passage.known)
        self.soft = self.cover + _ALIKE * share(alike - self.held)
        inside = terms.intersection(passage.heading) if passage.titled else frozenset()
        self.heading = share(inside | asked.alike(passage.heading)) if passage.titled else 0.0
        self._count(asked, passage, weights, mean_length)
        hits = [terms.intersection(part) for part in passage.stems]
        scores = [share(found) if found else 0.0 for found in hits]
        self.sentence = max(scores, default=0.0)
        if inside:
            scores = [share(found | inside) for found in hits]
        self.topic = max(scores, default=0.0)
        self.window = max(
            [share(a | b | c) for a, b, c in zip(hits, hits[1:], hits[2:], strict=False)], default=0.0
        )
        if len(hits) < 3:
            self.window = share(frozenset().union(*hits))
        self.best = scores.index(self.topic) if scores else 0
        self._answer(asked, passage, weights, inside.union(*hits[max(self.best - 1, 0) : self.best + 2]))

    def _count(self, asked: Question, passage: Passage, weights: Weights, mean_length: float) -> None:
        places = [(place, word) for place, word in enumerate(passage.line) if word in asked.distinct]
        norm = _K1 * (1 - _B + _B * len(passage.line) / mean_length)
        counts = Counter([word for _, word in places])
        scores = [weights.terms[term] * count / (count + norm) for term, count in sorted(counts.items())]
        self.bm25 = sum(scores) / weights.total
        close = set()
        for here, (place, word) in enumerate(places):
            for later, other in places[here + 1 : here + 4]:
                if later - place > 4:
                    break
                if (word, other) in asked.pairs:
                    close.add((word, other))
        whole = sum([weights.terms[a] + weights.terms[b] for a, b in asked.pairs])
        self.pairs = (
            sum(sorted([weights.terms[a] + weights.terms[b] for a, b in close])) / whole if whole else 0.0
        )

    def _answer(self, asked: Question, passage: Passage, weights: Weights, around: frozenset[str]) -> None:
        self.kind, self.kind_near, self.named, self.negated = -1, -1, -1.0, 0
        if not passage.stems:
            return
        if asked.kind:
            near = range(max(self.best - 1, 0), min(self.best + 2, len(passage.stems)))
            counts = {at: _answers(asked, passage.sentences[at], passage.stems[at]) for at in near}
            self.kind, self.kind_near = min(counts[self.best], 3), min(sum(counts.values()), 5)
        if asked.names:
            self.named = weights.share(asked.names & around) / (weights.share(asked.names) or 1.0)
        self.negated = int(asked.negated == _NEGATIONS.isdisjoint(passage.stems[self.best]))


def _answers(asked: Question, said: list[str], stemmed: list[str]) -> int:
    """How many words of a sentence could be the kind of thing that is asked for, and are not in the question."""
    terms = asked.distinct
    both = list(zip(said, stemmed, strict=True))
    if asked.kind == "date":
        return sum(
            [(word[0].isdigit() and part not in terms) or word.lower() in MONTHS for word, part in both]
        )
    if asked.kind == "number":
        return sum(
            [(word[0].isdigit() or word.lower() in NUMBERS) and part not in terms for word, part in both]
        )
    return sum(
        [word[0].isupper() and part not in terms and word.lower() not in STOP for word, part in both[1:]]
    )
