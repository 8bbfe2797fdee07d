"""How far a mean or a rate can be trusted. Pure.

Which interval goes with which figure is in `docs/evaluators.md`; a unit is a query or a trace, never a span.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

FEWEST = 10
"""Values under which no interval is given: it would be narrower than it should be."""
MAX_UNITS = 256
"""Values that are resampled one by one; more are put together first, see `blocks`, so that no interval takes long."""
DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, both included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Sums:
    """What a mean and its interval are computed from; those of two groups add up to those of both.

    Attributes:
        n: how many values.
        total: their sum.
        squares: the sum of their squares.
    """

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: Iterable[float]) -> Sums:
        """Return the sums of `values`."""
        values = list(values)
        return cls(len(values), math.fsum(values), math.fsum(value * value for value in values))

    @property
    def mean(self) -> float | None:
        """The mean; None without values."""
        return self.total / self.n if self.n else None

    @property
    def variance(self) -> float:
        """The variance, by n - 1; 0 for fewer than two values."""
        if self.n < 2:
            return 0.0
        # Rounding must not make it negative.
        return max(0.0, self.squares - self.total * self.total / self.n) / (self.n - 1)

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.n + other.n, self.total + other.total, self.squares + other.squares)


def mean_interval(sums: Sums, level: float = 0.95) -> Interval | None:
    """Return the t interval of a mean, which may reach beyond the values' own range; None under 10 values."""
    if sums.n < FEWEST:
        return None
    middle = sums.total / sums.n
    half = t_quantile((1 + level) / 2, sums.n - 1) * math.sqrt(sums.variance / sums.n)
    return Interval(middle - half, middle + half)


def wilson(successes: int, n: int, level: float = 0.95) -> Interval | None:
    """Return Wilson's score interval of the rate `successes` / `n`; None for `n` = 0."""
    if not n:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    rate, weight = successes / n, z * z / n
    middle = (rate + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(rate * (1 - rate) / n + weight / (4 * n))
    # The ends of 0 and n successes are 0 and 1, but for rounding.
    return Interval(0.0 if not successes else middle - half, 1.0 if successes == n else middle + half)


def bootstrap_mean(
    values: Sequence[float], *, draws: int = DRAWS, seed: int = 0, level: float = 0.95
) -> Interval | None:
    """Return the percentile bootstrap interval of a mean; None under 10 values. Same input, same interval."""
    return stratified_bootstrap([values], draws=draws, seed=seed, level=level)


def stratified_bootstrap(
    strata: Sequence[Sequence[float]], *, draws: int = DRAWS, seed: int = 0, level: float = 0.95
) -> Interval | None:
    """Return the percentile bootstrap interval of the mean of the strata's means, resampling inside each.

    None without strata, or with one of fewer than 10 values.
    """
    if not strata or min(map(len, strata)) < FEWEST:
        return None
    generator = random.Random(seed)  # noqa: S311 - nothing secret; the same input shall give the same interval
    means = [0.0] * draws
    for values in strata:
        units = _units(values)
        n, share = len(units), 1 / (len(units) * len(strata))
        means = [mean + share * sum(generator.choices(units, k=n)) for mean in means]
    means.sort()
    tail = (1 - level) / 2
    return Interval(_percentile(means, tail), _percentile(means, 1 - tail))


def blocks(values: Sequence[float], limit: int = MAX_UNITS) -> list[float]:
    """Return the values, or if they are more than `limit` as many sums of groups of them, of nearly one size.

    The groups are drawn by lot, always the same one, so that no order of the values counts.
    """
    if len(values) <= limit:
        return list(values)
    shuffled = random.Random(0).sample(values, len(values))  # noqa: S311 - nothing secret
    return [math.fsum(shuffled[start::limit]) for start in range(limit)]


def _units(values: Sequence[float]) -> list[float]:
    # Group sums about the mean, scaled so that their own mean has the variance that the values' mean has.
    if len(values) <= MAX_UNITS:
        return list(values)
    mean = math.fsum(values) / len(values)
    scale = MAX_UNITS / len(values)
    return [mean + scale * group for group in blocks([value - mean for value in values])]


def _percentile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def t_two_sided(t: float, df: float) -> float:
    """Return how likely Student's t is at least as far from 0 as `t`, with `df` > 0 degrees of freedom."""
    if math.isinf(t):
        return 0.0
    return _incomplete_beta(df / 2, df / (df + t * t))


@lru_cache(maxsize=4_096)
def t_quantile(p: float, df: float) -> float:
    """Return below which Student's t is with probability `p`, from .5 up to 1; `df` is at least 1."""
    t = NormalDist().inv_cdf(p)
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    # Newton's steps from the normal quantile, which lies below: the distribution is concave here, so none overshoots.
    for _ in range(100):
        density = scale * (1 + t * t / df) ** (-(df + 1) / 2)
        step = (p - 1 + t_two_sided(t, df) / 2) / density
        t += step
        if abs(step) <= 1e-12 * (1 + t):
            break
    return t


def _incomplete_beta(a: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, 1/2)."""
    if x >= 1:
        return 1.0
    if x <= 0:
        return 0.0
    front = math.exp(
        math.lgamma(a + 0.5) - math.lgamma(a) - math.lgamma(0.5) + a * math.log(x) + 0.5 * math.log1p(-x)
    )
    # Each of the two fractions converges fast on its side of the mean.
    if x < (a + 1) / (a + 2.5):
        return front * _beta_fraction(a, 0.5, x) / a
    return 1 - front * _beta_fraction(0.5, a, 1 - x) / 0.5


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    value = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value
