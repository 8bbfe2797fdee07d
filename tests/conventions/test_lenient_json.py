"""JSON as it stands in span attributes: whole, cut by a length limit, broken, huge."""

from __future__ import annotations

import enum
import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seer_otel.conventions.lenient_json import (
    MAX_LENGTH,
    MAX_SLOW_LENGTH,
    UNREADABLE,
    as_data,
    loads,
    loads_cut,
)

from ..hostile import Fails, Lies

TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ['"', "\\", '\\"', "\\\\", "\\u0041", "\N{SMILE}", "\U0010ffff\U00010000", "{[:,]}", "\n\t\0", "é\u2028"]
)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def is_start(part: object, whole: object) -> bool:
    """Whether `part` is what a reader has of `whole` who has not come to its end."""
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, list) and isinstance(whole, list):
        return part[:-1] == whole[: len(part)][:-1] and all(map(is_start, part[-1:], whole[len(part) - 1 :]))
    if isinstance(part, dict) and isinstance(whole, dict):
        return is_start([list(each) for each in part.items()], [list(each) for each in whole.items()])
    return type(part) is type(whole) and part == whole


@given(DATA, st.booleans(), st.sampled_from([None, 1]))
@example({"query": "half an emoji \N{SMILE}", "k": 3}, True, None)
@example(["\\", '"', "\\\\"], True, None)
@example({"a": {"b": [1, "\U0010ffff"]}}, True, 1)
def test_cut_anywhere(data: object, ascii_only: bool, indent: int | None) -> None:
    """Wherever a JSON text is cut, what is read of it is a beginning of the whole: no value is made up."""
    text = json.dumps(data, ensure_ascii=ascii_only, indent=indent)
    whole = json.loads(text)
    for length in range(len(text)):
        read = loads_cut(text[:length])
        assert read is UNREADABLE or is_start(read, whole), text[:length]


@given(st.dictionaries(TEXT, DATA, min_size=1, max_size=4), st.data())
def test_cut_loses_little(data: dict[str, Any], draw: st.DataObject) -> None:
    """Once an object has begun it is read, with every member that ended before the cut."""
    text = json.dumps(data)
    length = draw.draw(st.integers(1, len(text) - 1))
    ends = [len(json.dumps(dict(list(data.items())[:count]))) for count in range(1, len(data) + 1)]
    read = loads_cut(text[:length])
    assert isinstance(read, dict)
    assert len(read) >= sum(end <= length for end in ends)


@given(st.text(max_size=60) | st.text(alphabet='[]{}:,"\\u0dD8aé 1-', max_size=60))
def test_never_raises(text: str) -> None:
    """Any text at all is read or refused."""
    for reader in (loads, loads_cut):
        json.dumps(None if reader(text) is UNREADABLE else reader(text))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        pytest.param('{"query": "Who dir', {"query": "Who dir"}, id="open text"),
        pytest.param('{"query": "Who', {"query": "Who"}, id="no space"),
        pytest.param('{"query": "a\\', {"query": "a"}, id="half an escape"),
        pytest.param('{"query": "a\\\\', {"query": "a\\"}, id="a whole escape"),
        pytest.param('{"query": "a\\\\\\', {"query": "a\\"}, id="a whole and a half escape"),
        pytest.param('{"query": "a\\u00e', {"query": "a"}, id="half a unicode escape"),
        pytest.param('{"query": "a\\\\u00e', {"query": "a\\u00e"}, id="no unicode escape"),
        pytest.param('{"query": "a\\u00e9', {"query": "aé"}, id="a whole unicode escape"),
        pytest.param('{"query": "a\\ud83d', {"query": "a"}, id="half a pair"),
        pytest.param('{"query": "a\\ud83d\\', {"query": "a"}, id="half a pair and a backslash"),
        pytest.param('{"query": "a\\ud83d\\ude0', {"query": "a"}, id="a pair without its last digit"),
        pytest.param('{"query": "a\\ud83d\\ude00', {"query": "a\N{GRINNING FACE}"}, id="a whole pair"),
        pytest.param('{"query": "a\\ud83d\\u0041', {"query": "a\ud83dA"}, id="lone half long before the cut"),
        pytest.param('{"query": "a", "k": 12', {"query": "a"}, id="number that may go on"),
        pytest.param('{"query": "a", "k": 12,', {"query": "a", "k": 12}, id="number that ended"),
        pytest.param('{"query": "a", "stream": tru', {"query": "a"}, id="half a word"),
        pytest.param('{"query": "a", "k', {"query": "a"}, id="half a key"),
        pytest.param('{"query": "a", "k\\', {"query": "a"}, id="half an escape in a key"),
        pytest.param('{"query": "a", "k"', {"query": "a"}, id="key without value"),
        pytest.param('{"query": "a", "k":  ', {"query": "a"}, id="white space"),
        pytest.param('{"a": [{"b": "c"}, ["d', {"a": [{"b": "c"}, ["d"]]}, id="nested"),
        pytest.param('"text', "text", id="text alone"),
        pytest.param("{", {}, id="bracket alone"),
        pytest.param("12", UNREADABLE, id="number alone"),
        pytest.param("", UNREADABLE, id="nothing"),
        pytest.param("   ", UNREADABLE, id="nothing but white space"),
        pytest.param('{"a": 1]', UNREADABLE, id="wrong bracket"),
        pytest.param("]", UNREADABLE, id="closing bracket"),
        pytest.param('"To be" or not to be, who said it?', UNREADABLE, id="begins like a text"),
        pytest.param('"Inception" director', UNREADABLE, id="begins like a text, one word more"),
        pytest.param('{"a": 1} x', UNREADABLE, id="begins like an object"),
        pytest.param("[draft] who directed Inception?", UNREADABLE, id="begins like a list"),
        pytest.param('{"a": "C:\\users\\nolan and much more", "b', UNREADABLE, id="impossible escape"),
        pytest.param('{"query": "C:\\users\\nolan', UNREADABLE, id="impossible escape in the open text"),
        pytest.param("{'query': 'a'", UNREADABLE, id="Python"),
    ],
)
def test_cut(text: str, read: object) -> None:
    """What is left of a cut text, by the place of the cut."""
    found = loads_cut(text)
    assert found == read
    assert (found is UNREADABLE) == (read is UNREADABLE)


@pytest.mark.parametrize("bracket", ["[", '{"a":', '[{"a":', "[[],"])
def test_deep(bracket: str) -> None:
    """Nesting deeper than Python can follow is refused, not followed."""
    text = bracket * 200_000
    assert loads(text) is UNREADABLE
    loads_cut(text)
    assert loads("[" * 200_000 + "]" * 200_000) is UNREADABLE


def test_huge() -> None:
    """A text of more than four million characters is not parsed, a shorter one is."""
    fits = '"' + "a" * (MAX_LENGTH - 2) + '"'
    assert loads(fits) == "a" * (MAX_LENGTH - 2)
    assert loads(fits + " ") is UNREADABLE
    assert loads_cut(fits[:-1]) == "a" * (MAX_LENGTH - 2)
    assert loads_cut(fits[:-1] + "ab") is UNREADABLE


def test_many_tokens() -> None:
    """Of a cut text only the beginning is read, however long it is; one long value costs nothing of that."""
    read = loads_cut('{"context": "' + "x" * 500_000 + '", "query": "Who?", "filler": [' + "1," * 100_000)
    assert read["query"] == "Who?"
    assert 0 < len(read["filler"]) < 100_000


def test_numbers() -> None:
    """NaN and Infinity, which Python writes, are read; a number of more digits than Python takes is refused."""
    assert math.isnan(loads("[NaN]")[0])
    assert loads("[Infinity, -Infinity]") == [math.inf, -math.inf]
    assert loads("[" + "1" * 5_000 + "]") is UNREADABLE


def test_unreadable_is_not_a_value() -> None:
    """`UNREADABLE` counts as nothing, and differs from every value that JSON has."""
    assert not UNREADABLE
    assert all(value != UNREADABLE for value in (None, False, 0, "", [], {}))


class HasNoClass(Fails):
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._fail()


class LoudText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("not to be called")

    def strip(self, chars: str | None = None, /) -> str:
        raise RuntimeError("not to be called")


class Rank(enum.IntEnum):
    FIRST = 1


class Ratio(float):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        (True, True),
        (b"bytes", b"bytes"),
        (Fails(), None),
        (HasNoClass(), None),
        (Lies(), None),
        (object, None),
        ({"a": Lies(), "b": 1}, {"a": None, "b": 1}),
        ({Fails: 1}, {str(Fails): 1}),
        ({"a": (1, [LoudText("b")])}, {"a": [1, ["b"]]}),
        (LoudText("a"), "a"),
        (Rank.FIRST, 1),
        (Ratio(0.5), 0.5),
        ({1: 2}, {"1": 2}),
        ({10**5_000: 2}, None),
    ],
    ids=lambda value: type(value).__name__ if type(value).__module__ != "builtins" else None,
)
def test_as_data(value: object, data: object) -> None:
    """Values become plain data; what cannot be asked for its content is nothing."""
    read = as_data(value)
    assert read == data
    assert type(read) is type(data)


def test_as_data_is_bounded() -> None:
    """A list that holds itself ends somewhere."""
    endless: list[Any] = []
    endless.append(endless)
    text = json.dumps(as_data(endless))
    assert 10 < len(text) < 200


@pytest.mark.parametrize("odd", [r'"\ud800"', "123456789012345678901", "NaN"], ids=["half", "long", "NaN"])
def test_slow_json(odd: str) -> None:
    """What needs the slower of the two readers is read up to a limit of its own."""
    assert loads(f"[{odd}]" + " " * 1_000) is not UNREADABLE
    assert loads(f"[{odd}]" + " " * MAX_SLOW_LENGTH) is UNREADABLE
    assert loads("[1]" + " " * MAX_SLOW_LENGTH) == [1]


@given(
    st.text('[]{},:"\\ \t\n\r\v0123456789.-+eE\ufeff\0anulltrefsNIity', max_size=14)
    | DATA.map(json.dumps)
    | TEXT
)
@example(" [1] ")
@example("[1] x")
@example("18446744073709551616")
@example('{"a": 1e400, "b": NaN, "c": "\\ud800"}')
@example("\ufeff1")
def test_same_as_json(text: str) -> None:
    """Whatever the text, the standard library's own function reads the same from it, to the type, or refuses it."""
    try:
        expected = repr(json.loads(text))
    except ValueError:
        expected = repr(UNREADABLE)
    assert repr(loads(text)) == expected
