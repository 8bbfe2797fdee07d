"""Documents out of span attributes: flattened, whole, or in a span's JSON output. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ..privacy import is_redacted, may_hold_mark, without_marks
from ..retrieval import Document
from ..strict import decimal, is_blank
from .layout import MAX_DOCUMENTS, Layout, layout_of
from .lenient_json import EXACT, UNREADABLE, as_data, loads

TEXT_KEYS = ("content", "page_content", "text")
SCORE_KEYS = ("score", "relevance_score")
SOURCE_KEYS = ("source", "doc_uri", "url", "file_path", "file_name", "location.s3Location.uri")
LIST_KEYS = ("documents", "docs", "results", "nodes", "source_nodes", "passages", "chunks", "hits", "matches")
"""Where a JSON object keeps its list of documents; one of these being empty is an empty result."""

MAX_METADATA = 65_536  # characters of one document's metadata
MAX_ID = 4_000  # characters of an id or a source; more is neither
MAX_ALL_METADATA = 500_000  # characters of the metadata of one span's documents together
_MAX_NODES = 10_000
_MAX_TRIED = 100  # lists of one output that are looked into, and elements of each, for one that has a text
_OWN_KEYS = {*TEXT_KEYS, "id", "score", "metadata", "meta", "type", "embedding", "vector"}

Fields = dict[str, Any]
"""The fields of one document as they were found: content, id, score, metadata."""


def unflatten(
    attributes: Mapping[str, Any], prefix: str, layout: Layout | None = None
) -> dict[int, Fields] | None:
    """Return the fields of each document under `prefix` by index, in rank order; None without any such key.

    Besides flattened keys it takes the whole list on the bare key, as JSON text or as objects that the SDK
    kept, and an object on an index; what the flattened keys say counts more than that. Other keys are passed over.
    """
    listed = (layout or layout_of(attributes)).lists.get(prefix)
    if listed is None:
        return None
    found: dict[int, Fields] = {}
    for row in listed.rows:
        fields: Fields = {}
        nested: Fields = {}
        for key, name in row.keys:
            value = attributes[key]
            if value is None:
                continue
            found[row.index] = fields
            data = value if type(value) in EXACT else as_data(value)
            if not name:
                _add(fields, fields_of(_parsed(data)))
            elif name.startswith("metadata."):
                nested[name.removeprefix("metadata.")] = data
            else:
                fields[name] = data
        if nested:
            fields["metadata."] = nested
    whole = attributes.get(prefix)
    for index, element in enumerate(() if whole is None else output_elements(as_data(whole)) or ()):
        _add(found.setdefault(index, {}), fields_of(_parsed(element)))
    for fields in found.values():
        if fields.get("content") is None and (text := _text_of(fields)) is not None:
            fields["content"] = text
    if not found:
        return {} if any(attributes[key] is not None for key in listed.others) else None
    return {index: found[index] for index in sorted(found)[:MAX_DOCUMENTS]}


def _add(fields: Fields, others: Fields | None) -> None:
    for key, value in (others or {}).items():
        if value is not None:
            fields.setdefault(key, value)


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


def document(fields: Fields, id_keys: tuple[str, ...] = (), room: int = MAX_METADATA) -> Document | None:
    """Return the document that `fields` describe; None without a text, or where the text is masked.

    Args:
        fields: what was found of it.
        id_keys: metadata keys that hold the id where there is no other.
        room: characters of metadata that are read.
    """
    text = text_of(fields.get("content"))
    if text is None or is_redacted(text):
        return None
    raw, flat = fields.get("metadata"), fields.get("metadata.")
    metadata = whole = _object(raw, room) or {}
    if flat:
        metadata = whole = {**whole, **flat}
    if flat or not isinstance(raw, str) or len(raw) > room or may_hold_mark(raw):
        metadata = without_marks(whole)
    masked = len(metadata) != len(whole) or (not whole and is_redacted(raw))
    score = number(fields.get("score"))
    if score is None:
        score = next((n for key in SCORE_KEYS if (n := number(metadata.get(key))) is not None), None)
    identity = id_of(fields.get("id"))
    if identity is None:
        masked = masked or is_redacted(fields.get("id"))
        identity = next((i for key in id_keys if (i := id_of(metadata.get(key))) is not None), None)
    return Document(text, identity, source_of(metadata), score, metadata, masked)


def documents(found: Iterable[Fields], id_keys: tuple[str, ...] = ()) -> tuple[Document, ...]:
    """Return the documents that have a text; of very much metadata that of the best-ranked is read."""
    room = MAX_ALL_METADATA
    read: list[Document] = []
    for fields in found:
        if (each := document(fields, id_keys, min(room, MAX_METADATA))) is not None:
            read.append(each)
            raw = fields.get("metadata")
            room -= len(raw) if isinstance(raw, str) and len(raw) <= room else 0
    return tuple(read)


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
    if isinstance(value, str):
        return value if value[:1].isalnum() or not is_blank(value) else None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    elif isinstance(value, int) and not isinstance(value, bool):
        value = decimal(value)
    elif isinstance(value, float):
        value = str(value)
    return value if isinstance(value, str) and not is_blank(value) else None


def id_of(value: object) -> str | None:
    """Return `value` as an id: 0 is one; null, the empty text and the mark of a hidden value are none."""
    if isinstance(value, str):
        return _sendable(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return decimal(value)
    return str(value) if isinstance(value, float) and math.isfinite(value) else None


def number(value: object) -> float | None:
    """Return `value` as a score: a finite number, or text that is one; a boolean is no score."""
    if type(value) is float:
        return value if math.isfinite(value) else None
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
        value = metadata.get(key)
        if value is not None and (source := _sendable(value)) is not None:
            return source
    location: Any = metadata.get("location")
    for key in ("s3Location", "uri"):
        location = location.get(key) if isinstance(location, Mapping) else None
    return _sendable(location)


def _sendable(value: object) -> str | None:
    if not isinstance(value, str) or len(value) > MAX_ID:
        return None
    # What begins with a letter or a digit, as most does, is neither blank nor the mark.
    return value if value[:1].isalnum() or not (is_blank(value) or is_redacted(value)) else None


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


def _object(value: object, room: int = MAX_METADATA) -> Mapping[str, Any] | None:
    """A metadata object: kept by the SDK, as JSON text, or as JSON text of JSON text."""
    if isinstance(value, str):
        if len(value) > room:
            # Far more than an event takes: left unread it is one value that is too long, which `clamp` counts as cut.
            return {"metadata": value}
        value = _parsed(value)
        if isinstance(value, str):
            value = _parsed(value)
        return value if isinstance(value, dict) else None
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else None


def _lists(data: Mapping[str, Any]) -> Iterator[tuple[str, list[Any] | tuple[Any, ...]]]:
    """The lists in `data` and in the objects in it, outermost first, in bounded number."""
    level, room = [data], _MAX_NODES
    while level:
        for node in level:
            yield from ((key, item) for key, item in node.items() if isinstance(item, (list, tuple)))
        room -= len(level)
        inner = (value for node in level for value in node.values() if isinstance(value, Mapping))
        level = list(islice(inner, room))
