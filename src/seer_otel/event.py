"""The event that Seer takes at `POST /v1/log`: schema, limits and strict JSON. Pure.

Source of every rule here: Seer's "Context & Event Schema" page; where that page is silent, `docs/design.md`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
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

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_MAX_KEYS = 2_000  # members of a metadata object that are looked at: more than can ever fit
_FLAT = frozenset({str, int, float, bool, type(None)})


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
    changes: dict[str, Any] = {}
    for passage in event.context[:MAX_PASSAGES]:
        text, is_cut = _within(passage.text, MAX_TEXT)
        metadata, dropped = bounded_metadata(passage.metadata)
        texts_cut += is_cut
        metadata_cut += dropped
        if text is passage.text and metadata is passage.metadata:
            context.append(passage)
        else:
            context.append(Passage(text, passage.id, passage.source, passage.score, metadata))
            changes["context"] = context
    for name, question in (("task", event.task), ("subquery", event.subquery)):
        if question is not None:
            text, is_cut = _within(question, MAX_QUESTION)
            texts_cut += is_cut
            if text is not question:
                changes[name] = text
    truth = event.ground_truth
    if truth is not None and truth.answer is not None:
        answer, is_cut = _within(truth.answer, MAX_QUESTION)
        texts_cut += is_cut
        changes["ground_truth"] = replace(truth, answer=answer)
    metadata, dropped = bounded_metadata(event.metadata)
    metadata_cut += dropped
    if passages_cut or "context" in changes:
        changes["context"] = tuple(context)
    # The marks are added after the limit is applied: they are never what is cut.
    counts = {PASSAGES_CUT: passages_cut, TEXTS_CUT: texts_cut, METADATA_CUT: metadata_cut}
    marks = {key: count for key, count in counts.items() if count}
    if marks or metadata is not event.metadata:
        changes["metadata"] = {**metadata, **marks}
    return Clamped(replace(event, **changes) if changes else event, passages_cut, texts_cut)


def _within(text: str, limit: int) -> tuple[str, bool]:
    """The first `limit` code points of a text once it is clean, and whether there are more."""
    # Twice as many are enough where no more than every second one goes.
    clean = clean_text(text[: 2 * limit])
    if len(clean) <= limit < len(text):
        clean = clean_text(text)
    return clean[:limit], len(clean) > limit


def encode(event: Event) -> bytes:
    """Return `event` as strict JSON in UTF-8: no NaN, no lone surrogate, no NUL; absent fields left out."""
    body: dict[str, Any] = {
        "task": event.task,
        "context": [_passage_body(passage) for passage in event.context],
        "is_final_context": event.is_final_context,
    }
    if event.metadata:
        body["metadata"] = event.metadata
    optional = {
        "trace_id": event.trace_id,
        "span_id": event.span_id,
        "parent_span_id": event.parent_span_id,
        "span_name": event.span_name,
        "subquery": event.subquery,
        "created_at": event.created_at,
        "sample_rate": event.sample_rate,
    }
    body |= {name: value for name, value in optional.items() if value is not None}
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


def clean_text(text: str) -> str:
    """Return `text` without what strict UTF-8 JSON or a database cannot hold.

    Halves of a surrogate pair that belong together are joined, lone ones become U+FFFD, NUL is removed.
    """
    if "\0" in text:
        text = text.replace("\0", "")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        return _LONE_SURROGATES.sub("\N{REPLACEMENT CHARACTER}", joined)
    return text


def is_blank(text: str) -> bool:
    """Return whether `text` is nothing but white space, or would be once it is clean."""
    return not text or text.isspace() or ("\0" in text and not text.replace("\0", " ").strip())


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
        if isinstance(value, (dict, Mapping)):  # the check for an abstract type takes long
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


def bounded_metadata(metadata: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
    """Return `metadata` as plain JSON of at most `MAX_METADATA` bytes, itself if it is that; and how many keys it cost.

    Keys are kept in their order until the next one would not fit; a smaller one after it still may.
    """
    if _fits(metadata):
        return metadata, 0
    if not isinstance(metadata, dict):
        metadata = plain(metadata) or {}
    sizable = {key: item for key, item in islice(metadata.items(), _MAX_KEYS) if not _is_huge(item)}
    left_out = len(metadata) - len(sizable)
    data: dict[str, Any] = plain(sizable) or {}
    if len(orjson.dumps(data)) <= MAX_METADATA:
        return data, left_out
    kept: dict[str, Any] = {}
    room = MAX_METADATA - 1  # each member is counted with the comma or bracket after it
    for key, value in data.items():
        size = len(orjson.dumps({key: value})) - 1
        if size <= room:
            kept[key] = value
            room -= size
    return kept, left_out + len(data) - len(kept)


def _is_huge(value: object) -> bool:
    """Whether a value is beyond the limit of metadata whatever is left out of it, so that nobody need look inside."""
    if isinstance(value, (str, bytes)):
        return len(value) > 4 * MAX_METADATA
    return isinstance(value, (dict, list, tuple)) and len(value) > MAX_METADATA


def _fits(metadata: Mapping[str, Any]) -> bool:
    """Whether metadata is plain and small enough as it stands, as far as a glance can tell: most is."""
    if type(metadata) is not dict or not _FLAT.issuperset(map(type, metadata.values())):
        return False
    try:
        data = orjson.dumps(metadata)
    except TypeError:
        return False
    # A number that is not finite would be null there.
    return len(data) <= MAX_METADATA and data.find(b"null") < 0 and data.find(b"\\u0000") < 0


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
