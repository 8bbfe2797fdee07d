"""The question in a span's input: plain text, or JSON of a call's arguments. Pure.

What instrumentors write is in `docs/design.md`, "Questions". Wrong questions are worse than none: a placeholder
for a vector, a Python repr or a whole JSON envelope judged as a question makes every metric of the event wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ..event import is_blank
from ..privacy import REDACTED, is_redacted
from ..retrieval import HIDDEN_QUERY, NO_QUERY, Query
from .lenient_json import UNREADABLE, as_data, loads, loads_cut

QUESTION_KEYS = ("query", "query_str", "question", "input", "inputs", "text", "message")
"""In the order in which they are asked; then `messages`."""

_MAX_NODES = 2_000  # objects, texts, messages or parts of one that are looked at in an input
_OTHER_ROLES = ("assistant", "ai", "system", "developer", "tool", "function")
_ONE_WORD = re.compile(r"<[\w/!-]*>")
# What begins like this and ends as its partner in _REPR_ENDS is a value that Python wrote down.
_REPR_STARTS = re.compile(
    r"""
      (?P<call>[A-Z_][\w.]*\(\s*\w+\s*=)            # Message(role=..., content=...)
    | (?P<tagged><\w[\w.]*\()                      # <NodeWithScore(node=...)>
    | (?P<dict>\{\s*'[^']*'\s*:)                   # {'query': ...}
    | (?P<texts>[\[(]\s*')                         # ['a', 'b']
    | (?P<calls>[\[(]\s*<?[A-Z_][\w.]*\(\s*\w+\s*=)  # [Message(...), Message(...)]
    """,
    re.VERBOSE,
)
_REPR_ENDS = {
    "call": (")",),
    "tagged": (")>",),
    "dict": ("}",),
    "texts": ("']", "')", "',)"),
    "calls": (")]", ">]"),
}
_FIELDS = re.compile(r"\w+=(['\"]).*?\1 \w+=", re.DOTALL)  # content='...' additional_kwargs={}


def read_query(value: object, mime_type: object = None) -> Query:
    """Return the question in an input attribute.

    Args:
        value: `input.value`: text, or an object that the SDK kept as it is.
        mime_type: `input.mime_type`. Text is JSON only where this says so.
    """
    value = as_data(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return _in_json(value)
    if not isinstance(value, str) or is_blank(value):
        return NO_QUERY
    if is_redacted(value):
        return HIDDEN_QUERY
    mime_type = as_data(mime_type)
    if not (isinstance(mime_type, str) and "json" in mime_type.lower()):
        # A plain `<b>` may be a question; what stands for a value has more than a word in it.
        return NO_QUERY if _is_stand_in(value) and not _ONE_WORD.fullmatch(value.strip()) else Query(value)
    data = loads(value)
    if data is not UNREADABLE:
        return _in_json(data)
    if value.lstrip()[0] not in '{["':
        return NO_QUERY if _is_stand_in(value) else Query(value)
    found = _in_json(loads_cut(value))
    if found != NO_QUERY:
        return found
    if REDACTED in value:
        return HIDDEN_QUERY
    return NO_QUERY if _is_stand_in(value) else Query(weak=value)


def last_user_message(messages: object) -> Query:
    """Return the last message of a user in a list of messages, as chat clients serialise them."""
    for message in islice(_last_first(messages), _MAX_NODES):
        role, content = _role_and_content(message)
        if isinstance(role, str) and role.lower() in ("user", "human"):
            found = _as_query(message_text(content))
            if found != NO_QUERY:
                return found
    return NO_QUERY


def _last_first(messages: object) -> Iterator[object]:
    """Messages, the last one first; in a batch of conversations those of the last conversation first."""
    for message in reversed(messages[-_MAX_NODES:]) if isinstance(messages, (list, tuple)) else ():
        if isinstance(message, (list, tuple)) and not _is_pair(message):
            yield from reversed(message)
        else:
            yield message


def _is_pair(message: object) -> bool:
    """Whether this is a message as role and content, not a list of messages."""
    return isinstance(message, (list, tuple)) and len(message) == 2 and isinstance(message[0], str)


def _role_and_content(message: object) -> tuple[object, object]:
    if isinstance(message, (list, tuple)):
        return (message[0], message[1]) if _is_pair(message) else (None, None)
    if not isinstance(message, Mapping):
        return None, None
    for key in ("kwargs", "data"):  # LangChain's two ways of writing a message object
        inner = message.get(key)
        if isinstance(inner, Mapping) and "content" in inner:
            return inner.get("role", inner.get("type", message.get("type"))), inner["content"]
    content = next(
        (message[key] for key in ("content", "blocks", "parts") if message.get(key) is not None), None
    )
    return message.get("role", message.get("type")), content


def message_text(content: object) -> str:
    """Return the text of a message's content: a text, or a list of parts of which some are texts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, (list, tuple)):
        return ""
    parts = (_part_text(part) if isinstance(part, Mapping) else part for part in content[:_MAX_NODES])
    return "\n".join(part for part in parts if isinstance(part, str))


def _part_text(part: Mapping[str, Any]) -> object:
    # A part's content is the user's own only where it is text: tools answer in the user's name.
    return part.get("content") if part.get("type") == "text" and "text" not in part else part.get("text")


def _in_json(data: Any) -> Query:
    """Level by level: the usual keys, then messages; then the only text there is."""
    if isinstance(data, str):
        return _as_query(data)
    if isinstance(data, (list, tuple)):
        return last_user_message(data)
    if not isinstance(data, Mapping):
        return NO_QUERY
    for level in _levels(data):
        for key in QUESTION_KEYS:
            for node in level:
                found = _asked(node.get(key))
                if found != NO_QUERY:
                    return found
        for node in level:
            found = last_user_message(node.get("messages"))
            if found != NO_QUERY:
                return found
    only = NO_QUERY
    for text in islice(_texts(data), _MAX_NODES):
        found = _as_query(text)
        if found not in (NO_QUERY, only):
            if only != NO_QUERY:
                return NO_QUERY
            only = found
    return only


def _asked(value: object) -> Query:
    """What one of the usual keys holds: a text, a message or a list of messages."""
    if isinstance(value, str):
        return _as_query(value)
    if isinstance(value, Mapping) and "content" in value:
        role, content = _role_and_content(value)
        is_other = isinstance(role, str) and role.lower() in _OTHER_ROLES
        return NO_QUERY if is_other else _as_query(message_text(content))
    return last_user_message(value)


def _texts(data: Mapping[str, Any]) -> Iterator[str]:
    return (
        value
        for level in _levels(data)
        for node in level
        for value in node.values()
        if isinstance(value, str)
    )


def _levels(data: Mapping[str, Any]) -> Iterator[list[Mapping[str, Any]]]:
    """The objects in `data`, outermost first, in bounded number; objects in lists are somebody else's data."""
    level, room = [data], _MAX_NODES
    while level:
        yield level
        room -= len(level)
        inner = (value for node in level for value in node.values() if isinstance(value, Mapping))
        level = list(islice(inner, room))


def _as_query(text: str) -> Query:
    if is_redacted(text):
        return HIDDEN_QUERY
    return NO_QUERY if is_blank(text) or _is_stand_in(text) else Query(text)


def _is_stand_in(text: str) -> bool:
    """Whether `text` stands for a value that an instrumentor could not write down: `<object>`, or a repr."""
    text = text.strip()
    if text[0] == "<" and text[-1] == ">" and not any(mark in text[1:-1] for mark in "<>"):
        return True
    start = _REPR_STARTS.match(text)
    if start is not None and start.lastgroup is not None:
        return text.endswith(_REPR_ENDS[start.lastgroup])
    return _FIELDS.match(text) is not None
