"""What the user asked, and what one retrieval asked. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..conventions import convention
from ..privacy import Hiding
from ..retrieval import HIDDEN_QUERY, NO_QUERY, Query, Retrieval, Role
from ..spans import Span
from .hiding import first_masked
from .nesting import Candidate
from .tree import Inherited, Tree

_MIN_PASSAGE = 10  # characters; a title that stands in a question does not make it a prompt
_MIN_UNSPACED_PASSAGE = (
    40  # one long word does not either, but some scripts write whole passages without a space
)
_MAX_MESSAGE = 100_000  # characters of a message in which passages are looked for


@dataclass(frozen=True, slots=True)
class Asked:
    """The question of the trace and of one retrieval; None where there is none that may be sent."""

    task: str | None
    own: str | None
    hidden: bool = False


@dataclass(slots=True)
class _Above:
    """What stands above a span, looked at from the top. Nobody changes one.

    Attributes:
        scope: the outermost span of the convention's, outside any tool.
        tool: the outermost tool.
        task: the outermost usable input outside any tool.
        weak: what may be a question, outside any tool.
        beneath: the outermost usable input beneath the tool.
        tool_input: the tool's own.
    """

    scope: Span | None = None
    tool: Span | None = None
    task: Query | None = None
    weak: str | None = None
    beneath: Query | None = None
    tool_input: Query = NO_QUERY


class Questions(Inherited[_Above]):
    """Finds the questions of one trace.

    Args:
        tree: the whole trace.
        retrievals: what its retrieval spans did, by span id, with the documents that masking forgot: a prompt may
            quote those too.
        hiding: what must be hidden by OpenInference's settings.
        root_question: what the root of an earlier released part of this trace asked.
    """

    def __init__(
        self,
        tree: Tree,
        retrievals: Mapping[int, Retrieval],
        hiding: Hiding,
        root_question: str | None = None,
    ) -> None:
        super().__init__(tree, _Above())
        self._retrievals = retrievals
        self._hiding = hiding
        self._root_question = root_question
        self._inputs: dict[int, Query] = {}
        self._messages: dict[int, Query | None] = {}
        self._first_models: dict[tuple[int | None, int | None], Span | None] = {}

    def of(self, candidate: Candidate) -> Asked:
        """Return the questions of a candidate."""
        own = self._own(candidate)
        if own.hidden:
            return Asked(None, None, hidden=True)
        asked = self._task(candidate.retrieval.span, own)
        return Asked(None, None, hidden=True) if asked.hidden else Asked(asked.text, own.text)

    def of_root(self, *, whole: bool) -> str | None:
        """Return what the trace's root asks, to be remembered for spans that come late.

        Args:
            whole: whether the trace was seen whole. Else a span whose parent was not seen may lie beneath the root,
                and ask what a model made of the question; and so may a retrieval that comes late.
        """
        for root in reversed(self._tree.local_roots):
            is_root = root.parent_id is None or root.parent_is_remote
            if is_root or (whole and root.span_id not in self._retrievals):
                return self._input(root).text
        return None

    def _own(self, candidate: Candidate) -> Query:
        if self._hiding.inputs:
            return HIDDEN_QUERY
        # The attribute limit evicts the outer span's query first; the inner half still has it.
        queries = [candidate.retrieval.query, *(each.query for each in candidate.inner)]
        for query in queries:
            if query.hidden:
                return HIDDEN_QUERY
        for query in queries:
            if query.text:
                return query
        return queries[0]

    def _step(self, span: Span, above: _Above) -> _Above:
        found = self._input(span)
        usable = found if found.text or found.hidden else None
        task = above.task or self._released_question(span)
        # A tool's input, and all inputs beneath it, were written by a model.
        if above.tool is not None:
            return replace(above, beneath=above.beneath or usable)
        if self._tree.roles[span.span_id] is Role.TOOL:
            return replace(above, tool=span, task=task, tool_input=found)
        scope = above.scope or (span if self._tree.roles[span.span_id] is not None else None)
        return _Above(scope, task=task or usable, weak=above.weak or found.weak)

    def _released_question(self, span: Span) -> Query | None:
        """What the root asked where the trace above `span` was released before."""
        is_rest = span.parent_id is not None and not span.parent_is_remote and self._tree.parent(span) is None
        return Query(self._root_question) if self._root_question and is_rest else None

    def _task(self, span: Span, own: Query) -> Query:
        above = self.above(span)
        found = above.task or self._released_question(span) or self._from_models(span, above) or above.beneath
        if found is None:
            # The tool's own input is better than nothing where the retrieval was given a vector.
            found = next((query for query in (own, above.tool_input) if query.text or query.hidden), None)
        if found is None:
            weak = above.weak or own.weak
            found = Query(weak) if weak else NO_QUERY
        return found

    def _from_models(self, span: Span, above: _Above) -> Query | None:
        """Agents, whose spans have no input but the model's: the user's message to the first model.

        Later models see a tool's observation as the user's message; a message that holds a passage is a prompt.
        Without a span around the whole, as in a loop by hand, the trace's first model counts.
        """
        if Role.LLM not in self._tree.roles.values():
            return None
        place = _id(above.scope), _id(above.tool)
        if place not in self._first_models:
            models = (
                model
                for model in self._models.get(place[0], ())
                if (above.tool is None or self.above(model).tool is not above.tool)
                and self._message(model) is not None
            )
            self._first_models[place] = next(models, None)
        model = self._first_models[place]
        message = self._message(model) if model is not None and model.start < span.start else None
        return message if message is not None and message.text else None

    def _message(self, model: Span) -> Query | None:
        """The user's message to a model, None where there is no question in it."""
        if model.span_id not in self._messages:
            message = convention.user_message(model.attributes)
            is_question = message.hidden or (bool(message.text) and not self._is_prompt(message.text or ""))
            self._messages[model.span_id] = message if is_question else None
        return self._messages[model.span_id]

    @cached_property
    def _models(self) -> dict[int | None, list[Span]]:
        """The spans of models by the outermost span around them, all of them under None, the first to begin first.

        What a model was told after a retrieval whose documents are masked may quote them, unmasked.
        """
        if self._hiding.messages:
            return {}
        until = first_masked(self._retrievals.values())
        models = [
            span
            for span in self._tree.spans
            if self._tree.roles[span.span_id] is Role.LLM and (until is None or span.start < until)
        ]
        models.sort(key=lambda span: (span.start, -span.end, span.span_id))
        placed: dict[int | None, list[Span]] = {None: models}
        for model in models:
            scope = self.above(model).scope or model
            placed.setdefault(scope.span_id, []).append(model)
        return placed

    def _is_prompt(self, message: str) -> bool:
        beginnings = self._passages
        for place in range(min(len(message), _MAX_MESSAGE) - _MIN_PASSAGE + 1):
            passages = beginnings.get(message[place : place + _MIN_PASSAGE])
            if passages is not None and any(message.startswith(passage, place) for passage in passages):
                return True
        return False

    @cached_property
    def _passages(self) -> dict[str, set[str]]:
        """The passages of the trace by their first characters."""
        passages: dict[str, set[str]] = {}
        for found in self._retrievals.values():
            for text in map(str.strip, found.texts):
                if len(text) >= _MIN_UNSPACED_PASSAGE or (
                    len(text) >= _MIN_PASSAGE and any(map(str.isspace, text))
                ):
                    passages.setdefault(text[:_MIN_PASSAGE], set()).add(text)
        return passages

    def _input(self, span: Span) -> Query:
        if self._hiding.inputs:
            return HIDDEN_QUERY
        found = self._inputs.get(span.span_id)
        if found is None:
            retrieval = self._retrievals.get(span.span_id)
            # A retrieval has read its input already, unless it is a reranker, which may have a query beside it.
            own = retrieval is not None and retrieval.role is not Role.RERANKER
            found = retrieval.query if retrieval is not None and own else convention.question(span.attributes)
            self._inputs[span.span_id] = found
        return found


def _id(span: Span | None) -> int | None:
    return None if span is None else span.span_id
