"""A figure's rows: what was measured, beside what, in how many rounds, and whether the goal holds. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Spread:
    """The median of the rounds, and their quartiles (the least and the most, where there are fewer than four)."""

    median: float
    low: float
    high: float


def spread(rounds: Sequence[float]) -> Spread:
    if len(rounds) < 4:
        return Spread(statistics.median(rounds), min(rounds), max(rounds))
    low, median, high = statistics.quantiles(rounds, n=4, method="inclusive")
    return Spread(median, low, high)


@dataclass(frozen=True)
class Goal:
    """What a row has to reach: by its ratio to the reference, or by its own value."""

    of: Literal["ratio", "value"]
    sense: Literal["<=", ">="]
    bound: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.sense} {self.bound:g}{'x' if self.of == 'ratio' else f' {self.unit}'.rstrip()}"

    def holds(self, value: float) -> bool:
        return value <= self.bound if self.sense == "<=" else value >= self.bound


@dataclass(frozen=True)
class Row:
    """One line of the table. A row without `ours` was not measured, and its note says why."""

    figure: str
    name: str
    unit: str
    ours: Spread | None
    reference: Spread | None = None
    reference_name: str = ""
    ratio: Spread | None = None
    goal: str = ""
    holds: bool | None = None
    note: str = ""


def row(
    figure: str,
    name: str,
    unit: str,
    ours: Sequence[float],
    reference: Sequence[float] = (),
    reference_name: str = "",
    *,
    goal: Goal | None = None,
    note: str = "",
) -> Row:
    """Make a row of one value for each round.

    Args:
        reference: what was measured in the same rounds beside `ours`: a ratio is that of one round, and the row's is
            their median.
        goal: judged by the median.
    """
    ratio = None
    if reference:
        ratio = spread([mine / theirs for mine, theirs in zip(ours, reference, strict=True)])
    own = spread(ours)
    holds = None
    if goal is not None:
        judged = own if goal.of == "value" else ratio
        assert judged is not None, "a goal for a ratio needs a reference"
        holds = goal.holds(judged.median)
    beside = spread(reference) if reference else None
    words = str(goal) if goal else ""
    return Row(figure, name, unit, own, beside, reference_name, ratio, words, holds, note)


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    Attributes:
        quick: only so much that everything has run once; the values mean nothing.
        long: a million traces, which takes some minutes.
    """

    quick: bool = False
    long: bool = False

    def rounds(self, usual: int) -> int:
        return 1 if self.quick else usual

    def count(self, usual: int) -> int:
        return max(usual // 20, 20) if self.quick else usual
