"""Whether a setting's value can work: a check takes the value and the name to say in an error, and returns the value.

Pure.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from typing import Any

from .endpoint import ConfigurationError, shown

Check = Callable[[Any, str], Any]


def _rate(value: Any, name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigurationError(f"{name} must be a number from 0 to 1, not {shown(value)}")
    if not 0 <= value <= 1:
        raise ConfigurationError(f"{name} must be from 0 to 1, not {shown(value)}")
    return value


def _number(value: Any, name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ConfigurationError(f"{name} must be a number above 0, not {shown(value)}")
    return value


def _whole(value: Any, name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ConfigurationError(f"{name} must be a whole number above 0, not {shown(value)}")
    return value


def _bool(value: Any, name: str) -> Any:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} must be true or false, not {shown(value)}")
    return value


def _names(value: Any, name: str) -> Any:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigurationError(f"{name} must be a list of names, not {shown(value)}")
    names = tuple(value)
    if not all(isinstance(each, str) for each in names):
        raise ConfigurationError(f"{name} must be a list of names, not {shown(value)}")
    return names


def _folder(value: Any, name: str) -> Any:
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        raise ConfigurationError(f"{name} must be a folder, not {shown(value)}")
    return path


def _function(value: Any, name: str) -> Any:
    if not callable(value):
        raise ConfigurationError(f"{name} must be a function, not {shown(value)}")
    return value


def _one_of(*allowed: str) -> Check:
    def check(value: Any, name: str) -> Any:
        if value not in allowed:
            raise ConfigurationError(f"{name} must be {' or '.join(allowed)}, not {shown(value)}")
        return value

    return check


def _has_send(kind: str) -> Check:
    def check(value: Any, name: str) -> Any:
        if not callable(getattr(value, "send", None)):
            # Not the value: it may be the key, given to the wrong setting.
            raise ConfigurationError(f"{name} must be {kind}, not {type(value).__name__}")
        return value

    return check


def _or_none(check: Check) -> Check:
    return lambda value, name: None if value is None else check(value, name)


CHECKS: dict[str, Check] = {
    "sample_rate": _rate,
    "nested": _one_of("outermost", "all"),
    "final_context": _one_of("last"),
    "redact": _or_none(_function),
    "filter": _or_none(_function),
    "transport": _or_none(_has_send("an object with a method send(body, idempotency_key)")),
    "http_client": _or_none(_has_send("an httpx.Client")),
    "metadata_keys": _names,
    "passage_metadata_keys": _or_none(_names),
    "id_keys": _names,
    "scrub": _one_of("metadata", "all", "none"),
    "allow_http": _bool,
    "synchronous": _bool,
    "spool_dir": _or_none(_folder),
    "spool_max_bytes": _whole,
    "spool_max_age": _number,
    "timeout": _number,
    "max_queue_size": _whole,
    "max_trace_age": _number,
    "raise_attribute_limit": _or_none(_whole),
}
"""The check of each setting that needs no other one to be judged."""
