"""What two variants' traces say about the change between them. Pure.

The unit is the trace. Where the same questions were asked of both variants, each question is compared with itself:
the mean of its traces in one against that in the other, which shows far smaller differences.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from seer_otel.evaluation.comparing import Comparison, holm, independent, paired
from seer_otel.local.pages.reading.variants import METRICS, Unit

FEWEST = 10
"""Traces of each variant, or questions asked of both, without which nothing is said."""
FEW = 30
"""Under this, a row is greyed."""
LEVEL = 0.05
MAX_QUESTIONS = 20
"""Questions that are listed as better, and as worse."""
MAX_SEGMENTS = 12
SEGMENTS = ("index", "span_name")


@dataclass(frozen=True, slots=True)
class Row:
    """One metric, or the primary metric in one segment.

    Attributes:
        name: of the metric or the segment's value.
        base, test: the means that are compared; None where a side has no value.
        base_n, test_n: traces that have a value.
        n: what the comparison rests on: questions asked of both, or the traces of the smaller side.
        comparison: None under `FEWEST`.
        adjusted: its p, corrected by Holm where it is one of several.
        needed: the n from which a difference as large as is looked for would be seen, with a power of 80 %.
    """

    name: str
    base: float | None
    test: float | None
    base_n: int
    test_n: int
    n: int
    comparison: Comparison | None = None
    adjusted: float | None = None
    needed: int | None = None

    @property
    def verdict(self) -> str:
        """`better`, `worse`, `open` (not shown, and n is under what is needed), `none` (not shown), or `few`."""
        if self.comparison is None or self.adjusted is None:
            return "few"
        if self.adjusted < LEVEL:
            return "better" if self.comparison.difference > 0 else "worse"
        return "open" if self.needed is not None and self.n < self.needed else "none"

    @property
    def few(self) -> bool:
        """Whether to look at it with little trust."""
        return self.n < FEW


@dataclass(frozen=True, slots=True)
class Question:
    """One question that was asked of both variants.

    Attributes:
        base, test: the means of the primary metric over its traces.
        base_trace, test_trace: the names of the newest ones.
    """

    task: str
    base: float
    test: float
    base_trace: str
    test_trace: str

    @property
    def difference(self) -> float:
        """Test minus base."""
        return self.test - self.base


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that the page says about two variants.

    Attributes:
        paired: whether questions are compared with themselves; else all traces with all.
        common: how many questions were asked of both variants.
        metrics: the primary one, then the guardrails of which either side has a value.
        segments: by column of `segments`, rows of the primary metric, the largest first.
        better, worse: the questions that changed most; `same`: how many did not.
    """

    paired: bool
    common: int
    metrics: Sequence[Row]
    segments: Mapping[str, Sequence[Row]]
    better: Sequence[Question]
    worse: Sequence[Question]
    better_count: int
    worse_count: int
    same_count: int

    @property
    def primary(self) -> Row:
        """The row that decides."""
        return self.metrics[0]


def compare(base: Sequence[Unit], test: Sequence[Unit], target: float = 0.05) -> Outcome:
    """Compare two variants' traces, newest first; `target` is the difference that one wants to see."""
    tasks = [{unit.task for unit in side} for side in (base, test)]
    common = len(tasks[0] & tasks[1])
    # A few questions that happen to be asked of both do not stand for all the others.
    by_question = common >= FEWEST and 2 * common >= min(map(len, tasks))
    rows = [_row(metric, metric, base, test, target, by_question=by_question) for metric in METRICS]
    primary, guardrails = rows[0], [row for row in rows[1:] if row.base_n or row.test_n]
    segments = {}
    for column in SEGMENTS:
        names = _largest(column, base, test)
        of_segment = [
            _row(
                name,
                METRICS[0],
                [unit for unit in base if getattr(unit, column) == name],
                [unit for unit in test if getattr(unit, column) == name],
                target,
                by_question=by_question,
            )
            # One segment is the whole again.
            for name in (names if len(names) > 1 else ())
        ]
        segments[column] = _adjusted(of_segment)
    questions = sorted(_questions(base, test), key=lambda one: (one.difference, one.task))
    worse = [one for one in questions if one.difference < 0]
    better = [one for one in reversed(questions) if one.difference > 0]
    return Outcome(
        by_question,
        common,
        # The primary metric is one test; only the others are several.
        [*_adjusted([primary]), *_adjusted(guardrails)],
        segments,
        better[:MAX_QUESTIONS],
        worse[:MAX_QUESTIONS],
        len(better),
        len(worse),
        len(questions) - len(better) - len(worse),
    )


def _row(
    name: str, metric: str, base: Sequence[Unit], test: Sequence[Unit], target: float, *, by_question: bool
) -> Row:
    values = [[unit.values[metric] for unit in side if metric in unit.values] for side in (base, test)]
    base_n, test_n = map(len, values)
    comparison: Comparison | None
    if by_question:
        means = [_by_task(side, metric) for side in (base, test)]
        both = sorted(means[0].keys() & means[1].keys())
        values = [[of_side[task] for task in both] for of_side in means]
        n = len(both)
        differences = [after - before for before, after in zip(*values, strict=True)]
        comparison = _paired(tuple(differences)) if n >= FEWEST else None
    else:
        n = min(base_n, test_n)
        comparison = independent(*values) if n >= FEWEST else None
    return Row(
        name,
        _mean(values[0]),
        _mean(values[1]),
        base_n,
        test_n,
        n,
        comparison,
        needed=None if comparison is None else _needed(n, comparison.detectable, target),
    )


# Some tenths of a second for a thousand pairs, and a page is often looked at again.
_paired = functools.lru_cache(maxsize=64)(paired)


def _needed(n: int, detectable: float, target: float) -> int:
    # What can be detected shrinks with the square root of n.
    exact = max(FEWEST, math.ceil(n * (detectable / target) ** 2 - 1e-9))
    # Two digits are more than its own error allows to say.
    step: int = 10 ** max(0, len(str(exact)) - 2)
    return -(-exact // step) * step


def _adjusted(rows: Sequence[Row]) -> list[Row]:
    tested = [row.comparison.p for row in rows if row.comparison is not None]
    corrected = iter(holm(tested))
    return [row if row.comparison is None else replace(row, adjusted=next(corrected)) for row in rows]


def _by_task(units: Sequence[Unit], metric: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for unit in units:
        if metric in unit.values:
            values.setdefault(unit.task, []).append(unit.values[metric])
    return {task: math.fsum(of_task) / len(of_task) for task, of_task in values.items()}


def _questions(base: Sequence[Unit], test: Sequence[Unit]) -> list[Question]:
    metric = METRICS[0]
    before, after = _by_task(base, metric), _by_task(test, metric)
    newest = [
        {unit.task: unit.name for unit in reversed(side) if metric in unit.values} for side in (base, test)
    ]
    return [
        Question(task, before[task], after[task], newest[0][task], newest[1][task])
        for task in before.keys() & after.keys()
    ]


def _largest(column: str, base: Sequence[Unit], test: Sequence[Unit]) -> list[str]:
    counts: dict[str, int] = {}
    for unit in (*base, *test):
        name = getattr(unit, column)
        counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda name: (-counts[name], name))[:MAX_SEGMENTS]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
