"""What the keys of a span's attributes say, remembered: the same few sets of keys come with every span. Pure.

Flattened keys are `<prefix>.<index>.document.<field>`. Indices have gaps (a document without a text leaves no
attribute), come in any order, and may be anything: they are sorted as numbers and never used to allocate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from openinference.semconv.trace import SpanAttributes

DOCUMENTS = SpanAttributes.RETRIEVAL_DOCUMENTS
RERANKER_INPUT = "reranker.input_documents"
RERANKER_OUTPUT = "reranker.output_documents"

MAX_DOCUMENTS = 1_000
"""Documents of one span, best-ranked first; the others are not read. An event takes 50."""
_MAX_KEYS = 10_000  # keys of documents in one span: as many as our advice for the SDK's limit lets through
_MAX_KEY = 200  # characters
_MAX_REMEMBERED = 20_000  # keys of all layouts that are remembered
_MAX_OF_ONE = 4_000  # keys of one such layout

_SAYS = ("seer.", "metadata", "user.id", "session.id")
_OF_INTEREST = (DOCUMENTS, RERANKER_OUTPUT, RERANKER_INPUT, *_SAYS)

USUAL = ("content", "id", "score", "metadata")
"""The fields of a document, as most instrumentors write them."""
_ABSENT: Any = object()  # a key that no attribute has


@dataclass(slots=True)
class Row:
    """The keys of one document.

    Attributes:
        index: its number.
        keys: each with the field that it is, in the order of the attributes.
    """

    index: int
    keys: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Listed:
    """The keys of one list of documents.

    Attributes:
        rows: by their number.
        others: the bare key, and keys beneath it that name no document.
        usual: for each of the `USUAL` fields the keys of all documents; None where there is any other key.
    """

    rows: list[Row] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    usual: list[tuple[Any, ...]] | None = None


@dataclass(slots=True)
class Layout:
    """What the keys of one span say.

    Attributes:
        lists: by prefix.
        says: whether the application may say something to us: a mark of ours, or metadata.
    """

    lists: dict[str, Listed] = field(default_factory=dict)
    says: bool = False


def layout_of(attributes: Mapping[str, Any]) -> Layout:
    """Return what the keys of these attributes say. Nobody changes it."""
    keys = tuple(attributes)
    if len(keys) > _MAX_OF_ONE:
        return _read(keys)
    try:
        return _remembered[keys]
    except Exception:  # noqa: BLE001 - a new one, or keys of an application's own type
        layout = _read(keys)
    if all(type(key) is str and len(key) <= _MAX_KEY for key in keys):
        _remembered.add(keys, layout)
    return layout


class _Remembered(dict[tuple[str, ...], Layout]):
    """Layouts by their keys; all are forgotten when there are too many."""

    size = 0

    def add(self, keys: tuple[str, ...], layout: Layout) -> None:
        self.size += len(keys)
        if self.size > _MAX_REMEMBERED:
            self.clear()
            self.size = len(keys)
        self[keys] = layout


_remembered = _Remembered()


def _read(keys: Iterable[str]) -> Layout:
    layout = Layout()
    found: dict[str, dict[int, Row]] = {}
    room = _MAX_KEYS
    for key in keys:
        if not isinstance(key, str) or not key.startswith(_OF_INTEREST):
            continue
        if key.startswith(_SAYS):
            layout.says = True
            continue
        prefix = DOCUMENTS if key.startswith(DOCUMENTS) else RERANKER_INPUT
        if key.startswith(RERANKER_OUTPUT):
            prefix = RERANKER_OUTPUT
        rest = key[len(prefix) :]
        if rest and rest[0] != ".":
            continue
        if not room:
            layout.says = True  # perhaps
            break
        room -= 1
        if prefix not in layout.lists:
            layout.lists[prefix], found[prefix] = Listed(), {}
        place = _place(rest)
        if place is None:
            layout.lists[prefix].others.append(key)
            continue
        index, name = place
        row = found[prefix].get(index)
        if row is None:
            row = found[prefix][index] = Row(index)
        row.keys.append((key, name))
    for prefix, rows in found.items():
        listed = layout.lists[prefix]
        listed.rows = [rows[index] for index in sorted(rows)[:MAX_DOCUMENTS]]
        if listed.rows and not listed.others:
            listed.usual = _usual(listed.rows)
    return layout


def _usual(rows: Iterable[Row]) -> list[tuple[Any, ...]] | None:
    columns: list[list[Any]] = [[] for _ in USUAL]
    for row in rows:
        fields = {name: key for key, name in row.keys}
        if len(fields) < len(row.keys) or not fields.keys() <= set(USUAL):
            return None
        for column, name in zip(columns, USUAL, strict=True):
            column.append(fields.get(name, _ABSENT))
    return list(map(tuple, columns))


def _place(rest: str) -> tuple[int, str] | None:
    """The number and the field that the end of a flattened key names."""
    if not 1 < len(rest) <= _MAX_KEY:
        return None
    number, _, name = rest[1:].partition(".")
    if not (number.isdigit() and number.isascii()) or len(number) > 9 or (number[0] == "0" and number != "0"):
        return None
    return int(number), "" if name == "document" else name.removeprefix("document.")
