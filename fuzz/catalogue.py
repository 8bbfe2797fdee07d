"""The catalogue of giants: each attribute that is read with each kind of long text, and attributes in masses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

KIND, INPUT, INPUT_TYPE, OUTPUT = (
    "openinference.span.kind",
    "input.value",
    "input.mime_type",
    "output.value",
)
DOCUMENTS, TAKEN = "retrieval.documents", "reranker.input_documents"
JSON = {INPUT_TYPE: "application/json"}
MB = 1_000_000
SIZES = {"60K": 60_000, "2M": 2 * MB - 100, "10M": 10 * MB}
"""Bytes: just below the bounds beyond which metadata of a passage (65,536) and JSON (2,000,000) are not read, and far
beyond them."""
MANY = 100_000

Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class Giant:
    """One kind of giant span.

    Attributes:
        name: what it is, in a few words.
        make: makes its attributes.
        above: whether it stands above an ordinary retrieval, and is none itself.
    """

    name: str
    make: Callable[[], Attributes]
    above: bool = False


def document(rank: int, **fields: Any) -> dict[str, Any]:
    """The attributes of one document."""
    return {f"{DOCUMENTS}.{rank}.document.{name}": value for name, value in fields.items()}


def documents(count: int, **fields: Any) -> dict[str, Any]:
    """The attributes of many documents that are all the same."""
    return {name: value for rank in range(count) for name, value in document(rank, **fields).items()}


RETRIEVAL: Attributes = {KIND: "RETRIEVER", INPUT: "What is a span?"}
ORDINARY: Attributes = {
    **RETRIEVAL,
    **document(0, content="A span is one step of a trace.", id="a", score=0.5),
}

# --- One long text ---

# What is repeated until the text is long enough, and what stands before and behind it.
_TEXTS: dict[str, tuple[str, str, str]] = {
    "words": ("", "word ", ""),
    "one word": ("", "x", ""),
    "white space": ("", " ", "x"),
    "CJK": ("", "問", ""),
    "emoji": ("", "\U0001f600", ""),
    "NULs": ("", "\0", "x"),
    "NULs between": ("", "\0a", ""),
    "surrogates": ("", "\ud800", ""),
    "halves of pairs": ("", "\ud83d\ude00", ""),
    "<": ("", "<", ""),
    "placeholder": ("<", "x", ">"),
    "quotes": ("", '"', ""),
    "backslashes": ("", "\\", ""),
    "open string": ('"', "\\", ""),
    "digits": ("", "9", ""),
    "digits in JSON": ('{"query":', "9", "}"),
    "names": ("", "a", "="),
    "assignments": ("", "key=1 ", ""),
    "colons": ("", "token: a ", ""),
    "@": ("://", "a:b@", ""),
    "dashes": ("-----BEGIN PRIVATE KEY-----", "a-", ""),
    "base64": ("Bearer ", "A", ""),
    "keys": ("", "sk-aaaaaaaaaaaaaaaaaaaaaaaa ", ""),
    "brackets": ("", "[", ""),
    "objects": ("", '{"a":', ""),
    "lists in a list": ("[", "[],", "1]"),
    "numbers in a list": ("[", "1,", "1]"),
    "texts in a list": ("[", '"",', "1]"),
    "objects in a list": ("[", '{"":1},', "{}]"),
    "documents in a list": ("[", '{"text":"a"},', '{"text":"a"}]'),
    "documents in an object": ('{"documents":[', '{"content":"a"},', '{"content":"a"}]}'),
    "messages": ('{"messages":[', '{"role":"user","content":"a"},', "{}]}"),
    "questions": ("{", '"query":"",', '"a":1}'),
    "question": ('{"query":"', "x", '"}'),
    "question of escapes": ('{"query":"', "\\u00e9", '"}'),
    "question of halves": ('{"query":"', "\\ud83d", '"}'),
    "question, cut": ('{"query":"', "x", ""),
    "escapes, cut": ('{"query":"', "\\u00e9", ""),
    "words, cut": ('{"a": ', "a ", ""),
    "objects, cut": ('{"query":{"a":[', "[1,", ""),
    "keys, cut": ("{", '"a":"v",', ""),
    "gold": ('{"gold_doc_ids":[', '"a",', '"a"]}'),
    "repr": ("Message(role='user', content='", "x", "')"),
    "repr of many": ("A(", "a='x', ", ")"),
    "repr, open": ("A(", "a", ""),
    "repr of a dict": ("{", "'a': 'x', ", "}"),
    "node": ("<a", ".", ">"),
    "mark": ("", "__REDACTED__", ""),
}


def text(kind: str, size: int) -> str:
    """A text of about so many bytes of UTF-8."""
    before, again, after = _TEXTS[kind]
    return before + again * (size // len(again.encode("utf-8", "surrogatepass"))) + after


def _keys(size: int) -> str:
    return "{" + ",".join(f'"k{n}":{n % 10}' for n in range(size // 10)) + "}"


def _long_key(size: int) -> str:
    return json.dumps({"a" * size + "Key": "value"})


_MADE: dict[str, Callable[[int], str]] = {"many keys": _keys, "long key": _long_key}

_PLACES: dict[str, tuple[Callable[[str], Attributes], bool]] = {
    "question": (lambda t: {**ORDINARY, INPUT: t}, False),
    "question as JSON": (lambda t: {**ORDINARY, INPUT: t, **JSON}, False),
    "mime type": (lambda t: {**ORDINARY, INPUT_TYPE: t}, False),
    "kind": (lambda t: {**ORDINARY, KIND: t}, False),
    "output": (lambda t: {**RETRIEVAL, OUTPUT: t}, False),
    "output beside documents": (lambda t: {**RETRIEVAL, OUTPUT: t, **document(0, content="a")}, False),
    "documents in one": (lambda t: {**RETRIEVAL, DOCUMENTS: t}, False),
    "document in one": (lambda t: {**RETRIEVAL, f"{DOCUMENTS}.0": t}, False),
    "passage": (lambda t: {**RETRIEVAL, **document(0, content=t), **document(1, content=t)}, False),
    "id and score": (lambda t: {**RETRIEVAL, **document(0, content="a", id=t, score=t)}, False),
    "passage metadata": (lambda t: {**RETRIEVAL, **document(0, content="a", metadata=t)}, False),
    "metadata of 50 passages": (
        lambda t: {**RETRIEVAL, **documents(50, content="a", metadata=t)},
        False,
    ),
    "passage metadata, flattened": (lambda t: {**ORDINARY, f"{DOCUMENTS}.0.document.metadata.a": t}, False),
    "what a reranker took": (
        lambda t: {KIND: "RERANKER", "reranker.query": t, TAKEN: t, "reranker.output_documents": t},
        False,
    ),
    "metadata": (lambda t: {**ORDINARY, "metadata": t, "metadata.env": t}, False),
    "seer.metadata": (lambda t: {**ORDINARY, "seer.metadata.a": t}, False),
    "seer.task": (lambda t: {**ORDINARY, "seer.task": t, "seer.subquery": t + "?"}, False),
    "ground truth": (lambda t: {**ORDINARY, "seer.ground_truth": t}, False),
    "gold ids": (lambda t: {**ORDINARY, "seer.ground_truth.gold_doc_ids": t}, False),
    "answer": (
        lambda t: {**ORDINARY, "seer.ground_truth.gold_doc_ids": "a", "seer.ground_truth.answer": t},
        False,
    ),
    "marks": (lambda t: {**ORDINARY, "seer.is_final_context": t, "seer.sample_rate": t}, False),
    "names": (lambda t: {**ORDINARY, f"{DOCUMENTS}.{t}": "a", f"seer.metadata.{t}": "a", t: "a"}, False),
    "question above": (lambda t: {KIND: "CHAIN", INPUT: t}, True),
    "question above as JSON": (lambda t: {KIND: "CHAIN", INPUT: t, **JSON}, True),
    "metadata above": (
        lambda t: {KIND: "CHAIN", "metadata": t, "seer.metadata.a": t, "metadata.model": t},
        True,
    ),
    "message to a model": (
        lambda t: {
            KIND: "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": t,
        },
        True,
    ),
    "messages in one": (lambda t: {KIND: "LLM", "llm.input_messages": t}, True),
}

_SIZES: dict[str, tuple[str, ...]] = {
    "metadata of 50 passages": ("60K",),
    "passage metadata": ("60K", "10M"),
    **dict.fromkeys(
        ("mime type", "kind", "id and score", "passage", "seer.task", "answer", "marks"), ("10M",)
    ),
    **dict.fromkeys(("names", "passage metadata, flattened", "message to a model"), ("10M",)),
}
"""The sizes that say something, where these are not the last two."""


def _texts() -> Iterator[Giant]:
    for place, (put, above) in _PLACES.items():
        for kind in (*_TEXTS, *_MADE):
            for size in _SIZES.get(place, ("2M", "10M")):
                yield Giant(f"{place}: {kind}, {size}", _lazily(put, kind, SIZES[size]), above)


def _lazily(put: Callable[[str], Attributes], kind: str, size: int) -> Callable[[], Attributes]:
    return lambda: put(_MADE[kind](size) if kind in _MADE else text(kind, size))


# --- Many keys and items ---


def _numbered(
    start: Attributes, key: str, value: Any, count: int = MANY, step: int = 1
) -> Callable[[], Attributes]:
    return lambda: {**start, **{key.format(n * step): value for n in range(count)}}


_LABELLED: Attributes = {**ORDINARY, "seer.ground_truth.gold_doc_ids": ("a",)}
_MANY_KEYS = json.dumps({f"k{n}": n for n in range(5_000)})
_DEEP = json.dumps({"a": [[1] * 10] * 1_300})
_MODEL: Attributes = {KIND: "LLM", "llm.input_messages.0.message.role": "user"}
_PARTS = "llm.input_messages.0.message.contents.{}.message_content.text"
_ITEMS = 10 * MANY
_LISTS = (("ab",) * 1_000,) * 1_000

_MASSES: dict[str, tuple[Callable[[], Attributes], bool]] = {
    "100,000 attributes": (_numbered(ORDINARY, "a.{}", 1), False),
    "100,000 attributes, no kind": (_numbered({INPUT: "q"}, "a.{}", "x"), True),
    "100,000 documents": (_numbered(RETRIEVAL, DOCUMENTS + ".{}.document.content", "a"), False),
    "100,000 documents, ids only": (_numbered(ORDINARY, DOCUMENTS + ".{}.document.id", "a"), False),
    "100,000 documents taken": (
        _numbered({**ORDINARY, KIND: "RERANKER"}, TAKEN + ".{}.document.content", "a"),
        False,
    ),
    "100,000 odd indices": (_numbered(ORDINARY, DOCUMENTS + ".{}.document.x", 1, step=9_999), False),
    "100,000 indices that are none": (_numbered(ORDINARY, DOCUMENTS + ".-{}.document.content", "a"), False),
    "100,000 fields": (_numbered(ORDINARY, DOCUMENTS + ".0.document.{}", 1), False),
    "100,000 keys of passage metadata": (
        _numbered(ORDINARY, DOCUMENTS + ".0.document.metadata.{}", 1),
        False,
    ),
    "100,000 keys of metadata": (_numbered(ORDINARY, "metadata.{}", 1), False),
    "100,000 keys of seer.metadata": (_numbered(ORDINARY, "seer.metadata.{}", 1), False),
    "100,000 long keys of seer.metadata": (
        _numbered(ORDINARY, "seer.metadata." + "a" * 99 + "{}Key", "v"),
        False,
    ),
    "100,000 keys of seer.metadata above": (_numbered({KIND: "CHAIN"}, "seer.metadata.{}", 1), True),
    "100,000 messages": (_numbered({KIND: "LLM"}, "llm.input_messages.{}.message.content", "x"), True),
    "100,000 parts of a message": (_numbered(_MODEL, _PARTS, "x"), True),
    "10,000 whole documents": (
        lambda: {**RETRIEVAL, **documents(10_000, content="a", id="a", score=1.0, metadata='{"source":"a"}')},
        False,
    ),
    "5,000 passages of 4,000": (
        _numbered(RETRIEVAL, DOCUMENTS + ".{}.document.content", "問" * 4_000, 5_000),
        False,
    ),
    "1,000 metadata of 5,000 keys": (
        lambda: {**RETRIEVAL, **documents(1_000, content="a", metadata=_MANY_KEYS)},
        False,
    ),
    "50 nested metadata of 50K": (
        lambda: {**RETRIEVAL, **documents(50, content="a", metadata=_DEEP)},
        False,
    ),
    "a million numbers": (lambda: {**ORDINARY, "seer.metadata.a": tuple(range(_ITEMS))}, False),
    "a million texts": (lambda: {**ORDINARY, "seer.metadata.a": ("ab",) * _ITEMS}, False),
    "a million documents": (lambda: {**RETRIEVAL, DOCUMENTS: ("ab",) * _ITEMS}, False),
    "a million outputs": (lambda: {**RETRIEVAL, OUTPUT: ("ab",) * _ITEMS}, False),
    "a million questions": (lambda: {**ORDINARY, INPUT: ("ab",) * _ITEMS}, False),
    "a million messages": (lambda: {KIND: "LLM", "llm.input_messages": ("ab",) * _ITEMS}, True),
    "a million contents": (lambda: {**RETRIEVAL, **document(0, content=("ab",) * _ITEMS)}, False),
    "a million ids": (lambda: {**RETRIEVAL, **document(0, content="a", id=("ab",) * _ITEMS)}, False),
    "a million in metadata": (
        lambda: {**RETRIEVAL, **document(0, content="a", metadata=("ab",) * _ITEMS)},
        False,
    ),
    "a million in lists": (
        lambda: {**ORDINARY, "seer.metadata.a": _LISTS, "metadata": {"env": _LISTS}},
        False,
    ),
    "a million in the documents": (lambda: {**RETRIEVAL, DOCUMENTS: _LISTS, OUTPUT: _LISTS}, False),
    "a million in a content": (
        lambda: {**RETRIEVAL, **document(0, content=_LISTS, id=_LISTS, x=_LISTS)},
        False,
    ),
    "a million in a question": (lambda: {KIND: "CHAIN", INPUT: _LISTS, "seer.ground_truth": _LISTS}, True),
    "a million labels": (lambda: {**_LABELLED, "seer.ground_truth.gold_doc_ids": ("ab",) * _ITEMS}, False),
    "10,000 labels": (lambda: {**_LABELLED, "seer.ground_truth.gold_doc_ids": ("a" * 100,) * 10_000}, False),
    "100 labels of 100K": (
        lambda: {**_LABELLED, "seer.ground_truth.gold_doc_ids": ("a" * MANY,) * 100},
        False,
    ),
    "1,000 values of 10K": (
        _numbered(ORDINARY, "seer.metadata.{}", "password=a1b2c3d4 " * 600, 1_000),
        False,
    ),
    "1,000 values of 30K": (_numbered(ORDINARY, "seer.metadata.{}", "x" * 30_000, 1_000), False),
}


def catalogue() -> Iterator[Giant]:
    """Every kind there is."""
    for name, (make, above) in _MASSES.items():
        yield Giant(name, make, above)
    yield from _texts()
