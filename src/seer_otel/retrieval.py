"""What a convention reads out of a span. Pure.

Nobody changes one of these. Those that come in numbers are not frozen, as that triples the cost of making one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from .spans import Span


class Role(Enum):
    """What a span stands for in a trace, as far as the assembly cares."""

    RETRIEVER = auto()
    RERANKER = auto()
    AGENT = auto()
    TOOL = auto()
    LLM = auto()
    EMBEDDING = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Query:
    """What a span's input asks.

    Attributes:
        text: the question, ready to be sent; None where there is none.
        weak: what may be the question, to be used only where nothing else is (JSON that cannot be read).
        hidden: whether there is a question that must not be sent.
    """

    text: str | None = None
    weak: str | None = None
    hidden: bool = False


NO_QUERY = Query()
HIDDEN_QUERY = Query(hidden=True)


@dataclass(slots=True)
class Document:
    """One retrieved document that has a text.

    Attributes:
        masked: whether any of its fields is hidden; such a document is completed from nowhere else.
    """

    text: str
    id: str | None = None
    source: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    masked: bool = False


class State(Enum):
    """How a retrieval came out."""

    FOUND = auto()
    EMPTY = auto()
    HIDDEN = auto()
    UNREADABLE = auto()
    NO_DOCUMENTS = auto()
    FAILED = auto()


@dataclass(slots=True)
class Retrieval:
    """What one retriever or reranker span did.

    Attributes:
        span: where it was read.
        role: RETRIEVER, RERANKER, or another role where documents are all that tells of a retrieval.
        state: how it came out; documents are there only where it is FOUND.
        query: what it asked.
        documents: those with a text, in rank order.
        took: for a reranker, the documents that went in: (id, text) of each, never to be sent.
        hidden_ids: ids of documents whose text is masked.
        hides_nameless: whether the text of a document without an id is masked.
    """

    span: Span
    role: Role
    state: State
    query: Query = NO_QUERY
    documents: tuple[Document, ...] = ()
    took: tuple[tuple[str | None, str | None], ...] = ()
    hidden_ids: frozenset[str] = frozenset()
    hides_nameless: bool = False

    @property
    def is_noted(self) -> bool:
        """Whether it is no retriever by its kind, but a step that notes documents, perhaps another one's.

        An agent may well be a retriever: the kind goes by the name.
        """
        return self.role not in (Role.RETRIEVER, Role.RERANKER, Role.AGENT)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts in rank order: what tells one result list from another."""
        return tuple([document.text for document in self.documents])
