"""The event that Seer takes at `POST /v1/log`: schema, limits and strict JSON. Pure.

Source of every rule here: Seer's "Context & Event Schema" page; where that page is silent, `docs/design.md`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

MAX_PASSAGES = 50
"""Passages in one request."""
MAX_TEXT = 4_000
"""Unicode code points in one passage's text."""
MAX_QUESTION = 32_000
"""Code points in a task, subquery or answer. Seer states no limit; this one is ours, against hostile input."""
MAX_DEPTH = 5
"""Levels of objects and lists in metadata."""
MAX_METADATA = 8_192
"""Bytes of one metadata object, as UTF-8 JSON."""

PASSAGES_CUT = "seer_otel.passages_cut"
TEXTS_CUT = "seer_otel.texts_cut"
METADATA_CUT = "seer_otel.metadata_cut"

_BAD_CHARACTERS = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
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
    passages_cut = max(0, len(event.context) - MAX_PASSAGES)
    context, texts_cut, metadata_cut = [], 0, 0
    for passage in event.context[:MAX_PASSAGES]:
        text = clean_text(passage.text)
        texts_cut += len(text) > MAX_TEXT
        metadata, dropped = bounded_metadata(passage.metadata)
        metadata_cut += dropped
        context.append(Passage(text[:MAX_TEXT], passage.id, passage.source, passage.score, metadata))
    questions: dict[str, Any] = {}
    for name in ("task", "subquery"):
        question = getattr(event, name)
        if question is not None:
            question = clean_text(question)
            texts_cut += len(question) > MAX_QUESTION
            questions[name] = question[:MAX_QUESTION]
    truth = event.ground_truth
    if truth is not None and truth.answer is not None:
        answer = clean_text(truth.answer)
        texts_cut += len(answer) > MAX_QUESTION
        truth = replace(truth, answer=answer[:MAX_QUESTION])
    # The marks are added after the limit is applied: they are never what is cut.
    metadata, dropped = bounded_metadata(event.metadata)
    metadata_cut += dropped
    marks = {PASSAGES_CUT: passages_cut, TEXTS_CUT: texts_cut, METADATA_CUT: metadata_cut}
    metadata |= {key: count for key, count in marks.items() if count}
    clamped = replace(event, context=tuple(context), metadata=metadata, ground_truth=truth, **questions)
    return Clamped(clamped, passages_cut, texts_cut)


def encode(event: Event) -> bytes:
    """Return `event` as strict JSON in UTF-8: no NaN, no lone surrogate, no NUL; absent fields left out."""
    body: dict[str, Any] = {
        "task": event.task,
        "context": [_passage_body(passage) for passage in event.context],
        "is_final_context": event.is_final_context,
    }
    if event.metadata:
        body["metadata"] = event.metadata
    for name in (
        "trace_id",
        "span_id",
        "parent_span_id",
        "span_name",
        "subquery",
        "created_at",
        "sample_rate",
    ):
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
        if b"\\u0000" not in data:
            return data
    except TypeError:  # a lone surrogate, a number beyond 64 bits, a value of the application's own type
        pass
    return orjson.dumps(plain(body, max_depth=MAX_DEPTH + 4))


def _passage_body(passage: Passage) -> dict[str, Any]:
    body: dict[str, Any] = {"text": passage.text}
    for name in ("id", "source", "score"):
        value = getattr(passage, name)
        if value is not None:
            body[name] = value
    if passage.metadata:
        body["metadata"] = passage.metadata
    return body


def clean_text(text: str) -> str:
    """Return `text` without what strict UTF-8 JSON or a database cannot hold.

    Halves of a surrogate pair that belong together are joined, lone ones become U+FFFD, NUL is removed.
    """
    if not _BAD_CHARACTERS.search(text):
        return text
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_blank(text: str) -> bool:
    """Return whether `text` is nothing but white space, or would be once it is clean."""
    return not text.replace("\0", " ").strip()


def decimal(value: int) -> str:
    """Return a number as text. One so long that Python refuses to write it in decimal is written in hexadecimal."""
    return str(value) if value.bit_length() <= 2_000 else f"{value:#x}"


_LEFT_OUT = object()


def plain(value: object, max_depth: int = MAX_DEPTH) -> Any:
    """Return `value` as plain JSON data: what JSON cannot hold is left out or becomes text.

    Numbers that are not finite are left out of objects and are null in lists; integers beyond 64 bits and
    values of unknown types become text; levels below `max_depth`, and objects whose methods fail, are left out.
    """
    result = _plain(value, max_depth)
    return None if result is _LEFT_OUT else result


def _plain(value: object, depth: int) -> Any:
    try:
        if isinstance(value, str):
            return clean_text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if -(2**63) <= value < 2**64 else decimal(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else _LEFT_OUT
        if isinstance(value, Mapping):
            if depth <= 0:
                return _LEFT_OUT
            items = ((clean_text(str(key)), _plain(item, depth - 1)) for key, item in value.items())
            return {key: item for key, item in items if item is not _LEFT_OUT}
        if isinstance(value, (list, tuple, set, frozenset)):
            if depth <= 0:
                return _LEFT_OUT
            items_ = (_plain(item, depth - 1) for item in value)
            return [None if item is _LEFT_OUT else item for item in items_]
        if isinstance(value, bytes):
            return clean_text(value.decode("utf-8", "replace"))
        return clean_text(str(value))
    except Exception:  # noqa: BLE001 - an application's own types may fail in any way
        return _LEFT_OUT


def bounded_metadata(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return `metadata` as plain JSON of at most `MAX_METADATA` bytes, and how many keys that cost.

    Keys are kept in their order until the next one would not fit; a smaller one after it still may.
    """
    data: dict[str, Any] = plain(metadata) or {}
    if len(orjson.dumps(data)) <= MAX_METADATA:
        return data, 0
    kept: dict[str, Any] = {}
    room = MAX_METADATA - 1  # each member is counted with the comma or bracket after it
    for key, value in data.items():
        size = len(orjson.dumps({key: value})) - 1
        if size <= room:
            kept[key] = value
            room -= size
    return kept, len(data) - len(kept)


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
