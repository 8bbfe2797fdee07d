"""The accuracy report, as a terminal shows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .accuracy import HIGH, KS, LOW, Estimate, Summary, reading
from .judging import Evaluator

WIDTH = 118
"""Columns where there is no terminal."""
FEW = 30
"""Examples under which figures say little."""

_TABLES = (
    (
        "How well the evaluator cites (against your labels)",
        {
            "precision": "evaluator_precision",
            "recall": "evaluator_recall",
            "F1": "evaluator_f1",
            "exact match": "exact_match",
        },
    ),
    (
        "How good the retrieval is (ground truth)",
        {"GT recall": "gt_recall", "GT precision": "gt_precision", "GT F1": "gt_f1"},
    ),
    (
        "How far in front the gold documents stand",
        {
            **{f"recall@{k}": f"recall_at_{k}" for k in KS},
            "MRR": "reciprocal_rank",
            "MAP": "average_precision",
            f"nDCG@{KS[-1]}": f"ndcg_at_{KS[-1]}",
        },
    ),
    (
        "What the evaluator says without labels",
        {
            "recall": "recall",
            "precision": "precision",
            "F1": "f1",
            "nDCG": "ndcg",
            "sufficiency": "sufficiency",
            "nothing cited": "nothing_cited",
        },
    ),
)
_NARROW = "How far in front the gold documents stand"  # too many columns for intervals; the JSON has them

_ADVICE = {
    "high": f"High (above {100 * HIGH:.0f} %): it judges as your labels do. Its figures can be trusted to watch"
    " production.",
    "moderate": f"Moderate ({100 * LOW:.0f} to {100 * HIGH:.0f} %): look at where it and your labels disagree."
    " Passages may support an answer indirectly, labels may be incomplete, or your domain may use words in its own"
    " way.",
    "low": f"Low (under {100 * LOW:.0f} %): do not rely on its figures yet. Are the labels complete? Does the domain"
    " have a terminology of its own? Are passages very long?",
}
"""Source: Seer's "Accuracy Testing" page, "Interpreting Results"."""


def show(evaluator: Evaluator, files: Sequence[str], summaries: Sequence[Summary], overall: Summary) -> None:
    """Print the report on standard output."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH
    console.print(Text(f"Evaluator {evaluator.name} {evaluator.version}", "bold"))
    console.print(f"Measured: {evaluator.accuracy}", soft_wrap=True)
    rows = list(zip(_names(files), summaries, strict=True))
    if len(rows) > 1:
        rows.append(("overall", overall))
    for title, columns in _TABLES:
        known = {
            column: name for column, name in columns.items() if any(each.figures[name] for _, each in rows)
        }
        if known:
            console.print()
            console.print(_table(title, known, rows))
    for words in _notes(rows, overall):
        console.print()
        console.print(words)


def _names(files: Sequence[str]) -> list[str]:
    short = [PurePath(file).stem for file in files]
    return short if len(set(short)) == len(files) else list(files)


def _table(title: str, columns: dict[str, str], rows: Sequence[tuple[str, Summary]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1, 0, 0))
    table.add_column("file", overflow="fold")
    table.add_column("n", justify="right")
    for column in columns:
        table.add_column(column, justify="right")
    for name, each in rows:
        figures = [each.figures[figure] for figure in columns.values()]
        n = max((figure.n for figure in figures if figure), default=0)
        cells = [_cell(figure, with_interval=title != _NARROW) for figure in figures]
        table.add_row(Text(name), f"{n:,}", *cells, style="dim" if n < FEW else None)
    return table


def _cell(figure: Estimate | None, *, with_interval: bool) -> str:
    if figure is None:
        return "-"
    if figure.interval is None or not with_interval:
        return f"{100 * figure.mean:.1f}"
    return f"{100 * figure.mean:.1f} [{100 * figure.interval.low:.1f}-{100 * figure.interval.high:.1f}]"


def _notes(rows: Sequence[tuple[str, Summary]], overall: Summary) -> list[str]:
    legend = (
        "All figures in percent, in brackets their 95 % intervals; - is not available. Evaluator recall and F1 count"
        f" the {overall.answerable:,} examples that have a gold document in their context."
    )
    if len(rows) > 1:
        unnamed = [name for name, each in rows[:-1] if not each.gold]
        left = f", without {', '.join(unnamed)}, where no label names a document" if unnamed else ""
        legend += f" The overall figures are means over the files{left if overall.gold else ''}."
    notes = [legend]
    if overall.not_evaluated:
        notes.append(f"Not evaluated: {overall.not_evaluated:,} of {overall.examples:,}; in no average.")
    if overall.left_out:
        notes.append(
            f"Marked as cut or partial: {overall.left_out:,} of {overall.examples:,}; in no average."
        )
    accuracy = overall.figures["evaluator_f1"]
    if accuracy is None:
        return notes
    if accuracy.interval is None:
        notes.append(
            f"Evaluator F1 {100 * accuracy.mean:.1f}, from too few labels to say more (n {accuracy.n:,}): label 50 to"
            " 100 to begin with."
        )
        return notes
    level = reading(accuracy.mean)
    notes.append(f"Evaluator F1 {100 * accuracy.mean:.1f}. {_ADVICE[level]}")
    if accuracy.n < FEW:
        notes.append(f"{accuracy.n:,} examples say little; label 50 to 100 to begin with.")
    else:
        ends = {reading(accuracy.interval.low), reading(accuracy.interval.high)}
        if ends != {level}:
            others = " or ".join(sorted(ends - {level}))
            notes.append(f"Its interval reaches into another reading ({others}); more labels would tell.")
    return notes
