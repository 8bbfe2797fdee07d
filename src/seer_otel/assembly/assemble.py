"""The spans of one trace become its events. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from .. import marks
from ..conventions import convention
from ..event import MAX_QUESTION, Event, GroundTruth, Passage
from ..privacy import Hiding, is_redacted
from ..reasons import DropReason
from ..retrieval import Document, Retrieval, State
from ..spans import Span
from .finals import explicit_final, inferred_final
from .hiding import hide_forgotten
from .marked import Marks
from .metadata import DEFAULT_KEYS, Metadata
from .nesting import Candidate, nest
from .questions import Questions
from .reranking import rerank
from .tree import Tree, order

FINAL = "seer_otel.final"
PARTIAL = "seer_otel.partial"
ATTRIBUTES_DROPPED = "seer_otel.attributes_dropped"

MAX_KNOWN = 100
"""Retrieval spans of one released part whose ids are remembered."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC, which `timestamp` writes itself


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that the assembly obeys; `config` explains each."""

    nested: str = "outermost"
    metadata_keys: tuple[str, ...] = DEFAULT_KEYS
    passage_metadata_keys: tuple[str, ...] | None = None
    id_keys: tuple[str, ...] = ()
    hiding: Hiding = field(default_factory=Hiding)


@dataclass(frozen=True, slots=True)
class Memory:
    """What is left of a trace whose first part has been released.

    Attributes:
        final_sent: whether an event of it was marked as the final context.
        root_question: what its root asked.
        known: ids of its retrieval spans, the last ones of very many.
    """

    final_sent: bool = False
    root_question: str | None = None
    known: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a trace comes to.

    Attributes:
        events: in the order in which their retrievals ended; limits are not applied yet.
        dropped: every other retrieval span, and why it is no event.
        memory: what to remember for spans that come late.
        attributes_dropped: how many of the events miss attributes to the SDK's limit.
        labels_unreadable: how many of the events came with a ground truth that cannot be read.
    """

    events: tuple[Event, ...]
    dropped: Mapping[int, DropReason]
    memory: Memory
    attributes_dropped: int = 0
    labels_unreadable: int = 0


def assemble(
    spans: Iterable[Span],
    rules: Rules,
    *,
    memory: Memory | None = None,
    partial: str | None = None,
    accepts: Callable[[Event], bool] | None = None,
) -> Assembly:
    """Return the events of one trace.

    Args:
        spans: its ended spans, in any order.
        rules: the settings.
        memory: what an earlier released part of the same trace left.
        partial: why the trace was not seen whole; then no final context is inferred.
        accepts: says of an event, not yet marked as final, whether it may be sent.
    """
    memory = memory or Memory()
    tree = Tree(spans)
    read = {span.span_id: found for span in tree.spans if (found := _read(span, rules)) is not None}
    repeated = [span_id for span_id in read if span_id in memory.known]
    for span_id in repeated:
        del read[span_id]
    known = memory.known.union(list(read)[-MAX_KNOWN:])
    questions = Questions(tree, read, rules.hiding, memory.root_question)
    root_question = questions.of_root(whole=partial is None) or memory.root_question
    dropped = dict.fromkeys(repeated, DropReason.REPEATED)
    if not read:
        return Assembly((), dropped, replace(memory, root_question=root_question))
    retrievals = hide_forgotten(tree, read)
    nesting = nest(tree, retrievals, hops=rules.nested == "all")
    reranked = rerank(nesting.candidates, retrievals.values())
    dropped |= nesting.dropped | reranked.dropped
    trace_marks, metadata = Marks(tree), Metadata(tree, rules.metadata_keys)

    drafts: list[tuple[Candidate, Event]] = []
    labels_unreadable = 0
    for candidate in sorted(reranked.candidates, key=lambda each: order(each.retrieval.span)):
        span = candidate.retrieval.span
        question = _question(candidate, questions, trace_marks)
        if isinstance(question, DropReason):
            dropped[span.span_id] = question
            continue
        labels = trace_marks.labels(candidate.spans)
        event = _event(candidate.retrieval, question, labels.truth, metadata.of(span), rules, partial)
        if accepts is not None and not accepts(event):
            dropped[span.span_id] = DropReason.FILTERED
            continue
        drafts.append((candidate, event))
        labels_unreadable += labels.unreadable

    events, final = _with_final(drafts, tree, reranked.sources, memory, partial)
    return Assembly(
        events,
        dropped,
        Memory(memory.final_sent or final, root_question, known),
        attributes_dropped=sum(candidate.retrieval.span.dropped_attributes > 0 for candidate, _ in drafts),
        labels_unreadable=labels_unreadable,
    )


def _read(span: Span, rules: Rules) -> Retrieval | None:
    found = convention.retrieval(span, rules.id_keys)
    if found is not None and rules.hiding.documents and found.state in (State.FOUND, State.UNREADABLE):
        return replace(found, state=State.HIDDEN, documents=(), took=())
    return found


def _question(
    candidate: Candidate, questions: Questions, trace_marks: Marks
) -> tuple[str, str | None] | DropReason:
    """The task and the subquery of a candidate, what the application says before what the spans say; or why none."""
    asked = questions.of(candidate)
    task = trace_marks.text(candidate.spans, marks.TASK) or asked.task
    subquery = trace_marks.text(candidate.spans, marks.SUBQUERY) or asked.own
    if is_redacted(task) or (task is None and asked.hidden):
        return DropReason.HIDDEN
    if task is None or not task.strip():
        return DropReason.NO_QUESTION
    if subquery is None or is_redacted(subquery) or _same(task, subquery):
        return task, None
    return task, subquery


def _same(task: str, subquery: str) -> bool:
    """Whether two questions differ in white space at most, as far as they would be sent."""
    return subquery[:MAX_QUESTION].split() == task[:MAX_QUESTION].split()


def _event(
    retrieval: Retrieval,
    question: tuple[str, str | None],
    truth: GroundTruth | None,
    metadata: dict[str, Any],
    rules: Rules,
    partial: str | None,
) -> Event:
    """The event of a retrieval, not yet marked as final."""
    span = retrieval.span
    task, subquery = question
    if span.dropped_attributes:
        metadata[ATTRIBUTES_DROPPED] = span.dropped_attributes
    if partial is not None:
        metadata[PARTIAL] = partial
    return Event(
        task=task,
        context=tuple([_passage(document, rules) for document in retrieval.documents]),
        metadata=metadata,
        trace_id=f"{span.trace_id:032x}",
        span_id=f"{span.span_id:016x}",
        parent_span_id=f"{span.parent_id:016x}" if span.parent_id is not None else None,
        span_name=None if is_redacted(span.name) else span.name,
        subquery=subquery,
        ground_truth=truth,
        created_at=timestamp(span.end),
    )


def _passage(document: Document, rules: Rules) -> Passage:
    metadata: Mapping[str, Any] = document.metadata
    if rules.passage_metadata_keys is not None:
        metadata = {key: value for key, value in metadata.items() if key in rules.passage_metadata_keys}
    return Passage(document.text, document.id, document.source, document.score, metadata)


def _with_final(
    drafts: Sequence[tuple[Candidate, Event]],
    tree: Tree,
    sources: Mapping[int, Sequence[int]],
    memory: Memory,
    partial: str | None,
) -> tuple[tuple[Event, ...], bool]:
    """The events, at most one of them marked as final, and whether one is."""
    possible = [candidate for candidate, _ in drafts if not candidate.is_hop]
    final, refused = explicit_final(possible, tree)
    how = "explicit"
    if final is None and partial is None:
        left = [each for each in possible if each.retrieval.span.span_id not in refused]
        final, how = inferred_final(left, tree, sources), "inferred"
    if final is None or memory.final_sent:
        return tuple(event for _, event in drafts), False
    return tuple(
        replace(event, is_final_context=True, metadata={**event.metadata, FINAL: how})
        if each is final
        else event
        for each, event in drafts
    ), True


def timestamp(nanoseconds: int) -> str:
    """Return Unix nanoseconds as ISO 8601 in UTC, to the microsecond."""
    try:
        moment = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:  # a clock that gives nonsense; the event matters more than its time
        moment = _EPOCH
    return moment.isoformat(timespec="microseconds") + "Z"
