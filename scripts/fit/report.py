"""How good the evaluator is at questions that it was not fitted on, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fit.contexts import ANSWERABLE, SETS, Labelled
from seer_otel.evaluation.accuracy import Estimate, evaluate, overall, summary
from seer_otel.evaluation.datasets import Example, Passage
from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.evaluators.lexical import Lexical

FIGURES = ("evaluator_precision", "evaluator_recall", "evaluator_f1", "exact_match")
Row = dict[str, object]


@dataclass
class Judged:
    """One labelled context and the accuracy report's row about it."""

    labelled: Labelled
    row: Row


def judge(model: Lexical, examples: Sequence[Labelled], corpora: dict[str, Corpus]) -> list[Judged]:
    """Judge with the very evaluator that is shipped, but for its model; without a corpus as in a fresh store."""
    found = []
    for each in examples:
        row = evaluate(_example(each), model, corpora.get(each.name, Corpus()))
        if row["error"]:
            raise RuntimeError(row["error"])
        found.append(Judged(each, row))
    return found


def macro(judged: Sequence[Judged]) -> Estimate:
    """Macro F1 over the sets that have gold."""
    estimate = overall([_rows(judged, name) for name in ANSWERABLE]).figures["evaluator_f1"]
    assert estimate
    return estimate


def accuracy_table(judged: Sequence[Judged]) -> str:
    lines = [
        "| set | questions | precision | recall | F1 | exact match |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in ANSWERABLE:
        rows = _rows(judged, name)
        lines.append(_line(name, len(rows), summary(rows).figures))
    sets = [_rows(judged, name) for name in ANSWERABLE]
    lines.append(_line("**macro mean**", sum(map(len, sets)), overall(sets).figures))
    return "\n".join(lines)


def _line(name: str, count: int, figures: dict[str, Estimate | None]) -> str:
    return f"| {name} | {count} | " + " | ".join(shown(figures[figure]) for figure in FIGURES) + " |"


def shown(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    interval = estimate.interval
    return share(estimate.mean) + (f" [{share(interval.low)}, {share(interval.high)}]" if interval else "")


def share(value: float) -> str:
    """Three digits as they are printed in the field: .746."""
    return f"{value:.3f}".removeprefix("0")


def f1_of(judged: Sequence[Judged], name: str) -> str:
    estimate = summary(_rows(judged, name)).figures["evaluator_f1"]
    return share(estimate.mean) if estimate else "-"


def abstained(judged: Sequence[Judged], name: str) -> float:
    """The share of a set's contexts in which nothing is cited."""
    rows = _rows(judged, name)
    return sum(not row["cited_positions"] for row in rows) / len(rows)


def sufficiency_table(thin: Sequence[Judged]) -> str:
    """How well label-free figures tell contexts with all evidence from those where it was taken out."""
    lines = [
        "| estimate | hotpot, one missing | hotpot, none left | squad, none left | nq, none left | unanswerable |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    cases = [
        (("hotpot",), "one"), (("hotpot",), "none"), (("squad",), "none"), (("nq",), "none"),
        (("squad", "squad_unanswerable"), "unanswerable"),
    ]  # fmt: skip
    for title, figure in (("label-free recall", "recall"), ("sufficiency", "sufficiency")):
        cells = []
        for names, kind in cases:
            chosen = [each for each in thin if each.labelled.name in names]
            good = [float(str(each.row[figure])) for each in chosen if each.labelled.kind == "full"]
            bad = [float(str(each.row[figure])) for each in chosen if each.labelled.kind == kind]
            cells.append(share(auc(good, bad)))
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def auc(good: Sequence[float], bad: Sequence[float]) -> float:
    """How often a good one is above a bad one; a tie counts half."""
    above = sum((a > b) + 0.5 * (a == b) for a in good for b in bad)
    return above / (len(good) * len(bad))


def calibration_table(thin: Sequence[Judged]) -> str:
    """Of contexts whose sufficiency is in a bin, the share that holds all evidence."""
    lines = ["| sufficiency | contexts | of them with all evidence |", "| --- | --- | --- |"]
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = [
            each for each in thin if low <= float(str(each.row["sufficiency"])) < low + 0.2 + (low == 0.8)
        ]
        full = sum(each.labelled.kind == "full" for each in inside)
        lines.append(
            f"| {low:.1f} to {low + 0.2:.1f} | {len(inside)} | {share(full / max(len(inside), 1))} |"
        )
    return "\n".join(lines)


def _rows(judged: Sequence[Judged], name: str) -> list[dict[str, object]]:
    assert name in SETS
    return [each.row for each in judged if each.labelled.name == name]


def _example(each: Labelled) -> Example:
    """The example with the passages of this variant."""
    passages = tuple(Passage(text, name) for name, text in zip(each.ids, each.texts, strict=True))
    return replace(each.example, passages=passages)
