"""Which retrieval of a trace is the final context. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..retrieval import Role, State
from ..spans import Span
from . import marked
from .nesting import Candidate
from .tree import Inherited, Tree, order


class _NearestMarked(Inherited["Span | None"]):
    """The nearest span that the application marked as final, or as not."""

    def _step(self, span: Span, above: Span | None) -> Span | None:
        return above if marked.final(span) is None else span


class _InRetrieval(Inherited[bool]):
    """Whether a span is a retrieval or lies inside one."""

    def __init__(self, tree: Tree, candidates: set[int]) -> None:
        super().__init__(tree, top=False)
        self._candidates = candidates

    def _step(self, span: Span, above: bool) -> bool:
        is_retrieval = self._tree.roles[span.span_id] in (Role.RETRIEVER, Role.RERANKER)
        return above or is_retrieval or span.span_id in self._candidates


def explicit_final(candidates: Iterable[Candidate], tree: Tree) -> tuple[Candidate | None, set[int]]:
    """Return the candidate that the application marked, and the span ids of those that it marked as not final.

    A mark on an ancestor means the last retrieval beneath it to end; of several marked ones the last to end, an
    empty one only where none has documents: a block marks whatever it surrounds.
    """
    if not tree.says:
        return None, set()
    nearest = _NearestMarked(tree, None)
    marked_final: list[Candidate] = []
    refused: set[int] = set()
    groups: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        span = candidate.retrieval.span
        own = _first_mark(candidate.spans)
        above = nearest.above(span)
        if own is None and above is not None:
            own = marked.final(above)
            if own:
                groups.setdefault(above.span_id, []).append(candidate)
                continue
        if own:
            marked_final.append(candidate)
        elif own is not None:
            refused.add(span.span_id)
    marked_final += [_last(_with_documents(group)) for group in groups.values()]
    return (_last(_with_documents(marked_final)) if marked_final else None), refused


def inferred_final(
    candidates: Iterable[Candidate], tree: Tree, sources: Mapping[int, Sequence[int]]
) -> Candidate | None:
    """Return the candidate whose documents the model most likely saw: the last to end, with three exceptions.

    Args:
        candidates: those that will be sent, without hops and without those that are marked as not final.
        tree: the whole trace.
        sources: span id of a reranker to the span ids of the retrievals whose documents it took.
    """
    left = _with_documents(list(candidates))
    if len(left) <= 1:
        return left[0] if left else None
    # A reranker stands for the retrievals that it took the documents of.
    replaced = _replaced([each.retrieval.span.span_id for each in left], sources)
    left = [each for each in left if each.retrieval.span.span_id not in replaced]
    # A prefetch that outlives the request: it begins after the trace's root has ended.
    root = tree.local_roots[-1]
    left = [each for each in left if each.retrieval.span.start <= root.end] or left
    # Related reading after the answer: a model was asked after some of the retrievals only.
    last_asked = _last_asked(tree, {each.retrieval.span.span_id for each in left})
    left = [each for each in left if each.retrieval.span.end <= last_asked] or left
    return _last(left)


def _replaced(sent: Iterable[int], sources: Mapping[int, Sequence[int]]) -> set[int]:
    """Whatever went into the rerankers among `sent`, also through others in a row before them."""
    replaced: set[int] = set()
    left = [source for span_id in sent for source in sources.get(span_id, ())]
    while left:
        span_id = left.pop()
        if span_id not in replaced:
            replaced.add(span_id)
            left += sources.get(span_id, ())
    return replaced


def _last_asked(tree: Tree, candidates: set[int]) -> int:
    """When a model was last asked; one that a retrieval asks, to rephrase or to rank, gives no answer."""
    in_retrieval = _InRetrieval(tree, candidates)
    models = (span for span in tree.spans if tree.roles[span.span_id] is Role.LLM)
    return max((span.start for span in models if not in_retrieval.above(span)), default=-1)


def _first_mark(spans: Iterable[Span]) -> bool | None:
    return next((mark for span in spans if (mark := marked.final(span)) is not None), None)


def _with_documents(candidates: list[Candidate]) -> list[Candidate]:
    """An empty retrieval is final only where none has documents."""
    return [each for each in candidates if each.retrieval.state is State.FOUND] or candidates


def _last(candidates: Iterable[Candidate]) -> Candidate:
    return max(candidates, key=lambda each: order(each.retrieval.span))
