"""Which retrieval spans are retrievals of their own. Pure.

Retrievers are built of retrievers: a router hands its choice through, a fusion merges lists, a wrapper repeats
one, and some instrumentors make two spans of every call. What the caller got is the outermost list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..reasons import DropReason
from ..retrieval import Document, Retrieval, Role, State
from ..spans import Span
from .tree import Tree


@dataclass(slots=True)
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

    @property
    def spans(self) -> list[Span]:
        """The spans of the call, its own first."""
        return [self.retrieval.span, *[each.span for each in self.inner]]


@dataclass(slots=True)
class Nesting:
    """The candidates of a trace, and why its other retrieval spans are none."""

    candidates: list[Candidate] = field(default_factory=list)
    dropped: dict[int, DropReason] = field(default_factory=dict)


@dataclass(slots=True)
class _Place:
    """A retrieval that others lie inside of, beneath `top` unless it is the outermost."""

    retrieval: Retrieval
    top: _Place | None = None
    inner: list[Retrieval] = field(default_factory=list)


_HAS_DOCUMENTS = (State.FOUND, State.HIDDEN)


def nest(tree: Tree, retrievals: Mapping[int, Retrieval], hops: bool) -> Nesting:
    """Find the candidates.

    The topmost retrieval with documents is the event, a hidden one too: what lies inside a hidden one must not
    stand in for it. Inside it the same documents again, or none, are the same call seen once more.

    Args:
        tree: the whole trace.
        retrievals: what its retrieval spans did, by span id.
        hops: whether other documents inside a retrieval are candidates too (`nested="all"`).
    """
    result = Nesting()
    repeating = _repeating(tree, retrievals)
    wraps = _around_documents(tree, retrievals, repeating)
    places: dict[int, _Place | None] = {}
    chosen: list[_Place] = []
    for span in tree.downwards:
        span_id, parent = span.span_id, tree.parent(span)
        place = places[span_id] = None if parent is None else places[parent.span_id]
        found = retrievals.get(span_id)
        if found is None:
            continue
        if span_id in repeating:
            result.dropped[span_id] = DropReason.NESTED
            continue
        own = _Place(found)
        top = None if place is None else place.top or place
        if place is not None and top is not None and top.retrieval.state in _HAS_DOCUMENTS:
            own.top = top
            whole = _repeated(found, place, top)
            is_hop = hops and whole is None and top.retrieval.state is State.FOUND
            reason = _reason_inside(found, is_hop=is_hop)
            enters = whole is None
        else:
            has_documents = found.state in _HAS_DOCUMENTS
            whole = None if has_documents else place
            reason = _reason_outside(found, place, wraps=span_id in wraps)
            enters = has_documents or (place is None and found.state is not State.NO_DOCUMENTS)
        if enters:
            places[span_id] = own
        if whole is not None:
            whole.inner.append(found)
        if reason is None:
            chosen.append(own)
        else:
            result.dropped[span_id] = reason
    for each in chosen:
        completed = _completed(each.retrieval, each.inner)
        result.candidates.append(Candidate(completed, tuple(each.inner), each.top is not None))
    return result


def _repeated(found: Retrieval, place: _Place, top: _Place) -> _Place | None:
    """Of which call a retrieval inside is a part: of the nearest around it, or of one whose documents it repeats."""
    if found.state is not State.FOUND or found.texts == place.retrieval.texts:
        return place
    return top if found.texts == top.retrieval.texts else None


def _reason_inside(found: Retrieval, *, is_hop: bool) -> DropReason | None:
    """Why a retrieval inside one that has documents is no event."""
    if is_hop:
        return None
    return DropReason.FAILED if found.state is State.FAILED else DropReason.NESTED


def _reason_outside(found: Retrieval, place: _Place | None, *, wraps: bool) -> DropReason | None:
    """Why a retrieval is no event that lies inside none that has documents.

    A wrapper that notes nothing is not empty where something inside it found documents; and an inner half that
    notes nothing is not empty where the outer one failed, or found what cannot be read.

    Args:
        found: the retrieval.
        place: the outermost one around it.
        wraps: whether something with documents lies inside it.
    """
    reasons = {
        State.HIDDEN: DropReason.HIDDEN,
        State.FAILED: DropReason.FAILED,
        State.NO_DOCUMENTS: DropReason.NO_DOCUMENTS,
    }
    if found.state is State.FOUND or found.state in reasons:
        return reasons.get(found.state)
    around = None if place is None else place.retrieval.state
    if wraps or around is State.EMPTY or (found.state is State.EMPTY and around is not None):
        return DropReason.NESTED
    return DropReason.UNREADABLE if found.state is State.UNREADABLE else None


def _around_documents(tree: Tree, retrievals: Mapping[int, Retrieval], repeating: set[int]) -> set[int]:
    """The spans with a retrieval beneath them that has documents, hidden ones too."""
    around: set[int] = set()
    for span_id, found in retrievals.items():
        if found.state in _HAS_DOCUMENTS and span_id not in repeating:
            above = tree.parent(found.span)
            while above is not None and above.span_id not in around:
                around.add(above.span_id)
                above = tree.parent(above)
    return around


def _repeating(tree: Tree, retrievals: Mapping[int, Retrieval]) -> set[int]:
    """Steps that only repeat what a retriever of their trace found: pipelines, models and judges that note it again.

    An agent may be a retriever of its own, so it repeats only what a retriever beneath it found.
    """
    own = [each for each in retrievals.values() if each.role in (Role.RETRIEVER, Role.RERANKER)]
    if len(own) == len(retrievals):
        return set()
    lists = {each.texts for each in own if each.state is State.FOUND}
    nothing = any(each.state is State.EMPTY for each in own)
    repeating: set[int] = set()
    agents: dict[int, tuple[str, ...]] = {}
    for span_id, each in retrievals.items():
        if each.state is State.FOUND and each.texts in lists:
            if each.role is Role.AGENT:
                agents[span_id] = each.texts
            elif each.is_noted:
                repeating.add(span_id)
        elif each.is_noted and each.state is State.EMPTY and nothing:
            repeating.add(span_id)
    for each in own if agents else ():
        above = tree.parent(each.span)
        while above is not None:
            if above.span_id in agents and agents[above.span_id] == each.texts:
                repeating.add(above.span_id)
            above = tree.parent(above)
    return repeating


def _completed(outer: Retrieval, inner: Sequence[Retrieval]) -> Retrieval:
    """Fill what `outer` lacks from inner retrievals with the same texts in the same order, the outermost first.

    Wrappers hand the texts through and lose the rest.
    """
    same = [found.documents for found in inner if found.state is State.FOUND and found.texts == outer.texts]
    if not same:
        return outer
    return replace(outer, documents=tuple(map(_complete, outer.documents, *same)))


def _complete(document: Document, *others: Document) -> Document:
    """Return `document` with what it lacks taken from `others`, unless something is masked in any of them."""
    if document.masked or any(other.masked for other in others):
        return document
    for other in others:
        document = Document(
            document.text,
            document.id if document.id is not None else other.id,
            document.source or other.source,
            document.score if document.score is not None else other.score,
            document.metadata or other.metadata,
        )
    return document
