"""Whether a change made a difference. Pure.

The unit is the trace, or the query: spans of one trace are alike, and as if independent they give a false alarm in
every fourth comparison. Where both variants answered the same queries, the pairs show differences that are half as
large.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from operator import getitem
from statistics import NormalDist

from .statistics import FEWEST, Sums, blocks, bootstrap_mean, t_quantile, t_two_sided

LEVEL = 0.95
POWER = 0.8
INTERVAL_DRAWS = 1_000


@dataclass(frozen=True, slots=True)
class Comparison:
    """A test variant against a base variant.

    Attributes:
        difference: the mean of the test variant minus that of the base.
        low, high: its 95 % interval.
        p: how often chance alone gives a difference at least as large, either way.
        n: how many pairs, or values on the smaller side.
        detectable: the true difference that so many values show, at 5 %, in 80 % of all comparisons.
    """

    difference: float
    low: float
    high: float
    p: float
    n: int
    detectable: float


def paired(differences: Sequence[float], *, draws: int = 10_000, seed: int = 0) -> Comparison | None:
    """Compare variants that answered the same queries, given test minus base of each; None under 10.

    p is that of the sign-flip test, (1 + hits) / (1 + draws); the interval that of the percentile bootstrap, with
    1,000 draws. The same input gives the same result. More than 256 differences are flipped in as many groups, drawn by
    lot, which is as exact a test: were there no effect, a group's sum would be as likely negative as positive.
    """
    sums = Sums.of(differences)
    interval = bootstrap_mean(differences, draws=INTERVAL_DRAWS, seed=seed)
    if interval is None:
        return None
    return Comparison(
        difference=sums.total / sums.n,
        low=interval.low,
        high=interval.high,
        p=_sign_flip(blocks(differences), draws, seed),
        n=sums.n,
        detectable=_detectable(math.sqrt(sums.variance / sums.n), sums.n - 1),
    )


def independent(base: Sequence[float], test: Sequence[float]) -> Comparison | None:
    """Compare variants that answered different queries, by Welch's t test; None under 10 values on a side."""
    before, after = Sums.of(base), Sums.of(test)
    n = min(before.n, after.n)
    if n < FEWEST:
        return None
    difference = after.total / after.n - before.total / before.n
    parts = [(side.variance / side.n, side.n - 1) for side in (before, after)]
    variance = sum(part for part, _ in parts)
    if not variance:  # each side has but one value
        return Comparison(difference, difference, difference, 0.0 if difference else 1.0, n, 0.0)
    error = math.sqrt(variance)
    # Of shares, as squares of tiny variances would be 0.
    df = 1 / sum((part / variance) ** 2 / left for part, left in parts)
    half = t_quantile((1 + LEVEL) / 2, df) * error
    return Comparison(
        difference,
        difference - half,
        difference + half,
        t_two_sided(difference / error, df),
        n,
        _detectable(error, df),
    )


def holm(ps: Sequence[float]) -> list[float]:
    """Return the p values of several tests adjusted by Holm's method, in the order given."""
    adjusted = [0.0] * len(ps)
    least = 0.0
    for done, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = max(least, min(1.0, (len(ps) - done) * ps[place]))
        adjusted[place] = least
    return adjusted


def _detectable(error: float, df: float) -> float:
    return (t_quantile((1 + LEVEL) / 2, df) + NormalDist().inv_cdf(POWER)) * error


def _sign_flip(values: Sequence[float], draws: int, seed: int) -> float:
    # All 256 signed sums of eight values at a time, so that one random byte flips eight signs.
    tables = [_signed_sums(values[start : start + 8]) for start in range(0, len(values), 8)]
    # Sums that are equal but for rounding are equal.
    reached = abs(math.fsum(values)) - 1e-9 * math.fsum(map(abs, values))
    random_bytes = random.Random(seed).randbytes  # noqa: S311 - as in a bootstrap
    hits = sum(abs(sum(map(getitem, tables, random_bytes(len(tables))))) >= reached for _ in range(draws))
    return (1 + hits) / (1 + draws)


def _signed_sums(values: Sequence[float]) -> list[float]:
    sums = [0.0]
    for value in values:
        sums = [*(so_far + value for so_far in sums), *(so_far - value for so_far in sums)]
    return sums * (256 // len(sums))
