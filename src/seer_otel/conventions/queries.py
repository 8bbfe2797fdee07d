"""The question in a span's input: plain text, or JSON of a call's arguments. Pure.

What instrumentors write is in `docs/design.md`, "Questions". Wrong questions are worse than none: a placeholder
for a vector, a Python repr or a whole JSON envelope judged as a question makes every metric of the event wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ..privacy import REDACTED, is_redacted
from ..retrieval import HIDDEN_QUERY, NO_QUERY, Query
from ..strict import is_blank
from .lenient_json import UNREADABLE, as_data, loads, loads_cut

QUESTION_KEYS = ("query", "query_str", "question", "input", "inputs", "text", "message")
"""In the order in which they are asked; then `messages`."""

_MAX_NODES = 2_000  # objects, texts, messages or parts of one that are looked at in an input
_MAX_BEGINNING = (
    10_000  # characters of a text that are looked at for how a value begins that Python wrote down
)
_OTHER_ROLES = ("assistant", "ai", "system", "developer", "tool", "function")
_ONE_WORD = re.compile(r"<[\w/!-]{0,100}>")
# What a framework writes where there was no input; it may also be typed, so it counts where nothing else does.
_NO_INPUT = re.compile(r"null|none|undefined|\{\s*\}|\[\s*\]", re.IGNORECASE)
_MAX_NO_INPUT = len("undefined")  # characters of a word among these
# The only text of a call's arguments is no question under a key that names something else: whose, where, which.
_NO_QUESTION_KEY = re.compile(
    r"""
      (?:.*[_\W])?(?:ids?|keys?|uuid|user|session|thread|tenant|lang|language|locale|model|mode|namespace|index|path)
    | .*[a-z](?:Id|ID|Key|Name)                   # userId, sessionID
    | resume | goto                              # a graph's commands
    """,
    re.VERBOSE,
)
# What begins like this and ends as its partner in _REPR_ENDS is a value that Python wrote down.
_REPR_STARTS = re.compile(
    r"""
      (?P<call>[A-Z_][\w.]*\((?:\s*\w+\s*=|\)\Z))     # Message(role=..., content=...), StartEvent()
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
    if type(value) is str and mime_type is None and _is_plainly_asked(value):
        return Query(value)
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
        if mime_type is None and _NO_INPUT.fullmatch(value.strip()):
            return Query(weak=value)
        # A plain `<b>` may be a question; what stands for a value has more than a word in it.
        return NO_QUERY if _is_stand_in(value) and not _ONE_WORD.fullmatch(value.strip()) else Query(value)
    if value.lstrip()[0] not in '{["':
        # Instrumentors say JSON of whatever parses as JSON: the question may be 404.
        if _NO_INPUT.fullmatch(value.strip()):
            return Query(weak=value)
        return NO_QUERY if _is_stand_in(value) else Query(value)
    data = loads(value)
    return _in_json(data) if data is not UNREADABLE else _in_cut_json(value)


def _is_plainly_asked(text: str) -> bool:
    """Whether a text is a question at first sight, as most are: none of what is asked of others could hold."""
    return len(text) > _MAX_NO_INPUT and text[:1].isalnum() and "(" not in text and "=" not in text


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
        found = _under(level, QUESTION_KEYS)
        if found == NO_QUERY:
            found = next(
                (q for node in level if (q := last_user_message(node.get("messages"))) != NO_QUERY), found
            )
        if found != NO_QUERY:
            return found
    return _only_text(data)


def _in_cut_json(text: str) -> Query:
    """The usual keys as far as they can be read; with the rest unknown, nothing is the only text, or the last."""
    data = loads_cut(text)
    levels = _levels(data) if isinstance(data, Mapping) else ()
    found = next((q for level in levels if (q := _under(level, QUESTION_KEYS)) != NO_QUERY), NO_QUERY)
    if isinstance(data, str):
        found = _as_query(data)
    if found.hidden or REDACTED in text:
        return HIDDEN_QUERY
    if found.text is not None:
        return NO_QUERY if _begins_as_stand_in(found.text) else found
    said = _in_json(data)
    weak = said.text if said.text is not None and not _begins_as_stand_in(said.text) else text
    return NO_QUERY if _is_stand_in(weak) else Query(weak=weak)


def _under(level: list[Mapping[str, Any]], keys: tuple[str, ...]) -> Query:
    queries = (_asked(node.get(key)) for key in keys for node in level)
    return next((query for query in queries if query != NO_QUERY), NO_QUERY)


def _only_text(data: Mapping[str, Any]) -> Query:
    """The one text among a call's arguments; none where there are others, be they reprs or in lists."""
    found = [
        (key, text)
        for key, text in islice(_texts(data), _MAX_NODES)
        if not is_blank(text) and not _is_placeholder(text)
    ]
    if not found or len({text for _, text in found}) > 1:
        return NO_QUERY
    key, text = found[0]
    return NO_QUERY if key is None or _NO_QUESTION_KEY.fullmatch(key) else _as_query(text)


def _asked(value: object) -> Query:
    """What one of the usual keys holds: a text, a message or a list of messages."""
    if isinstance(value, str):
        return _as_query(value)
    if isinstance(value, Mapping) and "content" in value:
        role, content = _role_and_content(value)
        is_other = isinstance(role, str) and role.lower() in _OTHER_ROLES
        return NO_QUERY if is_other else _as_query(message_text(content))
    return last_user_message(value)


def _texts(data: Mapping[str, Any]) -> Iterator[tuple[str | None, str]]:
    """The texts in `data`, each with its key, or without one in a list."""
    for level in _levels(data):
        for node in level:
            for key, value in node.items():
                for item in value if isinstance(value, (list, tuple)) else (value,):
                    if isinstance(item, str):
                        yield (key if item is value else None, item)


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
    if _is_placeholder(text):
        return True
    if text[0] not in "<{[" and "(" not in text and "=" not in text:
        return False  # as most questions; none of what follows could match
    beginning = text[:_MAX_BEGINNING]
    start = _REPR_STARTS.match(beginning)
    if start is not None and start.lastgroup is not None:
        return text.endswith(_REPR_ENDS[start.lastgroup])
    return _FIELDS.match(beginning) is not None


def _is_placeholder(text: str) -> bool:
    text = text.strip()
    return text[0] == "<" and text[-1] == ">" and not any(mark in text[1:-1] for mark in "<>")


def _begins_as_stand_in(text: str) -> bool:
    """Whether `text`, the end of which may be missing, can be such a value."""
    text = text.lstrip()[:_MAX_BEGINNING]
    return _REPR_STARTS.match(text) is not None or (text[:1] == "<" and ">" not in text)
