"""Attributes by which an application speaks to us, read from the spans that carry them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import marks
from ..conventions.documents import id_of, number
from ..conventions.lenient_json import as_data, loads
from ..event import GroundTruth
from ..privacy import is_redacted
from ..spans import Span
from .tree import Inherited, Tree

_MAX_LABELS = 10_000  # relevant documents of one question
_GROUND_TRUTH = (marks.GROUND_TRUTH_IDS, marks.GROUND_TRUTH, marks.GROUND_TRUTH_ANSWER)
_INHERITED = (marks.TASK, marks.SUBQUERY, *_GROUND_TRUTH)


def text(spans: Iterable[Span], key: str) -> str | None:
    """Return the first text under `key`, the spans' own order being the order of preference."""
    for span in spans:
        value = span.attributes.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return None


def final(span: Span) -> bool | None:
    """Return a span's own mark of the final context: a boolean, or the text true or false."""
    value = span.attributes.get(marks.IS_FINAL_CONTEXT)
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


def sample_rate(attributes: Mapping[str, Any]) -> float | None:
    """Return the rate that a span asks for: a number from 0 to 1, or text that is one."""
    value = attributes.get(marks.SAMPLE_RATE)
    rate = None if value is None else number(value)
    return rate if rate is not None and 0 <= rate <= 1 else None


def has_ground_truth(attributes: Mapping[str, Any]) -> bool:
    """Return whether a span carries labels, readable or not."""
    return not attributes.keys().isdisjoint(_GROUND_TRUTH)


@dataclass(frozen=True, slots=True)
class Labels:
    """Ground truth of a retrieval; `unreadable` where there is some that cannot be read."""

    truth: GroundTruth | None = None
    unreadable: bool = False

    def otherwise(self, others: Labels) -> Labels:
        """Return these where they can be read, else `others`."""
        if self.truth is not None:
            return self
        return others if others.truth is not None or not self.unreadable else self


def labels(span: Span) -> Labels:
    """Return the ground truth on a span."""
    if not has_ground_truth(span.attributes):
        return _NO_LABELS
    truth = _truth(span.attributes)
    return Labels(truth, unreadable=truth is None)


_NO_LABELS = Labels()


@dataclass(frozen=True, slots=True)
class _Said:
    """What the application says on a span or above it."""

    task: str | None = None
    subquery: str | None = None
    labels: Labels = _NO_LABELS


class Marks(Inherited[_Said]):
    """The marks of one trace: those of a retrieval's own spans, else of the nearest span above that has one.

    Args:
        tree: the whole trace.
    """

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree, _Said())

    def text(self, own: Sequence[Span], key: str) -> str | None:
        """Return the task or the subquery that the application set.

        Args:
            own: the retrieval's span, and those inside that are part of it.
            key: which of the two.
        """
        if not self._tree.says:
            return None
        above = self.above(own[0])
        return text(own, key) or (above.task if key == marks.TASK else above.subquery)

    def labels(self, own: Sequence[Span]) -> Labels:
        """Return the first readable ground truth; see `text`."""
        if not self._tree.says:
            return _NO_LABELS
        found = self.above(own[0]).labels
        for span in reversed(own):
            found = labels(span).otherwise(found)
        return found

    def _step(self, span: Span, above: _Said) -> _Said:
        if span.attributes.keys().isdisjoint(_INHERITED):
            return above
        return _Said(
            text([span], marks.TASK) or above.task,
            text([span], marks.SUBQUERY) or above.subquery,
            labels(span).otherwise(above.labels),
        )


def _truth(attributes: Mapping[str, Any]) -> GroundTruth | None:
    ids, answer = attributes.get(marks.GROUND_TRUTH_IDS), attributes.get(marks.GROUND_TRUTH_ANSWER)
    if ids is None:
        whole = attributes.get(marks.GROUND_TRUTH)
        whole = loads(whole) if isinstance(whole, str) else as_data(whole)
        if not isinstance(whole, dict):
            return None
        ids, answer = whole.get("gold_doc_ids"), whole.get("answer") if answer is None else answer
    if isinstance(ids, str):
        listed = loads(ids)
        ids = listed if isinstance(listed, list) else [ids]
    if not isinstance(ids, (list, tuple)) or len(ids) > _MAX_LABELS:
        return None
    gold = [id_of(each) for each in ids]
    if None in gold:
        return None
    readable = isinstance(answer, str) and bool(answer.strip()) and not is_redacted(answer)
    return GroundTruth(tuple(each for each in gold if each is not None), answer if readable else None)
