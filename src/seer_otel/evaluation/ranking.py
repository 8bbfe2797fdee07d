"""How well a ranked list is in order, against what is relevant. Pure.

Each measure takes the ids of one list, best first, and the ids that are relevant (gain 1; all else 0). An id that
comes again counts once, where it first stands; None or "" is a document of its own that is never relevant. All are
those of `trec_eval`, but that nothing relevant gives None, "not available", rather than 0. Sources: Järvelin and
Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002), with the logarithm of rank + 1 for each rank.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from math import log2


def recall_at(k: int, ranked: Iterable[Hashable], relevant: Collection[Hashable]) -> float | None:
    """Which share of all that is relevant is among the first `k`; None without anything relevant."""
    wanted = set(relevant)
    return sum(_hits(ranked, wanted)[:k]) / len(wanted) if wanted else None


def precision_at(k: int, ranked: Iterable[Hashable], relevant: Collection[Hashable]) -> float | None:
    """Which share of `k` places holds something relevant, of a shorter list too; None without anything relevant."""
    wanted = set(relevant)
    return sum(_hits(ranked, wanted)[:k]) / k if wanted else None


def reciprocal_rank(ranked: Iterable[Hashable], relevant: Collection[Hashable]) -> float | None:
    """1 / the rank of the first that is relevant, 0 where none is there; its mean over queries is MRR."""
    wanted = set(relevant)
    if not wanted:
        return None
    hits = _hits(ranked, wanted)
    return 1 / (hits.index(True) + 1) if True in hits else 0.0


def average_precision(ranked: Iterable[Hashable], relevant: Collection[Hashable]) -> float | None:
    """The precision at the rank of each relevant one, 0 for one that is missing, averaged; its mean is MAP."""
    wanted = set(relevant)
    if not wanted:
        return None
    ranks = [rank for rank, hit in enumerate(_hits(ranked, wanted), 1) if hit]
    return sum(count / rank for count, rank in enumerate(ranks, 1)) / len(wanted)


def ndcg_at(k: int, ranked: Iterable[Hashable], relevant: Collection[Hashable]) -> float | None:
    """The discounted gain of the first `k`, as a share of what all that is relevant gives in front."""
    wanted = set(relevant)
    if not wanted:
        return None
    found = sum(1 / log2(rank + 1) for rank, hit in enumerate(_hits(ranked, wanted)[:k], 1) if hit)
    ideal = sum(1 / log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    return found / ideal


def _hits(ranked: Iterable[Hashable], wanted: set[Hashable]) -> list[bool]:
    return [item in wanted for item in _distinct(ranked)]


def _distinct(ranked: Iterable[Hashable]) -> Iterator[Hashable]:
    seen: set[Hashable] = set()
    for item in ranked:
        if item is None or item == "":
            yield None
        elif item not in seen:
            seen.add(item)
            yield item
