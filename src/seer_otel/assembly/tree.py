"""The spans of a trace as a tree, as far as it was seen. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..spans import Span


class Tree:
    """Parents and children among the spans of one trace; a span whose parent was not seen is a local root.

    Attributes:
        spans: in the order in which they ended.
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        self._by_id = {span.span_id: span for span in spans}
        self.spans = sorted(self._by_id.values(), key=lambda span: span.end)
        self._children: dict[int, list[Span]] = {}
        for span in self.spans:
            if span.parent_id is not None:
                self._children.setdefault(span.parent_id, []).append(span)

    def ancestors(self, span: Span) -> list[Span]:
        """Return the spans above `span`, the nearest first."""
        above: list[Span] = []
        seen = {span.span_id}
        while span.parent_id is not None and span.parent_id not in seen:
            parent = self._by_id.get(span.parent_id)
            if parent is None:
                break
            above.append(parent)
            seen.add(parent.span_id)
            span = parent
        return above

    def descendants(self, span: Span) -> Iterator[Span]:
        """Yield the spans below `span`, those of a level before those of the next."""
        seen = {span.span_id}
        level = [span]
        while level:
            children = [child for parent in level for child in self._children.get(parent.span_id, ())]
            level = [child for child in children if child.span_id not in seen]
            seen.update(child.span_id for child in level)
            yield from level

    def local_roots(self) -> list[Span]:
        """Return the spans whose parent was not seen here, in the order in which they ended."""
        return [span for span in self.spans if span.parent_id is None or span.parent_id not in self._by_id]
