"""Documents out of span attributes: flattened, whole, or in a span's JSON output. Pure.

Flattened keys are `<prefix>.<index>.document.<field>`. Indices have gaps (a document without a text leaves no
attribute), come in any order, and may be anything: they are sorted as numbers and never used to allocate.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from ..event import decimal, is_blank
from ..privacy import is_redacted, without_marks
from ..retrieval import Document
from .lenient_json import UNREADABLE, as_data, loads

TEXT_KEYS = ("content", "page_content", "text")
SCORE_KEYS = ("score", "relevance_score")
SOURCE_KEYS = ("source", "doc_uri", "url", "file_path", "file_name")
LIST_KEYS = ("documents", "docs", "results", "nodes", "source_nodes", "passages", "chunks", "hits", "matches")
"""Where a JSON object keeps its list of documents; one of these being empty is an empty result."""

_KEY = re.compile(r"\.(0|[1-9][0-9]{0,8})(?:\.(?:document(?:\.|\Z))?(.*))?", re.ASCII | re.DOTALL)
_MAX_KEY = 200  # characters
_MAX_NODES = 10_000
_MAX_TRIED = 100  # lists of one output that are looked into, and elements of each, for one that has a text
_OWN_KEYS = {*TEXT_KEYS, "id", "score", "metadata", "meta", "type", "embedding", "vector"}

MAX_DOCUMENTS = 5_000
"""Documents of one span, best-ranked first; the others are not read. An event takes 50."""

Fields = dict[str, Any]
"""The fields of one document as they were found: content, id, score, metadata."""


def unflatten(attributes: Mapping[str, Any], prefix: str) -> dict[int, Fields] | None:
    """Return the fields of each document under `prefix` by index, in rank order; None without any such key.

    Besides flattened keys it takes the whole list on the bare key, as JSON text or as objects that the SDK
    kept, and an object on an index; what the flattened keys say counts more than that. Other keys are passed over.
    """
    found: dict[int, Fields] = {}
    present = False
    for key, value in attributes.items():
        if not isinstance(key, str) or not key.startswith(prefix) or value is None:
            continue
        rest, data = key[len(prefix) :], as_data(value)
        if rest == "":
            present = True
            for index, element in enumerate(output_elements(data) or ()):
                _add(found.setdefault(index, {}), fields_of(_parsed(element)))
        elif rest[0] == ".":
            present = True
            place = _place(rest) if len(rest) <= _MAX_KEY else None
            if place is None:
                continue
            index, field = place
            fields = found.setdefault(index, {})
            if not field:
                _add(fields, fields_of(_parsed(data)))
            elif field.startswith("metadata."):
                nested = fields.setdefault("metadata.", {})
                nested[field.removeprefix("metadata.")] = data
            else:
                fields[field] = data
    for fields in found.values():
        if fields.get("content") is None and (text := _text_of(fields)) is not None:
            fields["content"] = text
    return {index: found[index] for index in sorted(found)[:MAX_DOCUMENTS]} if present else None


def _add(fields: Fields, others: Fields | None) -> None:
    for key, value in (others or {}).items():
        if value is not None:
            fields.setdefault(key, value)


@lru_cache(maxsize=4_096)
def _place(key: str) -> tuple[int, str] | None:
    """The index and the field that the end of a flattened key names; the same few keys come with every span."""
    match = _KEY.fullmatch(key)
    return (int(match[1]), match[2] or "") if match else None


def is_empty_list(attributes: Mapping[str, Any], prefix: str) -> bool:
    """Return whether the bare key says that nothing was found, as LangChain and DSPy write it."""
    return output_elements(as_data(attributes.get(prefix))) == []


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
    raw = flat.get("metadata", flat.get("meta"))
    metadata = _object(raw)
    others = {key: value for key, value in flat.items() if key not in _OWN_KEYS and value is not None}
    if is_redacted(raw):
        fields["metadata"] = raw
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
    whole = {**(_object(raw) or {}), **fields.get("metadata.", {})}
    metadata = without_marks(whole)
    masked = is_redacted(raw) or is_redacted(fields.get("id")) or len(metadata) != len(whole)
    score = number(fields.get("score"))
    if score is None:
        score = next((n for key in SCORE_KEYS if (n := number(metadata.get(key))) is not None), None)
    identity = id_of(fields.get("id"))
    if identity is None:
        identity = next((i for key in id_keys if (i := id_of(metadata.get(key))) is not None), None)
    return Document(text, identity, source_of(metadata), score, metadata, masked)


def output_elements(value: object) -> list[Any] | None:
    """Return the list of documents in an attribute that holds all of them, element by element.

    An empty list means an empty result; None that there is no such list. In an object it is the first list with
    an object that has a text, else the one whose key says so, else the only one.
    """
    data = _parsed(value)
    if isinstance(data, str):  # JSON text of JSON text
        data = _parsed(data)
    if isinstance(data, (list, tuple)):
        return list(data[:MAX_DOCUMENTS])
    if not isinstance(data, Mapping):
        return None
    if not data:
        return []
    if all(key.isascii() and key.isdigit() and len(key) < 10 for key in map(str, data)):
        return [element for _, element in sorted((int(key), element) for key, element in data.items())][
            :MAX_DOCUMENTS
        ]
    lists = list(islice(_lists(data), _MAX_TRIED))
    likely = [item for _, item in lists if any(_has_text(element) for element in item[:_MAX_TRIED])]
    likely += [item for key, item in lists if key in LIST_KEYS]
    if not likely and len(lists) == 1:
        likely = [lists[0][1]]
    return list(likely[0][:MAX_DOCUMENTS]) if likely else None


def text_of(value: object) -> str | None:
    """Return `value` as a passage's text; None where it has none."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    elif isinstance(value, int) and not isinstance(value, bool):
        value = decimal(value)
    elif isinstance(value, float):
        value = str(value)
    return value if isinstance(value, str) and not is_blank(value) else None


def id_of(value: object) -> str | None:
    """Return `value` as an id: 0 is one; null, the empty text and the mark of a hidden value are none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return decimal(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(value)
    return _sendable(value)


def number(value: object) -> float | None:
    """Return `value` as a score: a finite number, or text that is one; a boolean is no score."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and (len(value) >= 64 or "_" in value):
        return None
    try:
        score = float(value)
    except (ValueError, OverflowError):
        return None
    return score if math.isfinite(score) else None


def source_of(metadata: Mapping[str, Any]) -> str | None:
    """Return where a document comes from, by the keys that retrieval frameworks use."""
    for key in SOURCE_KEYS:
        source = _sendable(metadata.get(key))
        if source is not None:
            return source
    flat = _sendable(metadata.get("location.s3Location.uri"))
    if flat is not None:
        return flat
    location: Any = metadata.get("location")
    for key in ("s3Location", "uri"):
        location = location.get(key) if isinstance(location, Mapping) else None
    return _sendable(location)


def _sendable(value: object) -> str | None:
    return value if isinstance(value, str) and not is_blank(value) and not is_redacted(value) else None


def _present(fields: Mapping[str, Any], key: str) -> Fields:
    return {key: fields[key]} if fields.get(key) is not None else {}


def _text_of(fields: Mapping[str, Any]) -> str | None:
    texts = [text for key in TEXT_KEYS if (text := text_of(fields.get(key))) is not None]
    return next((text for text in texts if is_redacted(text)), texts[0]) if texts else None


def _has_text(element: object) -> bool:
    fields = fields_of(element)
    return fields is not None and fields["content"] is not None


def _parsed(value: object) -> Any:
    """`value`, or what it holds as JSON where it is text."""
    if isinstance(value, str):
        return loads(value) if value.lstrip()[:1] in ("{", "[", '"') else UNREADABLE
    return value


def _object(value: object) -> Mapping[str, Any] | None:
    """A metadata object: kept by the SDK, as JSON text, or as JSON text of JSON text."""
    for _ in range(3):
        if isinstance(value, Mapping):
            return {str(key): item for key, item in value.items()}
        if not isinstance(value, str):
            return None
        value = _parsed(value)
    return None


def _lists(data: Mapping[str, Any]) -> Iterator[tuple[str, list[Any] | tuple[Any, ...]]]:
    """The lists in `data` and in the objects in it, outermost first, in bounded number."""
    level, room = [data], _MAX_NODES
    while level:
        for node in level:
            yield from ((key, item) for key, item in node.items() if isinstance(item, (list, tuple)))
        room -= len(level)
        inner = (value for node in level for value in node.values() if isinstance(value, Mapping))
        level = list(islice(inner, room))
