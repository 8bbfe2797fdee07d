"""Documents that are written as most instrumentors write them, read in a fraction of the time. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from ..privacy import may_hold_mark
from ..retrieval import Document
from .documents import MAX_ID, SCORE_KEYS, source_of
from .lenient_json import holds_long_number

_MAX_USUAL = 100_000  # characters of all metadata of a span


def usual(
    attributes: Mapping[str, Any], columns: Sequence[Sequence[str]], *, alone: bool = False
) -> tuple[Document, ...] | None:
    """Return the documents of a span where all are written as most are; None where one is not.

    The same as `documents.unflatten` and `documents.document` give, in a fifth of their time: field by field, as most
    of what has to be asked can then be asked of all documents at once.

    Args:
        attributes: the span's.
        columns: the keys of each field of all documents, from its layout.
        alone: whether there is nothing else that an id or a score could come from.
    """
    fields: list[list[Any]] = [list(map(attributes.get, keys)) for keys in columns]
    contents, ids, scores, objects = fields
    kinds = [set(map(type, values)) for values in fields]
    if kinds[0] != _TEXTS or not _begin_plainly(contents):
        return None
    if not (
        alone if kinds[1] == _NOTHING else kinds[1] == _TEXTS and _begin_plainly(ids) and _are_short(ids)
    ):
        return None
    if kinds[2] != _NOTHING and not (
        kinds[2] == _NUMBERS and math.isfinite(sum(scores)) and (alone or all(scores))
    ):
        return None
    if kinds[3] == _NOTHING:
        return tuple(map(Document, contents, ids, objects, scores))
    if kinds[3] != _TEXTS or sum(map(len, objects)) > _MAX_USUAL:
        return None
    together = "\n".join(objects)
    if may_hold_mark(together):
        return None
    try:
        metadata = list(map(orjson.loads, objects))
    except ValueError:
        return None
    if set(map(type, metadata)) != _OBJECTS or (kinds[2] == _NOTHING and any(map(_has_score, metadata))):
        return None
    values = [value for each in metadata for value in each.values()]
    if not _NO_FLOATS.issuperset(map(type, values)) and holds_long_number(together):
        return None
    sources = [each.get("source") for each in metadata]
    if set(map(type, sources)) != _TEXTS or not (_begin_plainly(sources) and _are_short(sources)):
        sources = list(map(source_of, metadata))
    return tuple(map(Document, contents, ids, sources, scores, metadata))


_TEXTS, _NUMBERS, _OBJECTS, _NOTHING = {str}, {float}, {dict}, {type(None)}
_NO_FLOATS = frozenset({str, int, bool, type(None)})


def _begin_plainly(texts: Sequence[str]) -> bool:
    """Whether each begins with a letter or a digit, so that none is blank or the mark of a hidden value."""
    beginnings = "".join([text[:1] for text in texts])
    return len(beginnings) == len(texts) and beginnings.isalnum()


def _are_short(texts: Iterable[str]) -> bool:
    return max(map(len, texts)) <= MAX_ID


def _has_score(metadata: Mapping[str, Any]) -> bool:
    return not metadata.keys().isdisjoint(SCORE_KEYS)
