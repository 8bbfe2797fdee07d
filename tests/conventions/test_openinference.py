"""OpenInference spans: which are retrievals, and how each came out."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.conventions import convention
from seer_otel.conventions.openinference import (
    embedding_model,
    is_retrieval,
    question,
    retrieval,
    role,
    user_message,
)
from seer_otel.privacy import REDACTED
from seer_otel.reasons import DropReason
from seer_otel.retrieval import HIDDEN_QUERY, NO_QUERY, Document, Query, Retrieval, Role, State
from seer_otel.spans import Span

from ..hostile import Fails, Lies

JSON = "application/json"
ASKED = "Who directed Inception?"
NOLAN = "Inception is a 2010 film by Christopher Nolan."
MATRIX = "The Matrix is a 1999 film by the Wachowskis."
RETRIEVER = {"openinference.span.kind": "RETRIEVER"}
RERANKER = {"openinference.span.kind": "RERANKER"}


def span(attributes: dict[Any, Any], *, failed: bool = False, dropped: int = 0) -> Span:
    return Span(1, 2, None, False, "retrieve", 0, 1, failed, attributes, {}, dropped)


def read(attributes: dict[Any, Any], **more: Any) -> Retrieval:
    found = retrieval(span(attributes, **more))
    assert found is not None
    return found


def flat(*documents: dict[str, Any], prefix: str = "retrieval.documents") -> dict[str, Any]:
    """Documents as instrumentors write them; an empty one leaves no attribute."""
    return {
        f"{prefix}.{index}.document.{field}": value
        for index, document in enumerate(documents)
        for field, value in document.items()
    }


@pytest.mark.parametrize(
    ("attributes", "expected", "retrieves"),
    [
        pytest.param(RETRIEVER, Role.RETRIEVER, True, id="retriever"),
        pytest.param(RERANKER, Role.RERANKER, True, id="reranker"),
        pytest.param({"openinference.span.kind": " retriever "}, Role.RETRIEVER, True, id="lower case"),
        pytest.param({"openinference.span.kind": ("RETRIEVER",)}, Role.RETRIEVER, True, id="list of one"),
        pytest.param({"openinference.span.kind": "CHAIN"}, Role.OTHER, False, id="chain"),
        pytest.param({"openinference.span.kind": "TOOL"}, Role.TOOL, False, id="tool"),
        pytest.param({"openinference.span.kind": "LLM"}, Role.LLM, False, id="LLM"),
        pytest.param({"openinference.span.kind": "EMBEDDING"}, Role.EMBEDDING, False, id="embedding"),
        pytest.param(
            {"openinference.span.kind": "GUARDRAIL"}, Role.OTHER, False, id="a kind that does not matter"
        ),
        pytest.param({"openinference.span.kind": "NEW"}, Role.OTHER, False, id="unknown kind"),
        pytest.param({"openinference.span.kind": ""}, None, False, id="blank kind"),
        pytest.param({"openinference.span.kind": ["RETRIEVER", "x"]}, None, False, id="two kinds"),
        pytest.param({"openinference.span.kind": 3}, None, False, id="kind that is no text"),
        pytest.param({"http.route": "/ask"}, None, False, id="of somebody else"),
        pytest.param({}, None, False, id="without attributes"),
        pytest.param({"input.value": ASKED}, Role.OTHER, False, id="an input"),
        # The SDK's limit evicts the kind first; the documents are a safer sign.
        pytest.param(flat({"content": "a"}), Role.RETRIEVER, True, id="documents, no kind"),
        pytest.param({"retrieval.documents": ()}, Role.RETRIEVER, True, id="empty list, no kind"),
        pytest.param(
            {"retrieval.documents.8.document.metadata": "{}"}, Role.RETRIEVER, True, id="half of a document"
        ),
        pytest.param(
            flat({"content": "a"}, prefix="reranker.output_documents"),
            Role.RERANKER,
            True,
            id="outputs, no kind",
        ),
        pytest.param({"reranker.output_documents": []}, Role.RERANKER, True, id="empty outputs, no kind"),
        # LangChain calls a retriever with "agent" in its name AGENT.
        pytest.param(
            {"openinference.span.kind": "AGENT", **flat({"content": "a"})},
            Role.AGENT,
            True,
            id="documents, wrong kind",
        ),
        pytest.param(
            {"openinference.span.kind": "CHAIN", **flat({"content": "a"})},
            Role.OTHER,
            True,
            id="chain with them",
        ),
        pytest.param(
            {
                "openinference.span.kind": "CHAIN",
                **flat({"content": "a"}, prefix="reranker.output_documents"),
            },
            Role.OTHER,
            True,
            id="outputs, wrong kind",
        ),
        # No documents at all.
        pytest.param(
            flat({"content": "a"}, prefix="reranker.input_documents"), None, False, id="inputs alone"
        ),
        pytest.param(
            {"retrieval.documents_count": 3, "retrieval.documentsx.0": 1}, None, False, id="similar keys"
        ),
        pytest.param(
            {"openinference.span.kind": "CHAIN", "retrieval.documents_count": 3},
            Role.OTHER,
            False,
            id="chain that counts",
        ),
        pytest.param({"reranker.output_documents_count": 3}, None, False, id="similar reranker keys"),
        pytest.param({3: "a", None: "b"}, None, False, id="keys that are no text"),
    ],
)
def test_recognised(attributes: dict[Any, Any], expected: Role | None, retrieves: bool) -> None:
    """A retrieval is known by its kind, or by its documents whatever the kind."""
    assert role(attributes) is expected
    assert is_retrieval(attributes) is retrieves
    found = retrieval(span(attributes))
    assert (found is not None) is retrieves
    assert found is None or found.role is expected


def test_registry() -> None:
    """The convention in use is this one."""
    assert convention.retrieval is retrieval


EMPTY: dict[str, dict[str, Any]] = {
    "LangChain": {"output.value": '{"documents": []}', "output.mime_type": JSON, "retrieval.documents": []},
    "DSPy": {"input.value": '{"query": "Who?"}', "input.mime_type": JSON, "retrieval.documents": ()},
    "LlamaIndex": {"output.value": "[]", "output.mime_type": JSON},
    "Haystack": {"output.value": '{"documents": []}', "output.mime_type": JSON},
    "Bedrock": {"input.value": ASKED, "input.mime_type": "text/plain"},
    "by hand": {"output.value": "{}"},
    "blank output": {"output.value": " "},
    "objects kept": {"output.value": {"documents": ()}},
    "beside other lists": {"output.value": '{"usage": [{"tokens": 3}], "results": []}'},
    "bare key as JSON": {"retrieval.documents": "[]"},
}


@pytest.mark.parametrize("attributes", EMPTY.values(), ids=EMPTY)
def test_empty(attributes: dict[str, Any]) -> None:
    """Every framework's way of saying that nothing was found is an empty result."""
    found = read(RETRIEVER | attributes)
    assert (found.state, found.documents) == (State.EMPTY, ())


UNREADABLE: dict[str, dict[str, Any]] = {
    "text": {"output.value": f"{NOLAN}\n{MATRIX}"},
    "LlamaIndex _retrieve": {"output.value": '["<NodeWithScore(node=TextNode(id_=doc-1), score=0.5)>"]'},
    "list of texts": {"output.value": json.dumps([NOLAN])},
    "OTel GenAI": {"output.value": '[{"id": "doc-1", "score": 0.5}]'},
    "repr": {"output.value": "[Document(page_content='x')]"},
    "another object": {"output.value": '{"answer": "Nolan"}'},
    "JSON text": {"output.value": '"Nolan"'},
    "null": {"output.value": "null"},
    "number": {"output.value": 3},
    "cut": {"output.value": '{"documents": [{"page_content": "Incep'},
    "documents without text": flat({"id": "doc-1", "score": 0.5}, {"metadata": "{}"}),
    "blank texts": flat({"content": ""}, {"content": " "}),
    "keys that are none": {"retrieval.documents.x.document.content": "a"},
    "bare key with texts": {"retrieval.documents": [NOLAN]},
    "bare key with a text": {"retrieval.documents": NOLAN},
}


@pytest.mark.parametrize("attributes", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable(attributes: dict[str, Any]) -> None:
    """Output without the text of any document is unreadable, which is no empty result."""
    found = read(RETRIEVER | attributes)
    assert (found.state, found.documents) == (State.UNREADABLE, ())


def test_everything_dropped() -> None:
    """Without documents and output, attributes lost to the SDK's limit tell unreadable from empty."""
    assert read(RETRIEVER, dropped=0).state is State.EMPTY
    assert read(RETRIEVER, dropped=36).state is State.UNREADABLE


@pytest.mark.parametrize("kind", [RETRIEVER, RERANKER, {}])
def test_failed(kind: dict[str, Any]) -> None:
    """A failed retrieval says so, whatever it holds; its question is known, its documents are not given on."""
    found = read({**kind, **flat({"content": "a"}), "input.value": ASKED}, failed=True)
    assert (found.state, found.query, found.documents) == (State.FAILED, Query(ASKED), ())


HIDDEN: dict[str, dict[str, Any]] = {
    "documents": {
        **flat({"content": REDACTED, "metadata": REDACTED}, {"content": REDACTED}),
        "output.value": json.dumps({"documents": [{"page_content": NOLAN}, {"page_content": MATRIX}]}),
    },
    "outputs": {"output.value": REDACTED},
    "texts in the output": {"output.value": json.dumps([{"content": REDACTED, "id": "doc-1"}])},
    "bytes": flat({"content": REDACTED.encode()}),
    "masked and a bare list beside": {
        **flat({"content": REDACTED}),
        "retrieval.documents": [{"content": NOLAN}],
    },
}


@pytest.mark.parametrize("attributes", HIDDEN.values(), ids=HIDDEN)
def test_hidden(attributes: dict[str, Any]) -> None:
    """Hidden documents are hidden, even where the masking forgot the same texts in the same span."""
    found = read(RETRIEVER | attributes)
    assert (found.state, found.documents) == (State.HIDDEN, ())
    assert NOLAN not in repr(found).replace(repr(found.span), "")


def test_hidden_in_part() -> None:
    """Of documents hidden in part the others are found, and the ids of the hidden ones are known."""
    found = read(
        RETRIEVER
        | flat({"content": NOLAN, "id": "doc-1"}, {"content": REDACTED, "id": "doc-2"}, {"content": REDACTED})
        | {"output.value": json.dumps([{"content": NOLAN}, {"content": MATRIX}, {"content": "secret"}])}
    )
    assert (found.state, found.documents, found.hidden_ids) == (
        State.FOUND,
        (Document(NOLAN, "doc-1"),),
        frozenset({"doc-2"}),
    )


def test_documents() -> None:
    """A document with everything, in rank order by index; a single one without text is no passage."""
    found = read(
        RETRIEVER
        | {
            "retrieval.documents.10.document.content": MATRIX,
            "retrieval.documents.2.document.metadata": '{"source": "wiki/Inception", "page": 1}',
            "retrieval.documents.2.document.content": NOLAN,
            "retrieval.documents.2.document.id": "doc-1",
            "retrieval.documents.2.document.score": 0.3,
            "retrieval.documents.9.document.score": 0.9,
        }
    )
    assert found.documents == (
        Document(NOLAN, "doc-1", "wiki/Inception", 0.3, {"source": "wiki/Inception", "page": 1}),
        Document(MATRIX),
    )
    assert found.texts == (NOLAN, MATRIX)


def test_bedrock() -> None:
    """Bedrock's metadata has the source's address within; a result that is no text has no content."""
    found = read(
        RETRIEVER
        | flat(
            {
                "id": "chunk-1",
                "content": NOLAN,
                "metadata": json.dumps(
                    {"location": {"type": "S3", "s3Location": {"uri": "s3://b/k"}}, "metadata": {}}
                ),
            },
            {"id": "chunk-2", "metadata": "{}"},
        )
    )
    assert [(each.id, each.source, each.score) for each in found.documents] == [("chunk-1", "s3://b/k", None)]


def output(*documents: dict[str, Any]) -> dict[str, Any]:
    return {"output.value": json.dumps({"documents": documents}), "output.mime_type": JSON}


@pytest.mark.parametrize(
    ("documents", "elements", "ids"),
    [
        pytest.param(
            [{"content": NOLAN}, {"content": MATRIX}],
            [{"id": "a", "page_content": NOLAN}, {"id": 0, "page_content": MATRIX}],
            ["a", "0"],
            id="LangChain",
        ),
        pytest.param(
            [{}, {"content": MATRIX}],
            [{"id": "a", "page_content": ""}, {"id": "b", "page_content": MATRIX}],
            ["b"],
            id="a gap",
        ),
        pytest.param(
            [{"content": NOLAN}, {"content": MATRIX}],
            [{"id": "a", "page_content": MATRIX}, {"id": "b", "page_content": NOLAN}],
            [None, None],
            id="other texts at these places",
        ),
        pytest.param(
            [{"content": NOLAN}, {"content": MATRIX}],
            [{"id": "a", "page_content": NOLAN}],
            ["a", None],
            id="too few",
        ),
        pytest.param(
            [{"content": NOLAN}, {"content": MATRIX}],
            [{"id": None, "page_content": NOLAN}, {"id": "", "page_content": MATRIX}],
            [None, None],
            id="null and empty",
        ),
        pytest.param(
            [{"content": NOLAN, "id": "own"}, {"content": MATRIX}],
            [{"id": "a", "page_content": NOLAN}, {"id": "b", "page_content": MATRIX}],
            ["own", "b"],
            id="own id counts",
        ),
        pytest.param(
            [{"content": NOLAN, "id": ""}, {"content": MATRIX, "id": 0}],
            [{"id": "a", "page_content": NOLAN}, {"id": "b", "page_content": MATRIX}],
            ["a", "0"],
            id="empty is no id, 0 is one",
        ),
        pytest.param(
            [{"content": NOLAN, "id": REDACTED}],
            [{"id": "a", "page_content": NOLAN}],
            [None],
            id="hidden id stays hidden",
        ),
        pytest.param(
            [{"content": NOLAN}], [{"id": REDACTED, "page_content": NOLAN}], [None], id="hidden in the output"
        ),
        pytest.param([{"content": NOLAN}], [{"text": NOLAN}], [None], id="none there either"),
        pytest.param([{"content": 7}], [{"id": "a", "content": 7}], ["a"], id="numbers as texts"),
    ],
)
def test_ids_from_output(
    documents: list[dict[str, Any]], elements: list[dict[str, Any]], ids: list[str | None]
) -> None:
    """An id that a document lacks comes from the same place in the output, if the same text stands there."""
    found = read(RETRIEVER | flat(*documents) | output(*elements))
    assert [document.id for document in found.documents] == ids


@pytest.mark.parametrize(
    "value", [None, "", "text", '{"documents": [{"id": "a", "page_con', REDACTED, "[1, null]", 3]
)
def test_no_ids_from_output(value: object) -> None:
    """An output that is no list of documents gives no ids and does no harm."""
    found = read(RETRIEVER | flat({"content": NOLAN}, {"content": MATRIX}) | {"output.value": value})
    assert [(each.text, each.id) for each in found.documents] == [(NOLAN, None), (MATRIX, None)]


def test_id_keys() -> None:
    """Metadata keys that a setting names give ids too."""
    found = retrieval(span(RETRIEVER | flat({"content": NOLAN, "metadata": '{"doc_id": 7}'})), ("doc_id",))
    assert found is not None
    assert found.documents[0].id == "7"


def node(identity: str, score: object) -> str:
    return f"<NodeWithScore(node=TextNode(id_={identity}), score={score})>"


@pytest.mark.parametrize(
    ("document", "repr_", "score"),
    [
        pytest.param({"id": "a", "score": 0.0}, node("a", None), None, id="no score"),
        pytest.param({"id": "a", "score": 0}, node("a", None), None, id="whole number"),
        pytest.param({"score": 0.0}, node("a", None), None, id="without an id"),
        pytest.param({"id": "a", "score": 0.0}, node("a", 0.0), 0.0, id="a score of zero"),
        pytest.param({"id": "a", "score": 0.5}, node("a", None), 0.5, id="a score for all that"),
        pytest.param({"id": "a", "score": 0.0}, node("b", None), 0.0, id="of another node"),
        pytest.param({"id": "a", "score": 0.0}, 3, 0.0, id="no repr"),
        pytest.param({"id": "a", "score": False}, node("a", 1), None, id="a boolean"),
    ],
)
def test_llama_index_scores(document: dict[str, Any], repr_: object, score: float | None) -> None:
    """LlamaIndex writes 0.0 for no score; where the repr of that node says None there is none."""
    attributes = flat({"content": MATRIX, "score": 0.7}, {"content": NOLAN, **document})
    found = read(RETRIEVER | attributes | {"output.value": json.dumps([node("m", 0.7), repr_])})
    assert [each.score for each in found.documents] == [0.7, score]


def test_decorator() -> None:
    """`@tracer.retriever` leaves the documents in the output alone."""
    found = read(
        RETRIEVER
        | {
            "input.value": '{"query": "Who directed Inception?", "k": 2}',
            "input.mime_type": JSON,
            "output.value": json.dumps(
                [
                    {"id": "doc-1", "content": NOLAN, "score": 0.9, "metadata": {"source": "wiki"}},
                    {"id": 2, "page_content": MATRIX, "url": "https://m"},
                    {"id": "doc-3", "content": ""},
                    {"id": "doc-4", "content": REDACTED},
                    "a text",
                ]
            ),
            "output.mime_type": JSON,
        }
    )
    assert (found.state, found.query) == (State.FOUND, Query(ASKED))
    assert found.documents == (
        Document(NOLAN, "doc-1", "wiki", 0.9, {"source": "wiki"}),
        Document(MATRIX, "2", "https://m", None, {"url": "https://m"}),
    )


def test_reranker() -> None:
    """A reranker's documents are its output, in its order; what went in is known by id and text only."""
    found = read(
        RERANKER
        | {"reranker.query": ASKED, "reranker.top_k": 1, "input.value": "something else"}
        | flat(
            {"id": "m", "content": MATRIX}, {"id": "n", "content": NOLAN}, prefix="reranker.input_documents"
        )
        | flat({"id": "n", "content": NOLAN, "score": 2.6}, prefix="reranker.output_documents")
    )
    assert (found.role, found.state, found.query) == (Role.RERANKER, State.FOUND, Query(ASKED))
    assert found.documents == (Document(NOLAN, "n", score=2.6),)
    assert found.took == (("m", MATRIX), ("n", NOLAN))


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"output.value": json.dumps([{"content": NOLAN}])}, id="an output"),
        pytest.param({"output.value": "[]"}, id="an empty output"),
        pytest.param({"reranker.output_documents": []}, id="an empty list"),
        pytest.param(flat({"id": "n"}, prefix="reranker.output_documents"), id="documents without text"),
    ],
)
@pytest.mark.parametrize("kind", [RERANKER, {"reranker.output_documents.x": 1}], ids=["kind", "no kind"])
def test_reranker_without_outputs(kind: dict[str, Any], attributes: dict[str, Any]) -> None:
    """A reranker without output documents has none; what went in never stands for it."""
    inputs = flat({"id": "n", "content": NOLAN}, prefix="reranker.input_documents")
    found = read({**kind, **attributes, **inputs})
    assert (found.state, found.documents) == (State.NO_DOCUMENTS, ())


def test_hidden_reranker() -> None:
    """Hidden outputs of a reranker are hidden; its inputs, where the masking forgets them, stay where they are."""
    found = read(
        RERANKER
        | flat({"id": "n", "content": NOLAN}, prefix="reranker.input_documents")
        | flat({"id": "n", "content": REDACTED}, prefix="reranker.output_documents")
    )
    assert (found.state, found.documents, found.took, found.hidden_ids) == (
        State.HIDDEN,
        (),
        (),
        frozenset({"n"}),
    )


def test_reranker_that_calls_them_documents() -> None:
    """A reranker whose documents stand under the retriever's key has them."""
    assert read(RERANKER | flat({"content": NOLAN})).texts == (NOLAN,)


@pytest.mark.parametrize("kind", ["CHAIN", "AGENT", "RETRIEVER"])
def test_outputs_under_another_kind(kind: str) -> None:
    """A reranker's output documents are read whatever the kind, and what went in is not looked at."""
    found = read(
        {"openinference.span.kind": kind}
        | flat({"content": MATRIX}, prefix="reranker.input_documents")
        | flat({"content": NOLAN}, prefix="reranker.output_documents")
    )
    assert (found.state, found.texts, found.took) == (State.FOUND, (NOLAN,), ())


def test_output_of_another_kind() -> None:
    """Only a retriever's output is a list of documents: a chain's may be anything."""
    chain = {"openinference.span.kind": "CHAIN", "retrieval.documents": None, "output.value": "[]"}
    assert read(chain).state is State.NO_DOCUMENTS


@pytest.mark.parametrize(
    ("attributes", "query"),
    [
        ({"input.value": ASKED}, Query(ASKED)),
        ({"reranker.query": ASKED, "input.value": "x"}, Query(ASKED)),
        ({"reranker.query": REDACTED, "input.value": "x"}, HIDDEN_QUERY),
        ({"reranker.query": " ", "input.value": ASKED}, Query(ASKED)),
        ({"input.value": REDACTED}, HIDDEN_QUERY),
        (
            {"input.value": '{"query_embedding": "<24-dimensional vector>"}', "input.mime_type": JSON},
            NO_QUERY,
        ),
        ({}, NO_QUERY),
    ],
)
def test_query(attributes: dict[str, Any], query: Query) -> None:
    """What a retrieval asked is its input, and a reranker's own query before that."""
    assert read(RETRIEVER | attributes).query == query


def test_question() -> None:
    """What any span's input asks, by its mime type."""
    assert question({"input.value": '{"query": "a"}', "input.mime_type": JSON}) == Query("a")
    assert question({"input.value": '{"query": "a"}'}) == Query('{"query": "a"}')
    assert question({}) == NO_QUERY


def messages(*contents: tuple[str, object], prefix: str = "llm.input_messages") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for index, (who, content) in enumerate(contents):
        found[f"{prefix}.{index}.message.role"] = who
        found[f"{prefix}.{index}.message.content"] = content
    return found


def parts(*texts: str) -> dict[str, Any]:
    """A message of several contents, as multimodal models take it."""
    prefix = "llm.input_messages.0.message"
    found = {f"{prefix}.role": "user"}
    for index, text in enumerate(texts):
        found[f"{prefix}.contents.{index}.message_content.type"] = "text"
        found[f"{prefix}.contents.{index}.message_content.text"] = text
    return found


CONVERSATION = [{"role": "user", "content": "old"}, {"role": "user", "content": ASKED}]


@pytest.mark.parametrize(
    ("attributes", "query"),
    [
        pytest.param(messages(("system", "Answer."), ("user", ASKED)), Query(ASKED), id="flattened"),
        pytest.param(
            messages(("user", "old"), ("assistant", "a"), ("user", ASKED)), Query(ASKED), id="the last"
        ),
        pytest.param(messages(*[("user", "old")] * 10, ("user", ASKED)), Query(ASKED), id="eleven"),
        pytest.param(
            messages(("user", ASKED), ("tool", "x"), ("assistant", "y")), Query(ASKED), id="before the tools"
        ),
        pytest.param(messages(("user", ASKED), ("user", "")), Query(ASKED), id="a blank one after it"),
        pytest.param(messages(("user", "old"), ("user", REDACTED)), HIDDEN_QUERY, id="hidden"),
        pytest.param(messages(("system", "Answer.")), NO_QUERY, id="no user"),
        pytest.param(messages(("user", 3), ("user", None)), NO_QUERY, id="no texts"),
        pytest.param(parts(*"abcdefghijkl"), Query("\n".join("abcdefghijkl")), id="twelve parts"),
        pytest.param({"llm.input_messages": CONVERSATION}, Query(ASKED), id="whole"),
        pytest.param({"llm.input_messages": json.dumps(CONVERSATION)}, Query(ASKED), id="whole, as JSON"),
        pytest.param({"llm.input_messages": "text"}, NO_QUERY, id="no JSON"),
        pytest.param(
            {"llm.input_messages.x.message.content": "a", "llm.input_messages.0.y": "b"},
            NO_QUERY,
            id="odd keys",
        ),
        pytest.param(messages(("user", "a"), prefix="llm.output_messages"), NO_QUERY, id="outputs"),
        pytest.param({"input.value": ASKED, 3: 4}, NO_QUERY, id="an input is no message"),
        pytest.param({}, NO_QUERY, id="nothing"),
    ],
)
def test_user_message(attributes: dict[Any, Any], query: Query) -> None:
    """What the user last said to a model, whatever the order of the attributes."""
    assert user_message(attributes) == query
    items = list(attributes.items())
    random.Random(1).shuffle(items)
    assert user_message(dict(items)) == query


@pytest.mark.parametrize(
    ("value", "model"),
    [("text-embedding-3-small", "text-embedding-3-small"), ("", None), (" ", None), (3, None), (None, None)],
)
def test_embedding_model(value: object, model: str | None) -> None:
    """The model of an embedding span is a text that is not blank."""
    assert embedding_model({"embedding.model_name": value}) == model


def test_drop_reasons() -> None:
    """A reason is its own text, in logs and counters, and the ones by design lose nothing."""
    assert (
        str(DropReason.QUEUE_FULL)
        == f"{DropReason.QUEUE_FULL}"
        == DropReason.QUEUE_FULL.value
        == "queue_full"
    )
    assert {reason.value for reason in DropReason if reason.by_design} == {
        "nested",
        "repeated",
        "superseded",
        "filtered",
    }


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.builds(Fails),
    st.builds(Lies),
    st.sampled_from(
        ["RETRIEVER", "RERANKER", "CHAIN", JSON, REDACTED, "user", "\0", "score=None", 10**700, "[" * 9_999]
    ),
    st.sampled_from(
        ['[{"content": "a", "id": 0}]', '["score=None"]', '{"query": "a"}', "{}", "[]", '{"documents": [']
    ),
)
KEYS = st.sampled_from(
    ["content", "text", "id", "score", "metadata", "documents", "query", "role", "messages"]
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(KEYS | st.text(max_size=3), inner)
    ),
    max_leaves=8,
)
DOCUMENT_KEYS = st.builds(
    "{}.{}.document.{}".format,
    st.sampled_from(["retrieval.documents", "reranker.output_documents", "reranker.input_documents"]),
    st.integers(0, 2),
    st.sampled_from(["content", "id", "score", "metadata"]),
)
OTHER_KEYS = """
    openinference.span.kind input.value input.mime_type output.value reranker.query retrieval.documents
    reranker.output_documents embedding.model_name llm.input_messages llm.input_messages.0.message.role
    llm.input_messages.0.message.content llm.input_messages.0.message.contents.0.message_content.text
"""
ATTRIBUTES = st.dictionaries(DOCUMENT_KEYS | st.sampled_from(OTHER_KEYS.split()) | st.integers(), ANYTHING)


@given(ATTRIBUTES, st.booleans(), st.integers(0, 1))
def test_any_span(attributes: dict[Any, Any], failed: bool, dropped: int) -> None:
    """Whatever a span's attributes are, it is read without raising, and nothing blank or hidden comes out."""
    one = span(attributes, failed=failed, dropped=dropped)
    found = retrieval(one, ("id",))
    assert (found is not None) == is_retrieval(attributes)
    for query in (question(attributes), user_message(attributes), found.query if found else NO_QUERY):
        assert query.text is None or query.text.strip("\0 ") not in ("", REDACTED)
    embedding_model(attributes)
    if found is None:
        return
    assert bool(found.documents) == (found.state is State.FOUND)
    assert failed == (found.state is State.FAILED)
    for document in found.documents:
        assert document.text.strip("\0 ") not in ("", REDACTED)
        assert REDACTED not in (document.id, document.source, *document.metadata.values())
