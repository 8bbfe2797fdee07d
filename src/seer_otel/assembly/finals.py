"""Which retrieval of a trace is the final context. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..retrieval import Role, State
from ..spans import Span
from . import marked
from .nesting import Candidate
from .tree import Tree


def explicit_final(candidates: Sequence[Candidate], tree: Tree) -> tuple[Candidate | None, set[int]]:
    """Return the candidate that the application marked, and the span ids of those that it marked as not final.

    A mark on an ancestor means the last retrieval beneath it to end; of several marked ones the last to end.
    """
    marked_final: list[Candidate] = []
    refused: set[int] = set()
    groups: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        span = candidate.retrieval.span
        own = _first_mark([span, *(each.span for each in candidate.inner)])
        if own is None:
            above = next((each for each in tree.ancestors(span) if marked.final(each) is not None), None)
            if above is None:
                continue
            own = marked.final(above)
            if own:
                groups.setdefault(above.span_id, []).append(candidate)
                continue
        if own:
            marked_final.append(candidate)
        else:
            refused.add(span.span_id)
    marked_final += [_last(_with_documents(group)) for group in groups.values()]
    return (_last(marked_final) if marked_final else None), refused


def inferred_final(
    candidates: Iterable[Candidate], tree: Tree, replaced: set[int], roles: dict[int, Role | None]
) -> Candidate | None:
    """Return the candidate whose documents the model most likely saw: the last to end, with three exceptions.

    Args:
        candidates: those that will be sent, without hops and without those that are marked as not final.
        tree: the whole trace.
        replaced: span ids of retrievals for which a reranker stands.
        roles: what each span is.
    """
    candidates = list(candidates)
    left = [each for each in candidates if each.retrieval.span.span_id not in replaced] or candidates
    left = _with_documents(left)
    if not left:
        return None
    # A prefetch that outlives the request: it begins after the trace's root has ended.
    root = tree.local_roots()[-1]
    left = [each for each in left if each.retrieval.span.start < root.end] or left
    # Related reading after the answer: a model was asked after some of the retrievals only.
    inside = {each.span_id for candidate in left for each in tree.descendants(candidate.retrieval.span)}
    asked = [
        span.start for span in tree.spans if roles[span.span_id] is Role.LLM and span.span_id not in inside
    ]
    last_asked = max(asked, default=0)
    left = [each for each in left if each.retrieval.span.end <= last_asked] or left
    return _last(left)


def _first_mark(spans: Iterable[Span]) -> bool | None:
    return next((mark for span in spans if (mark := marked.final(span)) is not None), None)


def _with_documents(candidates: list[Candidate]) -> list[Candidate]:
    """An empty retrieval is final only where none has documents."""
    return [each for each in candidates if each.retrieval.state is State.FOUND] or candidates


def _last(candidates: Sequence[Candidate]) -> Candidate:
    return max(candidates, key=lambda each: (each.retrieval.span.end, each.retrieval.span.start))
