"""Traces in a few lines: spans by small numbers, times in any unit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from seer_otel.assembly import Assembly, Memory, Rules, assemble
from seer_otel.event import Event
from seer_otel.spans import Span

TRACE_ID = 0xABC
REDACTED = "__REDACTED__"

Fields = dict[str, Any]


def doc(text: str | None = None, id: object = None, score: object = None, metadata: object = None) -> Fields:
    """Return a document's fields as an instrumentor writes them; metadata as JSON text."""
    fields = {"content": text, "id": id, "score": score}
    if metadata is not None:
        fields["metadata"] = metadata if isinstance(metadata, str) else json.dumps(metadata)
    return {key: value for key, value in fields.items() if value is not None}


def flattened(prefix: str, documents: Iterable[str | Fields]) -> dict[str, Any]:
    """Return documents as flattened attributes; a bare text is a document of that text."""
    return {
        f"{prefix}.{index}.document.{key}": value
        for index, fields in enumerate(documents)
        for key, value in (doc(fields) if isinstance(fields, str) else fields).items()
    }


def span(
    id: int,
    parent: int | None = None,
    kind: str | None = None,
    at: tuple[int, int] = (0, 100),
    *,
    asks: object = None,
    docs: Sequence[str | Fields] | None = None,
    took: Sequence[str | Fields] | None = None,
    told: str | None = None,
    output: str | None = None,
    marks: Mapping[str, Any] | None = None,
    remote: bool = False,
    failed: bool = False,
    lost: int = 0,
    resource: Mapping[str, Any] | None = None,
) -> Span:
    """Return a span.

    Args:
        at: its start and its end.
        asks: its input: text, or an object that becomes JSON.
        docs: the documents that it found, `[]` for the bare key of an empty list; a reranker's output.
        took: a reranker's input.
        told: the user's message to a model.
        marks: more attributes.
        lost: how many attributes the limit cost.
    """
    attributes: dict[str, Any] = {}
    if kind is not None:
        attributes["openinference.span.kind"] = kind
    if isinstance(asks, str):
        attributes["input.value"] = asks
    elif asks is not None:
        attributes |= {"input.value": json.dumps(asks), "input.mime_type": "application/json"}
    if docs is not None:
        prefix = "reranker.output_documents" if kind == "RERANKER" else "retrieval.documents"
        attributes |= flattened(prefix, docs) or {prefix: ()}
    if took is not None:
        attributes |= flattened("reranker.input_documents", took)
    if told is not None:
        prefix = "llm.input_messages.0.message"
        attributes |= {f"{prefix}.role": "user", f"{prefix}.content": told}
    if output is not None:
        attributes["output.value"] = output
    attributes |= marks or {}
    return Span(TRACE_ID, id, parent, remote, f"span {id}", *at, failed, attributes, resource or {}, lost)


def retriever(id: int, parent: int | None = None, at: tuple[int, int] = (10, 20), **more: Any) -> Span:
    """Return a retriever's span that asks `query <id>` and finds `passage <id>`, unless told otherwise."""
    more = {"asks": f"query {id}", "docs": [f"passage {id}"], **more}
    return span(id, parent, "RETRIEVER", at, **more)


def reranker(id: int, parent: int | None = None, at: tuple[int, int] = (30, 40), **more: Any) -> Span:
    """Return a reranker's span that asks `query <id>`."""
    return span(id, parent, "RERANKER", at, **{"asks": f"query {id}", **more})


def model(id: int, parent: int | None = None, at: tuple[int, int] = (1, 5), **more: Any) -> Span:
    """Return a model's span."""
    return span(id, parent, "LLM", at, **more)


class Result:
    """What became of a trace, by the numbers of its spans."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.events: dict[int, Event] = {int(each.span_id or "", 16): each for each in assembly.events}
        self.dropped = {span_id: reason.value for span_id, reason in assembly.dropped.items()}
        self.memory = assembly.memory

    @property
    def finals(self) -> list[int]:
        """The spans whose events are final."""
        return [span_id for span_id, event in self.events.items() if event.is_final_context]

    def texts(self, id: int) -> list[str]:
        """The texts of one event."""
        return [passage.text for passage in self.events[id].context]

    def asked(self, id: int) -> tuple[str, str | None]:
        """The task and the subquery of one event."""
        return self.events[id].task, self.events[id].subquery


def run(
    *spans: Span,
    memory: Memory | None = None,
    partial: str | None = None,
    accepts: Callable[[Event], bool] | None = None,
    **rules: Any,
) -> Result:
    """Assemble spans under settings that are the default but for `rules`."""
    return Result(assemble(spans, Rules(**rules), memory=memory, partial=partial, accepts=accepts))


def moved(each: Span, start: int, end: int) -> Span:
    """Return a span at another time."""
    return replace(each, start=start, end=end)
