"""Attributes as no instrumentor means to write them: real names, odd indices, values of any type and any state."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from .choices import Choices

MARK = "__REDACTED__"

NAMES = (
    "openinference.span.kind",
    "input.value",
    "input.mime_type",
    "output.value",
    "output.mime_type",
    "metadata",
    "retrieval.documents",
    "reranker.query",
    "reranker.output_documents",
    "reranker.input_documents",
    "llm.input_messages",
    "embedding.model_name",
    "seer.task",
    "seer.subquery",
    "seer.is_final_context",
    "seer.sample_rate",
    "seer.ground_truth",
    "seer.ground_truth.gold_doc_ids",
    "seer.ground_truth.answer",
    "metadata.env",
    "metadata.model",
    "metadata.top_k",
    "user.id",
    "session.id",
)
LISTS = ("retrieval.documents", "reranker.output_documents", "reranker.input_documents")
INDICES = ("0", "1", "2", "3", "10", "999999999", "01", "-1", "1_0", "", " 1", "٣", "9" * 5_000, "1e3", "0.0")
FIELDS = (
    "content",
    "id",
    "score",
    "metadata",
    "metadata.source",
    "page_content",
    "text",
    "",
    "metadata.",
    "x",
)
MESSAGE = ("role", "content", "contents.0.message_content.text", "contents.01.message_content.text", "")
KINDS = (
    "RETRIEVER",
    "RERANKER",
    "CHAIN",
    "LLM",
    "AGENT",
    "TOOL",
    "EMBEDDING",
    "retriever",
    " LLM ",
    "NEW",
    MARK,
)
TEXTS = (
    "What is a span?",
    "A passage of the corpus, long enough to be told from a question by whoever looks at it.",
    MARK,
    f" {MARK}\n",
    f"\0{MARK}",
    '{"query": "Who?", "documents": [{"content": "a", "id": 0, "score": NaN}]}',
    '{"messages": [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]}',
    f'[{{"page_content": "{MARK}", "metadata": {{"source": "{MARK}", "a": ["\\u005f_REDACTED__"]}}}}]',
    '{"query": "cut in the mid',
    '{"query": "half a pair \\ud83d',
    '{"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}',
    "application/json",
    "user",
    "true",
    "[]",
    "{}",
    "null",
    "NaN",
    "1e999",
    "-0",
    "0x10",
    " ",
    "\0",
    "\ud83d",
    "\ude00\ud83d",
    "\ud83d\ude00",
    "\ufeff",
    "\u2028\u0085",
    "<24-dimensional vector>",
    "Message(role='user', content=\"it's\")",
    "password=hunter2hunter2",
    "Authorization: Bearer abcdefghijklmnop0123",
    "https://user:pass@example.com/?sig=0123456789abcdef",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
    '"' * 60,
    "\\" * 61,
    '{"a":' * 400,
    "[" * 3_000,
    "9" * 5_000,
)
NUMBERS = (
    0,
    1,
    -1,
    0.5,
    2**53 + 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**400,
    -0.0,
    1e308,
    math.nan,
    math.inf,
    -math.inf,
)
TIMES = (5, 10, 0, 20, -1, 1_800_000_000_000_000_000, 2**63, -(2**63), 10**30)


class Fails:
    """Whatever it is asked, it raises."""

    def _fail(self, *_: object) -> Any:
        raise RuntimeError("this object has no answer")

    __str__ = __eq__ = __hash__ = __len__ = __bool__ = __iter__ = __getitem__ = _fail

    def __repr__(self) -> str:
        return "Fails()"


class Lies(Mapping[str, Any]):
    """A mapping that promises fields, and has none."""

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[str]:
        return iter(("query", "documents", "content"))

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(key)


def attributes(choices: Choices, number: int) -> dict[Any, Any]:
    """Up to `number` attributes."""
    return dict(attribute(choices) for _ in range(choices.below(number + 1)))


def attribute(choices: Choices) -> tuple[Any, Any]:
    """One attribute: a name, and more often than not a value of the type that goes with it."""
    name = key(choices)
    if name == "openinference.span.kind" and not choices.one_in(16):
        return name, choices.pick(KINDS)
    return name, value(choices)


def key(choices: Choices) -> Any:
    """A name that is read, or one that only looks like it."""
    kind = choices.below(12)
    if kind < 4:
        return choices.pick(NAMES)
    if kind < 8:
        return f"{choices.pick(LISTS)}.{choices.pick(INDICES)}.document.{choices.pick(FIELDS)}"
    if kind == 8:
        return f"llm.input_messages.{choices.pick(INDICES)}.message.{choices.pick(MESSAGE)}"
    if kind == 9:
        return choices.pick(("seer.metadata.", "metadata.", "retrieval.documents.")) + text(choices)
    return text(choices) if kind == 10 else choices.pick((5, None, b"input.value", (), 1.5, Fails))


def text(choices: Choices) -> str:
    """A text that makes trouble, or whatever the bytes say; now and then a long one."""
    some = choices.pick(TEXTS) if choices.below(2) == 0 else choices.text()
    return some * choices.pick((1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 20, 300)) if len(some) < 300 else some


def value(choices: Choices, depth: int = 4) -> Any:
    """A value of any type. Containers hold others, texts may be the JSON of one, whole or cut."""
    kind = choices.below(16)
    if kind < 6 or depth == 0:
        return text(choices)
    if kind < 8:
        return choices.pick(NUMBERS)
    if kind == 8:
        return choices.pick((True, False, None))
    if kind == 9:
        return choices.pick((b"", b"\xff\0", MARK.encode(), b"bytes"))
    if kind == 10:
        return tuple(value(choices, depth - 1) for _ in range(choices.below(5)))
    if kind == 11:
        return [value(choices, depth - 1)] * choices.pick((1, 2, 0, 60 if depth == 1 else 3))
    if kind < 14:
        names = (choices.pick((*FIELDS, "query", "messages", "documents", "user_id", MARK)), text(choices))
        return {choices.pick(names): value(choices, depth - 1) for _ in range(choices.below(5))}
    if kind == 14:
        written = json.dumps(value(choices, depth - 1), default=repr, ensure_ascii=choices.one_in(2))
        return written[: -choices.below(40)] if choices.one_in(3) else written
    return choices.pick((Fails(), Lies(), set(), object))
