"""The metadata of an event: an allowlist, as spans carry what nobody meant to send. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from .. import marks
from ..conventions import convention
from ..conventions.documents import MAX_METADATA
from ..conventions.lenient_json import as_data, loads
from ..privacy import is_redacted, without_marks
from ..retrieval import Role
from ..spans import Span
from .tree import Inherited, Tree

DEFAULT_KEYS = ("feature_flag", "env", "index", "index_version", "model", "channel")
"""The keys that Seer's page recommends for filtering, without the user's id."""
OWN_KEYS = ("retriever_type", "vector_db", "top_k")
"""Keys that count on the retrieval's own span only: OpenInference's page shows them there."""
IDENTITIES = {"user_id": "user.id", "session_id": "session.id"}
"""Sent only where the `metadata_keys` setting names them, and read from these attributes."""

_PREFIX = "metadata."
_RESOURCE_ENV = ("deployment.environment.name", "deployment.environment")


_MAX_SET = 4_000  # members that one span sets: more than are ever looked at
_NOTHING: Mapping[str, Any] = {}
_Said = tuple[Mapping[str, Any], Mapping[str, Any]]
"""What the allowlist lets through, and what the application set."""


class Metadata(Inherited[_Said]):
    """The metadata of a trace's retrievals.

    Args:
        tree: the whole trace.
        keys: the allowlist.
    """

    def __init__(self, tree: Tree, keys: Iterable[str]) -> None:
        super().__init__(tree, (_NOTHING, _NOTHING))
        self._keys = tuple(keys)

    def of(self, span: Span) -> dict[str, Any]:
        """Return the metadata of a retrieval's event, without our own marks.

        From the retrieval's span and its ancestors, the nearest first; the resource only where none says.
        """
        said, set_by_user = self.handed(span) if self._tree.says else (_NOTHING, _NOTHING)
        allowed = dict(said)
        if "env" not in allowed and "env" in self._keys:
            allowed |= _first(span.resource, _RESOURCE_ENV, "env")
        if "model" not in allowed and "model" in self._keys and span.span_id in self._models:
            allowed["model"] = self._models[span.span_id]
        found = {key: allowed[key] for key in self._keys if key in allowed}
        if self._tree.says:
            found |= _values(span.attributes, _named(OWN_KEYS))
            found |= set_by_user
        elif not found:
            return found
        cleaned: dict[str, Any] = without_marks(found)
        return cleaned

    def _step(self, span: Span, above: _Said) -> _Said:
        allowed = _merged(above[0], _values(span.attributes, _named(self._keys)))
        return allowed, _merged(above[1], _set_by_user(span.attributes))

    @cached_property
    def _models(self) -> dict[int, str]:
        """For each span the model of the nearest embedding beneath it: retrievers embed the query."""
        if Role.EMBEDDING not in self._tree.roles.values():
            return {}
        nearest: dict[int, tuple[int, str]] = {}
        for span in reversed(self._tree.downwards):
            parent = self._tree.parent(span)
            if parent is None:
                continue
            is_embedding = self._tree.roles[span.span_id] is Role.EMBEDDING
            model = convention.embedding_model(span.attributes) if is_embedding else None
            found = (0, model) if model is not None else nearest.get(span.span_id)
            if found is not None and found[0] + 1 <= nearest.get(parent.span_id, (math.inf,))[0]:
                nearest[parent.span_id] = (found[0] + 1, found[1])
        return {span_id: model for span_id, (_, model) in nearest.items()}


@lru_cache(maxsize=8)
def _named(keys: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each key, and its name where it is flattened."""
    return [(key, _PREFIX + key) for key in keys]


def _merged(above: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**above, **own} if own else above


def _set_by_user(attributes: Mapping[str, Any]) -> dict[str, Any]:
    prefix = marks.METADATA_PREFIX
    names = (name for name in attributes if isinstance(name, str) and name.startswith(prefix))
    return {name.removeprefix(prefix): attributes[name] for name in islice(names, _MAX_SET)}


def _values(attributes: Mapping[str, Any], names: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """What a span says under some keys: flattened, or in one JSON text. A hidden value is one too, and hides others.

    Args:
        attributes: the span's.
        names: each key, and its name where it is flattened.
    """
    whole = attributes.get("metadata")
    if isinstance(whole, str) and len(whole) <= MAX_METADATA and whole.lstrip().startswith("{"):
        whole = loads(whole)
    if isinstance(whole, Mapping):
        whole = as_data(whole)
    elif whole is not None:
        whole = {key: whole for key, _ in names} if is_redacted(whole) else None
    found = {}
    for key, name in names:
        value = attributes.get(name)
        if value is None and whole is not None:
            value = whole.get(key)
        if value is None and key in IDENTITIES:
            value = attributes.get(IDENTITIES[key])
        if value is not None:
            found[key] = value
    return found


def _first(attributes: Mapping[str, Any], names: Iterable[str], key: str) -> dict[str, Any]:
    values = (attributes.get(name) for name in names)
    return next(({key: value} for value in values if isinstance(value, str) and value), {})
