"""How good labelled retrievals are, and how well an evaluator judges them: the accuracy report. Pure.

A row is what is known of one example, as JSON has it; a summary is what rows of one file, or all files, say together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..assembly.assemble import ATTRIBUTES_DROPPED, PARTIAL
from ..event import PASSAGES_CUT, TEXTS_CUT
from .datasets import Example
from .evaluators.corpus import Corpus
from .judging import Evaluator, Judgement
from .metrics import evaluator_scores, label_free, retrieval_scores
from .ranking import average_precision, ndcg_at, precision_at, recall_at, reciprocal_rank
from .statistics import FEWEST, Interval, Sums, mean_interval, stratified_bootstrap, wilson

KS = (1, 3, 5, 10)
"""Ranks at which recall, precision and nDCG are cut."""
RETRIEVAL = ("gt_recall", "gt_precision", "gt_f1")
EVALUATOR = ("evaluator_precision", "evaluator_recall", "evaluator_f1", "exact_match")
ORDER = (
    *(f"{name}_at_{k}" for name in ("recall", "precision", "ndcg") for k in KS),
    "reciprocal_rank",
    "average_precision",
)
LABEL_FREE = ("recall", "precision", "f1", "ndcg", "sufficiency", "nothing_cited")
FIGURES = (*RETRIEVAL, *EVALUATOR, *ORDER, *LABEL_FREE)
"""The figures of a row, each from 0 to 1, or None where it is not available."""

FAILED = "failed"
MARKS = (PASSAGES_CUT, TEXTS_CUT, ATTRIBUTES_DROPPED, PARTIAL)
"""Marks of an event that was not seen whole, so that its figures count in no average."""
DRAWS = 1_000
"""Of the bootstrap over all files, which is done for each figure."""
HIGH, LOW = 0.9, 0.7
"""Between these an evaluator's accuracy is moderate. Source: Seer's "Accuracy Testing" page."""

Row = dict[str, Any]


def evaluate(example: Example, evaluator: Evaluator, corpus: Corpus) -> Row:
    """Judge one example. Whatever the evaluator raises becomes the row's `error`."""
    try:
        judgement = evaluator.judge(example.task, example.texts, corpus)
        cited = {position for each in judgement.requirements for position in each.citations}
        if not judgement.requirements or not cited.union(judgement.cited) <= set(
            range(len(example.passages))
        ):
            raise ValueError("it lists no requirement, or cites a passage that there is not")  # noqa: TRY301
    except Exception as error:  # noqa: BLE001 - one example that cannot be judged is no reason to stop
        return row(example, None, f"{type(error).__name__}: {error}")
    return row(example, judgement)


def row(example: Example, judgement: Judgement | None, error: str | None = None) -> Row:
    """Return what is known of an example: where it stands, what is cited, what is required, and its figures.

    `left_out` says why it counts in no average: `failed` where there is no judgement, or a mark in its metadata.
    """
    figures: dict[str, float | None] = dict.fromkeys(FIGURES)
    if example.gold_ids is not None:
        figures |= _of_labels(example, example.gold_ids)
    cited = sorted(judgement.cited) if judgement else []
    if judgement is not None:
        figures |= _of_judgement(example, judgement)
    marks = [mark for mark in MARKS if example.metadata.get(mark)]
    gold = set(example.gold_ids or ())
    return {
        "file": example.file,
        "line": example.line,
        "task": example.task,
        "cited_ids": list(dict.fromkeys(name for position in cited if (name := example.ids[position]))),
        "cited_positions": cited,
        "requirements": [
            {"text": each.text, "present": each.present, "citations": list(each.citations)}
            for each in (judgement.requirements if judgement else ())
        ],
        "labelled": example.gold_ids is not None,
        "gold": len(gold),
        "gold_in_context": len(gold.intersection(example.ids)),
        **figures,
        "error": error,
        "left_out": FAILED if judgement is None else marks[0] if marks else None,
    }


def _of_labels(example: Example, gold: Sequence[str]) -> dict[str, float | None]:
    ids = example.ids
    truth = retrieval_scores(gold, ids)
    figures: dict[str, float | None] = {
        "gt_recall": truth.recall,
        "gt_precision": truth.precision,
        "gt_f1": truth.f1,
        "reciprocal_rank": reciprocal_rank(ids, gold),
        "average_precision": average_precision(ids, gold),
    }
    for k in KS:
        figures[f"recall_at_{k}"] = recall_at(k, ids, gold)
        figures[f"precision_at_{k}"] = precision_at(k, ids, gold)
        figures[f"ndcg_at_{k}"] = ndcg_at(k, ids, gold)
    return figures


def _of_judgement(example: Example, judgement: Judgement) -> dict[str, float | None]:
    found = label_free(
        judgement,
        example.ids,
        [passage.rank for passage in example.passages],
        [passage.score for passage in example.passages],
    )
    figures: dict[str, float | None] = {
        "recall": found.recall,
        "precision": found.precision,
        "f1": found.f1,
        "ndcg": found.ndcg,
        "sufficiency": judgement.sufficiency,
        "nothing_cited": float(not judgement.cited),
    }
    if example.gold_ids is not None:
        scores = evaluator_scores(example.gold_ids, example.ids, judgement.cited)
        figures |= {
            "evaluator_precision": scores.precision,
            "evaluator_recall": scores.recall,
            "evaluator_f1": scores.f1,
            "exact_match": float(scores.exact_match),
        }
    return figures


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over `n` examples, and its 95 % interval; None where `n` is under 10, or all are the same share."""

    mean: float
    n: int
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Summary:
    """What the rows of one file, or of all files, say together.

    Attributes:
        examples: how many there are.
        not_evaluated: of them, those at which the evaluator failed.
        left_out: of them, those that were not seen whole and count in no average.
        labelled: those that count and have labels.
        answerable: of those, the ones whose context holds a gold document.
        gold: gold documents that the labels name, all together.
        figures: by name; None where no example has it.
    """

    examples: int
    not_evaluated: int
    left_out: int
    labelled: int
    answerable: int
    gold: int
    figures: dict[str, Estimate | None]

    def as_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object; each figure has `mean`, `low`, `high` and `n`, or is null."""
        return {
            "examples": self.examples,
            "not_evaluated": self.not_evaluated,
            "left_out": self.left_out,
            "labelled": self.labelled,
            "gold_in_context": self.answerable,
        } | {
            name: each
            and {
                "mean": each.mean,
                "low": each.interval and each.interval.low,
                "high": each.interval and each.interval.high,
                "n": each.n,
            }
            for name, each in self.figures.items()
        }


def summary(rows: Sequence[Row]) -> Summary:
    """Summarize the rows of one file: means with their t interval, what is 0 or 1 in each example with Wilson's."""
    return _summary(
        rows, {name: _estimate([values] if values else []) for name, values in _values(rows).items()}
    )


def overall(files: Sequence[Sequence[Row]]) -> Summary:
    """Summarize all files: each figure is the mean of the files' means, its interval a bootstrap inside each file.

    What labels are needed for is taken only of files whose labels name gold documents, where there are any: where none
    is named there is nothing to find, and precision or nDCG would be 0 by definition.
    """
    found = [_values(rows) for rows in files]
    named = [values for values, rows in zip(found, files, strict=True) if names_gold(rows)] or found
    figures = {
        name: _estimate([values[name] for values in (found if name in LABEL_FREE else named) if values[name]])
        for name in FIGURES
    }
    return _summary([row for rows in files for row in rows], figures)


def names_gold(rows: Sequence[Row]) -> bool:
    """Return whether the labels of any row name a gold document."""
    return any(row["gold"] for row in rows)


def reading(accuracy: float) -> str:
    """Return how far an evaluator of this accuracy is to be trusted: `high`, `moderate` or `low`."""
    return "high" if accuracy > HIGH else "low" if accuracy < LOW else "moderate"


def _values(rows: Sequence[Row]) -> dict[str, list[float]]:
    counted = [row for row in rows if row["left_out"] is None]
    return {name: [row[name] for row in counted if row[name] is not None] for name in FIGURES}


def _summary(rows: Sequence[Row], figures: dict[str, Estimate | None]) -> Summary:
    counted = [row for row in rows if row["left_out"] is None]
    failed = sum(row["left_out"] == FAILED for row in rows)
    return Summary(
        examples=len(rows),
        not_evaluated=failed,
        left_out=len(rows) - len(counted) - failed,
        labelled=sum(row["labelled"] for row in counted),
        answerable=sum(row["gold_in_context"] > 0 for row in counted),
        gold=sum(row["gold"] for row in counted),
        figures=figures,
    )


def _estimate(sets: Sequence[Sequence[float]]) -> Estimate | None:
    """The mean of the means of sets, each of which has values; None without sets."""
    if not sets:
        return None
    sums = [Sums.of(values) for values in sets]
    if len(sums) > 1:
        interval = _within(stratified_bootstrap(sets, draws=DRAWS))
    elif {0.0, 1.0}.issuperset(sets[0]):
        interval = _rate_interval(sums[0])
    else:
        interval = _within(mean_interval(sums[0]))
    return Estimate(
        sum(each.total / each.n for each in sums) / len(sums), sum(each.n for each in sums), interval
    )


def _rate_interval(sums: Sums) -> Interval | None:
    return wilson(round(sums.total), sums.n) if sums.n >= FEWEST else None


def _within(interval: Interval | None) -> Interval | None:
    """The interval of a share, which is not beyond 0 or 1; None where all values were the same, and so say nothing."""
    if interval is None or interval.low == interval.high:
        return None
    return Interval(max(0.0, interval.low), min(1.0, interval.high))
