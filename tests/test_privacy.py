"""The mark of hidden values, and OpenInference's settings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.privacy import REDACTED, Hiding, is_redacted, without_marks

from .hostile import Lies

MARKS = st.sampled_from([REDACTED, f" {REDACTED}\n", REDACTED.encode()])
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | MARKS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.just(REDACTED), inner, max_size=4)
    ),
    max_leaves=15,
)


def values(data: Any) -> list[object]:
    """All keys and values in `data`."""
    if isinstance(data, dict):
        return [*data, *(each for item in data.values() for each in values(item))]
    if isinstance(data, (list, tuple, set, frozenset)):
        return [each for item in data for each in values(item)]
    return [data]


@pytest.mark.parametrize("value", ["__REDACTED__", " __REDACTED__ ", "\t__REDACTED__\r\n", b"__REDACTED__"])
def test_mark(value: object) -> None:
    """The mark is known by its text, whatever space is around it."""
    assert is_redacted(value)


@pytest.mark.parametrize(
    "value", [None, "", "REDACTED", "What does __REDACTED__ mean?", 0, ["__REDACTED__"], object()]
)
def test_no_mark(value: object) -> None:
    """Nothing else is the mark, not even a text about it."""
    assert not is_redacted(value)


@given(st.dictionaries(st.text(max_size=3), DATA) | st.lists(DATA))
def test_without_marks(data: object) -> None:
    """No mark is left at any depth, as a key or as a value, and nothing else is lost."""
    left = values(without_marks(data))
    assert not any(map(is_redacted, left))
    if not any(map(is_redacted, values(data))):
        assert left == values(data)


def test_without_marks_keeps_the_rest() -> None:
    """A hidden value goes with its key, a hidden item with its place; their neighbours stay."""
    data = {"a": REDACTED, "b": [1, REDACTED, {"c": REDACTED, "d": "e"}], REDACTED: 1, "s": {REDACTED, "f"}}
    assert without_marks(data) == {"b": [1, {"d": "e"}], "s": ["f"]}


def test_without_marks_is_bounded() -> None:
    """A list that holds itself ends somewhere, and what lies deeper is left out."""
    endless: list[Any] = ["a"]
    endless.append(endless)
    assert 10 < len(values(without_marks(endless))) < 100


@pytest.mark.parametrize(
    ("variable", "hidden"),
    [
        ("OPENINFERENCE_HIDE_INPUTS", {"inputs", "messages"}),
        ("OPENINFERENCE_HIDE_INPUT_MESSAGES", {"messages"}),
        ("OPENINFERENCE_HIDE_INPUT_TEXT", {"messages"}),
        ("OPENINFERENCE_HIDE_OUTPUTS", {"documents"}),
        ("OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS", {"documents"}),
        ("OPENINFERENCE_HIDE_OUTPUT_TEXT", set()),
        ("OPENINFERENCE_HIDE_LLM_TOOLS", set()),
    ],
)
@pytest.mark.parametrize(
    ("value", "counts"),
    [("true", True), (" TRUE ", True), ("True", True), ("", False), ("false", False), ("1", False)],
)
def test_settings(variable: str, hidden: set[str], value: str, counts: bool) -> None:
    """Each of OpenInference's settings that concern a question or a document hides it, when it says true."""
    hiding = Hiding.from_environment({variable: value})
    says = {name for name in ("inputs", "messages", "documents") if getattr(hiding, name)}
    assert says == (hidden if counts else set())


def test_no_settings() -> None:
    """Without settings nothing is hidden."""
    assert Hiding.from_environment({}) == Hiding()


def test_other_values_stay() -> None:
    """What is no container is handed on as it is, on its own and inside of one."""
    assert without_marks("a") == "a"
    assert without_marks({"a": b"b", "c": [b"d", REDACTED.encode()]}) == {"a": b"b", "c": [b"d"]}


def test_very_long_lists() -> None:
    """A list that is too long to be sent is not looked through."""
    values = [REDACTED] * 10_001
    assert without_marks({"a": values, "b": values[2:]}) == {"a": values, "b": []}


@pytest.mark.parametrize(
    "value", [" " * 60 + REDACTED, f"\0{REDACTED}", f"{REDACTED}\0\n", f"\0{REDACTED}".encode()]
)
def test_a_mark_with_something_around_it(value: object) -> None:
    """The mark is one with any white space around it, and with NUL, which goes before an event is sent."""
    assert is_redacted(value)


def test_objects_that_fail() -> None:
    """An object whose methods fail, and one that holds the same lists many times, cost no error and no time."""
    wide: object = 1
    for _ in range(5):
        wide = [wide] * 40
    left = without_marks({"lies": Lies(), "wide": wide, "mark": REDACTED})
    assert left == {"lies": None, "wide": wide}
