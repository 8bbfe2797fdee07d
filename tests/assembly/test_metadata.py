"""The metadata of an event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .builders import REDACTED, doc, retriever, run, span


def metadata(*spans: Any, id: int = 2, **rules: Any) -> dict[str, Any]:
    """Return an event's metadata without our own marks."""
    found = run(*spans, **rules).events[id].metadata
    return {key: value for key, value in found.items() if not key.startswith("seer_otel.")}


def test_only_the_allowlist() -> None:
    """Of what spans and resource carry only the allowed keys are sent, flattened or in one JSON text."""
    root = span(
        1,
        None,
        "CHAIN",
        asks="Why?",
        marks={
            "metadata": json.dumps({"env": "prod", "token": "t", "channel": ["web"]}),
            "metadata.index": "i",
        },
    )
    own = retriever(
        2, 1, marks={"metadata.secret": "s", "metadata.index_version": 3, "user.id": "u", "session.id": "s"}
    )
    expected = {"env": "prod", "index": "i", "index_version": 3, "channel": ["web"]}
    assert metadata(root, own) == expected
    assert metadata(root, own, metadata_keys=("token",)) == {"token": "t"}


def test_nearest_first() -> None:
    """A retrieval's own value beats its ancestors', a nearer one's a farther one's, the resource comes last."""
    resource = {"deployment.environment.name": "resource", "deployment.environment": "older"}
    root = span(1, None, "CHAIN", asks="Why?", marks={"metadata.env": "root", "metadata.index": "root"})
    near = span(3, 1, "CHAIN", marks={"metadata.env": "near"})
    assert metadata(root, near, retriever(2, 3, resource=resource)) == {"env": "near", "index": "root"}
    own = retriever(2, 3, resource=resource, marks={"metadata": {"env": "own"}})
    assert metadata(root, near, own)["env"] == "own"
    assert metadata(retriever(2, resource=resource)) == {"env": "resource"}
    assert metadata(retriever(2, resource={"deployment.environment": "older"})) == {"env": "older"}
    assert metadata(retriever(2, resource={"deployment.environment": 7})) == {}
    assert metadata(retriever(2, resource=resource), metadata_keys=("index",)) == {}


def test_masked_value_is_not_recovered() -> None:
    """Where the nearest span masks a value, no other's and not the resource's is sent in its place."""
    root = span(
        1,
        None,
        "CHAIN",
        asks="Why?",
        marks={"metadata": '{"env": "prod", "index": "i"}', "seer.metadata.k": "v"},
    )
    resource = {"deployment.environment.name": "prod"}
    masked = {"metadata.env": REDACTED, "seer.metadata.k": REDACTED}
    assert metadata(root, retriever(2, 1, resource=resource, marks=masked)) == {"index": "i"}
    assert metadata(root, retriever(2, 1, marks={"metadata": REDACTED})) == {"k": "v"}


@pytest.mark.parametrize("whole", ["{", "[1]", "text", 7, None])
def test_metadata_that_is_no_object(whole: object) -> None:
    """Metadata that is cut, or no JSON object, is as good as none."""
    assert metadata(retriever(2, marks={"metadata": whole})) == {}


def test_identities_only_when_asked_for() -> None:
    """The user's and the session's id are sent only where the setting names them."""
    own = retriever(2, marks={"user.id": "u", "session.id": "s", "metadata.user_id": "other"})
    assert metadata(own) == {}
    assert metadata(own, metadata_keys=("user_id", "session_id")) == {"user_id": "other", "session_id": "s"}


def test_retrievers_own_keys() -> None:
    """The retriever's type, its database and its k count on its own span only."""
    marks = {"metadata": '{"retriever_type": "hybrid", "top_k": 3}', "metadata.vector_db": "db"}
    root = span(1, None, "CHAIN", asks="Why?", marks=marks)
    assert metadata(root, retriever(2, 1)) == {}
    assert metadata(root, retriever(2, 1, marks=marks)) == {
        "retriever_type": "hybrid",
        "vector_db": "db",
        "top_k": 3,
    }


def embedding(id: int, parent: int, name: str | None, end: int = 15) -> Any:
    return span(id, parent, "EMBEDDING", (11, end), marks={"embedding.model_name": name})


def test_model_of_the_embedding() -> None:
    """The model is the nearest embedding's beneath the retrieval, the first to end; metadata beats it."""
    spans = [
        retriever(2),
        retriever(3, 2, docs=None),
        embedding(4, 3, "deep"),
        embedding(5, 2, "late", 16),
        embedding(6, 2, "near"),
        embedding(7, 2, None, 12),
    ]
    assert metadata(*spans) == {"model": "near"}
    assert metadata(*spans[:3]) == {"model": "deep"}
    assert metadata(retriever(2, marks={"metadata.model": "own"}), embedding(3, 2, "e")) == {"model": "own"}
    assert metadata(retriever(2), embedding(3, 2, REDACTED)) == {}
    assert metadata(retriever(2), span(3, 2, "LLM", marks={"embedding.model_name": "e"})) == {}
    assert metadata(*spans, metadata_keys=("env",)) == {}


def test_using_metadata_is_always_sent() -> None:
    """What the application sets for us is sent whatever the allowlist, the nearest value of each key."""
    root = span(1, None, "CHAIN", asks="Why?", marks={"seer.metadata.a": 1, "seer.metadata.b": 1})
    own = retriever(
        2, 1, marks={"seer.metadata.b": 2, "seer.metadata.env": "e", "metadata.env": "prod", 7: "x"}
    )
    assert metadata(root, own, metadata_keys=()) == {"a": 1, "b": 2, "env": "e"}
    assert metadata(root, own)["env"] == "e"


def test_passage_metadata() -> None:
    """A passage's metadata is sent whole, or narrowed to the keys that a setting names."""
    own = retriever(1, docs=[doc("a", metadata={"k": 1, "source": "s", "deep": {"x": [1]}})])
    assert run(own).events[1].context[0].metadata == {"k": 1, "source": "s", "deep": {"x": [1]}}
    narrowed = run(own, passage_metadata_keys=("k",)).events[1].context[0]
    assert (narrowed.metadata, narrowed.source) == ({"k": 1}, "s")
