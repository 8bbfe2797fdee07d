"""How good a retrieval was, and how well an evaluator cites. Pure.

Source of the formulas: Seer's "Test Seer's Accuracy" and "Metrics" pages. They do not say what a division by zero
gives; here that is None, "not available", so that no average takes it for a bad result.

What is counted are documents: several passages with one id are one document, and a passage without an id (None or
empty) is a document of its own that no label can name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .ranking import ndcg_at

if TYPE_CHECKING:
    from .judging import Judgement


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """Ground-truth scores of one context, each from 0 to 1, or None where it is not available.

    Attributes:
        recall: which share of the gold documents the context holds; None without gold documents.
        precision: which share of the context's documents is gold; None for an empty context.
        f1: the harmonic mean of the two; None where one of them is not available.
    """

    recall: float | None
    precision: float | None
    f1: float | None


def retrieval_scores(gold_ids: Iterable[str], context_ids: Iterable[str | None]) -> RetrievalScores:
    """Score a context by the ids of its passages."""
    context = set(_documents(context_ids))
    gold = set(gold_ids)
    found = len(gold & context)
    recall, precision = share(found, len(gold)), share(found, len(context))
    return RetrievalScores(recall, precision, harmonic_mean(recall, precision))


@dataclass(frozen=True, slots=True)
class EvaluatorScores:
    """How well an evaluator cited in one context.

    Attributes:
        precision: which share of the cited documents is gold. 0 where gold is in the context and nothing is cited; 1
            where none is and nothing is cited.
        recall: which share of the gold documents in the context is cited; None where there are none.
        f1: the harmonic mean of the two; None where one of them is not available.
        exact_match: whether exactly the gold documents in the context are cited.
    """

    precision: float
    recall: float | None
    f1: float | None
    exact_match: bool


def evaluator_scores(
    gold_ids: Iterable[str], context_ids: Iterable[str | None], cited: Iterable[int]
) -> EvaluatorScores:
    """Score citations, given as positions in the context, from 0.

    Only gold in the context counts: what the retrieval missed is no fault of the evaluator's.
    """
    context = _documents(context_ids)
    gold = set(gold_ids).intersection(context)
    citations = {context[position] for position in cited}
    correct = len(citations & gold)
    precision = correct / len(citations) if citations else float(not gold)
    recall = share(correct, len(gold))
    return EvaluatorScores(precision, recall, harmonic_mean(recall, precision), citations == gold)


@dataclass(frozen=True, slots=True)
class LabelFree:
    """What an evaluator's judgement says of a context, without labels; each from 0 to 1, or None.

    Attributes:
        recall: which share of the requirements is present.
        precision: which share of the context's documents is cited; None for an empty context.
        f1: the harmonic mean of the two; None where one of them is not available.
        ndcg: how far in front the cited passages stand; None where passages carry neither rank nor score, or none
            is cited.
    """

    recall: float | None
    precision: float | None
    f1: float | None
    ndcg: float | None


def label_free(
    judgement: Judgement,
    context_ids: Iterable[str | None],
    ranks: Sequence[float | None] | None = None,
    scores: Sequence[float | None] | None = None,
) -> LabelFree:
    """Score a context by a judgement of it.

    `ranks` (lowest first) or else `scores` (highest first) order the passages for nDCG, where each passage has one;
    ranks or scores that are equal leave passages as they stand.
    """
    context = _documents(context_ids)
    present = sum(requirement.present for requirement in judgement.requirements)
    recall = share(present, len(judgement.requirements))
    precision = share(len({context[position] for position in judgement.cited}), len(set(context)))
    ndcg = None
    order = _ascending(ranks) or _ascending(scores and [None if each is None else -each for each in scores])
    if order is not None:
        ndcg = ndcg_at(len(order), order, judgement.cited)
    return LabelFree(recall, precision, harmonic_mean(recall, precision), ndcg)


def _ascending(keys: Sequence[float | None] | None) -> list[int] | None:
    """The positions by their keys; None unless each has one."""
    known = [key for key in keys or () if key is not None]
    if not known or not keys or len(known) < len(keys):
        return None
    return sorted(range(len(known)), key=known.__getitem__)


def _documents(ids: Iterable[str | None]) -> list[Hashable]:
    """What each passage counts as: its id, or if it has none its position."""
    return [name or position for position, name in enumerate(ids)]


def share(part: int, whole: int) -> float | None:
    """Return part / whole, or None where there is no whole."""
    return part / whole if whole else None


def harmonic_mean(a: float | None, b: float | None) -> float | None:
    """Return the harmonic mean of two shares; None if one is not available, 0 if one is 0.

    Two zeros give 0, the limit of the formula: both are known, and a context of wrong documents is a bad one.
    """
    if a is None or b is None:
        return None
    return 2 * a * b / (a + b) if a and b else 0.0
