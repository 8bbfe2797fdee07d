"""The spans of one trace become its events. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from .. import marks
from ..conventions import convention
from ..event import MAX_QUESTION, Event, GroundTruth, Passage
from ..privacy import Hiding, is_redacted
from ..reasons import DropReason
from ..retrieval import Document, Retrieval, State
from ..spans import Span
from ..strict import is_blank
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
    sample_rate: float | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Assembly:
    """Return the events of one trace.

    Args:
        spans: its ended spans, in any order.
        rules: the settings.
        memory: what an earlier released part of the same trace left.
        partial: why the trace was not seen whole; then no final context is inferred.
        accepts: says of an event, not yet marked as final and without the next two, whether it may be sent.
        sample_rate: what each event says of it.
        metadata: what is added to the metadata of each event.
    """
    memory = memory or Memory()
    tree = Tree(spans)
    read = {span.span_id: found for span in tree.spans if (found := _read(span, tree, rules)) is not None}
    repeated = [span_id for span_id in read if span_id in memory.known] if memory.known else []
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
    trace_marks, of_trace = Marks(tree), Metadata(tree, rules.metadata_keys)

    drafts: list[_Draft] = []
    for candidate in sorted(reranked.candidates, key=_ended):
        span = candidate.retrieval.span
        question = _question(candidate, questions, trace_marks)
        if isinstance(question, DropReason):
            dropped[span.span_id] = question
            continue
        labels = trace_marks.labels(candidate.spans)
        draft = _draft(candidate.retrieval, question, labels.truth, of_trace.of(span), rules, partial)
        if accepts is not None and not accepts(Event(**draft)):
            dropped[span.span_id] = DropReason.FILTERED
            continue
        drafts.append(_Draft(candidate, draft, labels.unreadable))

    final, how = _final([each.candidate for each in drafts], tree, reranked.sources, partial)
    if memory.final_sent:
        final = None
    for each in drafts:
        is_final = each.candidate is final
        marked = {**each.fields["metadata"], FINAL: how} if is_final else each.fields["metadata"]
        each.fields |= {
            "is_final_context": is_final,
            "metadata": {**marked, **metadata} if metadata is not None else marked,
            "sample_rate": sample_rate,
        }
    return Assembly(
        tuple([Event(**each.fields) for each in drafts]),
        dropped,
        Memory(memory.final_sent or final is not None, root_question, known),
        attributes_dropped=sum(each.candidate.retrieval.span.dropped_attributes > 0 for each in drafts),
        labels_unreadable=sum(each.labels_unreadable for each in drafts),
    )


@dataclass(slots=True)
class _Draft:
    """What will be an event; a frozen one is made once, when all of it is known."""

    candidate: Candidate
    fields: dict[str, Any]
    labels_unreadable: bool


def _ended(candidate: Candidate) -> tuple[int, int, int]:
    return order(candidate.retrieval.span)


def _read(span: Span, tree: Tree, rules: Rules) -> Retrieval | None:
    found = convention.retrieval(span, rules.id_keys, tree.layouts[span.span_id])
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
    if task is None or is_blank(task[:MAX_QUESTION]):
        return DropReason.NO_QUESTION
    if subquery is None or subquery is task or is_redacted(subquery) or _same(task, subquery):
        return task, None
    return task, subquery


def _same(task: str, subquery: str) -> bool:
    """Whether two questions differ in white space at most, as far as they would be sent."""
    return subquery[:MAX_QUESTION].split() == task[:MAX_QUESTION].split()


def _draft(
    retrieval: Retrieval,
    question: tuple[str, str | None],
    truth: GroundTruth | None,
    metadata: dict[str, Any],
    rules: Rules,
    partial: str | None,
) -> dict[str, Any]:
    """The fields of a retrieval's event, not yet marked as final."""
    span = retrieval.span
    task, subquery = question
    if span.dropped_attributes:
        metadata[ATTRIBUTES_DROPPED] = span.dropped_attributes
    if partial is not None:
        metadata[PARTIAL] = partial
    return {
        "task": task,
        "context": _passages(retrieval.documents, rules.passage_metadata_keys),
        "metadata": metadata,
        "trace_id": f"{span.trace_id:032x}",
        "span_id": f"{span.span_id:016x}",
        "parent_span_id": f"{span.parent_id:016x}" if span.parent_id is not None else None,
        "span_name": None if is_redacted(span.name) else span.name,
        "subquery": subquery,
        "ground_truth": truth,
        "created_at": timestamp(span.end),
    }


def _passages(documents: Iterable[Document], keys: tuple[str, ...] | None) -> tuple[Passage, ...]:
    """What is sent of documents; of their metadata only `keys`, where these are given."""
    if keys is None:
        return tuple(
            [Passage(each.text, each.id, each.source, each.score, each.metadata) for each in documents]
        )
    return tuple(
        [
            Passage(
                each.text,
                each.id,
                each.source,
                each.score,
                {key: value for key, value in each.metadata.items() if key in keys},
            )
            for each in documents
        ]
    )


def _final(
    candidates: Sequence[Candidate], tree: Tree, sources: Mapping[int, Sequence[int]], partial: str | None
) -> tuple[Candidate | None, str]:
    """The final context of a trace, and how it is known."""
    possible = [candidate for candidate in candidates if not candidate.is_hop]
    final, refused = explicit_final(possible, tree)
    if final is not None or partial is not None:
        return final, "explicit"
    left = [each for each in possible if each.retrieval.span.span_id not in refused]
    return inferred_final(left, tree, sources), "inferred"


def timestamp(nanoseconds: int) -> str:
    """Return Unix nanoseconds as ISO 8601 in UTC, to the microsecond."""
    seconds, rest = divmod(nanoseconds, 10**9)
    moment = _second(seconds)
    return f"{moment}.{rest // 1000:06d}Z" if moment is not None else f"{_second(0)}.000000Z"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str | None:
    """A second, written; None where the year has more than four digits."""
    try:
        return (_EPOCH + timedelta(seconds=seconds)).isoformat()
    except OverflowError:  # a clock that gives nonsense; the event matters more than its time
        return None
