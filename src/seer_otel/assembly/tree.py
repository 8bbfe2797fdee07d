"""The spans of a trace as a tree, as far as it was seen. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Generic, TypeVar

from ..conventions import Layout, convention, layout_of
from ..retrieval import Role
from ..spans import Span

Value = TypeVar("Value")


order: Callable[[Span], tuple[int, int, int]] = attrgetter("end", "start", "span_id")
"""The place of a span in the order in which spans end: where the clock is too coarse to tell, some place."""


class Tree:
    """Parents and children among the spans of one trace; a span whose parent was not seen is a local root.

    A span that comes twice counts once. A cycle of parents is cut above the span that began first.

    Attributes:
        spans: in the order in which they ended.
        downwards: the same spans, each after its parent.
        local_roots: those whose parent was not seen here, in the order in which they ended.
        roles: what each span is, by span id; None for what is nothing of the convention's.
        layouts: what the keys of each span say, by span id.
        says: whether the application may say something to us on any of them.
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = sorted(spans, key=order)
        by_id = {span.span_id: span for span in self.spans}
        if len(by_id) < len(self.spans):
            self.spans = sorted(by_id.values(), key=order)
        self.roles: dict[int, Role | None] = {}
        self.layouts: dict[int, Layout] = {}
        self.says = False
        self._parents: dict[int, Span | None] = {}
        for span in self.spans:
            layout = self.layouts[span.span_id] = layout_of(span.attributes)
            self.says = self.says or layout.says
            self.roles[span.span_id] = convention.role(span.attributes)
            self._parents[span.span_id] = by_id.get(span.parent_id) if span.parent_id is not None else None
        self._grow()
        if len(self.downwards) < len(self.spans):
            self._cut_cycles(by_id)
            self._grow()

    def _grow(self) -> None:
        """Find what hangs from the local roots; spans in a cycle hang from none."""
        children: dict[int, list[Span]] = {}
        self.local_roots: list[Span] = []
        for span in self.spans:
            parent = self._parents[span.span_id]
            if parent is None:
                self.local_roots.append(span)
            else:
                children.setdefault(parent.span_id, []).append(span)
        self.downwards = self.local_roots.copy()
        if children:
            for span in self.downwards:  # which grows meanwhile
                self.downwards += children.get(span.span_id, ())

    def _cut_cycles(self, by_id: dict[int, Span]) -> None:
        done: set[int] = set()
        for span in self.spans:
            path: dict[int, Span] = {}
            each: Span | None = span
            while each is not None and each.span_id not in done and each.span_id not in path:
                path[each.span_id] = each
                each = self.parent(each)
            if each is not None and each.span_id in path:
                ids = list(path)
                cycle = ids[ids.index(each.span_id) :]
                first = min(cycle, key=lambda span_id: (by_id[span_id].start, -by_id[span_id].end, span_id))
                self._parents[first] = None
            done.update(path)

    def parent(self, span: Span) -> Span | None:
        """Return the span above `span`."""
        return self._parents[span.span_id]


class Inherited(ABC, Generic[Value]):
    """What a span hands down to those beneath it, found once a span: a trace may be as deep as it is broad.

    A base class, as a step that is handed over would often hold its owner: a cycle, which keeps the trace in memory.

    Args:
        tree: the whole trace.
        top: what a local root is handed.
    """

    def __init__(self, tree: Tree, top: Value) -> None:
        self._tree = tree
        self._top = top
        self._known: dict[int, Value] = {}

    @abstractmethod
    def _step(self, span: Span, above: Value) -> Value:
        """Return a span's value, from the span and from what its parent hands down."""

    def handed(self, span: Span) -> Value:
        """Return what `span` hands down."""
        known = self._known
        if span.span_id in known:
            return known[span.span_id]
        path = [span]
        while (above := self._tree.parent(path[-1])) is not None and above.span_id not in known:
            path.append(above)
        value = self._top if above is None else known[above.span_id]
        for below in reversed(path):
            value = known[below.span_id] = self._step(below, value)
        return value

    def above(self, span: Span) -> Value:
        """Return what is handed down to `span`."""
        parent = self._tree.parent(span)
        return self._top if parent is None else self.handed(parent)
