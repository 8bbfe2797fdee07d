"""What must not leave the process. Pure.

OpenInference writes a fixed mark where its settings hide a value. The mark means "absent": it is never sent,
and what stands behind it is never recovered from a place that the masking forgot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .strict import values_in

REDACTED = "__REDACTED__"
_REDACTED_BYTES = REDACTED.encode()
_MAX_ITEMS = 10_000
_DEPTH = 32
_SIMPLE = frozenset({str, int, float, bool, type(None)})


def is_redacted(value: object) -> bool:
    """Return whether `value` is the mark that OpenInference writes in place of a hidden value."""
    if isinstance(value, str):
        # NUL goes before an event is sent.
        return REDACTED in value and value.replace("\0", "").strip() == REDACTED
    return isinstance(value, bytes) and value.replace(b"\0", b"").strip() == _REDACTED_BYTES


def may_hold_mark(text: str) -> bool:
    """Return whether the mark can stand in JSON text; escapes may spell it."""
    return REDACTED in text or "\\u" in text


def without_marks(value: Any, depth: int = _DEPTH) -> Any:
    """Return plain data without the values that are the mark: keys left out of objects, items out of lists."""
    if depth == 0:
        return None
    if depth == _DEPTH - 1 and values_in(value, _MAX_ITEMS) > _MAX_ITEMS:
        return value  # a member of metadata with more in it than can ever be sent
    if isinstance(value, (dict, Mapping)):  # the check for an abstract type takes long
        try:
            value = value if type(value) is dict else dict(value.items())
        except Exception:  # noqa: BLE001 - an application's own types may fail in any way
            return None
        return {
            key: item if type(item) in _SIMPLE else without_marks(item, depth - 1)
            for key, item in value.items()
            if not is_redacted(item) and not is_redacted(key)
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [
            item if type(item) in _SIMPLE else without_marks(item, depth - 1)
            for item in value
            if not is_redacted(item)
        ]
    return value


@dataclass(frozen=True, slots=True)
class Hiding:
    """What OpenInference's own settings say must be hidden.

    They bind us too: older instrumentors obey only some of them, and we send texts to a third party.
    """

    inputs: bool = False
    """Every question (`OPENINFERENCE_HIDE_INPUTS`)."""
    messages: bool = False
    """The messages to a model (`OPENINFERENCE_HIDE_INPUT_MESSAGES`, `OPENINFERENCE_HIDE_INPUT_TEXT`)."""
    documents: bool = False
    """Every document (`OPENINFERENCE_HIDE_OUTPUTS`, `OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS`)."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Hiding:
        """Read the settings as OpenInference does: `true` in any case means yes."""

        def says(*names: str) -> bool:
            return any(
                environment.get(f"OPENINFERENCE_HIDE_{name}", "").strip().lower() == "true" for name in names
            )

        return cls(
            inputs=says("INPUTS"),
            messages=says("INPUTS", "INPUT_MESSAGES", "INPUT_TEXT"),
            documents=says("OUTPUTS", "RETRIEVAL_DOCUMENTS"),
        )
