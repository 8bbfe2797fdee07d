"""What the keys of a span say: remembered, and bounded."""

from __future__ import annotations

from typing import Any

import pytest

from seer_otel.conventions import layout as module
from seer_otel.conventions.layout import DOCUMENTS, RERANKER_OUTPUT, layout_of


def document(index: int, field: str = "content", prefix: str = DOCUMENTS) -> str:
    return f"{prefix}.{index}.document.{field}"


def test_remembered() -> None:
    """The same keys are read once, whatever their values; other keys, or another order, are read anew."""
    keys = [document(1), document(0), document(0, "id")]
    layout = layout_of(dict.fromkeys(keys, "a"))
    assert layout_of(dict.fromkeys([key + "" for key in keys], "b")) is layout
    assert layout_of(dict.fromkeys(keys[::-1])) is not layout
    assert [row.index for row in layout.lists[DOCUMENTS].rows] == [0, 1]


def test_forgotten() -> None:
    """However many sets of keys there are, what is remembered of them is bounded."""
    for number in range(30):
        layout_of({f"attribute {number} {key}": 1 for key in range(3_000)})
    assert sum(map(len, module._remembered)) <= 20_000


@pytest.mark.parametrize("key", ["x" * 300, f"{DOCUMENTS}.{'x' * 300}"])
def test_long_keys_are_not_remembered(key: str) -> None:
    """Keys of unusual length would take too much room."""
    attributes = {key: 1}
    assert layout_of(attributes) is not layout_of(attributes)


def test_very_many_keys() -> None:
    """Of very many keys of documents the first are read; then there may be anything behind them."""
    layout = layout_of({document(0, str(number)): 1 for number in range(30_000)})
    (row,) = layout.lists[DOCUMENTS].rows
    assert len(row.keys) == 10_000
    assert layout.says


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("seer.task", True),
        ("seer.metadata.x", True),
        ("metadata", True),
        ("metadata.env", True),
        ("user.id", True),
        ("session.id", True),
        ("input.value", False),
        (document(0), False),
        (document(0, "metadata"), False),
    ],
)
def test_says(key: str, says: bool) -> None:
    """Marks and metadata of an application are noticed, and nothing else is taken for them."""
    assert layout_of({key: 1}).says is says


def test_usual() -> None:
    """The keys of documents with the usual fields stand by field; one key of another kind, and they do not."""
    keys = [document(1), document(0, "id"), document(0)]
    listed = layout_of(dict.fromkeys(keys)).lists[DOCUMENTS]
    assert listed.usual is not None
    assert listed.usual[0] == (document(0), document(1))
    assert listed.usual[1][0] == document(0, "id")
    for other in (
        DOCUMENTS,
        f"{DOCUMENTS}.x",
        document(0, "text"),
        f"{DOCUMENTS}.0",
        f"{DOCUMENTS}.0.content",
    ):
        assert layout_of(dict.fromkeys([*keys, other])).lists[DOCUMENTS].usual is None
    assert layout_of({document(0, prefix=RERANKER_OUTPUT): 1}).lists.keys() == {RERANKER_OUTPUT}


class Key(str):
    """A key of an application's own type, that cannot be compared."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> Any:
        raise RuntimeError


def test_keys_of_other_types() -> None:
    """Keys that are no texts say nothing, and those that cannot be compared are read all the same."""
    layout_of({"seer.task": 1})
    assert layout_of({Key("seer.task"): 1}).says
    assert not layout_of({1: 2, None: 3}).says  # type: ignore[dict-item]
