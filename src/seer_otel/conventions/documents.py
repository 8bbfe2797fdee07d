"""Documents out of span attributes: flattened, whole, or in a span's JSON output. Pure.

Flattened keys are `<prefix>.<index>.document.<field>`. Indices have gaps (a document without a text leaves no
attribute), come in any order, and may be anything: they are sorted as numbers and never used to allocate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..privacy import is_redacted, without_marks
from ..retrieval import Document
from .lenient_json import UNREADABLE, loads

TEXT_KEYS = ("content", "page_content", "text")
SCORE_KEYS = ("score", "relevance_score")
SOURCE_KEYS = ("source", "doc_uri", "url", "file_path", "file_name")
LIST_KEYS = ("documents", "docs", "results", "nodes", "source_nodes", "passages", "chunks", "hits", "matches")
"""Where a JSON object keeps its list of documents; one of these being empty is an empty result."""

_MAX_INDEX_DIGITS = 9
_MAX_NODES = 10_000
_OWN_KEYS = {*TEXT_KEYS, "id", "score", "metadata", "meta", "type", "embedding", "vector"}

Fields = dict[str, Any]
"""The fields of one document as they were found: content, id, score, metadata."""


def unflatten(attributes: Mapping[str, Any], prefix: str) -> dict[int, Fields] | None:
    """Return the fields of each document under `prefix` by index, in rank order; None without any such key.

    Besides flattened keys it takes the whole list on the bare key, as JSON text or as objects that the SDK
    kept, and an object on an index. Keys that are neither are passed over.
    """
    found: dict[int, Fields] = {}
    present = False
    for key, value in attributes.items():
        if not isinstance(key, str) or not key.startswith(prefix) or value is None:
            continue
        rest = key[len(prefix) :]
        if rest == "":
            present = True
            for index, element in enumerate(_elements(value) or ()):
                fields = fields_of(element)
                if fields is not None:
                    found.setdefault(index, {}).update(fields)
        elif rest[0] == ".":
            present = True
            number, _, field = rest[1:].partition(".")
            if not (number.isascii() and number.isdigit() and len(number) <= _MAX_INDEX_DIGITS):
                continue
            if len(number) > 1 and number[0] == "0":
                continue
            fields = found.setdefault(int(number), {})
            field = field.removeprefix("document").removeprefix(".")
            if not field:
                fields.update(fields_of(_parsed(value)) or {})
            elif field.startswith("metadata."):
                nested = fields.setdefault("metadata.", {})
                nested[field.removeprefix("metadata.")] = value
            else:
                fields[field] = value
    return {index: found[index] for index in sorted(found)} if present else None


def is_empty_list(attributes: Mapping[str, Any], prefix: str) -> bool:
    """Return whether the bare key says that nothing was found, as LangChain and DSPy write it."""
    return _elements(attributes.get(prefix)) == []


def fields_of(element: object) -> Fields | None:
    """Return the fields of a document that is an object: its own, or those of the one object inside that has a text."""
    if not isinstance(element, Mapping):
        return None
    flat = {str(key).removeprefix("document."): value for key, value in element.items()}
    text = _text_of(flat)
    if text is None:
        for value in flat.values():
            if isinstance(value, Mapping) and _text_of(value) is not None:
                outer = {key: item for key, item in flat.items() if item is not value}
                return {**outer, **(fields_of(value) or {}), **_present(outer, "score")}
    fields = {"content": text, **_present(flat, "id"), **_present(flat, "score")}
    metadata = _object(flat.get("metadata", flat.get("meta")))
    others = {key: value for key, value in flat.items() if key not in _OWN_KEYS and value is not None}
    if is_redacted(flat.get("metadata")):
        fields["metadata"] = flat["metadata"]
    elif metadata or others:
        fields["metadata"] = {**others, **(metadata or {})}
    return fields


def document(fields: Fields, id_keys: tuple[str, ...] = ()) -> Document | None:
    """Return the document that `fields` describe; None without a text, or where the text is masked.

    Args:
        fields: what was found of it.
        id_keys: metadata keys that hold the id where there is no other.
    """
    text = text_of(fields.get("content"))
    if text is None or is_redacted(text):
        return None
    raw = fields.get("metadata")
    metadata = {**(_object(raw) or {}), **fields.get("metadata.", {})}
    masked = is_redacted(raw) or any(is_redacted(value) for value in (fields.get("id"), *metadata.values()))
    metadata = without_marks(metadata)
    score = number(fields.get("score"))
    if score is None:
        score = next((n for key in SCORE_KEYS if (n := number(metadata.get(key))) is not None), None)
    identity = id_of(fields.get("id"))
    if identity is None:
        identity = next((i for key in id_keys if (i := id_of(metadata.get(key))) is not None), None)
    return Document(text, identity, source_of(metadata), score, metadata, masked)


def output_elements(value: object) -> list[Any] | None:
    """Return the list of documents in an `output.value`, element by element.

    An empty list means an empty result; None that there is no such list: another text, or a list of something
    else. Elements are objects that have a text, or whatever else stands in the same list.
    """
    data = _parsed(value)
    if isinstance(data, (list, tuple)):
        return list(data)
    if not isinstance(data, Mapping):
        return None
    if not data:
        return []
    lists = []
    for node in _objects(data):
        for key, item in node.items():
            if isinstance(item, (list, tuple)):
                if any(fields_of(element) for element in item if isinstance(element, Mapping)):
                    return list(item)
                lists.append((key, item))
    named = [item for key, item in lists if key in LIST_KEYS]
    return list((named or [item for _, item in lists])[0]) if len(lists) == 1 or named else None


def text_of(value: object) -> str | None:
    """Return `value` as a passage's text; None where it has none."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and value.strip() else None


def id_of(value: object) -> str | None:
    """Return `value` as an id: 0 is one; null, the empty text and the mark of a hidden value are none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if -(2**63) <= value < 2**64 else f"{value:x}"
    if isinstance(value, float) and math.isfinite(value):
        return str(value)
    return value if isinstance(value, str) and value.strip() and not is_redacted(value) else None


def number(value: object) -> float | None:
    """Return `value` as a score: a finite number, or text that is one; a boolean is no score."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        score = float(value) if not isinstance(value, str) or len(value) < 64 else math.nan
    except (ValueError, OverflowError):
        return None
    return score if math.isfinite(score) else None


def source_of(metadata: Mapping[str, Any]) -> str | None:
    """Return where a document comes from, by the keys that retrieval frameworks use."""
    for key in SOURCE_KEYS:
        value = metadata.get(key)
        if isinstance(value, str) and value.strip() and not is_redacted(value):
            return value
    location: Any = metadata.get("location")
    for key in ("s3Location", "uri"):
        location = location.get(key) if isinstance(location, Mapping) else None
    return location if isinstance(location, str) and location.strip() and not is_redacted(location) else None


def _present(fields: Mapping[str, Any], key: str) -> Fields:
    return {key: fields[key]} if fields.get(key) is not None else {}


def _text_of(fields: Mapping[str, Any]) -> str | None:
    return next((text for key in TEXT_KEYS if (text := text_of(fields.get(key))) is not None), None)


def _parsed(value: object) -> Any:
    """`value`, or what it holds as JSON where it is text."""
    if isinstance(value, str):
        return loads(value) if value.lstrip()[:1] in ("{", "[", '"') else UNREADABLE
    return value


def _elements(value: object) -> list[Any] | None:
    data = _parsed(value)
    if isinstance(data, Mapping):
        return output_elements(data)
    return list(data) if isinstance(data, (list, tuple)) else None


def _object(value: object) -> Mapping[str, Any] | None:
    """A metadata object: kept by the SDK, as JSON text, or as JSON text of JSON text."""
    for _ in range(3):
        if isinstance(value, Mapping):
            return {str(key): item for key, item in value.items()}
        if not isinstance(value, str):
            return None
        value = _parsed(value)
    return None


def _objects(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """`data` and the objects in it, outermost first, in bounded number."""
    level, seen = [data], 0
    while level and seen < _MAX_NODES:
        yield from level
        seen += len(level)
        level = [value for node in level for value in node.values() if isinstance(value, Mapping)]
