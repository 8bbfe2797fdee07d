"""The event that Seer takes at `POST /v1/log`: schema, limits and strict JSON. Pure.

Source of every rule here: Seer's "Context & Event Schema" page; where that page is silent, `docs/design.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from .strict import MAX_DEPTH, bounded_metadata, clean_text, fits, plain

MAX_PASSAGES = 50
"""Passages in one request."""
MAX_TEXT = 4_000
"""Unicode code points in one passage's text."""
MAX_QUESTION = 32_000
"""Code points in a task, subquery or answer. Seer states no limit; this one is ours, against hostile input."""

_MAX_LOOKED = 64_000  # characters of a text in which as many as fit are looked for

PASSAGES_CUT = "seer_otel.passages_cut"
TEXTS_CUT = "seer_otel.texts_cut"
METADATA_CUT = "seer_otel.metadata_cut"


@dataclass(frozen=True, slots=True, init=False)
class Passage:
    """One element of an event's `context`, in rank order.

    Attributes:
        text: what was retrieved; the only field that the evaluator reads.
        id: the document's id, matched against `ground_truth.gold_doc_ids`.
        source: where the text comes from, free text.
        score: the retriever's score, unscaled; any finite number.
        metadata: free-form attributes.
    """

    text: str
    id: str | None = None
    source: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        text: str,
        id: str | None = None,  # noqa: A002 - the field's name
        source: str | None = None,
        score: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        # There are up to 50 in an event; the method that a frozen dataclass has of its own takes three times as long.
        _set_text(self, text)
        _set_id(self, id)
        _set_source(self, source)
        _set_score(self, score)
        _set_metadata(self, {} if metadata is None else metadata)


_set_text, _set_id, _set_source, _set_score, _set_metadata = (
    vars(Passage)[name].__set__ for name in ("text", "id", "source", "score", "metadata")
)


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """Labels for one question: the ids of its relevant documents, and perhaps its answer."""

    gold_doc_ids: tuple[str, ...]
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One retrieval to be evaluated.

    Attributes:
        task: the question that the user asked, the same on every event of one answer.
        context: the retrieved passages, best first.
        metadata: free-form values for filtering; keys that begin with `seer_otel.` are ours.
        trace_id: 32 lower-case hex digits.
        span_id: 16 lower-case hex digits.
        parent_span_id: 16 lower-case hex digits.
        span_name: the name of the span, for Seer the type of the operation.
        is_final_context: whether the model answered from this context.
        subquery: what this retrieval asked, where that is not the task.
        ground_truth: labels, where there are any.
        created_at: ISO 8601 in UTC; for a span, its end.
        sample_rate: the share of such events that the backend shall evaluate, 0 to 1.
    """

    task: str
    context: tuple[Passage, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    span_name: str | None = None
    is_final_context: bool = False
    subquery: str | None = None
    ground_truth: GroundTruth | None = None
    created_at: str | None = None
    sample_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Clamped:
    """An event within the limits, and what had to be cut for it."""

    event: Event
    passages_cut: int = 0
    texts_cut: int = 0


def clamp(event: Event) -> Clamped:
    """Return `event` within Seer's limits; what was cut stands in its metadata and in the result.

    The best-ranked passages stay, as the context is in rank order.
    """
    changes: dict[str, Any] = {}
    passages_cut = texts_cut = metadata_cut = 0
    context = event.context
    if (
        len(context) > MAX_PASSAGES
        or max([len(passage.text) for passage in context], default=0) > MAX_TEXT
        or not fits([passage.metadata for passage in context])
    ):
        passages_cut = max(0, len(context) - MAX_PASSAGES)
        within = [_passage_within(passage) for passage in context[:MAX_PASSAGES]]
        texts_cut = sum(is_cut for _, is_cut, _ in within)
        metadata_cut = sum(dropped for _, _, dropped in within)
        changes["context"] = tuple([passage for passage, _, _ in within])
    for name, question in (("task", event.task), ("subquery", event.subquery)):
        if question is not None and len(question) > MAX_QUESTION:
            changes[name], is_cut = _within(question, MAX_QUESTION)
            texts_cut += is_cut
    truth = event.ground_truth
    if truth is not None and truth.answer is not None:
        answer, is_cut = _within(truth.answer, MAX_QUESTION)
        texts_cut += is_cut
        changes["ground_truth"] = replace(truth, answer=answer)
    metadata, dropped = bounded_metadata(event.metadata)
    metadata_cut += dropped
    # The marks are added after the limit is applied: they are never what is cut.
    counts = {PASSAGES_CUT: passages_cut, TEXTS_CUT: texts_cut, METADATA_CUT: metadata_cut}
    marks = {key: count for key, count in counts.items() if count}
    if marks or metadata is not event.metadata:
        changes["metadata"] = {**metadata, **marks}
    return Clamped(replace(event, **changes) if changes else event, passages_cut, texts_cut)


def _passage_within(passage: Passage) -> tuple[Passage, bool, int]:
    """A passage within the limits, whether its text was cut, and how many keys of its metadata were."""
    text, is_cut = (passage.text, False) if len(passage.text) <= MAX_TEXT else _within(passage.text, MAX_TEXT)
    metadata, dropped = bounded_metadata(passage.metadata)
    if text is not passage.text or metadata is not passage.metadata:
        passage = Passage(text, passage.id, passage.source, passage.score, metadata)
    return passage, is_cut, dropped


def _within(text: str, limit: int) -> tuple[str, bool]:
    """The first `limit` code points of a text once it is clean, and whether there are more.

    Twice as many are looked at, which is enough where no more than every second one goes; then a good many more.
    """
    clean = clean_text(text[: 2 * limit])
    if len(clean) <= limit < len(text) and 2 * limit < _MAX_LOOKED:
        clean = clean_text(text[:_MAX_LOOKED])
    return clean[:limit], len(clean) > limit


_OPTIONAL = (
    "trace_id",
    "span_id",
    "parent_span_id",
    "span_name",
    "subquery",
    "created_at",
    "sample_rate",
)


def encode(event: Event) -> bytes:
    """Return `event` as strict JSON in UTF-8: no NaN, no lone surrogate, no NUL; absent fields left out."""
    body: dict[str, Any] = {
        "task": event.task,
        "context": [
            {
                "text": each.text,
                "id": each.id,
                "source": each.source,
                "score": each.score,
                "metadata": each.metadata,
            }
            # In one piece, as most are complete: this is done 50 times for an event.
            if each.metadata and each.id is not None and each.source is not None and each.score is not None
            else _passage_body(each)
            for each in event.context
        ],
        "is_final_context": event.is_final_context,
    }
    if event.metadata:
        body["metadata"] = event.metadata
    for name in _OPTIONAL:
        value = getattr(event, name)
        if value is not None:
            body[name] = value
    if event.ground_truth is not None:
        body["ground_truth"] = {"gold_doc_ids": list(event.ground_truth.gold_doc_ids)}
        if event.ground_truth.answer is not None:
            body["ground_truth"]["answer"] = event.ground_truth.answer
    return _strict(body)


def _strict(body: dict[str, Any]) -> bytes:
    try:
        data = orjson.dumps(body)
        if data.find(b"\\u0000") < 0:
            return data
    except TypeError:  # a lone surrogate, a number beyond 64 bits, a value of the application's own type
        pass
    return orjson.dumps(plain(body, max_depth=MAX_DEPTH + 4))


def _passage_body(passage: Passage) -> dict[str, Any]:
    body: dict[str, Any] = {"text": passage.text}
    if passage.id is not None:
        body["id"] = passage.id
    if passage.source is not None:
        body["source"] = passage.source
    if passage.score is not None:
        body["score"] = passage.score
    if passage.metadata:
        body["metadata"] = passage.metadata
    return body


SHRUNK_TEXT = 1_000
"""Code points of a text after `shrink`."""


def shrink(body: bytes) -> bytes:
    """Return an encoded event cut once more, for a backend that found it too large (413).

    Texts of at most 1,000 code points, the upper end of the length that Seer recommends, and no passage metadata.
    """
    event: dict[str, Any] = orjson.loads(body)
    cut = 0
    for passage in event["context"]:
        cut += len(passage["text"]) > SHRUNK_TEXT
        passage["text"] = passage["text"][:SHRUNK_TEXT]
        passage.pop("metadata", None)
    event["task"] = event["task"][:MAX_TEXT]
    metadata = event.setdefault("metadata", {})
    before = metadata.get(TEXTS_CUT)
    metadata[TEXTS_CUT] = max(cut, before) if isinstance(before, int) else cut
    return orjson.dumps(event)
