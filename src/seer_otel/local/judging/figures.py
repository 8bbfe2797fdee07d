"""From an evaluator's judgement of an event to the columns of `judgements` and `results`. Pure, but for the clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.judging import Evaluator, Judgement
from seer_otel.evaluation.metrics import evaluator_scores, label_free, retrieval_scores
from seer_otel.event import PASSAGES_CUT, TEXTS_CUT
from seer_otel.local.marks import ATTRIBUTES_DROPPED, PARTIAL
from seer_otel.local.schema import LoggedEvent
from seer_otel.local.storage.ingest import label
from seer_otel.local.storage.tables import METRICS

FAILED = "failed"
MARKS = (PASSAGES_CUT, TEXTS_CUT, ATTRIBUTES_DROPPED, PARTIAL)
"""Marks of an event that was not seen whole, so that its figures count in no average."""
MAX_ERROR = 500
"""Characters of an error that are kept."""

_UNKNOWN = dict.fromkeys(("recall", "precision", "f1", "ndcg", "sufficiency"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an evaluator says about an event against one query.

    Attributes:
        columns: those of `judgements` that say it, `target`, `milliseconds` and `error` among them.
        judgement: the judgement itself, None where it failed.
    """

    columns: dict[str, Any]
    judgement: Judgement | None


@dataclass(frozen=True, slots=True)
class Judged:
    """An event that was judged, or that could not be.

    Attributes:
        event_id: its id in `events`.
        record_id: its record id, as ids of deleted events are used again.
        verdicts: against the task, and against the subquery where there is one.
        result: the columns of `results` that this event gives its trace, if it is the final context.
        segment: the columns of `segments`.
    """

    event_id: int
    record_id: str
    verdicts: tuple[dict[str, Any], ...]
    result: dict[str, Any]
    segment: dict[str, str]

    @property
    def failed(self) -> bool:
        """Whether it could not be judged against its task."""
        return bool(self.result["left_out"] == FAILED)


def judged(evaluator: Evaluator, corpus: Corpus, event_id: int, record_id: str, event: LoggedEvent) -> Judged:
    """Judge one event. Whatever the evaluator raises becomes an error of its verdict."""
    verdicts = [verdict(evaluator, corpus, "task", event.task, event)]
    if event.subquery:
        verdicts.append(verdict(evaluator, corpus, "subquery", event.subquery, event))
    return assembled(event_id, record_id, event, verdicts)


def failed(event_id: int, record_id: str, event: LoggedEvent, error: str) -> Judged:
    """Make what is kept of an event that cannot be judged."""
    return assembled(event_id, record_id, event, [_failure("task", 0.0, error)])


def assembled(event_id: int, record_id: str, event: LoggedEvent, verdicts: list[Verdict]) -> Judged:
    """Make what is kept of an event from its verdicts, that against its task first."""
    columns = tuple(each.columns for each in verdicts)
    return Judged(event_id, record_id, columns, _result(event, verdicts[0]), segment_of(event))


def verdict(evaluator: Evaluator, corpus: Corpus, target: str, query: str, event: LoggedEvent) -> Verdict:
    """Judge an event's context against one query."""
    began = time.perf_counter()
    try:
        judgement = evaluator.judge(query, [passage.text for passage in event.passages()], corpus)
        return verdict_of(event, target, judgement, 1_000 * (time.perf_counter() - began))
    except Exception as error:  # noqa: BLE001 - one event that cannot be judged is no reason to stop
        took = 1_000 * (time.perf_counter() - began)
        return _failure(target, took, f"{type(error).__name__}: {error}")


def verdict_of(event: LoggedEvent, target: str, judgement: Judgement, milliseconds: float) -> Verdict:
    """Score a judgement. Raises ValueError for one that cannot be of this context."""
    passages = event.passages()
    cited = [position for each in judgement.requirements for position in each.citations]
    if not judgement.requirements or not {*cited, *judgement.cited} <= set(range(len(passages))):
        raise ValueError("it lists no requirement, or cites a passage that there is not")
    found = label_free(
        judgement,
        [each.id for each in passages],
        [each.rank for each in passages],
        [each.score for each in passages],
    )
    columns = {
        "target": target,
        "milliseconds": milliseconds,
        "recall": found.recall,
        "precision": found.precision,
        "f1": found.f1,
        "ndcg": found.ndcg,
        "sufficiency": judgement.sufficiency,
        "error": None,
        "cited": list(judgement.cited),
        "requirements": [
            {"text": each.text, "present": each.present, "citations": list(each.citations)}
            for each in judgement.requirements
        ],
    }
    return Verdict(columns, judgement)


def _failure(target: str, milliseconds: float, error: str) -> Verdict:
    columns = {"target": target, "milliseconds": milliseconds, **_UNKNOWN, "error": error[:MAX_ERROR]}
    return Verdict({**columns, "cited": [], "requirements": []}, None)


def _result(event: LoggedEvent, task: Verdict) -> dict[str, Any]:
    ids = [each.id for each in event.passages()]
    judgement = task.judgement
    marks = [mark for mark in MARKS if (event.metadata or {}).get(mark)]
    row: dict[str, Any] = dict.fromkeys(METRICS)
    row |= {name: task.columns[name] for name in _UNKNOWN}
    if event.ground_truth is not None:
        gold = event.ground_truth.gold_doc_ids
        truth = retrieval_scores(gold, ids)
        row |= {"gt_recall": truth.recall, "gt_precision": truth.precision, "gt_f1": truth.f1}
        if judgement is not None:
            scores = evaluator_scores(gold, ids, judgement.cited)
            row |= {
                "evaluator_precision": scores.precision,
                "evaluator_recall": scores.recall,
                "evaluator_f1": scores.f1,
                "exact_match": float(scores.exact_match),
            }
    return row | {
        "left_out": FAILED if judgement is None else marks[0] if marks else None,
        "milliseconds": task.columns["milliseconds"],
        "passages": len(ids),
        "cited": len(judgement.cited) if judgement else 0,
        "needed": max(judgement.cited, default=-1) + 1 if judgement else 0,
        "requirements": len(judgement.requirements) if judgement else 0,
        "present": sum(each.present for each in judgement.requirements) if judgement else 0,
    }


def segment_of(event: LoggedEvent) -> dict[str, str]:
    """Return the columns of `segments` for an event."""
    metadata = event.metadata or {}
    segment = {name: label(metadata.get(name)) or "" for name in ("env", "feature_flag", "index")}
    return segment | {"span_name": label(event.span_name) or ""}
