"""What the user asked, and what one retrieval asked. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..conventions import convention
from ..privacy import Hiding
from ..retrieval import HIDDEN_QUERY, NO_QUERY, Query, Retrieval, Role, State
from ..spans import Span
from .nesting import Candidate
from .tree import Tree

_MIN_PASSAGE = 10  # characters; a title that stands in a question does not make it a prompt


@dataclass(frozen=True, slots=True)
class Asked:
    """The question of the trace and of one retrieval; None where there is none that may be sent."""

    task: str | None
    own: str | None
    hidden: bool = False


class Questions:
    """Finds the questions of one trace.

    Args:
        tree: the whole trace.
        retrievals: what its retrieval spans did, by span id.
        hiding: what must be hidden by OpenInference's settings.
        root_question: what the root of an earlier released part of this trace asked.
    """

    def __init__(
        self, tree: Tree, retrievals: dict[int, Retrieval], hiding: Hiding, root_question: str | None = None
    ) -> None:
        self._tree = tree
        self._hiding = hiding
        self._root_question = root_question
        self._inputs: dict[int, Query] = {}
        self._messages: dict[int, Query] = {}
        self._roles = {span.span_id: convention.role(span.attributes) for span in tree.spans}
        self._retrievals = retrievals

    def of(self, candidate: Candidate) -> Asked:
        """Return the questions of a candidate."""
        own = self._own(candidate)
        if own.hidden:
            return Asked(None, None, hidden=True)
        asked = self._task(candidate.retrieval.span, own)
        return Asked(None, None, hidden=True) if asked.hidden else Asked(asked.text, own.text)

    def of_root(self) -> str | None:
        """Return what the trace's local root asks, to be remembered for spans that come late."""
        roots = self._tree.local_roots()
        return self._input(roots[-1]).text if roots else None

    def _own(self, candidate: Candidate) -> Query:
        if self._hiding.inputs:
            return HIDDEN_QUERY
        # The attribute limit evicts the outer span's query first; the inner half still has it.
        queries = [candidate.retrieval.query, *(each.query for each in candidate.inner)]
        return next((query for query in queries if query.text or query.hidden), queries[0])

    def _task(self, span: Span, own: Query) -> Query:
        above = self._tree.ancestors(span)
        tools = [i for i, each in enumerate(above) if self._roles[each.span_id] is Role.TOOL]
        # A tool's input, and all inputs beneath it, were written by a model.
        outside = above[tools[-1] + 1 :] if tools else above
        beneath = above[: tools[-1]] if tools else []
        inputs = [self._input(each) for each in reversed(outside)]
        top = above[-1] if above else span
        if self._root_question and top.parent_id is not None and not top.parent_is_remote:
            # The rest of the trace was released before; its root was above all that is here.
            inputs.insert(0, Query(self._root_question))
        found = _first(inputs)
        if found is None:
            scope = next((each for each in reversed(above) if self._roles[each.span_id] is not None), None)
            found = self._from_models(span, scope, above[tools[-1]] if tools else None)
        if found is None:
            found = _first([self._input(each) for each in reversed(beneath)])
        if found is None:
            # The tool's own input is better than nothing where the retrieval was given a vector.
            found = _first([own, *(self._input(above[i]) for i in reversed(tools[-1:]))])
        weak = [query.weak for query in (*inputs, own) if query.weak]
        return found or (Query(weak[0]) if weak else NO_QUERY)

    def _from_models(self, span: Span, scope: Span | None, tool: Span | None) -> Query | None:
        """Agents, whose spans have no input but the model's: the user's message to the first model.

        Later models see a tool's observation as the user's message; a message that holds a passage is a prompt.
        """
        if self._hiding.messages:
            return None
        inside = self._below(scope) if scope is not None else None
        in_tool = self._below(tool) if tool is not None else frozenset()
        for model in self._models:
            if model.start >= span.start:
                break
            if (inside is not None and model.span_id not in inside) or model.span_id in in_tool:
                continue
            message = self._message(model)
            if message.text and not any(passage in message.text for passage in self._passages):
                return message
        return None

    def _input(self, span: Span) -> Query:
        if span.span_id not in self._inputs:
            hidden = self._hiding.inputs
            self._inputs[span.span_id] = HIDDEN_QUERY if hidden else convention.question(span.attributes)
        return self._inputs[span.span_id]

    def _message(self, model: Span) -> Query:
        if model.span_id not in self._messages:
            self._messages[model.span_id] = convention.user_message(model.attributes)
        return self._messages[model.span_id]

    def _below(self, span: Span) -> frozenset[int]:
        return frozenset(each.span_id for each in self._tree.descendants(span))

    @cached_property
    def _models(self) -> list[Span]:
        models = (span for span in self._tree.spans if self._roles[span.span_id] is Role.LLM)
        return sorted(models, key=lambda span: span.start)

    @cached_property
    def _passages(self) -> list[str]:
        found = (each for each in self._retrievals.values() if each.state is State.FOUND)
        texts = {text.strip() for each in found for text in each.texts}
        return [text for text in texts if len(text) >= _MIN_PASSAGE and any(map(str.isspace, text))]


def _first(queries: list[Query]) -> Query | None:
    """The first that is a question; a hidden one is, and hides the others."""
    return next((query for query in queries if query.text or query.hidden), None)
