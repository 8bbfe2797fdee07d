"""The question in a span's input: plain text, or JSON of a call's arguments. Pure.

What instrumentors write is in `docs/design.md`, "Questions". Wrong questions are worse than none: a placeholder
for a vector, a Python repr or a whole JSON envelope judged as a question makes every metric of the event wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..privacy import is_redacted
from ..retrieval import HIDDEN_QUERY, NO_QUERY, Query
from .lenient_json import UNREADABLE, loads, loads_cut

QUESTION_KEYS = ("query", "query_str", "question", "input", "inputs", "text", "message")
"""In the order in which they are asked; then `messages`."""

_MAX_NODES = 10_000  # objects looked at in one input
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
_REPR_ENDS = {"call": (")",), "tagged": (")>",), "dict": ("}",), "texts": ("']", "')", "',)"), "calls": (")]", ">]")}
_FIELDS = re.compile(r"\w+=(['\"]).*?\1 \w+=", re.DOTALL)  # content='...' additional_kwargs={}


def read_query(value: object, mime_type: object = None) -> Query:
    """Return the question in an input attribute.

    Args:
        value: `input.value`: text, or an object that the SDK kept as it is.
        mime_type: `input.mime_type`. Text is JSON only where this says so.
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return _in_json(value)
    if not isinstance(value, str) or not value.strip():
        return NO_QUERY
    if is_redacted(value):
        return HIDDEN_QUERY
    if not (isinstance(mime_type, str) and "json" in mime_type.lower()):
        # A plain `<b>` may be a question; what stands for a value has more than a word in it.
        return NO_QUERY if _is_stand_in(value) and not _ONE_WORD.fullmatch(value.strip()) else Query(value)
    if value.lstrip()[0] not in '{["':
        return NO_QUERY if _is_stand_in(value) else Query(value)
    data = loads(value)
    if data is not UNREADABLE:
        return _in_json(data)
    found = _in_json(loads_cut(value))
    return found if found != NO_QUERY else Query(weak=value)


def last_user_message(messages: object) -> Query:
    """Return the last message of a user in a list of messages, as chat clients serialise them."""
    if not isinstance(messages, (list, tuple)):
        return NO_QUERY
    for message in reversed(messages):
        if isinstance(message, (list, tuple)):
            # A batch of conversations, or a pair of role and content.
            role, content = message if len(message) == 2 and isinstance(message[0], str) else (None, None)
            if role is None:
                found = last_user_message(message)
                if found != NO_QUERY:
                    return found
                continue
        elif isinstance(message, Mapping):
            inner = message.get("kwargs")
            fields = inner if isinstance(inner, Mapping) and "content" in inner else message
            role, content = fields.get("role", fields.get("type")), fields.get("content")
        else:
            continue
        if isinstance(role, str) and role.lower() in ("user", "human"):
            text = message_text(content)
            if is_redacted(text):
                return HIDDEN_QUERY
            if text.strip() and not _is_stand_in(text):
                return Query(text)
    return NO_QUERY


def message_text(content: object) -> str:
    """Return the text of a message's content: a text, or a list of parts of which some are texts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, (list, tuple)):
        return ""
    parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return "\n".join(part for part in parts if isinstance(part, str))


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
                value = node.get(key)
                found = _as_query(value) if isinstance(value, str) else last_user_message(value)
                if isinstance(value, Mapping) and "content" in value:
                    found = _as_query(message_text(value["content"]))
                if found != NO_QUERY:
                    return found
        for node in level:
            found = last_user_message(node.get("messages"))
            if found != NO_QUERY:
                return found
    texts = {value for level in _levels(data) for node in level for value in node.values() if isinstance(value, str)}
    queries = [query for query in map(_as_query, texts) if query != NO_QUERY]
    return queries[0] if len(queries) == 1 else NO_QUERY


def _levels(data: Mapping[str, Any]) -> Iterator[list[Mapping[str, Any]]]:
    """The objects in `data`, outermost first, in bounded time; objects in lists are somebody else's data."""
    level, seen = [data], 0
    while level and seen < _MAX_NODES:
        yield level
        seen += len(level)
        level = [value for node in level for value in node.values() if isinstance(value, Mapping)]


def _as_query(text: str) -> Query:
    if is_redacted(text):
        return HIDDEN_QUERY
    return NO_QUERY if not text.strip() or _is_stand_in(text) else Query(text)


def _is_stand_in(text: str) -> bool:
    """Whether `text` stands for a value that an instrumentor could not write down: `<object>`, or a repr."""
    text = text.strip()
    if text[0] == "<" and text[-1] == ">" and not any(mark in text[1:-1] for mark in "<>"):
        return True
    start = _REPR_STARTS.match(text)
    if start is not None and start.lastgroup is not None:
        return text.endswith(_REPR_ENDS[start.lastgroup])
    return _FIELDS.match(text) is not None
