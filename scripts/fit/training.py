"""Fit the evaluator's model, as `lexical.json` keeps it, on labelled contexts. Deterministic on one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from fit.contexts import Labelled
from seer_otel.evaluation.evaluators.features import FIRST, SECOND, Context
from seer_otel.evaluation.evaluators.lexical import SIGNALS, citations, signals

PARTS = 2
SETTINGS = {
    "max_iter": 70, "learning_rate": 0.1, "max_leaf_nodes": 12, "min_samples_leaf": 40, "l2_regularization": 1.0,
    "early_stopping": False, "random_state": 0,
}  # fmt: skip
# Contexts in which evidence is missing, and how much one of them counts.
SUFFICIENT = {"full": 1.0, "one": 1.0, "none": 1.0, "unanswerable": 1.0}
ANSWERABLE = {"full": 1.0, "none": 0.5, "unanswerable": 3.0}
ABSTAINING = 0.15
"""The share of the questions written to look answerable at which the model abstains. At more of them it would take too
many that can be answered for such: of sets that it was not fitted on, one in 23 at 0.25."""

Model = dict[str, Any]
Rows = list[list[float]]


def fitted(whole: Sequence[Labelled], thin: Sequence[Labelled], about: Model) -> Model:
    """The model: trees on `whole` contexts, what is missing from `thin` ones; `about` says name, version, accuracy.

    The second trees see chances that the first gave for questions they were not fitted on, and so do the logistic
    models of both.
    """
    part = {
        group: number % PARTS for number, group in enumerate(sorted({each.group for each in (*whole, *thin)}))
    }
    sides = [
        (
            [each for each in whole if part[each.group] != side],
            [each for each in whole if part[each.group] == side],
        )
        for side in range(PARTS)
    ]
    chances: dict[int, list[float]] = {}
    firsts = []
    for seen, unseen in sides:
        firsts.append(predictor(boosted(seen, Context.first)))
        for context, found in zip(
            _contexts(unseen), firsts[-1]([c.first() for c in _contexts(unseen)]), strict=True
        ):
            chances[id(context)] = found
    second_rows = lambda context: context.second(chances[id(context)])  # noqa: E731
    first, second = boosted(whole, Context.first), boosted(whole, second_rows)
    rows: Rows = []
    kinds: list[str] = []
    for side, (seen, _) in enumerate(sides):
        contexts = [(each, context) for each in thin if part[each.group] == side for context in each.contexts]
        before = firsts[side]([context.first() for _, context in contexts])
        last = predictor(boosted(seen, second_rows))
        after = last([context.second(found) for (_, context), found in zip(contexts, before, strict=True)])
        for (each, context), found in zip(contexts, after, strict=True):
            rows.append(signals(context, found, citations(found)))
            kinds.append(each.kind)
    answerable = logistic(rows, kinds, ANSWERABLE)
    unanswerable = sorted(
        _logit(answerable, row) for row, kind in zip(rows, kinds, strict=True) if kind == "unanswerable"
    )
    bound = float(np.quantile(unanswerable, ABSTAINING)) if unanswerable else -20.0
    return {
        **about,
        "abstain": _round(1 / (1 + np.exp(-bound))),
        "answerable": answerable,
        "columns": {"first": list(FIRST), "second": list(SECOND), "signals": list(SIGNALS)},
        "first": kept(first),
        "second": kept(second),
        "sufficiency": logistic(rows, kinds, SUFFICIENT),
    }


def boosted(examples: Sequence[Labelled], rows: Callable[[Context], Rows]) -> HistGradientBoostingClassifier:
    """Trees that tell gold passages from others; each context counts the same, whatever its size."""
    table = [row for context in _contexts(examples) for row in rows(context)]
    labels = [label for each in examples for _ in each.contexts for label in each.labels]
    weights = [10 / len(each.ids) for each in examples for _ in each.contexts for _ in each.ids]
    return HistGradientBoostingClassifier(**SETTINGS).fit(np.array(table), labels, sample_weight=weights)


def predictor(model: HistGradientBoostingClassifier) -> Callable[[Sequence[Rows]], list[list[float]]]:
    """What gives the chances of the passages of many contexts at once."""

    def predict(contexts: Sequence[Rows]) -> list[list[float]]:
        if not contexts:
            return []
        found = model.predict_proba(np.array([row for rows in contexts for row in rows]))[:, 1]
        ends = np.cumsum([len(rows) for rows in contexts])[:-1]
        return [part.tolist() for part in np.split(found, ends)]

    return predict


def logistic(rows: Rows, kinds: Sequence[str], weight: dict[str, float]) -> Model:
    """A logistic model that tells `full` contexts from the others that have a weight."""
    used = [place for place, kind in enumerate(kinds) if kind in weight]
    table = np.array([rows[place] for place in used])
    middle, spread = table.mean(axis=0), table.std(axis=0)
    spread[spread == 0] = 1.0
    model = LogisticRegression(C=0.3, max_iter=5_000, tol=1e-8)
    model.fit(
        (table - middle) / spread,
        [kinds[place] == "full" for place in used],
        sample_weight=[weight[kinds[place]] for place in used],
    )
    weights = model.coef_[0] / spread
    intercept = float(model.intercept_[0] - (weights * middle).sum())
    return {"intercept": _round(intercept), "weights": [_round(each) for each in weights]}


def kept(model: HistGradientBoostingClassifier) -> Model:
    """The trees as `Trees` reads them."""

    def node(nodes: Any, place: int) -> Any:
        one = nodes[place]
        if one["is_leaf"]:
            return _round(one["value"])
        sides = (node(nodes, one["left"]), node(nodes, one["right"]))
        return [int(one["feature_idx"]), _round(one["num_threshold"]), *sides]

    trees = [node(predictor.nodes, 0) for (predictor,) in model._predictors]  # noqa: SLF001 - it has no public way
    base = np.ravel(model._baseline_prediction)[0]  # noqa: SLF001
    return {"base": _round(base), "trees": trees}


def _contexts(examples: Sequence[Labelled]) -> list[Context]:
    return [context for each in examples for context in each.contexts]


def _logit(model: Model, row: Sequence[float]) -> float:
    return float(model["intercept"] + np.dot(model["weights"], row))


def _round(value: float) -> float:
    """Seven digits that count: as many as keep a citation from changing, in a file of some hundred kilobytes."""
    return float(f"{float(value):.7g}")
