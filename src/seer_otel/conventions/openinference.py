"""OpenInference: which span is what, and the retrieval that it did. Pure.

Written from the convention's pages and from recorded spans of its instrumentors; `docs/design.md` lists what
they do differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from openinference.semconv.trace import SpanAttributes

from ..privacy import is_redacted
from ..retrieval import NO_QUERY, Document, Query, Retrieval, Role, State
from ..spans import Span
from . import documents as docs
from .layout import DOCUMENTS, RERANKER_INPUT, RERANKER_OUTPUT, Layout, layout_of
from .lenient_json import as_data
from .queries import last_user_message, message_text, read_query
from .usual import usual

KIND = SpanAttributes.OPENINFERENCE_SPAN_KIND
INPUT = SpanAttributes.INPUT_VALUE
INPUT_TYPE = SpanAttributes.INPUT_MIME_TYPE
OUTPUT = SpanAttributes.OUTPUT_VALUE
MESSAGES = SpanAttributes.LLM_INPUT_MESSAGES
EMBEDDING_MODEL = SpanAttributes.EMBEDDING_MODEL_NAME
RERANKER_QUERY = "reranker.query"

_DOCUMENTS, _RERANKER_OUTPUT = f"{DOCUMENTS}.", f"{RERANKER_OUTPUT}."
_MAX_KIND = 64  # characters
_MAX_INDEXED = 10_000  # attributes of a model's messages, or of the parts of one
RETRIEVALS = ("RETRIEVER", "RERANKER")
"""The kinds of span that are a retrieval."""
_ROLES = {role.name: role for role in Role}


def role(attributes: Mapping[str, Any]) -> Role | None:
    """Return what a span with these attributes is; None where it is nothing of OpenInference's.

    Without a kind (the SDK's attribute limit evicts it first on hand-made spans) the documents tell.
    """
    kind = _kind(attributes)
    if kind is not None:
        return _ROLES.get(kind, Role.OTHER)
    if DOCUMENTS in attributes or _has_keys(attributes, _DOCUMENTS):
        return Role.RETRIEVER
    if RERANKER_OUTPUT in attributes or _has_keys(attributes, _RERANKER_OUTPUT):
        return Role.RERANKER
    return Role.OTHER if INPUT in attributes else None


def is_retrieval(attributes: Mapping[str, Any]) -> bool:
    """Return whether a span with these attributes is a retrieval: by its kind, or by its documents whatever its kind.

    LangChain's instrumentor calls a retriever with "agent" in its name AGENT.
    """
    if _kind(attributes) in RETRIEVALS:
        return True
    if DOCUMENTS in attributes or RERANKER_OUTPUT in attributes:
        return True
    return _has_keys(attributes, (_DOCUMENTS, _RERANKER_OUTPUT))


def retrieval(span: Span, id_keys: tuple[str, ...] = (), layout: Layout | None = None) -> Retrieval | None:
    """Return the retrieval that `span` did, or None where it did none.

    Args:
        span: the span.
        id_keys: metadata keys that hold the id of a document where there is no other.
        layout: what the keys of its attributes say, where that is known already.
    """
    attributes = span.attributes
    layout = layout or layout_of(attributes)
    is_a = role(attributes)
    if is_a not in (Role.RETRIEVER, Role.RERANKER):
        if not (DOCUMENTS in layout.lists or RERANKER_OUTPUT in layout.lists):
            return None
        is_a = is_a or Role.OTHER
    query = _query(attributes)
    took = tuple(_identities(attributes, layout)) if is_a is Role.RERANKER else ()
    if span.failed:
        return Retrieval(span, is_a, State.FAILED, query)
    first, second = (RERANKER_OUTPUT, DOCUMENTS) if is_a is Role.RERANKER else (DOCUMENTS, RERANKER_OUTPUT)
    output = attributes.get(OUTPUT)
    listed = layout.lists.get(first)
    if listed is not None and listed.usual is not None:
        documents = usual(attributes, listed.usual, alone=output is None and not id_keys)
        if documents is not None:
            return Retrieval(span, is_a, State.FOUND, query, documents, took)
    found = docs.unflatten(attributes, first, layout)
    if found is None:
        found = docs.unflatten(attributes, second, layout)
    if found is not None:
        passages = _documents(found, output, id_keys)
        hidden = _hidden(found.values()) if len(passages) < len(found) else []
        if passages:
            return Retrieval(span, is_a, State.FOUND, query, passages, took, *_named(hidden))
        if hidden:
            return Retrieval(span, is_a, State.HIDDEN, query, (), (), *_named(hidden))
        if is_a is not Role.RERANKER and docs.is_empty_list(attributes, DOCUMENTS):
            return Retrieval(span, is_a, State.EMPTY, query)
        return Retrieval(span, is_a, State.NO_DOCUMENTS if is_a is Role.RERANKER else State.UNREADABLE, query)
    if is_a is not Role.RETRIEVER:
        # A reranker's input documents stay where they are: a masked output would be recovered from them.
        return Retrieval(span, is_a, State.NO_DOCUMENTS, query)
    state, passages, hidden = _from_output(span, id_keys)
    return Retrieval(span, is_a, state, query, passages, (), *_named(hidden))


def question(attributes: Mapping[str, Any]) -> Query:
    """Return what the input of a span asks."""
    return read_query(attributes.get(INPUT), attributes.get(INPUT_TYPE))


def user_message(attributes: Mapping[str, Any]) -> Query:
    """Return the last message of the user among the input messages of a model's span."""
    messages: dict[int, dict[str, Any]] = {}
    for number, field, value in _indexed(attributes, MESSAGES):
        if field.startswith("message."):
            messages.setdefault(number, {})[field.removeprefix("message.")] = value
    if not messages:
        return last_user_message(docs.output_elements(as_data(attributes.get(MESSAGES))))
    for number in sorted(messages, reverse=True):
        message = messages[number]
        if not isinstance(message.get("role"), str):
            continue
        parts = {
            number: value
            for number, field, value in _indexed(message, "contents")
            if field == "message_content.text"
        }
        content = message.get("content") or message_text([parts[number] for number in sorted(parts)])
        found = last_user_message([{"role": message["role"], "content": content}])
        if found != NO_QUERY:
            return found
    return NO_QUERY


def embedding_model(attributes: Mapping[str, Any]) -> str | None:
    """Return the model of an embedding span."""
    model = as_data(attributes.get(EMBEDDING_MODEL))
    # Instrumentors write "unknown" where a model does not say its name.
    return model if isinstance(model, str) and model.strip() not in ("", "unknown") else None


def _kind(attributes: Mapping[str, Any]) -> str | None:
    kind = attributes.get(KIND)
    if type(kind) is str and kind in _ROLES:
        return kind
    kind = as_data(kind)
    if isinstance(kind, (list, tuple)) and len(kind) == 1:
        kind = kind[0]
    return kind[:_MAX_KIND].strip().upper() or None if isinstance(kind, str) else None


def _has_keys(attributes: Mapping[str, Any], prefix: str | tuple[str, ...]) -> bool:
    for key in attributes:  # noqa: SIM110 - a generator takes twice as long, and spans of models have many keys
        if isinstance(key, str) and key.startswith(prefix):
            return True
    return False


def _query(attributes: Mapping[str, Any]) -> Query:
    asked = read_query(attributes.get(RERANKER_QUERY)) if RERANKER_QUERY in attributes else NO_QUERY
    return asked if asked != NO_QUERY else question(attributes)


def _documents(
    found: Mapping[int, docs.Fields], output: object, id_keys: tuple[str, ...]
) -> tuple[Document, ...]:
    """Documents with a text, their ids and scores completed from the same element of the span's own output."""
    incomplete = output is not None and any(
        docs.id_of(each.get("id")) is None or docs.number(each.get("score")) == 0 for each in found.values()
    )
    if incomplete:
        elements = docs.output_elements(as_data(output)) or []
        for index, fields in found.items():
            element = elements[index] if index < len(elements) else None
            if isinstance(element, str):
                # LlamaIndex writes 0.0 for "no score"; only the repr of the node tells.
                identity = docs.id_of(fields.get("id")) or ""
                if docs.number(fields.get("score")) == 0 and "score=None" in element and identity in element:
                    del fields["score"]
                continue
            other = docs.fields_of(element)
            lacks_id = docs.id_of(fields.get("id")) is None and not is_redacted(fields.get("id"))
            if other and lacks_id and other["content"] == docs.text_of(fields.get("content")):
                fields["id"] = other.get("id")
    return docs.documents(found.values(), id_keys)


def _from_output(
    span: Span, id_keys: tuple[str, ...]
) -> tuple[State, tuple[Document, ...], list[str | None]]:
    """What a retriever without a single document attribute found, by its output (`@tracer.retriever`)."""
    output = as_data(span.attributes.get(OUTPUT))
    if output is None or (isinstance(output, str) and not output.strip()):
        # Nothing found, as Bedrock's instrumentor says it; unless the limit ate the documents.
        return (State.UNREADABLE if span.dropped_attributes else State.EMPTY), (), []
    if is_redacted(output):
        return State.HIDDEN, (), []
    elements = docs.output_elements(output)
    if elements is None:
        return State.UNREADABLE, (), []
    if not elements:
        return State.EMPTY, (), []
    found = [fields for element in elements if (fields := docs.fields_of(element)) is not None]
    passages = docs.documents(found, id_keys)
    hidden = _hidden(found)
    if passages:
        return State.FOUND, passages, hidden
    return (State.HIDDEN if hidden else State.UNREADABLE), (), hidden


def _hidden(found: Iterable[docs.Fields]) -> list[str | None]:
    """The ids of the documents whose text is masked, None for one without."""
    return [docs.id_of(fields.get("id")) for fields in found if is_redacted(fields.get("content"))]


def _named(hidden: list[str | None]) -> tuple[frozenset[str], bool]:
    """The ids among `hidden`, and whether there is one without."""
    return frozenset(each for each in hidden if each is not None), None in hidden


def _identities(attributes: Mapping[str, Any], layout: Layout) -> Iterator[tuple[str | None, str | None]]:
    for fields in (docs.unflatten(attributes, RERANKER_INPUT, layout) or {}).values():
        yield docs.id_of(fields.get("id")), docs.text_of(fields.get("content"))


def _indexed(attributes: Mapping[str, Any], prefix: str) -> Iterator[tuple[int, str, Any]]:
    keys = (key for key in attributes if isinstance(key, str) and key.startswith(prefix + "."))
    for key in islice(keys, _MAX_INDEXED):
        number, _, field = key[len(prefix) + 1 :].partition(".")
        if number.isascii() and number.isdigit() and len(number) < 10:
            yield int(number), field, as_data(attributes[key])
