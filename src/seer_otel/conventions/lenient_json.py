"""JSON as it stands in span attributes: perhaps huge, perhaps cut, perhaps no JSON at all. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, Final

MAX_LENGTH: Final = 4_000_000
"""Characters; a longer value is not parsed."""


class _Unreadable:
    def __bool__(self) -> bool:
        return False


UNREADABLE: Final = _Unreadable()
"""What `loads` returns for text that is no JSON; unlike None it cannot stand in a document."""


def loads(text: str) -> Any:
    """Return what `text` holds as JSON (NaN and Infinity tolerated), or `UNREADABLE`. Never raises."""
    if len(text) > MAX_LENGTH:
        return UNREADABLE
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # also numbers of more digits than int() takes
        return UNREADABLE


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_OPEN_STRING = re.compile(r'"(?:[^"\\]|\\.)*\\?\Z', re.DOTALL)
_HALF_ESCAPE = re.compile(
    r"(?<!\\)(?:\\\\)*((?:\\u[dD][89abAB][0-9a-fA-F]{2})?\\(?:u[0-9a-fA-F]{0,3})?|\\u[dD][89abAB][0-9a-fA-F]{2})\Z"
)
_CLOSING = {"{": "}", "[": "]"}


def loads_cut(text: str) -> Any:
    """Return what can be read of JSON whose end was cut off (a length limit on attribute values).

    An open string ends at the cut, half an escape there is dropped, and so is a key, a number or a word that
    may go on. `UNREADABLE` for text that is broken in another way.
    """
    if len(text) > MAX_LENGTH:
        return UNREADABLE
    stack: list[str] = []
    end = position = 0  # `end`: where the last complete value or opening bracket ends
    open_string = ""
    is_key = False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            if text[position].isspace():
                position += 1
                continue
            if _OPEN_STRING.match(text, position) and not is_key:
                half = _HALF_ESCAPE.search(text, position)
                open_string = text[position : half.start(1) if half else len(text)] + '"'
            break
        token, position = match[0], match.end()
        if token in "{[":
            stack.append(_CLOSING[token])
            is_key, end = token == "{", position
        elif token in "}]":
            if not stack or stack.pop() != token:
                return UNREADABLE
            is_key, end = False, position
        elif token == ",":
            is_key = bool(stack) and stack[-1] == "}"
        elif token == ":":
            is_key = False
        elif token.startswith('"'):
            # A string is complete as a value; as a key it waits for its value.
            end = end if is_key else position
        elif position < len(text):
            end = position
    kept = text[:position] + open_string if open_string else text[:end]
    return loads(kept + "".join(reversed(stack)))
