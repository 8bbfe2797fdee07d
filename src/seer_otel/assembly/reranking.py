"""What a reranker took, and what follows from it. Pure.

A reranker's list is what the model saw in place of the lists that went in, so it stands for them as the final
context; of rerankers in a row only the last one's list went on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import chain, islice

from ..reasons import DropReason
from ..retrieval import Document, Retrieval, Role
from .hiding import first_masked
from .nesting import Candidate
from .tree import order

Identity = tuple[str | None, str | None]
"""The id and the text of a document, as far as there are any."""


@dataclass(slots=True)
class Reranked:
    """The candidates after reranking.

    Attributes:
        candidates: those that remain, rerankers' documents completed with metadata and source.
        dropped: span id to reason for those that do not.
        sources: span id of a reranker to the span ids of the retrievals whose documents it took.
    """

    candidates: list[Candidate] = field(default_factory=list)
    dropped: dict[int, DropReason] = field(default_factory=dict)
    sources: dict[int, list[int]] = field(default_factory=dict)


def rerank(candidates: Sequence[Candidate], retrievals: Iterable[Retrieval]) -> Reranked:
    """Find for each reranker what it took.

    Args:
        candidates: from `nesting`. What lies inside another one is fed by its like only.
        retrievals: every retrieval of the trace, the nested and the hidden ones too.
    """
    ordered = sorted(candidates, key=_place)
    if not any(each.retrieval.role is Role.RERANKER for each in ordered):
        return Reranked(ordered)
    result = Reranked()
    everything = list(retrievals)
    masked_from = first_masked(everything)
    masked = frozenset[str | None]().union(*(each.hidden_ids for each in everything))
    descriptions = _Descriptions(everything)
    producers = {is_hop: _Producers(masked) for is_hop in (False, True)}
    for candidate in ordered:
        found, span = candidate.retrieval, candidate.retrieval.span
        known = producers[candidate.is_hop]
        if found.role is Role.RERANKER:
            sources, unknown = known.of(found)
            if unknown and masked_from is not None and masked_from <= span.start:
                # Masking hid the retriever's documents and forgot the reranker's.
                result.dropped[span.span_id] = DropReason.HIDDEN
                continue
            result.sources[span.span_id] = [source.span.span_id for source in sources]
            superseded = (source.span.span_id for source in sources if source.role is Role.RERANKER)
            result.dropped |= dict.fromkeys(superseded, DropReason.SUPERSEDED)
            candidate = replace(candidate, retrieval=descriptions.complete(found, sources))  # noqa: PLW2901
        known.add(found)
        result.candidates.append(candidate)
    result.candidates = [
        each for each in result.candidates if each.retrieval.span.span_id not in result.dropped
    ]
    return result


def _place(candidate: Candidate) -> tuple[int, int, bool, int]:
    """The place in time; where the clock is too coarse to tell, a reranker comes after what it may have taken."""
    end, start, span_id = order(candidate.retrieval.span)
    return end, start, candidate.retrieval.role is Role.RERANKER, span_id


class _Producer:
    """A retrieval whose documents a reranker may have taken."""

    def __init__(self, retrieval: Retrieval, position: int) -> None:
        self.retrieval = retrieval
        self.position = position
        self.ids = {each.id for each in retrieval.documents if each.id is not None}
        self.texts = set(retrieval.texts)
        self.texts_without_id = {each.text for each in retrieval.documents if each.id is None}

    def holds(self, identity: Identity) -> bool:
        """Return whether a document is among these: by its id, or by its text where either has no id."""
        wanted, text = identity
        return text in self.texts if wanted is None else wanted in self.ids or text in self.texts_without_id

    def holds_in_order(self, taken: Iterable[Identity]) -> bool:
        """Return whether documents stand here in that order, perhaps among others."""
        rest = iter(self.retrieval.documents)
        return all(
            any(
                each.text == text if wanted is None or each.id is None else each.id == wanted for each in rest
            )
            for wanted, text in taken
        )


class _Producers:
    """The retrievals so far, in the order in which they ended, and where each document is.

    Args:
        masked: ids of documents that are masked somewhere, and so in none of these.
    """

    def __init__(self, masked: frozenset[str | None]) -> None:
        self._masked = masked
        self._count = 0
        self._by_id: dict[str | None, list[_Producer]] = {}
        self._by_text: dict[str | None, list[_Producer]] = {}
        self._by_text_without_id: dict[str | None, list[_Producer]] = {}

    def add(self, retrieval: Retrieval) -> None:
        """Add one that ended after all that are here."""
        producer = _Producer(retrieval, self._count)
        self._count += 1
        places: list[tuple[dict[str | None, list[_Producer]], Iterable[str | None]]] = [
            (self._by_id, producer.ids),
            (self._by_text, producer.texts),
            (self._by_text_without_id, producer.texts_without_id),
        ]
        for index, keys in places:
            for key in keys:
                index.setdefault(key, []).append(producer)

    def of(self, reranker: Retrieval) -> tuple[list[Retrieval], bool]:
        """Return the retrievals whose documents a reranker took, and whether some document came from none of them.

        The latest one that has them all, in that order before in another (of two branches with the same documents
        each has its own reranker); else, behind a joiner, each of the latest ones that has some of the rest.
        """
        start = reranker.span.start
        noted = [each for each in reranker.took if each[0] not in self._masked]
        taken = noted or _identities(reranker)
        rarest = min(taken, key=lambda each: sum(map(len, self._holding(each))))
        holding = (each for each in self._latest_holding(rarest, start) if all(map(each.holds, taken)))
        latest = next(holding, None)
        if latest is not None:
            in_order = (each for each in chain([latest], holding) if each.holds_in_order(noted))
            return [next(in_order, latest).retrieval], False
        sources: list[Retrieval] = []
        while taken:
            some = [source for each in taken for source in islice(self._latest_holding(each, start), 1)]
            if not some:
                break
            source = max(some, key=_position)
            sources.append(source.retrieval)
            taken = [each for each in taken if not source.holds(each)]
        return sources, bool(taken)

    def _holding(self, identity: Identity) -> list[list[_Producer]]:
        wanted, text = identity
        if wanted is None:
            return [self._by_text.get(text, [])]
        return [self._by_id.get(wanted, []), self._by_text_without_id.get(text, [])]

    def _latest_holding(self, identity: Identity, start: int) -> Iterator[_Producer]:
        lists = (_latest_first(each, start) for each in self._holding(identity))
        return merge(*lists, key=_position, reverse=True)


def _position(producer: _Producer) -> int:
    return producer.position


def _latest_first(producers: Sequence[_Producer], start: int) -> Iterator[_Producer]:
    """Those that had ended when a reranker started, the latest first."""
    count = bisect_right(producers, start, key=lambda each: each.retrieval.span.end)
    return (producers[index] for index in range(count - 1, -1, -1))


def _identities(retrieval: Retrieval) -> list[Identity]:
    return [(each.id, each.text) for each in retrieval.documents]


class _Descriptions:
    """Metadata and sources by document: rerankers hand ids, texts and scores on, and lose the rest."""

    def __init__(self, retrievals: Iterable[Retrieval]) -> None:
        self._masked: set[str] = set()
        self._found: dict[str, list[tuple[int, Document]]] = {}
        for retrieval in sorted(retrievals, key=lambda each: order(each.span)):
            for document in retrieval.documents:
                if document.id is None:
                    continue
                if document.masked:
                    self._masked.add(document.id)
                elif document.metadata and retrieval.role is not Role.RERANKER:
                    self._found.setdefault(document.id, []).append((retrieval.span.end, document))

    def complete(self, reranker: Retrieval, sources: Iterable[Retrieval]) -> Retrieval:
        """Return a reranker whose documents have what the same ones had where it took them, or last before it."""
        # By text as well, as the chunks of one document may share its id.
        taken: dict[tuple[str | None, str | None], Document] = {}
        for source in sources:
            for document in source.documents:
                if document.metadata:
                    taken.setdefault((document.id, document.text), document)
                    taken.setdefault((document.id, None), document)

        def described(document: Document) -> Document:
            if document.metadata or document.id is None or document.id in self._masked:
                return document
            same = taken.get((document.id, document.text)) or taken.get((document.id, None))
            same = same or self._latest(document.id, reranker.span.end)
            if same is None:
                return document
            return replace(document, metadata=same.metadata, source=document.source or same.source)

        return replace(reranker, documents=tuple(map(described, reranker.documents)))

    def _latest(self, identity: str, end: int) -> Document | None:
        found = self._found.get(identity, [])
        count = bisect_right(found, end, key=lambda each: each[0])
        return found[count - 1][1] if count else None
