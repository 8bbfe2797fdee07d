"""Which retrieval spans are retrievals of their own. Pure.

Retrievers are built of retrievers: a router hands its choice through, a fusion merges lists, a wrapper repeats
one, and some instrumentors make two spans of every call. What the caller got is the outermost list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..reasons import DropReason
from ..retrieval import Document, Retrieval, Role, State
from .tree import Tree


@dataclass(frozen=True, slots=True)
class Candidate:
    """A retrieval that is an event unless something else speaks against it.

    Attributes:
        retrieval: what it found, completed from inside.
        inner: retrieval spans beneath it that are part of it: the same call, seen once more.
        is_hop: whether it lies inside another candidate; such a one is never final.
    """

    retrieval: Retrieval
    inner: tuple[Retrieval, ...] = ()
    is_hop: bool = False


@dataclass(slots=True)
class Nesting:
    """The candidates of a trace, and why its other retrieval spans are none."""

    candidates: list[Candidate] = field(default_factory=list)
    dropped: dict[int, DropReason] = field(default_factory=dict)


_OUTCOME = {
    State.HIDDEN: DropReason.HIDDEN,
    State.UNREADABLE: DropReason.UNREADABLE,
    State.NO_DOCUMENTS: DropReason.NO_DOCUMENTS,
    State.FAILED: DropReason.FAILED,
}
_HAS_DOCUMENTS = (State.FOUND, State.HIDDEN)


def nest(tree: Tree, retrievals: Mapping[int, Retrieval], hops: bool) -> Nesting:
    """Find the candidates.

    Args:
        tree: the whole trace.
        retrievals: what its retrieval spans did, by span id.
        hops: whether other documents inside a retrieval are candidates too (`nested="all"`).
    """
    result = Nesting()
    repeating = _repeating_chains(retrievals)
    result.dropped.update((span_id, DropReason.NESTED) for span_id in repeating)
    counted = {span_id: found for span_id, found in retrievals.items() if span_id not in repeating}
    above = {
        span_id: [counted[a.span_id] for a in tree.ancestors(found.span) if a.span_id in counted]
        for span_id, found in counted.items()
    }
    wraps = {a.span.span_id for span_id, found in counted.items() if found.state in _HAS_DOCUMENTS for a in above[span_id]}
    inside: dict[int, list[Retrieval]] = {}
    for span_id, found in counted.items():
        enclosing = [outer for outer in above[span_id] if outer.state in _HAS_DOCUMENTS]
        if enclosing:
            # The topmost retrieval with documents is the event, hidden ones included: what lies inside a hidden
            # one must not stand in for it.
            inside.setdefault(enclosing[-1].span.span_id, []).append(found)
        elif found.state is State.FOUND:
            inside.setdefault(span_id, [])
        elif found.state is State.HIDDEN or found.state is State.FAILED or found.state is State.NO_DOCUMENTS:
            result.dropped[span_id] = _OUTCOME[found.state]
        elif span_id in wraps or any(outer.state is State.EMPTY for outer in above[span_id]):
            result.dropped[span_id] = DropReason.NESTED
        elif found.state is State.UNREADABLE:
            result.dropped[span_id] = DropReason.UNREADABLE
        else:
            result.candidates.append(Candidate(found, _below(found, counted, above)))
    for span_id, inner in inside.items():
        _settle(counted[span_id], inner, above, hops, result)
    return result


def _settle(
    top: Retrieval, inner: list[Retrieval], above: Mapping[int, list[Retrieval]], hops: bool, result: Nesting
) -> None:
    """Make `top` a candidate, and of what lies inside it hops or parts."""
    chosen = {top.span.span_id: top}
    parts: dict[int, list[Retrieval]] = {top.span.span_id: []}
    for found in sorted(inner, key=lambda each: len(above[each.span.span_id])):
        span_id = found.span.span_id
        outer = next(each for each in above[span_id] if each.span.span_id in chosen)
        other = found.state is State.FOUND and found.texts != outer.texts
        if other and hops and top.state is State.FOUND:
            chosen[span_id] = found
            parts[span_id] = []
            continue
        result.dropped[span_id] = DropReason.FAILED if found.state is State.FAILED else DropReason.NESTED
        if not other:
            parts[outer.span.span_id].append(found)
    if top.state is State.HIDDEN:
        result.dropped[top.span.span_id] = DropReason.HIDDEN
        return
    for span_id, found in chosen.items():
        inner_parts = tuple(parts[span_id])
        result.candidates.append(Candidate(_completed(found, inner_parts), inner_parts, is_hop=found is not top))


def _below(
    found: Retrieval, counted: Mapping[int, Retrieval], above: Mapping[int, list[Retrieval]]
) -> tuple[Retrieval, ...]:
    return tuple(each for span_id, each in counted.items() if any(outer is found for outer in above[span_id]))


def _repeating_chains(retrievals: Mapping[int, Retrieval]) -> set[int]:
    """Chains that only repeat what a retrieval of their trace found: pipelines that note their documents again."""
    own = [each for each in retrievals.values() if each.role is not Role.CHAIN]
    lists = {each.texts for each in own if each.state is State.FOUND}
    nothing = any(each.state is State.EMPTY for each in own)
    return {
        span_id
        for span_id, each in retrievals.items()
        if each.role is Role.CHAIN
        and ((each.state is State.FOUND and each.texts in lists) or (each.state is State.EMPTY and nothing))
    }


def _completed(outer: Retrieval, inner: Iterable[Retrieval]) -> Retrieval:
    """Fill what `outer` lacks from an inner retrieval with the same texts in the same order.

    Wrappers hand the texts through and lose the rest.
    """
    for found in inner:
        if found.state is State.FOUND and found.texts == outer.texts:
            pairs = zip(outer.documents, found.documents, strict=True)
            outer = replace(outer, documents=tuple(complete(mine, theirs) for mine, theirs in pairs))
    return outer


def complete(document: Document, other: Document) -> Document:
    """Return `document` with what it lacks taken from `other`, unless something in it is masked."""
    if document.masked:
        return document
    return replace(
        document,
        id=document.id if document.id is not None else other.id,
        score=document.score if document.score is not None else other.score,
        source=document.source or other.source,
        metadata=document.metadata or other.metadata,
    )
