"""What is read from a labelled file, and what is said of a line that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.evaluation.datasets import DatasetError, Passage, example, read
from seer_otel.local.schema import InvalidEventError, NotJsonError, parse

LINE = {
    "task": "What is ML?",
    "context": [{"text": "ML is AI...", "id": "doc1"}],
    "ground_truth": {"gold_doc_ids": ["doc1"]},
}
"""As on Seer's page."""

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(0, 1), st.text(max_size=3))
PASSAGES = st.one_of(
    SCALARS,
    st.fixed_dictionaries(
        {"text": st.one_of(st.text(max_size=3), SCALARS)},
        optional={"id": SCALARS, "score": SCALARS, "rank": SCALARS, "source": SCALARS, "more": SCALARS},
    ),
)
LINES = st.one_of(
    SCALARS,
    st.fixed_dictionaries(
        {
            "task": st.one_of(st.just("asked"), SCALARS),
            "context": st.one_of(st.lists(PASSAGES, max_size=3), SCALARS),
        },
        optional={
            "ground_truth": st.one_of(
                SCALARS,
                st.fixed_dictionaries(
                    {"gold_doc_ids": st.one_of(SCALARS, st.lists(SCALARS, max_size=2))},
                    optional={"answer": SCALARS},
                ),
            ),
            "metadata": st.one_of(SCALARS, st.dictionaries(st.text(max_size=2), SCALARS, max_size=2)),
            "more": SCALARS,
        },
    ),
)


def written(path: Path, *lines: bytes) -> str:
    path.write_bytes(b"\n".join(lines))
    return str(path)


def test_the_format_of_seers_page(tmp_path: Path) -> None:
    """Each line is an example: its question, its passages in order, its gold ids, and where it stands."""
    other = {"task": "?", "context": ["plain", {"text": "t", "score": 2, "rank": 1, "id": None}], "more": 1}
    file = written(tmp_path / "a.jsonl", json.dumps(LINE).encode(), json.dumps(other).encode())
    first, second = read(file)
    assert (first.file, first.line, first.task) == (file, 1, "What is ML?")
    assert first.passages == (Passage("ML is AI...", "doc1"),)
    assert first.gold_ids == ("doc1",)
    assert first.data == LINE
    assert (second.line, second.gold_ids, second.ids) == (2, None, [None, None])
    assert second.passages == (Passage("plain"), Passage("t", rank=1, score=2))
    assert second.data == other


def test_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    """Both are skipped, as are the line ends of Windows; lines keep their numbers."""
    line = json.dumps(LINE).encode()
    file = written(tmp_path / "a.jsonl", b"\xef\xbb\xbf" + line + b"\r", b"", b"  \r", line, b"")
    assert [each.line for each in read(file)] == [1, 4]


def test_what_has_no_limit_here(tmp_path: Path) -> None:
    """An empty context, no gold at all, a hundred passages and long ones are examples."""
    line = {
        "task": "?",
        "context": [],
        "ground_truth": {"gold_doc_ids": [], "answer": None},
        "metadata": None,
    }
    long = {"task": "?", "context": ["x" * 100_000] * 100}
    file = written(tmp_path / "a.jsonl", json.dumps(line).encode(), json.dumps(long).encode())
    first, second = read(file)
    assert (first.passages, first.gold_ids, first.metadata) == ((), (), {})
    assert len(second.passages) == 100


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "expected one JSON object in UTF-8"),
        (b'{"task": "\xff"}', "expected one JSON object in UTF-8"),
        (b'{"task": NaN}', "expected one JSON object in UTF-8"),
        (b"[]", "expected an object, not a list"),
        (b"{}", "task: expected text, not null, or nothing"),
        (b'{"task": " ", "context": []}', "task: expected text that is not blank"),
        (b'{"task": "?"}', "context: expected a list, not null, or nothing"),
        (b'{"task": "?", "context": ["a", 1]}', "context[1]: expected text or an object, not a number"),
        (b'{"task": "?", "context": [{}]}', "context[0].text: expected text, not null, or nothing"),
        (b'{"task": "?", "context": [{"text": "a", "id": 7}]}', "context[0].id: expected text, not a number"),
        (
            b'{"task": "?", "context": [{"text": "a", "score": true}]}',
            "context[0].score: expected a number, not true or false",
        ),
        (b'{"task": "?", "context": [], "ground_truth": []}', "ground_truth: expected an object, not a list"),
        (
            b'{"task": "?", "context": [], "ground_truth": {}}',
            "ground_truth.gold_doc_ids: expected a list, not null, or nothing",
        ),
        (
            b'{"task": "?", "context": [], "ground_truth": {"gold_doc_ids": [1]}}',
            "ground_truth.gold_doc_ids[0]: expected text, not a number",
        ),
        (b'{"task": "?", "context": [], "metadata": "x"}', "metadata: expected an object, not text"),
    ],
)
def test_no_example(tmp_path: Path, line: bytes, said: str) -> None:
    """A line that is none is an error that names the file, the line and the field; those before it were read."""
    file = written(tmp_path / "a.jsonl", json.dumps(LINE).encode(), line)
    examples = read(file)
    assert next(examples).line == 1
    with pytest.raises(DatasetError) as raised:
        next(examples)
    assert str(raised.value).startswith(f"{file}, line 2: {said}")


@given(LINES)
def test_whatever_can_be_logged_can_be_read(line: Any) -> None:
    """No line that the local backend would take is refused."""
    text = json.dumps(line).encode()
    try:
        event = parse(text)
    except (InvalidEventError, NotJsonError):
        return
    found = example("a.jsonl", 1, text)
    assert found.task == event.task
    assert found.ids == [passage.id for passage in event.passages()]
    assert found.texts == [passage.text for passage in event.passages()]
    labels = event.ground_truth
    assert found.gold_ids == (None if labels is None else tuple(labels.gold_doc_ids))
