"""What holds for every trace, however odd."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from seer_otel.assembly import Memory
from seer_otel.conventions import convention
from seer_otel.spans import Span

from .builders import REDACTED, Fields, Result, doc, model, run, span

ROLES = (None, "CHAIN", "AGENT", "TOOL", "LLM", "EMBEDDING", "NEW")
RETRIEVALS = ("RETRIEVER", "RETRIEVER", "RERANKER")
NAMES = "abcd"
ASKED = (None, None, "Who?", "Why not?", " ", REDACTED, {"query": "How?"}, {"messages": []}, ["x", "y"])
TOLD = (None, "What does it say?", REDACTED, "Read this passage a of the corpus, please.")
UNSEEN = 99


def passage(name: str) -> str:
    return f"passage {name} of the corpus"


def _documents(choose: random.Random) -> list[Fields]:
    found = []
    for name in choose.choices(NAMES, k=choose.choice((0, 1, 1, 2, 2, 3))):
        text = choose.choice((passage(name), passage(name), passage(name), REDACTED))
        metadata = choose.choice((None, {"source": f"source {name}"}, {"k": REDACTED, "l": name}, REDACTED))
        found.append(
            doc(text, choose.choice((None, name, name, REDACTED)), choose.choice((None, 0, 0.5)), metadata)
        )
    return found


DOCUMENTS = [_documents(random.Random(seed)) for seed in range(40)]
KINDS = (*ROLES, *RETRIEVALS * 4)
PLACES = st.tuples(st.integers(-1, 10), st.integers(0, 30), st.integers(0, 20))
DETAILS = st.tuples(
    st.sampled_from(KINDS),
    st.sampled_from(ASKED),
    st.sampled_from((*[None] * 10, *DOCUMENTS)),
    st.sampled_from(DOCUMENTS),
    st.sampled_from((None, None, "[]", "a repr", '[{"text": "from the output"}]')),
    st.sampled_from(TOLD),
    st.integers(0, 15),
)


@st.composite
def spans_of_a_trace(draw: st.DrawFn, *, final_marks: tuple[object, ...] = (None,)) -> list[Span]:
    """Spans in a tree, or not quite: parents unseen, remote or in a cycle, times that nest or do not."""
    spans: list[Span] = []
    orderly = draw(st.booleans())
    everything = st.tuples(PLACES, DETAILS, st.sampled_from(final_marks))
    for id, (place, details, mark) in enumerate(draw(st.lists(everything, min_size=1, max_size=10)), 1):
        number, start, length = place
        kind, asks, docs, took, output, told, rarely = details
        among = (number - 1) % (id - 1) + 1 if orderly and id > 1 else number
        parent = {-1: UNSEEN, 0: None}.get(number, among)
        at = start, start + length
        if orderly and parent in range(1, id):
            above = spans[parent - 1]
            at = min(above.start + start, above.end), min(above.start + start + length, above.end)
        finds = kind in RETRIEVALS or rarely < 3
        made = span(
            id,
            parent,
            kind,
            at,
            asks=asks,
            docs=docs if finds else None,
            took=took if kind == "RERANKER" else None,
            output=output if finds else None,
            told=told if kind == "LLM" else None,
            marks={} if mark is None else {"seer.is_final_context": mark},
            remote=parent == UNSEEN and rarely % 2 == 0,
            failed=rarely == 15,
        )
        spans.append(made)
    return spans


MARKS = (None, None, True, False, "true", "nonsense")
UNMARKED, MARKED = spans_of_a_trace(), spans_of_a_trace(final_marks=MARKS)
NESTED = st.sampled_from(("outermost", "all"))


def retrievals(spans: list[Span]) -> set[int]:
    return {each.span_id for each in spans if convention.is_retrieval(each.attributes)}


@given(MARKED, NESTED)
def test_event_or_one_reason(spans: list[Span], nested: str) -> None:
    """Each retrieval span is either an event or has a reason why not, and nothing else is either."""
    result = run(*spans, nested=nested)
    assert set(result.events) | set(result.dropped) == retrievals(spans)
    assert not set(result.events) & set(result.dropped)
    assert len(result.assembly.events) == len(result.events)


@given(MARKED, NESTED)
def test_at_most_one_final(spans: list[Span], nested: str) -> None:
    """No trace has two final contexts, and what is remembered is whether it has one."""
    result = run(*spans, nested=nested)
    assert len(result.finals) <= 1
    assert result.memory.final_sent == bool(result.finals)


@given(spans_of_a_trace(final_marks=(None, None, True)))
def test_exactly_one_final(spans: list[Span]) -> None:
    """A trace that was seen whole has a final context if it has an event and no mark says false."""
    result = run(*spans)
    assert len(result.finals) == bool(result.events)


@given(UNMARKED)
def test_final_has_documents(spans: list[Span]) -> None:
    """An inferred final context is empty only where all events are, and lies beneath no other retrieval's event."""
    result = run(*spans)
    if any(event.context for event in result.events.values()):
        assert all(result.events[each].context for each in result.finals)


@given(MARKED, st.randoms(use_true_random=False), NESTED)
def test_order_of_spans_does_not_matter(spans: list[Span], shuffle: random.Random, nested: str) -> None:
    """The spans may come in any order, and twice."""
    again = [*spans, *spans[:2]]
    shuffle.shuffle(again)
    assert run(*again, nested=nested).assembly == run(*spans, nested=nested).assembly


@given(MARKED, NESTED)
def test_questions(spans: list[Span], nested: str) -> None:
    """Each event has a task that is not blank, and a subquery only where it is another question."""
    for event in run(*spans, nested=nested).events.values():
        assert event.task.strip()
        assert event.subquery is None or event.subquery.strip() not in ("", event.task.strip())


@given(MARKED, NESTED)
def test_mark_of_hidden_values_is_never_sent(spans: list[Span], nested: str) -> None:
    """No field of any event is the mark of a hidden value, or holds it."""
    assert REDACTED not in repr(run(*spans, nested=nested).assembly.events)


@given(UNMARKED, NESTED)
def test_partial_trace_infers_nothing(spans: list[Span], nested: str) -> None:
    """A trace that was not seen whole has no final context unless a span says so."""
    assert run(*spans, partial="flush", nested=nested).finals == []


@given(MARKED, NESTED)
def test_second_part_has_no_final(spans: list[Span], nested: str) -> None:
    """Where a final context was sent before, there is none, whatever is marked."""
    result = run(*spans, memory=Memory(final_sent=True), nested=nested)
    assert (result.finals, result.memory.final_sent) == ([], True)


@given(MARKED, st.data())
def test_two_parts_have_one_final(spans: list[Span], data: st.DataObject) -> None:
    """However a trace is cut in two parts, at most one of their events is final."""
    cut = data.draw(st.integers(0, len(spans)))
    first = run(*spans[:cut], partial=data.draw(st.sampled_from((None, "flush"))))
    assert len(first.finals) + len(run(*spans[cut:], memory=first.memory).finals) <= 1


@given(MARKED)
def test_nested_all_only_adds_hops(spans: list[Span]) -> None:
    """With nested="all" there are the same events and more, and the same one is final."""
    outermost, everything = run(*spans), run(*spans, nested="all")
    assert {each: everything.events.get(each) for each in outermost.events} == outermost.events
    assert everything.finals == outermost.finals


@given(MARKED, NESTED)
def test_names_do_not_matter(spans: list[Span], nested: str) -> None:
    """What spans are called shows in the event's span name only."""
    renamed = run(*(replace(each, name="LangChainRetriever") for each in spans), nested=nested)
    result = run(*spans, nested=nested)
    assert renamed.dropped == result.dropped
    assert {each: replace(event, span_name="") for each, event in renamed.events.items()} == {
        each: replace(event, span_name="") for each, event in result.events.items()
    }


@given(MARKED, st.integers(1, 10**18))
def test_only_the_order_of_times_matters(spans: list[Span], later: int) -> None:
    """A trace that happens later comes to the same events, but for their time."""
    moved = run(*(replace(each, start=each.start + later, end=each.end + later) for each in spans))
    result = run(*spans)
    assert (moved.finals, moved.dropped) == (result.finals, result.dropped)
    assert [event.task for event in moved.events.values()] == [event.task for event in result.events.values()]


@given(MARKED, st.sets(st.integers(1, 10)))
def test_filter(spans: list[Span], refused: set[int]) -> None:
    """What a filter takes out is dropped for that, and the rest still has a final context where it had a choice."""

    def accepts(event: Any) -> bool:
        return int(event.span_id, 16) not in refused

    result, whole = run(*spans, accepts=accepts), run(*spans)
    assert set(result.events) == set(whole.events) - refused
    assert {each for each, why in result.dropped.items() if why == "filtered"} == set(whole.events) & refused


SECRETS = {
    name: doc(passage(name), name, 0.25, {"source": f"source {name}", "k": f"value {name}"}) for name in NAMES
}
MASKED = {name: doc(REDACTED, name, 0.25, REDACTED) for name in NAMES}


SOME_NAMES = st.lists(st.sampled_from(NAMES), max_size=3, unique=True)
SHOWING = st.tuples(
    st.integers(0, 6),
    st.integers(0, 40),
    st.integers(0, 20),
    SOME_NAMES,
    st.integers(0, 7),
    st.sampled_from(("RETRIEVER", "RETRIEVER", "CHAIN", "RERANKER")),
)


@st.composite
def traces_with_masked_documents(draw: st.DrawFn) -> tuple[list[Span], set[str]]:
    """A trace and the names of the documents that some span masks; others show them, some without their ids."""
    spans: list[Span] = []
    masked: set[str] = set()
    count = 0
    for number, start, length, names, bits, kind in draw(st.lists(SHOWING, min_size=1, max_size=7)):
        count += 1
        hides = {name for bit, name in enumerate(names) if bits >> bit & 1}
        masked |= hides
        shown = [MASKED[name] if name in hides else SECRETS[name] for name in names]
        took = [SECRETS[name] for name in names] if kind == "RERANKER" else None
        output = json.dumps([SECRETS[name] for name in names]) if length % 2 else None
        parent = number % count or None
        at = start, start + length
        spans.append(
            span(count, parent, kind, at, asks=f"query {count}", docs=shown, took=took, output=output)
        )
    end = 100
    bare = [doc(passage(name)) for name in draw(SOME_NAMES)]
    around, after, answer, later = count + 1, count + 2, count + 3, count + 4
    spans = [replace(each, parent_id=each.parent_id or around) for each in spans]
    spans += [
        span(
            around,
            None,
            draw(st.sampled_from(("RETRIEVER", "CHAIN", "AGENT"))),
            (0, end),
            docs=bare,
            asks="Who?",
        ),
        span(
            after, None, draw(st.sampled_from(("RERANKER", "CHAIN"))), (end, end + 10), docs=bare, asks="Who?"
        ),
        model(answer, None, (end + 11, end + 12), told="Use: " + " ".join(map(passage, NAMES))),
        span(later, None, "RETRIEVER", (end + 20, end + 30), docs=["another passage"], asks="Really?"),
    ]
    return spans, masked


@settings(max_examples=200)
@given(traces_with_masked_documents(), NESTED)
def test_masked_documents_are_nowhere(trace: tuple[list[Span], set[str]], nested: str) -> None:
    """No text, id, source or metadata value of a document that one span masks is in any event of its trace."""
    spans, masked = trace
    result = run(*spans, nested=nested)
    sent = repr(result.assembly.events)
    for name in masked:
        assert passage(name) not in sent
        assert f"source {name}" not in sent
        assert f"value {name}" not in sent
        assert name not in {each.id for event in result.events.values() for each in event.context}
    assert REDACTED not in sent


def test_the_generators_reach_everything() -> None:
    """Among random traces there are all reasons of the assembly, and final contexts of both kinds."""
    seen: set[str] = set()

    @settings(max_examples=250, database=None, derandomize=True)
    @given(MARKED)
    def collect(spans: list[Span]) -> None:
        result: Result = run(*spans)
        seen.update(result.dropped.values())
        seen.update(str(each.metadata.get("seer_otel.final")) for each in result.assembly.events)

    collect()
    reasons = {"nested", "superseded", "failed", "unreadable", "no_documents", "no_question", "hidden"}
    assert seen == reasons | {"explicit", "inferred", "None"}
