"""What the local backend accepts at `POST /v1/log`. Pure.

Source: Seer's "Context & Event Schema" page. Where it is silent: unknown keys are tolerated (a newer client may
send more), null stands for an absent optional field, and a context may be empty.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from seer_otel.event import MAX_PASSAGES, MAX_TEXT

MAX_NESTING = 64
"""Levels of objects and lists in a body. Ours: what is stored must be readable again by anyone's JSON parser."""

_TOO_DEEP = f"it is nested more than {MAX_NESTING} levels deep"

PassageText = Annotated[str, Meta(max_length=MAX_TEXT)]
# The length too: `$` alone would let a line break through.
TraceId = Annotated[str, Meta(pattern="^[0-9a-f]{32}$", max_length=32)]
SpanId = Annotated[str, Meta(pattern="^[0-9a-f]{16}$", max_length=16)]
Share = Annotated[float, Meta(ge=0, le=1)]


class NotJsonError(Exception):
    """The body is not JSON, or is nested too deeply to be read."""


class InvalidEventError(Exception):
    """The body is JSON, but no event. `field` is the path of what is wrong, as in `context[3].text`."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class LoggedPassage(Struct):
    """One element of a context; `rank` counts from 1 and stands only on Seer's metrics page."""

    text: PassageText
    id: str | None = None
    source: str | None = None
    score: float | None = None
    rank: int | None = None
    metadata: dict[str, Any] | None = None


class Labels(Struct):
    """The ground truth of one question."""

    gold_doc_ids: list[str]
    answer: str | None = None


class LoggedEvent(Struct):
    """The event as it comes over the wire."""

    task: str
    context: Annotated[list[PassageText | LoggedPassage], Meta(max_length=MAX_PASSAGES)]
    metadata: dict[str, Any] | None = None
    trace_id: TraceId | None = None
    span_id: SpanId | None = None
    parent_span_id: SpanId | None = None
    span_name: str | None = None
    is_final_context: bool | None = None
    subquery: str | None = None
    ground_truth: Labels | None = None
    created_at: str | None = None
    sample_rate: Share | None = None

    def passages(self) -> list[LoggedPassage]:
        """Return the context with plain texts as passages."""
        return [LoggedPassage(item) if isinstance(item, str) else item for item in self.context]


def text_of(body: bytes) -> str:
    """Return a body as text. Raises NotJsonError where it is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise NotJsonError(str(error)) from None


def parse(body: bytes | str) -> LoggedEvent:
    """Read one event.

    Raises:
        NotJsonError: `body` is not one JSON value in UTF-8, or nested deeper than `MAX_NESTING`.
        InvalidEventError: it breaks the schema or a limit.
    """
    text = text_of(body) if isinstance(body, bytes) else body
    event = _usual(text) or _checked(text)
    if not event.task.strip():
        raise InvalidEventError("Expected text that is not blank", "task")
    if event.created_at is not None:
        try:
            instant(event.created_at)
        except (ValueError, OverflowError):
            raise InvalidEventError("Expected a date and time in ISO 8601", "created_at") from None
    return event


_event = msgspec.json.Decoder(LoggedEvent)


def _usual(text: str) -> LoggedEvent | None:
    """Read a good event with few levels and lists, in a third of the time; None for whatever needs a closer look."""
    if text.count("{") + text.count("[") > MAX_NESTING:
        return None
    try:
        return _event.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _checked(text: str) -> LoggedEvent:
    # Two steps, so that a body cut in the middle is never mistaken for a wrong field.
    data = _decode(text)
    try:
        return msgspec.convert(data, LoggedEvent)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        path = path.rstrip("`")
        # Here the path is that of the object which lacks it.
        if message.startswith("Object missing required field `"):
            path += "." + message.split("`")[1]
        raise InvalidEventError(message, path.lstrip(".") or None) from None


def _decode(text: str) -> object:
    try:
        data = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise NotJsonError(str(error)) from None
    except RecursionError:
        raise NotJsonError(_TOO_DEEP) from None
    if _deeper_than(data, MAX_NESTING):
        raise NotJsonError(_TOO_DEEP)
    return data


def instant(text: str) -> datetime:
    """Read an ISO 8601 time as UTC; one without an offset is in UTC. Raises ValueError or OverflowError."""
    try:
        moment = msgspec.convert(text, datetime)  # RFC 3339, with any number of digits after the second
    except msgspec.ValidationError:
        moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        return moment.replace(tzinfo=timezone.utc)
    return moment.astimezone(timezone.utc)


def _deeper_than(data: object, levels: int) -> bool:
    level = [data] if isinstance(data, (dict, list)) else []
    for _ in range(levels):
        if not level:
            return False
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
    return bool(level)
