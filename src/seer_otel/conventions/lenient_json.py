"""JSON as it stands in span attributes: perhaps huge, perhaps cut, perhaps no JSON at all. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from ..strict import values_in

MAX_LENGTH: Final = 1_000_000
"""Characters; a longer value is not parsed."""
MAX_SLOW_LENGTH: Final = 250_000
"""Characters of a value that only the standard library can read, which takes many times as long as orjson."""


class _Unreadable:
    def __bool__(self) -> bool:
        return False


UNREADABLE: Final = _Unreadable()
"""What `loads` returns for text that is no JSON; unlike None it cannot stand in a document."""

EXACT: Final = frozenset({str, int, float, bool, bytes, type(None)})
"""Types of values that are plain data as they are."""
MAX_VALUES: Final = 100_000
"""Values in one attribute; of one that holds more, in lists within lists, nothing is read."""


def as_data(value: Any) -> Any:
    """Return an attribute's value as plain data: texts, bytes, numbers, lists and dicts. Never raises.

    The SDK lets nothing else through, but processors that replace a span's attributes put there what they like.
    Whatever is no data, cannot be read, or lies deeper than 32 levels, is None.
    """
    if type(value) in EXACT:
        return value
    return _as_data(value, 32) if values_in(value, MAX_VALUES) <= MAX_VALUES else None


def _as_data(value: Any, depth: int) -> Any:
    if type(value) in EXACT:
        return value
    try:
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            return int.__index__(value)
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, (dict, Mapping)):  # the check for an abstract type takes long
            return {str(key): _as_data(item, depth - 1) for key, item in value.items()} if depth else None
        if isinstance(value, (list, tuple)):
            return [_as_data(item, depth - 1) for item in value] if depth else None
    except Exception:  # noqa: BLE001 - an application's own types may fail in any way
        return None
    return None


_LONG_NUMBER: Final = re.compile("[0-9]{19}")
_decode: Final = json.JSONDecoder().raw_decode


def holds_long_number(text: str) -> bool:
    """Return whether JSON text may hold an integer beyond 64 bits: orjson makes a float of it, as an id another one."""
    return _LONG_NUMBER.search(text) is not None


def loads(text: str) -> Any:
    """Return what `text` holds as JSON (NaN and Infinity tolerated), or `UNREADABLE`. Never raises."""
    if len(text) > MAX_LENGTH:
        return UNREADABLE
    try:
        data = orjson.loads(text)
        if not holds_long_number(text):
            return data
    except ValueError:
        pass
    if len(text) > MAX_SLOW_LENGTH:
        return UNREADABLE
    text = text.strip(" \t\n\r")
    try:
        data, end = _decode(text)
    except (ValueError, RecursionError):  # also numbers of more digits than int() takes
        return UNREADABLE
    return data if end == len(text) else UNREADABLE


_MAX_TOKENS: Final = 20_000
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"[^"\\]*(?:\\.[^"\\]*)*)(?P<closed>"?)|(?P<mark>[\[\]{},:])|[^\s\[\]{},:"]+)""",
    re.DOTALL,
)
# A string up to the first escape that is not whole; the first half of a surrogate pair is not, where its other
# half is missing at the end of the text.
_WHOLE = re.compile(
    r"""
    " [^"\\]*
    (?: \\ (?: [^u]
             | u (?! [dD][89abAB] ) [0-9a-fA-F]{4}
             | u [0-9a-fA-F]{4} (?! \\?\Z | \\u[0-9a-fA-F]{0,3}\Z ) )
        [^"\\]* )*
    """,
    re.DOTALL | re.VERBOSE,
)
_HALF_ESCAPE: Final = 11
"""Characters in the longest escape that is not whole: a surrogate pair without its last digit."""
_CLOSING = {"{": "}", "[": "]"}


def loads_cut(text: str) -> Any:
    """Return what can be read of JSON whose end was cut off (a length limit on attribute values).

    An open string ends at the cut, half an escape there is dropped, and so is a key, a number or a word that
    may go on. What follows after very many tokens is not read. `UNREADABLE` for text that is broken in another
    way. Never raises.
    """
    if len(text) > MAX_LENGTH:
        return UNREADABLE
    stack: list[str] = []
    end = position = 0  # `end`: where the last complete value or opening bracket ends
    open_string = ""
    is_key = False
    for _ in range(_MAX_TOKENS):
        match = _TOKEN.match(text, position)
        if match is None:
            break
        if end and not stack:
            return UNREADABLE  # a text that only begins like JSON
        start, position = position, match.end()
        mark = match["mark"]
        if match["string"] is not None:
            if match["closed"]:
                # A string is complete as a value; as a key it waits for its value.
                end = end if is_key else position
                continue
            if is_key or (whole := _WHOLE.match(text, match.start("string"))) is None:
                break
            if len(text) - whole.end() > _HALF_ESCAPE:
                return UNREADABLE
            end, open_string = start, text[start : whole.end()] + '"'
            break
        if mark is None:
            end = position if position < len(text) else end
        elif mark in _CLOSING:
            stack.append(_CLOSING[mark])
            is_key, end = mark == "{", position
        elif mark == ":":
            is_key = False
        elif mark == ",":
            is_key = bool(stack) and stack[-1] == "}"
        elif not stack or stack.pop() != mark:
            return UNREADABLE
        else:
            is_key, end = False, position
    return loads(text[:end] + open_string + "".join(reversed(stack)))
