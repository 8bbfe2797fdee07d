"""The metadata of an event: an allowlist, as spans carry what nobody meant to send. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import marks
from ..conventions import convention
from ..conventions.lenient_json import loads
from ..privacy import is_redacted, without_marks
from ..retrieval import Retrieval, Role
from ..spans import Span
from .tree import Tree

DEFAULT_KEYS = ("feature_flag", "env", "index", "index_version", "model", "channel")
"""The keys that Seer's page recommends for filtering, without the user's id."""
OWN_KEYS = ("retriever_type", "vector_db", "top_k")
"""Keys that count on the retrieval's own span only: OpenInference's page shows them there."""
IDENTITIES = {"user_id": "user.id", "session_id": "session.id"}
"""Sent only where the `metadata_keys` setting names them, and read from these attributes."""

_PREFIX = "metadata."
_RESOURCE_ENV = ("deployment.environment.name", "deployment.environment")


def event_metadata(retrieval: Retrieval, above: Sequence[Span], tree: Tree, keys: Iterable[str]) -> dict[str, Any]:
    """Return the metadata of a retrieval's event, without our own marks.

    From the retrieval's span and its ancestors, the nearest first; the resource only where none says.

    Args:
        retrieval: the retrieval.
        above: its ancestors, the nearest first.
        tree: the whole trace.
        keys: the allowlist.
    """
    span = retrieval.span
    chain = [span, *above]
    found: dict[str, Any] = {}
    for key in keys:
        for each in chain:
            value = _value(each.attributes, key)
            if value is not None:
                found[key] = value
                break
        else:
            if key == "env":
                found |= _first(span.resource, _RESOURCE_ENV, key)
            elif key == "model":
                found |= _embedding_model(span, tree)
    for key in OWN_KEYS:
        value = _value(span.attributes, key)
        if value is not None:
            found[key] = value
    for each in reversed(chain):
        for name, value in each.attributes.items():
            if isinstance(name, str) and name.startswith(marks.METADATA_PREFIX):
                found[name.removeprefix(marks.METADATA_PREFIX)] = value
    cleaned: dict[str, Any] = without_marks(found)
    return cleaned


def _value(attributes: Mapping[str, Any], key: str) -> Any:
    value = attributes.get(_PREFIX + key)
    if value is None:
        whole = attributes.get("metadata")
        if isinstance(whole, str) and whole.lstrip().startswith("{"):
            whole = loads(whole)
        value = whole.get(key) if isinstance(whole, Mapping) else None
    if value is None and key in IDENTITIES:
        value = attributes.get(IDENTITIES[key])
    return None if is_redacted(value) else value


def _first(attributes: Mapping[str, Any], names: Iterable[str], key: str) -> dict[str, Any]:
    values = (attributes.get(name) for name in names)
    return next(({key: value} for value in values if isinstance(value, str) and value), {})


def _embedding_model(span: Span, tree: Tree) -> dict[str, Any]:
    for each in tree.descendants(span):
        if convention.role(each.attributes) is Role.EMBEDDING:
            model = convention.embedding_model(each.attributes)
            if model is not None and not is_redacted(model):
                return {"model": model}
    return {}
