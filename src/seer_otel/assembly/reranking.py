"""What a reranker took, and what follows from it. Pure.

A reranker's list is what the model saw in place of the lists that went in, so it stands for them as the final
context; of rerankers in a row only the last one's list went on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..reasons import DropReason
from ..retrieval import Document, Retrieval, Role, State
from .nesting import Candidate


@dataclass(slots=True)
class Reranked:
    """The candidates after reranking.

    Attributes:
        candidates: those that remain, rerankers' documents completed with metadata and source.
        dropped: span id to reason for those that do not.
        replaced: span ids of the retrievals for which a reranker stands.
    """

    candidates: list[Candidate] = field(default_factory=list)
    dropped: dict[int, DropReason] = field(default_factory=dict)
    replaced: set[int] = field(default_factory=set)


def rerank(candidates: Sequence[Candidate], retrievals: Sequence[Retrieval]) -> Reranked:
    """Find for each reranker what it took.

    Args:
        candidates: from `nesting`.
        retrievals: every retrieval of the trace, the nested and the hidden ones too.
    """
    result = Reranked()
    producers = sorted((each for each in candidates if not each.is_hop), key=lambda each: each.retrieval.span.end)
    for candidate in candidates:
        reranker = candidate.retrieval
        if reranker.role is not Role.RERANKER or reranker.state is not State.FOUND:
            result.candidates.append(candidate)
            continue
        earlier = [each.retrieval for each in producers if each.retrieval.span.end <= reranker.span.start]
        sources, unknown = _sources(reranker, earlier)
        if unknown and any(
            each.state is State.HIDDEN and each.span.end <= reranker.span.start for each in retrievals
        ):
            # Masking hid the retriever's documents and forgot the reranker's.
            result.dropped[reranker.span.span_id] = DropReason.HIDDEN
            continue
        for source in sources:
            result.replaced.add(source.span.span_id)
            if source.role is Role.RERANKER:
                result.dropped[source.span.span_id] = DropReason.SUPERSEDED
        known = [each for each in retrievals if each.role is not Role.RERANKER and each.state is State.FOUND]
        result.candidates.append(replace(candidate, retrieval=_described(reranker, known)))
    result.candidates = [each for each in result.candidates if each.retrieval.span.span_id not in result.dropped]
    return result


def _sources(reranker: Retrieval, earlier: Sequence[Retrieval]) -> tuple[list[Retrieval], bool]:
    """The retrievals whose documents went in, and whether some document came from none of them.

    The latest one that has them all; else, behind a joiner, each of the latest ones that has some of the rest.
    """
    taken = set(reranker.took) or {(each.id, each.text) for each in reranker.documents}
    for source in reversed(earlier):
        if all(_holds(source, each) for each in taken):
            return [source], False
    sources = []
    for source in reversed(earlier):
        given = {each for each in taken if _holds(source, each)}
        if given:
            sources.append(source)
            taken -= given
    return sources, bool(taken)


def _holds(source: Retrieval, identity: tuple[str | None, str | None]) -> bool:
    wanted, text = identity
    return any(
        each.text == text if wanted is None or each.id is None else each.id == wanted for each in source.documents
    )


def _described(reranker: Retrieval, retrievals: Sequence[Retrieval]) -> Retrieval:
    """Rerankers hand ids, texts and scores on, and lose metadata and source; take them from the same document."""
    known: dict[str, Document] = {}
    for retrieval in retrievals:
        for document in retrieval.documents:
            if document.id is not None and not document.masked:
                known.setdefault(document.id, document)
    described = []
    for document in reranker.documents:
        same = known.get(document.id) if document.id is not None else None
        if same is not None and not document.metadata and not document.masked:
            document = replace(document, metadata=same.metadata, source=document.source or same.source)
        described.append(document)
    return replace(reranker, documents=tuple(described))
