"""What holds for everything that leaves: of an assembly, and of a body. `Broken` says what does not."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from seer_otel.assembly import Assembly
from seer_otel.conventions import convention

from .cases import Case
from .hostile import MARK

MAX_PASSAGES, MAX_TEXT, MAX_QUESTION = 50, 4_000, 32_000
MAX_METADATA, MAX_DEPTH = 8_192, 5
_FIELDS = {"task", "context", "is_final_context"}
_OPTIONAL = {"metadata", "trace_id", "span_id", "parent_span_id", "span_name", "subquery", "created_at"}
_OPTIONAL |= {"sample_rate", "ground_truth"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_IDS = {"trace_id": 32, "span_id": 16, "parent_span_id": 16}


class Broken(AssertionError):  # noqa: N818 - said of what is checked
    """Something that always holds does not."""


def expect(holds: object, words: str) -> None:
    """Raise unless it holds."""
    if not holds:
        raise Broken(words)


def check_assembly(case: Case, assembly: Assembly) -> None:
    """Each retrieval span is an event or has one reason, and there is at most one final context."""
    sent = [int(event.span_id or "", 16) for event in assembly.events]
    kinds: dict[int, set[bool]] = {}
    for span in case.spans:
        kinds.setdefault(span.span_id, set()).add(convention.is_retrieval(span.attributes))
    maybe = {span_id for span_id, found in kinds.items() if True in found}
    surely = {span_id for span_id, found in kinds.items() if found == {True}}
    told = set(sent) | set(assembly.dropped)
    expect(len(sent) == len(set(sent)), "two events of one span")
    expect(not set(sent) & set(assembly.dropped), "an event that is dropped, too")
    expect(surely <= told <= maybe, f"seen {sorted(surely)}, accounted for {sorted(told)}")
    finals = [event for event in assembly.events if event.is_final_context]
    expect(len(finals) <= 1, "two final contexts in one trace")
    if finals:
        how = finals[0].metadata.get("seer_otel.final")
        expect(not case.memory.final_sent, "a second final context")
        expect(case.partial is None or how == "explicit", "a final context inferred from a part of a trace")
    if case.rules.hiding.documents:
        expect(not any(event.context for event in assembly.events), "a document that a setting hides")


def check_body(body: bytes, max_text: int = MAX_TEXT) -> dict[str, Any]:
    """An event as it is sent: strict JSON of the right types, within the limits. Returns what it holds."""
    event: dict[str, Any] = json.loads(
        body.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_object
    )
    for text in _texts(event):
        expect(text.strip() != MARK, "the mark of a hidden value")
        expect("\0" not in text, "a NUL")
        expect(text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text), "a lone surrogate")
    expect(event.keys() >= _FIELDS and event.keys() <= _FIELDS | _OPTIONAL, f"fields {sorted(event)}")
    _text(event, "task", MAX_QUESTION)
    _text(event, "subquery", MAX_QUESTION)
    expect(event["task"].strip(), "a blank task")
    expect(event["is_final_context"] in (True, False), "is_final_context is no boolean")
    expect(len(event["context"]) <= MAX_PASSAGES, f"{len(event['context'])} passages")
    for passage in event["context"]:
        _check_passage(passage, max_text)
    marks = {key: value for key, value in event.get("metadata", {}).items() if key.startswith("seer_otel.")}
    _check_metadata(event, MAX_METADATA + len(json.dumps(marks)))
    for name, length in _IDS.items():
        if name in event:
            expect(re.fullmatch(f"[0-9a-f]{{{length}}}", event[name], re.ASCII), f"{name} {event[name]!r}")
    _text(event, "span_name", None)
    expect(_TIME.fullmatch(event.get("created_at", "")), f"created_at {event.get('created_at')!r}")
    expect(event.get("sample_rate") == 1.0, "the backend would sample again")
    if "ground_truth" in event:
        _check_truth(event["ground_truth"])
    return event


def _check_passage(passage: dict[str, Any], max_text: int) -> None:
    expect(passage.keys() <= {"text", "id", "source", "score", "metadata"}, f"fields {sorted(passage)}")
    expect("text" in passage, "a passage without a text")
    for name, limit in (("text", max_text), ("id", None), ("source", None)):
        _text(passage, name, limit)
    score = passage.get("score", 0.0)
    expect(type(score) in (int, float) and math.isfinite(score), f"score {score!r}")
    _check_metadata(passage, MAX_METADATA)


def _check_metadata(holder: dict[str, Any], limit: int) -> None:
    metadata = holder.get("metadata", {})
    expect(isinstance(metadata, dict), "metadata is no object")
    size = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())
    expect(size <= limit, f"{size} bytes of metadata")
    expect(_depth(metadata) <= MAX_DEPTH, f"metadata {_depth(metadata)} levels deep")


def _check_truth(truth: dict[str, Any]) -> None:
    expect(truth.keys() <= {"gold_doc_ids", "answer"}, f"ground truth with {sorted(truth)}")
    expect(all(isinstance(each, str) for each in truth["gold_doc_ids"]), "a gold id that is no text")
    _text(truth, "answer", MAX_QUESTION)


def _text(holder: dict[str, Any], name: str, limit: int | None) -> None:
    value = holder.get(name, "")
    expect(isinstance(value, str), f"{name} is no text")
    expect(limit is None or len(value) <= limit, f"{name} of {len(value)} characters")


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif type(value) is int:
        expect(-(2**63) <= value < 2**64, "a number beyond 64 bits")


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(pairs)
    found = dict(pairs)
    expect(len(found) == len(pairs), "a key that stands twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise Broken(f"{name} is no JSON")
