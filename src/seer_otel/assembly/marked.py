"""Attributes by which an application speaks to us, read from the spans that carry them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import marks
from ..conventions.documents import id_of, number
from ..conventions.lenient_json import loads
from ..event import GroundTruth
from ..privacy import is_redacted
from ..spans import Span
from .tree import Inherited, Tree


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
    rate = number(attributes.get(marks.SAMPLE_RATE))
    return rate if rate is not None and 0 <= rate <= 1 else None


def has_ground_truth(attributes: Mapping[str, Any]) -> bool:
    """Return whether a span carries labels, readable or not."""
    return (
        marks.GROUND_TRUTH_IDS in attributes
        or marks.GROUND_TRUTH in attributes
        or marks.GROUND_TRUTH_ANSWER in attributes
    )


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
        return Labels()
    truth = _truth(span.attributes)
    return Labels(truth, unreadable=truth is None)


class Marks:
    """The marks of one trace: those of a retrieval's own spans, else of the nearest span above that has one.

    Args:
        tree: the whole trace.
    """

    def __init__(self, tree: Tree) -> None:
        self._texts = {
            key: Inherited[str | None](tree, lambda span, above, key=key: text([span], key) or above, None)  # type: ignore[misc]
            for key in (marks.TASK, marks.SUBQUERY)
        }
        self._labels = Inherited(tree, lambda span, above: labels(span).otherwise(above), Labels())

    def text(self, own: Sequence[Span], key: str) -> str | None:
        """Return the task or the subquery that the application set.

        Args:
            own: the retrieval's span, and those inside that are part of it.
            key: which of the two.
        """
        return text(own, key) or self._texts[key].above(own[0])

    def labels(self, own: Sequence[Span]) -> Labels:
        """Return the first readable ground truth; see `text`."""
        found = self._labels.above(own[0])
        for span in reversed(own):
            found = labels(span).otherwise(found)
        return found


def _truth(attributes: Mapping[str, Any]) -> GroundTruth | None:
    ids, answer = attributes.get(marks.GROUND_TRUTH_IDS), attributes.get(marks.GROUND_TRUTH_ANSWER)
    if ids is None:
        whole = attributes.get(marks.GROUND_TRUTH)
        whole = loads(whole) if isinstance(whole, str) else whole
        if not isinstance(whole, Mapping):
            return None
        ids, answer = whole.get("gold_doc_ids"), whole.get("answer") if answer is None else answer
    if isinstance(ids, str):
        listed = loads(ids)
        ids = listed if isinstance(listed, list) else [ids]
    if not isinstance(ids, (list, tuple)):
        return None
    gold = [id_of(each) for each in ids]
    if None in gold:
        return None
    readable = isinstance(answer, str) and bool(answer.strip()) and not is_redacted(answer)
    return GroundTruth(tuple(each for each in gold if each is not None), answer if readable else None)
