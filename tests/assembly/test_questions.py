"""What the user asked, and what one retrieval asked."""

from __future__ import annotations

import pytest

from seer_otel.assembly import Memory
from seer_otel.privacy import Hiding
from seer_otel.spans import Span

from .builders import REDACTED, doc, model, retriever, run, span

PASSAGE = "Bears hibernate in winter."
UNSPACED = "熊は冬になると巣穴で眠り春になるまで何も食べず水も飲まずに過ごすことが知られている動物である。"


def test_decomposition() -> None:
    """The task is the outermost input above, not the nearest, and a retrieval's own query is the subquery."""
    result = run(
        span(1, None, "CHAIN", asks="Who is older, Ann or Bob?"),
        span(2, 1, "CHAIN", (1, 40), asks="How old is Ann?"),
        retriever(3, 2, (10, 20), asks="age of Ann"),
        span(4, 1, "CHAIN", (50, 90), asks="How old is Bob?"),
        retriever(5, 4, (60, 70), asks="How old is Bob?"),
    )
    assert result.asked(3) == ("Who is older, Ann or Bob?", "age of Ann")
    assert result.asked(5) == ("Who is older, Ann or Bob?", "How old is Bob?")
    assert result.finals == [5]


def test_batch_under_one_app_span() -> None:
    """Two questions under an app span without an input keep their own tasks."""
    result = run(
        span(1, None, None, marks={"http.route": "/batch"}),
        span(2, 1, "CHAIN", (1, 40), asks="What is A?"),
        retriever(3, 2, (10, 20)),
        span(4, 1, "CHAIN", (50, 90), asks="What is B?"),
        retriever(5, 4, (60, 70)),
    )
    assert (result.asked(3)[0], result.asked(5)[0]) == ("What is A?", "What is B?")


def test_batch_of_agents_under_one_app_span() -> None:
    """Two agents without inputs under an app span each get the message to their own first model."""
    result = run(
        span(1, None, None),
        span(2, 1, "AGENT", (1, 40)),
        model(3, 2, (2, 5), told="What is A?"),
        retriever(4, 2, (10, 20)),
        span(5, 1, "AGENT", (50, 90)),
        model(6, 5, (51, 55), told="What is B?"),
        retriever(7, 5, (60, 70)),
    )
    assert (result.asked(4)[0], result.asked(7)[0]) == ("What is A?", "What is B?")


@pytest.mark.parametrize("unusable", [None, "", "  ", ["a", "b"], "<object at 0x7f>"])
def test_unusable_input_is_passed_over(unusable: object) -> None:
    """Where the outermost input is no question, the next one beneath it counts."""
    result = run(
        span(1, None, "CHAIN", asks=unusable), span(2, 1, "CHAIN", (1, 90), asks="Why?"), retriever(3, 2)
    )
    assert result.asked(3) == ("Why?", "query 3")


def test_own_query_for_want_of_another() -> None:
    """A bare retriever's query is the task, and there is no subquery."""
    assert run(retriever(1, asks="Why?")).asked(1) == ("Why?", None)


def test_inner_half_still_has_the_query() -> None:
    """Where the attribute limit took the outer span's query, the inner half of the same call tells it."""
    result = run(
        span(1, None, "CHAIN", asks="Why?"),
        retriever(2, 1, asks=None),
        retriever(3, 2, (11, 19), asks={"query_bundle": {"query_str": "because"}}, docs=None),
    )
    assert result.asked(2) == ("Why?", "because")


def react(
    *, root_asks: str | None = None, first: str = "Who wrote it?", tool_asks: str = "author"
) -> list[Span]:
    return [
        span(1, None, "AGENT", asks=root_asks),
        model(2, 1, (1, 5), told=first),
        span(3, 1, "TOOL", (6, 30), asks=tool_asks),
        retriever(4, 3, (10, 20), asks="author of it"),
        model(5, 1, (31, 35), told=f"Observation: {PASSAGE}"),
        span(6, 1, "TOOL", (36, 60), asks="year"),
        retriever(7, 6, (40, 50), asks="year of it"),
        model(8, 1, (61, 65), told="Observation: 1847"),
    ]


def test_react_loop() -> None:
    """In an agent's loop the first model's user message is the task; observations are later user messages."""
    result = run(*react())
    assert result.asked(4) == ("Who wrote it?", "author of it")
    assert result.asked(7) == ("Who wrote it?", "year of it")
    assert result.finals == [7]


def test_agent_with_an_input() -> None:
    """An input above the tool beats the message to a model."""
    assert run(*react(root_asks="The question?")).asked(7)[0] == "The question?"


def test_loop_by_hand() -> None:
    """Without an agent's span around a tool, the message to the trace's first model is the task."""
    result = run(
        span(1, None, None),
        model(2, 1, (1, 5), told="Who wrote it?"),
        span(3, 1, "TOOL", (6, 30), asks="author"),
        retriever(4, 3, (10, 20)),
    )
    assert result.asked(4) == ("Who wrote it?", "query 4")


def test_models_that_begin_later_or_inside_the_tool_are_not_asked() -> None:
    """A model beneath the tool, or one that began after the retrieval, tells nothing: the tool's side does."""
    result = run(
        span(1, None, "AGENT"),
        span(2, 1, "TOOL", (6, 30), asks="author"),
        model(3, 2, (7, 8), told="Rephrase: author"),
        span(4, 2, "CHAIN", (8, 29), asks="the author of it"),
        retriever(5, 4, (10, 20)),
        model(6, 1, (10, 12), told="too late"),
    )
    assert result.asked(5) == ("the author of it", "query 5")


def test_tool_input_is_the_last_resort() -> None:
    """What a model asked a tool is the task only where the retrieval itself has no text that asks."""
    spans = [span(1, None, "AGENT"), span(2, 1, "TOOL", (6, 30), asks="author")]
    assert run(*spans, retriever(3, 2)).asked(3) == ("query 3", None)
    assert run(*spans, retriever(3, 2, asks={"query_embedding": "<24-dimensional vector>"})).asked(3) == (
        "author",
        None,
    )


def test_outermost_tool_counts() -> None:
    """An agent within a tool is beneath it: its input is a model's, not the user's."""
    result = run(
        span(1, None, "AGENT"),
        model(2, 1, (1, 2), told="The user's?"),
        span(3, 1, "TOOL", (3, 90), asks="sub-agent, go"),
        span(4, 3, "AGENT", (4, 80), asks="A model's?"),
        span(5, 4, "TOOL", (5, 70), asks="search"),
        retriever(6, 5),
    )
    assert result.asked(6)[0] == "The user's?"


@pytest.mark.parametrize("passage", [PASSAGE, UNSPACED])
def test_prompt_with_a_passage_is_no_question(passage: str) -> None:
    """A message that holds a passage of this trace is a prompt; the next model that began before is asked."""
    result = run(
        span(1, None, "AGENT"),
        retriever(2, 1, (1, 3), docs=[passage]),
        model(3, 1, (4, 5), told=f"Use this: {passage} Question: what?"),
        model(4, 1, (6, 7), told="What do bears do?"),
        retriever(5, 1, (10, 20)),
    )
    assert result.asked(5)[0] == "What do bears do?"
    assert result.asked(2) == ("query 2", None)


@pytest.mark.parametrize("title", ["Bears", "in winter", "Winterschlaf-Forschung"])
def test_short_text_in_a_question_makes_no_prompt(title: str) -> None:
    """A title that is a document of its own may stand in a question."""
    result = run(
        span(1, None, "AGENT"),
        model(2, 1, (1, 2), told=f"What of {title}?"),
        retriever(3, 1, docs=[title]),
    )
    assert result.asked(3)[0] == f"What of {title}?"


def test_model_around_the_retrieval() -> None:
    """Where a model's span is all that lies above, its own user message is the task."""
    assert run(model(1, None, (0, 90), told="Why?"), retriever(2, 1)).asked(2) == ("Why?", "query 2")


def test_models_without_a_user_message_are_passed_over() -> None:
    """A prompt template that is recorded as a model has no messages, and the next model is asked."""
    result = run(
        span(1, None, None),
        model(2, 1, (1, 2)),
        model(3, 1, (3, 4), told="Why?"),
        retriever(4, 1),
    )
    assert result.asked(4)[0] == "Why?"


@pytest.mark.parametrize("own", ["Why?", " Why?\n", "Why? "])
def test_subquery_that_equals_the_task_is_left_out(own: str) -> None:
    """A subquery is what differs from the task by more than white space."""
    assert run(span(1, None, "CHAIN", asks="Why?"), retriever(2, 1, asks=own)).asked(2) == ("Why?", None)


def test_explicit_questions() -> None:
    """The application's own task and subquery beat inferred ones, a span's own those of its ancestors."""
    outer = {"seer.task": "T", "seer.subquery": "S"}
    result = run(
        span(1, None, "CHAIN", asks="Why?", marks=outer),
        retriever(2, 1),
        retriever(3, 1, marks={"seer.task": "own T", "seer.subquery": "own S"}),
        retriever(4, 1, marks={"seer.subquery": "T"}),
        span(5, 1, "CHAIN", marks={"seer.task": " ", "seer.subquery": 7}),
        retriever(6, 5),
    )
    assert [result.asked(each) for each in (2, 3, 4, 6)] == [
        ("T", "S"),
        ("own T", "own S"),
        ("T", None),
        ("T", "S"),
    ]


def test_explicit_task_alone() -> None:
    """With only a task set, the retrieval's query is the subquery; a mark inside the call counts as its own."""
    result = run(
        retriever(1, marks={"seer.subquery": "never"}, docs=[]),
        retriever(2, 1, (11, 12), docs=None, marks={"seer.task": "T"}),
        retriever(3, None),
    )
    assert result.asked(1) == ("T", "never")
    assert run(retriever(3, marks={"seer.task": "T"})).asked(3) == ("T", "query 3")


def test_no_question_no_event() -> None:
    """A retrieval for which no span says what was asked is dropped, and counted for that."""
    result = run(span(1, None, "CHAIN"), retriever(2, 1, asks=None))
    assert (result.events, result.dropped) == ({}, {2: "no_question"})


def test_broken_json_only_where_nothing_else_asks() -> None:
    """JSON that cannot be read is a task, raw, only if no other span has a question; the outermost comes first."""
    json_type = {"input.mime_type": "application/json"}
    broken = [
        span(1, None, "CHAIN", asks='{"a": [}', marks=json_type),
        retriever(2, 1, asks='{"b": [}', marks=json_type),
    ]
    assert run(*broken).asked(2) == ('{"a": [}', None)
    assert run(broken[1]).asked(2) == ('{"b": [}', None)
    assert run(broken[0], retriever(2, 1)).asked(2) == ("query 2", None)


@pytest.mark.parametrize(
    ("root", "own", "half", "message"),
    [
        (REDACTED, "Why?", "Why?", None),
        ("Why?", REDACTED, "Why?", None),
        ("Why?", None, REDACTED, None),
        ("Why?", "Why?", REDACTED, None),
        (REDACTED, None, None, "Why?"),
    ],
)
def test_masked_question(root: str | None, own: str | None, half: str | None, message: str | None) -> None:
    """Where a question is masked above, on the retrieval or on its inner half, it is recovered from nowhere."""
    result = run(
        span(1, None, "CHAIN", asks=root),
        model(2, 1, (1, 2), told=message),
        retriever(3, 1, asks=own),
        retriever(4, 3, (11, 12), asks=half, docs=None),
    )
    assert (result.events, result.dropped) == ({}, {3: "hidden", 4: "nested"})


def test_masked_message() -> None:
    """Where the first model's message is masked no other model's counts: the retrieval's own query does."""
    result = run(
        span(1, None, "AGENT"),
        model(2, 1, (1, 2), told=REDACTED),
        model(3, 1, (3, 4), told="Observation: it is late"),
        retriever(4, 1),
    )
    assert result.asked(4) == ("query 4", None)


def test_masked_explicit_questions() -> None:
    """A masked explicit task is no event; a masked explicit subquery is left out, not inferred."""
    result = run(
        span(1, None, "CHAIN", asks="Why?"),
        retriever(2, 1, marks={"seer.task": REDACTED}),
        retriever(3, 1, marks={"seer.subquery": REDACTED}),
        retriever(4, 1, asks=REDACTED, marks={"seer.task": "T"}),
    )
    assert (result.asked(3), result.dropped) == (("Why?", None), {2: "hidden"})
    assert result.asked(4) == ("T", None)


def test_hiding_inputs_hides_every_inferred_question() -> None:
    """Under the setting that hides inputs only an explicit task is sent, even from instrumentors that forgot."""
    result = run(
        span(1, None, "CHAIN", asks="Why?"),
        retriever(2, 1),
        retriever(3, 1, marks={"seer.task": "T"}),
        hiding=Hiding(inputs=True, messages=True),
    )
    assert (list(result.events), result.asked(3), result.dropped) == ([3], ("T", None), {2: "hidden"})
    assert result.memory.root_question is None


def test_hiding_messages_hides_the_models_side() -> None:
    """Under the setting that hides messages no task is taken from a model."""
    assert run(*react(), hiding=Hiding(messages=True)).asked(4) == ("author of it", None)


def test_message_after_masked_documents_is_no_question() -> None:
    """What a model is told after a retrieval whose documents are masked may quote them, so it is not sent."""
    result = run(
        span(1, None, "AGENT"),
        retriever(2, 1, (1, 3), docs=[doc(REDACTED)]),
        model(3, 1, (4, 5), told="Use this: a secret. Why?"),
        retriever(4, 1),
    )
    assert (result.asked(4), result.dropped) == (("query 4", None), {2: "hidden"})


def test_late_spans_are_asked_what_the_root_asked() -> None:
    """A retrieval that comes after its trace was released has the root's question as its task."""
    memory = run(span(1, None, "CHAIN", (0, 30), asks="Why?"), retriever(2, 1)).memory
    assert memory == Memory(final_sent=True, root_question="Why?", known=frozenset({2}))
    late = run(retriever(3, 1, (40, 50)), memory=memory)
    assert (late.asked(3), late.finals) == (("Why?", "query 3"), [])
    beneath = run(span(4, 1, "TOOL", (40, 60), asks="go"), retriever(5, 4, (45, 50)), memory=late.memory)
    assert beneath.asked(5)[0] == "Why?"


def test_late_retrieval_does_not_become_the_root() -> None:
    """What a late retrieval asked is not taken for the root's question by the next one."""
    memory = run(span(1, None, "AGENT", (0, 30)), retriever(2, 1)).memory
    memory = run(retriever(3, 1, (40, 50)), memory=memory).memory
    assert memory.root_question is None
    assert run(retriever(4, 1, (60, 70)), memory=memory).asked(4) == ("query 4", None)


def test_open_root_is_not_guessed() -> None:
    """A part that is released while the root is open does not make its own outermost input the root's question."""
    first = run(span(2, 1, "CHAIN", (1, 30), asks="sub-question"), retriever(3, 2), partial="flush")
    assert first.memory.root_question is None
    rest = run(span(1, None, "CHAIN", asks="Why?"), retriever(4, 1, (40, 50)), memory=first.memory)
    assert (rest.asked(4)[0], rest.memory.root_question) == ("Why?", "Why?")


def test_root_without_a_retrieval_is_remembered() -> None:
    """The root's question is remembered from a part that has no retrieval at all, and kept where a part has none."""
    memory = run(span(1, None, "CHAIN", (0, 30), asks="Why?")).memory
    assert memory == Memory(final_sent=False, root_question="Why?")
    assert run(span(2, 1, "CHAIN", (40, 50)), memory=memory).memory == memory


def test_two_requests_under_one_remote_parent() -> None:
    """Retrievals beneath one caller ask each its own question, in one part or in two; only one part has the final."""
    one, two = retriever(1, 99, (10, 20), remote=True), retriever(2, 99, (30, 40), remote=True)
    together = run(one, two)
    assert (together.asked(1), together.asked(2)) == (("query 1", None), ("query 2", None))
    assert together.finals == [2]
    first = run(one)
    second = run(two, memory=first.memory)
    assert (first.finals, second.finals) == ([1], [])
    assert second.asked(2) == ("query 2", None)
    assert second.memory == Memory(final_sent=True, root_question="query 2", known=frozenset({1, 2}))
