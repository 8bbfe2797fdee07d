"""Disagreements as files. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from seer_otel.local.pages.reading.disagreements import Disagreement

COLUMNS = ("trace", "task", "dataset", "created_at", "kind", "document", "rank", "text", "evaluator")
_DANGEROUS = {*"=+-@|%", *"\uff1d\uff0b\uff0d\uff20"}  # also in full width
_WORDS = {"cited": "cited, not gold", "gold": "gold, not cited"}


def json_lines(disagreements: Iterable[Disagreement], evaluator: str) -> Iterator[str]:
    """Yield a line of JSON for each trace."""
    for one in disagreements:
        line = {
            "trace": one.trace,
            "task": one.task,
            "dataset": one.dataset or None,
            "created_at": one.created_at,
            "left_out": one.left_out,
            "evaluator": evaluator,
            "evaluator_precision": one.precision,
            "evaluator_recall": one.recall,
            "cited_not_gold": [asdict(each) for each in one.cited],
            "gold_not_cited": [asdict(each) for each in one.gold],
        }
        yield json.dumps(line) + "\n"


def comma_separated(disagreements: Iterable[Disagreement], evaluator: str) -> Iterator[str]:
    """Yield a line of CSV (RFC 4180) for each document that is disagreed about, after a line of column names."""
    yield _line(COLUMNS)
    for one in disagreements:
        for kind in ("cited", "gold"):
            for each in getattr(one, kind):
                yield _line(
                    (
                        one.trace,
                        one.task,
                        one.dataset,
                        one.created_at,
                        _WORDS[kind],
                        each.id or "",
                        str(each.rank),
                        each.text,
                        evaluator,
                    )
                )


def _line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerow([harmless(cell) for cell in cells])
    return text.getvalue()


def harmless(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: an apostrophe stands before what could begin one.

    Source: OWASP, "CSV Injection". NUL, which the format cannot hold, is left out.
    """
    cell = cell.replace("\0", "")
    beginning = cell.lstrip(" \t\r\n\N{NO-BREAK SPACE}")[:1]
    dangerous = beginning in _DANGEROUS or cell[:1] in ("\t", "\r", "\n")
    return "'" + cell if dangerous else cell
