"""The accuracy report: what is computed of one example, of a file, and of several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from seer_otel.evaluation.accuracy import DRAWS, FIGURES, evaluate, names_gold, overall, reading, summary
from seer_otel.evaluation.datasets import Example, example
from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.judging import Judgement, Requirement
from seer_otel.evaluation.statistics import Interval, Sums, mean_interval, stratified_bootstrap, wilson

CONTEXT = ["gold", None, "other", "gold", "also gold"]


class Citing:
    """An evaluator that cites the same positions each time, and finds one of two requirements there."""

    name, version, accuracy = "citing", "1", "as told"

    def __init__(self, *cited: int) -> None:
        self.cited = cited

    def judge(self, query: str, passages: Sequence[str], corpus: Corpus) -> Judgement:
        present = Requirement("this", True, self.cited[:1])
        return Judgement((present, Requirement("that", False)), self.cited, 0.75)


class Broken:
    """An evaluator that fails at every question that holds "fail"."""

    name, version, accuracy = "broken", "1", "none"

    def judge(self, query: str, passages: Sequence[str], corpus: Corpus) -> Judgement:
        if "fail" in query:
            raise RuntimeError("no answer")
        return Judgement((Requirement("this", True),), (0,))


def labelled(
    ids: Sequence[str | None], gold: Sequence[str] | None, task: str = "?", file: str = "a.jsonl", **more: Any
) -> Example:
    """One example: passages of these ids, and these labels."""
    context = [{"text": f"text {place}", "id": name} for place, name in enumerate(ids)]
    line = {"task": task, "context": context, **more}
    if gold is not None:
        line["ground_truth"] = {"gold_doc_ids": list(gold)}
    return example(file, 1, json.dumps(line).encode())


def test_a_row() -> None:
    """A row names the cited documents in rank order, each once, and has every figure of the example."""
    row = evaluate(labelled(CONTEXT, ["gold", "also gold", "lost"]), Citing(0, 1, 3), Corpus())
    assert (row["file"], row["line"], row["task"], row["error"], row["left_out"]) == (
        "a.jsonl",
        1,
        "?",
        None,
        None,
    )
    assert row["cited_ids"] == ["gold"]
    assert row["cited_positions"] == [0, 1, 3]
    assert row["requirements"] == [
        {"text": "this", "present": True, "citations": [0]},
        {"text": "that", "present": False, "citations": []},
    ]
    assert (row["gold"], row["gold_in_context"]) == (3, 2)
    assert (row["gt_recall"], row["gt_precision"]) == (2 / 3, 2 / 4)
    assert (row["evaluator_precision"], row["evaluator_recall"], row["exact_match"]) == (1 / 2, 1 / 2, 0)
    assert (row["recall"], row["precision"], row["ndcg"], row["sufficiency"]) == (1 / 2, 2 / 4, None, 0.75)
    assert (row["recall_at_1"], row["recall_at_5"], row["precision_at_3"]) == (1 / 3, 2 / 3, 1 / 3)
    assert (row["reciprocal_rank"], row["nothing_cited"]) == (1, 0)
    assert set(FIGURES) <= set(row)
    assert json.loads(json.dumps(row)) == row


def test_rank_and_score_order_the_label_free_ndcg() -> None:
    """Passages that carry a score are ordered by it, and those with a rank by that."""
    context = [{"text": "a", "score": 0.1}, {"text": "b", "score": 0.9, "rank": 1}]
    by_score = example("a", 1, json.dumps({"task": "?", "context": context}).encode())
    assert evaluate(by_score, Citing(1), Corpus())["ndcg"] == 1


def test_without_labels() -> None:
    """An example without labels has no figure that needs them, and the others."""
    row = evaluate(labelled(CONTEXT, None), Citing(0), Corpus())
    assert not row["labelled"]
    assert [row[name] for name in ("gt_recall", "evaluator_precision", "exact_match", "recall_at_1")] == [
        None
    ] * 4
    assert row["recall"] == 1 / 2


@pytest.mark.parametrize("cited", [(7,), (-1,)])
def test_a_judgement_that_cannot_be(cited: tuple[int, ...]) -> None:
    """A citation of a passage that there is not makes an example one that was not evaluated."""
    row = evaluate(labelled(CONTEXT, ["gold"]), Citing(*cited), Corpus())
    assert row["left_out"] == "failed"
    assert row["error"].startswith("ValueError: ")


def test_an_evaluator_that_fails() -> None:
    """What could not be evaluated is counted, says why, and is in no average."""
    rows = [evaluate(labelled(["a"], ["a"], task), Broken(), Corpus()) for task in ("fail", "?", "?")]
    assert rows[0]["error"] == "RuntimeError: no answer"
    assert rows[0]["cited_ids"] == rows[0]["requirements"] == []
    found = summary(rows)
    assert (found.examples, found.not_evaluated, found.labelled) == (3, 1, 2)
    assert all(each is None or each.n <= 2 for each in found.figures.values())


@pytest.mark.parametrize("mark", ["passages_cut", "texts_cut", "attributes_dropped", "partial"])
def test_what_was_not_seen_whole(mark: str) -> None:
    """An event that says it was cut or is a part is shown, and is in no average."""
    marked = labelled(["a"], ["a"], metadata={f"seer_otel.{mark}": 2})
    rows = [evaluate(each, Citing(0), Corpus()) for each in (marked, labelled(["a"], ["a"]))]
    assert rows[0]["left_out"] == f"seer_otel.{mark}"
    assert rows[0]["gt_recall"] == 1
    found = summary(rows)
    assert (found.examples, found.left_out, found.not_evaluated) == (2, 1, 0)
    assert found.figures["gt_recall"] is not None
    assert found.figures["gt_recall"].n == 1


def rows_of(file: str, cited: Sequence[int], gold: Sequence[str] = ("a",)) -> list[dict[str, Any]]:
    return [
        evaluate(labelled(["a", "b"], gold, file=file), Citing(*range(count)), Corpus()) for count in cited
    ]


def test_a_summary() -> None:
    """Means have their t interval, and what is 0 or 1 in every example has Wilson's."""
    rows = rows_of("a", [1] * 12 + [2] * 8)
    figures = summary(rows).figures
    precision, match = figures["evaluator_precision"], figures["exact_match"]
    assert precision is not None
    assert match is not None
    assert precision.mean == pytest.approx((12 + 4) / 20)
    assert precision.interval == mean_interval(Sums.of([1.0] * 12 + [0.5] * 8))
    assert (match.mean, match.n, match.interval) == (12 / 20, 20, wilson(12, 20))
    assert figures["gt_recall"] is not None
    assert figures["gt_recall"].interval == wilson(20, 20)
    # Half in every example: the spread of what is all the same says nothing.
    assert figures["gt_precision"] is not None
    assert (figures["gt_precision"].mean, figures["gt_precision"].interval) == (0.5, None)
    few = summary(rows[:9]).figures["exact_match"]
    assert few is not None
    assert few.interval is None


def test_an_interval_of_shares() -> None:
    """No interval reaches beyond 0 or 1."""
    figure = summary(rows_of("a", [1] * 19 + [2])).figures["evaluator_precision"]
    assert figure is not None
    assert figure.interval is not None
    assert figure.interval.high == 1


def test_the_mean_of_files() -> None:
    """Overall, each file counts the same whatever its size; the interval is a bootstrap inside each."""
    first, second = rows_of("a", [1] * 30 + [2] * 10), rows_of("b", [1, 2] * 10)
    found = overall([first, second]).figures["exact_match"]
    assert found is not None
    assert found.mean == pytest.approx((30 / 40 + 10 / 20) / 2)
    assert found.n == 60
    assert found.interval == stratified_bootstrap([[1.0] * 30 + [0.0] * 10, [1.0, 0.0] * 10], draws=DRAWS)
    assert isinstance(found.interval, Interval)
    assert overall([first]) == summary(first)


def test_files_that_name_no_gold() -> None:
    """Where no label of a file names a document, its precision of 0 says nothing of the others' evaluator."""
    answerable, unanswerable = rows_of("a", [1] * 20), rows_of("b", [0] * 5 + [1] * 15, gold=())
    assert names_gold(answerable)
    assert not names_gold(unanswerable)
    found = overall([answerable, unanswerable])
    assert found.figures["evaluator_precision"] == overall([answerable]).figures["evaluator_precision"]
    nothing = found.figures["nothing_cited"]
    assert nothing is not None
    assert nothing.mean == pytest.approx((0 + 5 / 20) / 2)
    alone = overall([unanswerable]).figures
    assert alone["exact_match"] is not None
    assert alone["exact_match"].mean == 5 / 20
    assert alone["evaluator_recall"] is None


@pytest.mark.parametrize(
    ("share", "expected"), [(0.91, "high"), (0.9, "moderate"), (0.7, "moderate"), (0.69, "low")]
)
def test_the_reading_guide(share: float, expected: str) -> None:
    """Above 90 % is high, under 70 % is low."""
    assert reading(share) == expected
