"""The default evaluator: words, names and links between passages, judged by small tree ensembles.

What it was fitted on, and how good it is, stands in `lexical.md` beside it and in `docs/evaluators.md`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import log
from pathlib import Path
from typing import Any

from ..judging import Judgement
from .corpus import Corpus
from .features import FIRST, Context
from .passage import Passage
from .question import question
from .requirements import asked, judged
from .trees import Logistic, Trees

MODEL = Path(__file__).with_name("lexical.json")
_LINKED, _NAMED, _REST, _UNION = (FIRST.index(name) for name in ("linked", "named", "rest", "union"))
_TOP = tuple(
    FIRST.index(name)
    for name in ("cover", "topic", "pairs", "soft", "bm25", "exclusive", "negated", "heading", "heading_asked",
                 "compares", "terms", "titled", "link_in", "found")
)  # fmt: skip
SIGNALS = (
    "chance", "second_chance", "chances", "cited", "held", "names_held", "names", "best_topic", "best_window",
    "best_soft", "best_pairs", "best_named", "named", "kind_missing", "kind_far", "kind_near", "kind_unknown",
    "linked", "union", "second_rest", "shared", *(FIRST[place] for place in _TOP),
)  # fmt: skip
"""The columns of `signals`."""


class Lexical:
    """Cites passages by two rounds of trees: each passage by itself, then beside those that seem to be cited.

    Args:
        model: what `lexical.json` holds; read from there if not given.
    """

    def __init__(self, model: Mapping[str, Any] | None = None) -> None:
        kept = json.loads(MODEL.read_text(encoding="utf-8")) if model is None else model
        self.name: str = kept["name"]
        self.version: str = kept["version"]
        self.accuracy: str = kept["accuracy"]
        self._first, self._second = Trees(kept["first"]), Trees(kept["second"])
        self._sufficient, self._answerable = Logistic(kept["sufficiency"]), Logistic(kept["answerable"])
        self._abstain: float = kept["abstain"]

    def judge(self, query: str, passages: Sequence[str], corpus: Corpus) -> Judgement:
        """Judge as `Evaluator` says. It cites nothing where an answer is improbable, which is not often."""
        parts = asked(query)
        if not passages:
            return Judgement(judged(parts, question(query), {}, (), (), 0.0), (), 0.0)
        context = Context(question(query), [parsed(passage) for passage in passages], corpus)
        chances = self.chances(context)
        cited = citations(chances)
        if not any(context.matches[place].soft for place in cited):
            cited = ()
        seen = signals(context, chances, cited)
        sufficiency = self._sufficient(seen) if cited else 0.0
        if self._answerable(seen) < self._abstain:
            cited = ()
        known = [passage.known for passage in context.passages]
        met = judged(parts, context.asked, context.weights.terms, cited, known, sufficiency)
        return Judgement(met, cited, sufficiency)

    def chances(self, context: Context) -> list[float]:
        """Of each passage, the probability that it is cited."""
        return [self._second(row) for row in context.second([self._first(row) for row in context.first()])]


@lru_cache(maxsize=256)
def parsed(text: str) -> Passage:
    """A passage taken apart; kept, since one is often retrieved again, and each event with a subquery judged twice."""
    return Passage(text)


def citations(chances: Sequence[float]) -> tuple[int, ...]:
    """The places, ascending, of the passages whose citation makes the expected F1 greatest.

    The expectation is that of a ratio taken as the ratio of expectations, with at least one passage to be found.
    """
    order = sorted(range(len(chances)), key=lambda place: (-chances[place], place))
    wanted = max(sum(chances), 1.0)
    best, count, found = 0.0, 0, 0.0
    for place, passage in enumerate(order, 1):
        found += chances[passage]
        score = 2 * found / (place + wanted)
        if score > best + 1e-12:
            best, count = score, place
    return tuple(sorted(order[:count]))


def signals(context: Context, chances: Sequence[float], cited: Sequence[int]) -> list[float]:
    """One row about the context as a whole, with the columns SIGNALS: what tells whether an answer is there."""
    rows, matches, share = context.first(), context.matches, context.weights.share
    order = sorted(range(len(chances)), key=lambda place: (-chances[place], place))
    top, second = order[0], order[min(1, len(order) - 1)]
    held = frozenset().union(*[matches[place].held for place in cited])
    names = context.asked.names
    proper = share(names)
    match, row = matches[top], rows[top]
    known = bool(context.asked.kind)
    return [
        _odds(chances[top]),
        _odds(chances[second]) if second != top else -9.0,
        sum(chances),
        float(len(cited)),
        share(held),
        share(names & held) / proper if proper else 1.0,
        float(bool(names)),
        max(match.topic for match in matches),
        max(match.window for match in matches),
        max(match.soft for match in matches),
        max(match.pairs for match in matches),
        max(match.named for match in matches),
        match.named,
        float(known and match.kind == 0),
        float(known and match.kind_near == 0),
        float(match.kind_near),
        float(not known),
        max(each[_LINKED] for each in rows),
        max(each[_UNION] for each in rows),
        rows[second][_REST],
        max(each[FIRST.index("shared")] for each in rows),
        *[row[place] for place in _TOP],
    ]


def _odds(chance: float) -> float:
    chance = min(max(chance, 1e-4), 1 - 1e-4)
    return log(chance / (1 - chance))
