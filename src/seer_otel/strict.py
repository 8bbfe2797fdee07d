"""Values as strict JSON and a database take them: texts, numbers, whole metadata objects and their limit. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import orjson

MAX_DEPTH = 5
"""Levels of objects and lists in metadata."""
MAX_METADATA = 8_192
"""Bytes of one metadata object, as UTF-8 JSON."""

_LONE_SURROGATES = re.compile("[\ud800-\udbff]+(?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]+")
_MAX_BEGINNING = 100_000  # characters of a text in which there has to be something to read
_MAX_KEYS = 2_000  # members of a metadata object that are looked at: more than can ever fit
_MIN_MEMBER = len('"":1,')
_FLAT = frozenset({str, int, float, bool, type(None)})
_OBJECTS = frozenset({dict})
_NESTED = frozenset({dict, list, tuple})


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
        text = _LONE_SURROGATES.sub(_replaced, text)
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    return text


def _replaced(lone: re.Match[str]) -> str:
    return "\N{REPLACEMENT CHARACTER}" * len(lone[0])


def is_blank(text: str) -> bool:
    """Return whether `text` is nothing but white space, or would be once it is clean, for all that is looked at."""
    if text[:1].isalnum():
        return False
    text = text[:_MAX_BEGINNING]
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


def fits(objects: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether metadata objects are plain and, taken together, within the limit of one: most are.

    A glance at all of them at once, that may say no where a closer look would say yes.
    """
    if not _OBJECTS.issuperset(map(type, objects)):
        return False
    values = [value for each in objects for value in each.values()]
    if not _FLAT.issuperset(map(type, values)):
        return False
    if max([len(value) for value in values if type(value) is str], default=0) > MAX_METADATA:
        return False
    data = _as_it_stands(objects)
    return data is not None and len(data) <= MAX_METADATA


def _as_it_stands(value: object) -> bytes | None:
    """A value as JSON; None where something in it has to be cleaned for that."""
    try:
        data = orjson.dumps(value)
    except TypeError:
        return None
    # A number that is not finite would be null there.
    return data if data.find(b"null") < 0 and data.find(b"\\u0000") < 0 else None


def bounded_metadata(metadata: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
    """Return `metadata` as plain JSON of at most `MAX_METADATA` bytes, itself if it is that; and how many keys it cost.

    Keys are kept in their order until the next one would not fit; a smaller one after it still may. What is too large
    as it stands is not looked into for what may be left of it, and no more is cleaned than the limit has bytes.
    """
    if fits((metadata,)):
        return metadata, 0
    if not isinstance(metadata, dict):
        metadata = plain(metadata) or {}
    kept: dict[str, Any] = {}
    left_out = max(0, len(metadata) - _MAX_KEYS)
    room = MAX_METADATA - 1  # each member is counted with the comma or bracket after it
    effort = MAX_METADATA
    members = min(len(metadata), _MAX_KEYS)
    for number, (key, item) in enumerate(islice(metadata.items(), members)):
        if room < _MIN_MEMBER:
            left_out += members - number
            break
        if _least(item) > MAX_METADATA:
            left_out += 1
            continue
        member: dict[str, Any] = {key: item}
        data = _as_it_stands(member)
        if data is None or not (len(data) > room + 1 or (type(key) is str and _is_plain(item))):
            effort -= _weight(item)
            if effort < 0:
                left_out += 1
                continue
            member = plain(member) or {}
            if not member:
                continue
            data = orjson.dumps(member)
        if len(data) > room + 1:
            left_out += 1
        else:
            kept |= member
            room -= len(data) - 1
    return kept, left_out


def _least(value: object) -> int:
    """How many bytes of metadata a value takes at the very least, whatever is left out of it when it is cleaned."""
    if not isinstance(value, str):
        return values_in(value, MAX_METADATA) if type(value) in _NESTED else 1  # each takes one
    if len(value) > 4 * MAX_METADATA:  # so long that nobody looks how much of it is NUL
        return len(value)
    if value.isascii():
        return len(value) - value.count("\0")
    # Two halves that are joined take four bytes, and six alone.
    return len(value.encode("utf-8", "surrogatepass")) * 2 // 3 - value.count("\0")


def _weight(value: object) -> int:
    """How much there is to clean in a value: values, and characters of texts; beyond the limit it is not counted."""
    weight = 0
    level: list[Any] = [value]
    while level and weight <= MAX_METADATA:
        node = level.pop()
        weight += 1
        if isinstance(node, (str, bytes)):
            weight += len(node)
        elif isinstance(node, (dict, list, tuple, set, frozenset)):
            weight += len(node)
            if weight <= MAX_METADATA:
                level += node.values() if isinstance(node, dict) else node
    return weight


def _is_plain(value: object) -> bool:
    """Whether a value in metadata consists of JSON's own types, and is not too deep."""
    level: list[Any] = [(value,)]
    for _ in range(MAX_DEPTH):
        inner = []
        for node in level:
            for item in node.values() if type(node) is dict else node:
                kind = type(item)
                if kind in _NESTED:
                    inner.append(item)
                elif kind not in _FLAT:
                    return False
        if not inner:
            return True
        level = inner
    return False


def values_in(value: object, limit: int) -> int:
    """Return how many values there are in one, itself among them; more than `limit` are not counted."""
    count = 1
    level: list[Any] = [value]
    while level and count <= limit:
        node = level.pop()
        if type(node) in _NESTED:
            count += len(node)
            level += islice(node.values() if type(node) is dict else node, max(0, limit - count))
    return count
