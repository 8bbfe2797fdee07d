"""The question in a span's input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seer_otel.conventions.queries import QUESTION_KEYS, last_user_message, message_text, read_query
from seer_otel.privacy import REDACTED
from seer_otel.retrieval import HIDDEN_QUERY, NO_QUERY, Query

from ..hostile import Fails, Lies

JSON = "application/json"
ASKED = "Who directed Inception?"
FOUND = Query(ASKED)


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


ANSWER = {"role": "assistant", "content": "Nolan."}
VECTOR = "<24-dimensional vector>"

OBJECTS: dict[str, Any] = {
    # By the usual keys.
    **{f"key {key}": {key: ASKED} for key in QUESTION_KEYS},
    "first of the usual keys": {"text": "not this", "input": "nor this", "query": ASKED},
    "blank under the first key": {"query": " ", "question": ASKED},
    "null under the first key": {"query": None, "question": ASKED},
    "number under the first key": {"query": 3, "question": ASKED},
    "placeholder under the first key": {"query": VECTOR, "text": ASKED},
    # What instrumentors write.
    "LlamaIndex retrieve": {"query_str": ASKED, "custom_embedding_strs": ["a film was directed by ..."]},
    "LlamaIndex _retrieve": {"query_bundle": {"query_str": ASKED, "image_path": None, "embedding": None}},
    "LlamaIndex custom retriever": {"q": {"query_str": ASKED, "image_path": None}},
    "LlamaIndex chat engine": {"message": ASKED, "chat_history": None},
    "LlamaIndex synthesizer": {"query_str": ASKED, "text_chunks": ["a", "b"]},
    "Haystack retriever": {"query": ASKED, "filters": None, "top_k": None, "scale_score": None},
    "Haystack pipeline": {"data": {"retriever": {"query": ASKED}, "prompt": {"question": ASKED}}},
    "Haystack embedding pipeline": {"data": {"embedder": {"text": ASKED}}, "include_outputs_from": None},
    "Haystack embedding with the text beside": {"query_embedding": VECTOR, "filters": None, "text": ASKED},
    "DSPy retriever": {"query": ASKED, "k": 3},
    "DSPy module": {"question": ASKED},
    "DSPy ReAct": {"input_args": {"question": ASKED}},
    "DSPy tool": {"kwargs": {"query": ASKED}},
    "LangChain dict": {"context": "", "question": ASKED},
    "LangGraph": {"messages": [user(ASKED)]},
    "deep": {"a": {"b": {"c": {"d": {"query": ASKED}}}}},
    # The only text.
    "only text": {"top_k": 3, "term": ASKED, "filters": {"year": 2010}},
    "only text, twice": {"a": ASKED, "b": {"c": ASKED}},
    "only text beside placeholders": {"x": ASKED, "embedding": VECTOR, "lm": "<DummyLM object at 0x7fb7>"},
    # Messages.
    "message with a content": {"message": user(ASKED)},
    "message of text parts": {"input": {"content": [{"type": "text", "text": ASKED}]}},
    "input with messages": {"input": [user("an old question"), ANSWER, user(ASKED)]},
    "inputs with messages": {"inputs": {"messages": [user(ASKED)]}},
}


@pytest.mark.parametrize("data", OBJECTS.values(), ids=OBJECTS)
def test_object(data: object) -> None:
    """The question of every shape of arguments, as JSON and as an object that the SDK kept."""
    assert read_query(json.dumps(data), JSON) == FOUND
    assert read_query(data) == FOUND


MESSAGES: dict[str, list[Any]] = {
    "OpenAI": [{"role": "system", "content": "Answer."}, user(ASKED)],
    "the last of the user": [user("an old question"), ANSWER, user(ASKED)],
    "before the tool's answer": [
        user(ASKED),
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "Inception is a film."},
    ],
    "parts": [user([{"type": "text", "text": ASKED}, {"type": "image_url", "image_url": {"url": "u"}}])],
    "Responses API": [user([{"type": "input_text", "text": ASKED}])],
    "one part": [user({"text": ASKED})],
    "texts as parts": [user([ASKED])],
    "LangChain, upper case": [{"type": "HUMAN", "content": ASKED}],
    "LangChain messages_to_dict": [
        {"type": "human", "data": {"content": ASKED, "type": "human", "name": None, "id": "1"}},
        {"type": "ai", "data": {"content": "", "type": "ai"}},
    ],
    "LangChain messages_to_dict without the inner type": [{"type": "human", "data": {"content": ASKED}}],
    "LangChain dumps": [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", "HumanMessage"],
            "kwargs": {"content": ASKED, "type": "human"},
        }
    ],
    "batch": [[user("of another conversation")], [user(ASKED), ANSWER]],
    "batch without a question at its end": [[user(ASKED)], [ANSWER], []],
    "pairs": [["system", "Answer."], ["human", ASKED], ["ai", "Nolan."]],
    "batch of pairs": [[["human", ASKED], ["ai", "Nolan."]]],
    "Haystack": [{"role": "user", "meta": {}, "name": None, "content": [{"text": ASKED}]}],
    "LlamaIndex blocks": [{"role": "user", "blocks": [{"block_type": "text", "text": ASKED}]}],
    "parts by role": [{"role": "user", "parts": [{"text": ASKED}]}],
    "OTel GenAI": [{"role": "user", "parts": [{"type": "text", "content": ASKED}]}],
    "a tool's result as the user's": [
        user(ASKED),
        user([{"type": "tool_result", "tool_use_id": "1", "content": "Inception is a film."}]),
    ],
    "a blank one after it": [user(ASKED), user("  "), user(None), user([])],
    "a repr after it": [user(ASKED), user("ChatMessage(role='user', content='x')")],
    "things that are no messages": [user(ASKED), None, 3, "text", {}, [None], {"role": None, "content": "x"}],
}


@pytest.mark.parametrize("messages", MESSAGES.values(), ids=MESSAGES)
def test_messages(messages: list[Any]) -> None:
    """The last message of the user that says something, in every serialisation."""
    assert last_user_message(messages) == FOUND
    assert read_query(json.dumps({"messages": messages}), JSON) == FOUND
    assert read_query(json.dumps(messages), JSON) == FOUND
    assert read_query({"messages": tuple(messages)}) == FOUND


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [[]],
        None,
        "text",
        {},
        [ANSWER],
        ["a", "b"],
        [["a"], [["b", "c"]]],
        [["user"]],
        [{"role": ["user"], "content": "a"}],
    ],
)
def test_no_user(messages: object) -> None:
    """Without a message of a user there is no question."""
    assert last_user_message(messages) == NO_QUERY


def test_hidden_message() -> None:
    """A hidden last message hides the question; an older one does not take its place."""
    assert last_user_message([user("an old question"), user(REDACTED)]) == HIDDEN_QUERY
    assert last_user_message([user("an old question"), user([{"text": REDACTED}])]) == HIDDEN_QUERY


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a", "a"),
        ([{"text": "a"}, "b", {"type": "image"}, 3, {"text": None}], "a\nb"),
        ({"text": "a"}, "a"),
        (({"text": "a"},), "a"),
        ({"type": "text", "content": "a"}, "a"),
        ({"type": "tool_result", "content": "a"}, ""),
        (None, ""),
        (3, ""),
        ([], ""),
    ],
)
def test_message_text(content: object, text: str) -> None:
    """The text of a message: its texts, line by line."""
    assert message_text(content) == text


@pytest.mark.parametrize("mime_type", [None, "", "text/plain", 3, ["application/json"], b"application/json"])
@pytest.mark.parametrize(
    "text",
    [
        ASKED,
        '{"query": "x"}',
        "[1]",
        "404",
        "true",
        '"quoted"',
        "<b>",
        "</div>",
        "a <b> c",
        " spaced ",
        "\U0001f3ac",
    ],
)
def test_plain_text(text: str, mime_type: object) -> None:
    """Without a mime type that says JSON, a text is the question, whatever it looks like."""
    assert read_query(text, mime_type) == Query(text)
    assert read_query(text.encode(), mime_type) == Query(text)


@pytest.mark.parametrize(
    "mime_type", [JSON, "application/json; charset=utf-8", "APPLICATION/JSON", "text/json"]
)
def test_mime_types(mime_type: str) -> None:
    """What a mime type must say for a text to be JSON."""
    assert read_query('{"query": "a"}', mime_type) == Query("a")


@pytest.mark.parametrize(
    "text", [ASKED, "2010?", "null and void?", "true or false?", "-", "\u00a0" + ASKED, "<b> or <i>?"]
)
def test_json_mime_over_text(text: str) -> None:
    """A mime type of JSON over a text that does not begin like JSON: the text."""
    assert read_query(text, JSON) == Query(text)


def test_json_text() -> None:
    """JSON that is one text is that text."""
    assert read_query(json.dumps(ASKED), JSON) == FOUND


STAND_INS = [
    VECTOR,
    "<openai.OpenAI object at 0x7f>",
    "<function f at 0x7f>",
    "ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[TextContent(text='x')])",
    "QueryBundle(query_str='x', image_path=None)",
    "Message(\n  role = 'user')",
    "<NodeWithScore(node=TextNode(id_=1), score=0.5)>",
    "{'query': 'x'}",
    "{ 'query' : 'x', 'k': 3 }",
    "['a', 'b']",
    "('a', 'b')",
    "('a',)",
    "[Document(id=1), Document(id=2)]",
    "[<NodeWithScore(node=1)>]",
    "content='x' additional_kwargs={} response_metadata={}",
]


@pytest.mark.parametrize("text", STAND_INS)
def test_stand_ins(text: str) -> None:
    """A placeholder and a Python repr are no question, wherever they stand."""
    assert read_query(text) == NO_QUERY
    assert read_query(f"  {text}\n", JSON) == NO_QUERY
    assert read_query(json.dumps(text), JSON) == NO_QUERY
    assert read_query(json.dumps({"query": text}), JSON) == NO_QUERY
    assert read_query(json.dumps({"anything": text}), JSON) == NO_QUERY
    assert last_user_message([user(text)]) == NO_QUERY


@pytest.mark.parametrize(
    "text",
    [
        "Who is (was) he?",
        "f(x=1) + 2?",
        "Is Vec(x=1) a point?",
        "[draft] Who directed Inception?",
        "{curly} braces",
        "What does ['a'] mean?",
        "x='1' or y?",
        "<b>bold</b>",
        "a < b > c",
        "Who?)",
    ],
)
def test_no_stand_ins(text: str) -> None:
    """Questions with brackets, quotes and signs are questions."""
    assert read_query(text) == Query(text)
    assert read_query(json.dumps({"query": text}), JSON) == Query(text)


NOTHING: dict[str, Any] = {
    "list of texts": {"queries": ["a", "b"]},
    "list of texts under a usual key": {"query": ["a", "b"]},
    "texts": ["a", "b"],
    "numbers": [1, 2],
    "empty object": {},
    "empty list": [],
    "empty text": "",
    "blank": " \n",
    "NUL": "\0",
    "NUL under a key": {"query": "\0 \0"},
    "several texts": {"a": "one", "b": "another"},
    "several texts, nested": {"a": "one", "b": {"c": "another"}},
    "Haystack embedding retriever": {"query_embedding": VECTOR, "filters": None, "return_embedding": None},
    "Haystack MultiQuery": {"queries": ["a", "b"], "retriever_kwargs": None},
    "Haystack agent": {"messages": ["ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[])"]},
    "messages without a user": {"messages": [ANSWER]},
    "an assistant's message": {"message": ANSWER, "input": {"type": "AI", "content": "Nolan."}},
    "text in a list": {"items": [{"query": "a"}]},
    "parsed answer": {"type": "ai", "data": {"content": "Nolan.", "type": "ai", "id": "1"}},
}


@pytest.mark.parametrize("data", NOTHING.values(), ids=NOTHING)
def test_no_question(data: object) -> None:
    """Where no question can be told from other values there is none: a wrong one is worse."""
    assert read_query(json.dumps(data), JSON) == NO_QUERY
    if not isinstance(data, str):
        assert read_query(data) == NO_QUERY


@pytest.mark.parametrize("value", [None, "", " \t\n", "\0", b"", 3, 0.5, True, [], (), ["a"], object(), {}])
def test_no_text(value: object) -> None:
    """Values that are no text are no question."""
    assert read_query(value) == NO_QUERY
    assert read_query(value, JSON) == NO_QUERY


HIDDEN: dict[str, tuple[Any, object]] = {
    "plain": (REDACTED, None),
    "plain with JSON mime": (REDACTED, JSON),
    "bytes": (REDACTED.encode(), None),
    "spaced": (f" {REDACTED}\n", None),
    "JSON text": (json.dumps(REDACTED), JSON),
    "usual key": (json.dumps({"query": REDACTED, "k": 3}), JSON),
    "usual key, another one not": (json.dumps({"query": REDACTED, "question": ASKED}), JSON),
    "only text": (json.dumps({"term": REDACTED, "k": 3}), JSON),
    "object that the SDK kept": ({"query": REDACTED}, None),
    "cut": ('{"query": "__REDACTED__", "filters": {"ye', JSON),
    "cut, elsewhere": ('{"a": "__REDACTED__", "b": "what els', JSON),
    "broken": ('{"a": "__REDACTED__", oops}', JSON),
}


@pytest.mark.parametrize(("value", "mime_type"), HIDDEN.values(), ids=HIDDEN)
def test_hidden(value: object, mime_type: object) -> None:
    """A hidden question is known as such, and never sent, not even within JSON that cannot be read."""
    assert read_query(value, mime_type) == HIDDEN_QUERY


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ('{"query": "Who dir', Query("Who dir")),
        ('{"query": "Who directed Inception?", "filters": nul', FOUND),
        ('{"query": "Who\\', Query("Who")),
        ('{"query": "Who \\"directed', Query('Who "directed')),
        ('{"query": "Wer f\\u00fchrte', Query("Wer führte")),
        ('{"query": "Wer f\\u00f', Query("Wer f")),
        ('{"query": "\\ud83c\\udfac film \\ud83c\\udf', Query("\U0001f3ac film ")),
        ('{"query": "film \\ud83c', Query("film ")),
        ('{"query_bundle": {"query_str": "Who dir', Query("Who dir")),
        ('{"data": {"retriever": {"top_k": 3, "query": "Who', Query("Who")),
        ('"Who dir', Query("Who dir")),
        ('{"context": "long", "question": "Wh', Query("Wh")),
        ('{"query": "<24-dim', NO_QUERY),
        ('{"input": "ToolCall(tool_name=\'search\', tool_', NO_QUERY),
    ],
)
def test_cut(text: str, query: Query) -> None:
    """JSON cut by the length limit: the usual key as far as it can be read."""
    assert read_query(text, JSON) == query


@pytest.mark.parametrize(
    ("text", "weak"),
    [
        ('{"messages": [{"role": "user", "content": "Who dir', "Who dir"),
        ('{"messages": [{"role": "user", "content": "old"}, {"role": "assi', "old"),
        ('{"context": "long and cut', "long and cut"),
    ],
)
def test_cut_without_a_usual_key(text: str, weak: str) -> None:
    """In cut JSON nothing is the only text or the last message for sure; it counts where nothing else does."""
    assert read_query(text, JSON) == Query(weak=weak)


@pytest.mark.parametrize(
    ("text", "mime_type"), [("null", None), ("None", None), ("{}", None), ("[ ]", None), ("null", JSON)]
)
def test_no_input(text: str, mime_type: object) -> None:
    """What a framework writes where there was no input counts as a question only where nothing else does."""
    assert read_query(text, mime_type) == Query(weak=text)
    assert read_query(text, "text/plain") == Query(text)


@pytest.mark.parametrize("text", ["404", "1e5", "true", " 7"])
def test_json_that_is_a_word(text: str) -> None:
    """Text that parses as JSON but does not begin like it is the question, as instrumentors call all such text JSON."""
    assert read_query(text, JSON) == Query(text)


@pytest.mark.parametrize(
    "data",
    [
        {"ev": "StartEvent()"},
        {"ctx": "<Context object at 0x1>", "ev": "StartEvent()"},
        {"start_event": "Ask(query='Who?')", "tags": {"run": {"run_id": "zFvl8hZO6z"}}},
        {"user_id": "u-123", "messages": ["Who?"]},
        {"user_id": "u-123", "top_k": 3},
        {"userId": "u-123"},
        {"language": "en", "k": 3},
        {"graph": None, "update": None, "resume": "yes", "goto": []},
        {"term": "Who?", "filters": ["lang"]},
        {"args": ["Who?"], "kwargs": {}},
    ],
)
def test_only_text_that_is_no_question(data: object) -> None:
    """Who asks, in which language, a run's id or a graph's command is no question; texts in lists count as others."""
    assert read_query(json.dumps(data), JSON) == NO_QUERY


@pytest.mark.parametrize(
    "text",
    [
        '{"query',
        '{"a": "one", "b": "two", "c',
        '{"k": 3, "query": "',
        "[draft] Who directed Inception?",
        '"To be" or not to be, who said it?',
        '"Inception" director',
        "{curly} braces, anyone?",
        '{"messages": [{"role": "user", "con',
    ],
)
def test_weak(text: str) -> None:
    """JSON in which no question can be found is a last resort, as it stands."""
    assert read_query(text, JSON) == Query(weak=text)


def test_deep_and_wide() -> None:
    """Inputs nested or spread by the thousand are read in part, and a question near the top is found."""
    for text in ("[" * 100_000, "[" * 4_000 + "]" * 4_000, '{"a":' * 4_000 + "1" + "}" * 4_000):
        assert read_query(text, JSON).text is None
    wide = {str(number): {"a": {"b": number}} for number in range(20_000)}
    assert read_query(json.dumps({**wide, "query": ASKED}), JSON) == FOUND
    assert read_query(json.dumps({"data": {"query": ASKED}, **wide}), JSON) == FOUND
    assert read_query(json.dumps({"messages": [user("old")] * 20_000 + [user(ASKED)]}), JSON) == FOUND


TEXTS = st.one_of(
    st.text(st.characters(), max_size=20),
    st.sampled_from([*STAND_INS, REDACTED, f" {REDACTED} ", "", " ", "\0", "user", "human"]),
)
KEYS = st.sampled_from(
    [*QUESTION_KEYS, "messages", "role", "content", "type", "kwargs", "data", "parts", "text"]
)
ANYTHING = st.recursive(
    st.one_of(
        TEXTS,
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.binary(max_size=5),
        st.builds(Fails),
        st.builds(Lies),
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


def check(query: Query) -> None:
    """What any reading must obey."""
    assert not (query.hidden and (query.text or query.weak))
    assert query.text is None or query.weak is None
    for text in (query.text, query.weak):
        if text is not None:
            assert text.replace("\0", "").strip()
            assert text.strip() != REDACTED
            assert text.strip() not in STAND_INS


@given(ANYTHING, ANYTHING | st.just(JSON))
@example({"role": Fails(), "content": Fails(), "query": Lies()}, Fails())
@example(10**5_000, JSON)
def test_any_value(value: object, mime_type: object) -> None:
    """Whatever the input is, it is read without raising, and no placeholder, repr, blank or mark is a question."""
    check(read_query(value, mime_type))


DATA = st.recursive(
    TEXTS | st.none() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(DATA, st.data())
def test_any_json(data: object, draw: st.DataObject) -> None:
    """Whatever JSON the input is, whole or cut anywhere, the reading obeys the same rules."""
    text = json.dumps(data)
    check(read_query(text, JSON))
    check(read_query(text[: draw.draw(st.integers(0, len(text)))], JSON))


@given(
    st.text(st.characters(exclude_characters="\0"), min_size=1).filter(
        lambda text: text.strip().isalnum() and text.strip().lower() not in ("null", "none", "undefined")
    )
)
def test_any_question(text: str) -> None:
    """A question arrives letter by letter, as plain text, in JSON, and in a message."""
    assert read_query(text) == Query(text)
    assert read_query(json.dumps({"query": text}), JSON) == Query(text)
    assert read_query(json.dumps({"messages": [user(text)]}, ensure_ascii=False), JSON) == Query(text)
