"""The values that the `using_*` blocks take: checked without ever raising, and made fit for any exporter."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Collection, Mapping
from numbers import Real
from typing import TypeVar

import orjson
from opentelemetry.util.types import AttributeValue

from ..strict import clean_text, plain

_log = logging.getLogger("seer_otel.context")

T = TypeVar("T")


class _MistakeError(ValueError):
    """A value that a helper does not take; the message says what it is, without its content."""


def text(value: object) -> str:
    """Return a text that is not blank, cleaned for any exporter."""
    if not isinstance(value, str):
        raise _MistakeError(type(value).__name__)
    # Half a surrogate pair in an attribute would make the application's own exporter fail.
    cleaned = clean_text(value)
    if not cleaned.strip():
        raise _MistakeError("blank text")
    return cleaned


def flag(value: object) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise _MistakeError(type(value).__name__)
    return value


def _number(value: object) -> Real:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _MistakeError(type(value).__name__)
    if not math.isfinite(value):
        raise _MistakeError("a number that is not finite")
    return value


def rate(value: object) -> float:
    """Return a share from 0 to 1."""
    share = float(_number(value))
    if not 0 <= share <= 1:
        raise _MistakeError("a number outside 0 to 1")
    return share


def ids(value: object) -> tuple[str, ...]:
    """Return document ids as texts."""
    if isinstance(value, str):
        value = (value,)
    # An iterator may have no end, and iterating over a mapping or bytes gives what nobody meant.
    if not isinstance(value, Collection) or isinstance(value, (Mapping, bytes, bytearray)):
        raise _MistakeError(type(value).__name__)
    return tuple(text(item) if isinstance(item, str) else str(_number(item)) for item in value)


def items(value: object) -> dict[object, object]:
    """Return the items of a mapping."""
    if not isinstance(value, Mapping):
        raise _MistakeError(type(value).__name__)
    return dict(value)


def attribute(value: object) -> AttributeValue | None:
    """Return `value` as one that every SDK and exporter takes; None if nothing is left of it."""
    data = plain(value)
    if data is None or isinstance(data, (str, bool, float)):
        return data
    if isinstance(data, int):
        return data if -(2**63) <= data < 2**63 else str(data)
    if isinstance(data, list):
        kinds = {type(item) for item in data}
        if kinds <= {str} or kinds <= {bool} or kinds <= {float}:
            return tuple(data)
        if kinds == {int} and all(-(2**63) <= item < 2**63 for item in data):
            return tuple(data)
    return orjson.dumps(data).decode()


def valid(takes: str, read: Callable[[object], T], value: object) -> T | None:
    """Return `read(value)`; where that fails, warn, naming what the helper `takes`, and return None."""
    try:
        return read(value)
    except Exception as error:  # noqa: BLE001 - an application's own types may fail in any way
        warn(takes, str(error) if isinstance(error, _MistakeError) else type(value).__name__)
        return None


@functools.cache
def warn(takes: str, got: str) -> None:
    """Log this kind of mistake, the first time it is made."""
    _log.warning("%s; got %s, which is ignored (said once)", takes, got)
