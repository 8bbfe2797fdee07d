"""An ensemble of regression trees and a logistic model, kept as JSON, walked in plain Python. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any, TypeAlias

Tree: TypeAlias = "float | tuple[int, float, Tree, Tree]"
"""A leaf's value; or a column, a threshold, where a value up to it leads, and where a greater one leads."""


class Trees:
    """Gradient-boosted trees that give a probability.

    Args:
        kept: `base`, the raw score before any tree, and `trees`, each a leaf's value or a list
            `[column, threshold, left, right]`.
    """

    def __init__(self, kept: Mapping[str, Any]) -> None:
        self._base = float(kept["base"])
        self._trees = [_tree(tree) for tree in kept["trees"]]

    def __call__(self, row: Sequence[float]) -> float:
        """The probability for a row with all columns."""
        raw = self._base
        for tree in self._trees:
            node = tree
            while node.__class__ is tuple:
                column, threshold, left, right = node
                node = left if row[column] <= threshold else right
            raw += node  # type: ignore[operator]
        return sigmoid(raw)


class Logistic:
    """A logistic model.

    Args:
        kept: `intercept` and `weights`, one for each column.
    """

    def __init__(self, kept: Mapping[str, Any]) -> None:
        self._intercept = float(kept["intercept"])
        self._weights = [float(weight) for weight in kept["weights"]]

    def __call__(self, row: Sequence[float]) -> float:
        """The probability for a row with all columns."""
        return sigmoid(
            self._intercept + sum([weight * value for weight, value in zip(self._weights, row, strict=True)])
        )


def sigmoid(raw: float) -> float:
    """1 / (1 + exp(-raw)), without overflow."""
    return 1 / (1 + exp(-raw)) if raw > -700 else 0.0


def _tree(kept: Any) -> Tree:
    if not isinstance(kept, list):
        return float(kept)
    column, threshold, left, right = kept
    return int(column), float(threshold), _tree(left), _tree(right)
