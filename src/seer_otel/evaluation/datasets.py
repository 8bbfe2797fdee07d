"""Labelled retrievals in a file: one JSON object a line, in the form that Seer's "Accuracy Testing" page gives.

Whatever `POST /v1/log` takes is an example here too: other fields are kept, labels may be absent, and a context may be
empty. Blank lines and a byte order mark are skipped.
"""

from __future__ import annotations

import errno
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson


class DatasetError(ValueError):
    """A line that is no example; the text names file, line and field, and says what was expected there."""

    def __init__(self, file: str, line: int, field: str, trouble: str) -> None:
        super().__init__(f"{file}, line {line}: {field and f'{field}: '}{trouble}")


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage of an example, of which only the text must be there."""

    text: str
    id: str | None = None
    rank: float | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One line of a dataset.

    Attributes:
        file: the file, as it was named.
        line: its line, from 1.
        task: the question.
        passages: the context, in rank order.
        gold_ids: the ids of the relevant documents; empty where none is, None where the example has no labels.
        metadata: the example's own.
        data: the whole object, as it stands in the file.
    """

    file: str
    line: int
    task: str
    passages: tuple[Passage, ...]
    gold_ids: tuple[str, ...] | None
    metadata: Mapping[str, Any]
    data: Mapping[str, Any]

    @property
    def ids(self) -> list[str | None]:
        """The ids of the passages."""
        return [passage.id for passage in self.passages]

    @property
    def texts(self) -> list[str]:
        """The texts of the passages."""
        return [passage.text for passage in self.passages]


def read(file: str) -> Iterator[Example]:
    """Read the examples of a file, one at a time.

    Raises:
        DatasetError: a line is no example.
        OSError: the file cannot be read, or is a pipe, which could not be read twice, as the commands do.
    """
    path = Path(file)
    if path.is_fifo():
        raise OSError(errno.ESPIPE, "Its lines are read twice, so it must be a file and no pipe", file)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            text = line.removeprefix(BOM_UTF8).strip() if number == 1 else line.strip()
            if text:
                yield example(file, number, text)


def example(file: str, line: int, text: bytes) -> Example:
    """Read one line; `file` and `line` say where it stands. Raises DatasetError."""
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        # Not its text as it stands: the place that it names is one within the line.
        raise DatasetError(file, line, "", f"expected one JSON object in UTF-8 ({error.msg})") from None
    fields = _Fields(file, line)
    whole = fields.mapping(data, "")
    task = fields.text(whole.get("task"), "task")
    if not task.strip():
        raise fields.wrong("task", "expected text that is not blank")
    context = fields.sequence(whole.get("context"), "context")
    labels, gold_ids = whole.get("ground_truth"), None
    if labels is not None:
        labels = fields.mapping(labels, "ground_truth")
        gold = fields.sequence(labels.get("gold_doc_ids"), "ground_truth.gold_doc_ids")
        gold_ids = tuple(
            fields.text(each, f"ground_truth.gold_doc_ids[{place}]") for place, each in enumerate(gold)
        )
        fields.optional_text(labels.get("answer"), "ground_truth.answer")
    metadata = whole.get("metadata")
    return Example(
        file,
        line,
        task,
        tuple(fields.passage(each, f"context[{place}]") for place, each in enumerate(context)),
        gold_ids,
        {} if metadata is None else fields.mapping(metadata, "metadata"),
        whole,
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    """Reads fields of one line, or says which is wrong."""

    file: str
    line: int

    def wrong(self, field: str, trouble: str) -> DatasetError:
        return DatasetError(self.file, self.line, field, trouble)

    def mapping(self, value: object, field: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(field, f"expected an object, not {_kind(value)}")
        return value

    def sequence(self, value: object, field: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.wrong(field, f"expected a list, not {_kind(value)}")
        return value

    def text(self, value: object, field: str) -> str:
        if not isinstance(value, str):
            raise self.wrong(field, f"expected text, not {_kind(value)}")
        return value

    def optional_text(self, value: object, field: str) -> str | None:
        return None if value is None else self.text(value, field)

    def optional_number(self, value: object, field: str) -> float | None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise self.wrong(field, f"expected a number, not {_kind(value)}")
        return value

    def passage(self, value: object, field: str) -> Passage:
        if isinstance(value, str):
            return Passage(value)
        if not isinstance(value, dict):
            raise self.wrong(field, f"expected text or an object, not {_kind(value)}")
        return Passage(
            self.text(value.get("text"), f"{field}.text"),
            self.optional_text(value.get("id"), f"{field}.id"),
            self.optional_number(value.get("rank"), f"{field}.rank"),
            self.optional_number(value.get("score"), f"{field}.score"),
        )


def _kind(value: object) -> str:
    if value is None:
        return "null, or nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a number"
