"""How good a retrieval was, measured against labels. Pure.

Source of the formulas: Seer's "Test Seer's Accuracy" page, "Ground Truth (GT) Metrics". It does not say what a
division by zero gives; here that is None, "not available", so that no average takes it for a bad result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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
    """Score a context by the ids of its passages.

    What is counted are documents: several passages with one id are one document, and a passage without an id
    (None or empty) is a document of its own that no label can name.
    """
    ids = list(context_ids)
    named = {name for name in ids if name}
    documents = len(named) + sum(not name for name in ids)
    gold = set(gold_ids)
    found = len(gold & named)
    recall, precision = share(found, len(gold)), share(found, documents)
    return RetrievalScores(recall, precision, harmonic_mean(recall, precision))


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
