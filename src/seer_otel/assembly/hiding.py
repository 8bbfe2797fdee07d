"""Documents that are masked in one span of a trace and readable in another. Pure.

Masking is set for each instrumentor, and each forgets something: what is hidden once is hidden everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ..retrieval import Document, Retrieval, Role, State
from .tree import Tree


def first_masked(retrievals: Iterable[Retrieval]) -> int | None:
    """Return when the first retrieval with masked documents ended; what was written later may quote them."""
    return min((found.span.end for found in retrievals if _masks(found)), default=None)


def hide_forgotten(tree: Tree, retrievals: Mapping[int, Retrieval]) -> dict[int, Retrieval]:
    """Return the retrievals without the documents that another span of their trace masks.

    The same id tells. A wrapper's list around a masked one, and the list that a chain notes after it, may repeat
    masked documents without their ids; there a document stays only if something tells that it is another one.
    """
    if not any(map(_masks, retrievals.values())):
        return dict(retrievals)
    hidden = frozenset[str]().union(*(found.hidden_ids for found in retrievals.values()))
    left = {
        span_id: _keep(found, lambda document: document.id not in hidden)
        for span_id, found in retrievals.items()
    }
    doubtful = _doubtful(tree, left)
    if not doubtful:
        return left
    plain = {
        text
        for span_id, found in left.items()
        if span_id not in doubtful and not found.is_noted and found.role is not Role.RERANKER
        for text in found.texts
    }
    for span_id, ids_tell in doubtful.items():

        def is_another(document: Document, ids_tell: bool = ids_tell) -> bool:
            return document.text in plain or (ids_tell and document.id is not None)

        left[span_id] = _keep(left[span_id], is_another)
    return left


def _masks(found: Retrieval) -> bool:
    return found.state is State.HIDDEN or bool(found.hidden_ids) or found.hides_nameless


def _ids_tell(found: Retrieval) -> bool:
    """Whether each document that a masking retrieval hides can be known by its id."""
    return bool(found.hidden_ids) and not found.hides_nameless


def _doubtful(tree: Tree, retrievals: Mapping[int, Retrieval]) -> dict[int, bool]:
    """The retrievals that may repeat masked documents, and whether an id tells these from others."""
    masking = [found for found in retrievals.values() if _masks(found)]
    around: dict[int, bool] = {}
    for found in masking:
        ids_tell = _ids_tell(found)
        above = tree.parent(found.span)
        while above is not None and around.get(above.span_id) not in (False, ids_tell):
            around[above.span_id] = ids_tell
            above = tree.parent(above)
    first = min((found.span.end for found in masking), default=None)
    first_without_ids = min((found.span.end for found in masking if not _ids_tell(found)), default=None)
    doubtful: dict[int, bool] = {}
    for span_id, found in retrievals.items():
        end = found.span.end
        if not found.documents:
            continue
        if span_id in around:
            doubtful[span_id] = around[span_id]
        elif found.is_noted and not _masks(found) and first is not None and first <= end:
            doubtful[span_id] = first_without_ids is None or end < first_without_ids
    return doubtful


def _keep(found: Retrieval, wanted: Callable[[Document], bool]) -> Retrieval:
    left = tuple(filter(wanted, found.documents))
    if len(left) == len(found.documents):
        return found
    return replace(found, documents=left, state=State.FOUND if left else State.HIDDEN)
