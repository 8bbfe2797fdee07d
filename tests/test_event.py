"""The event: strict JSON, Seer's limits, and what they cost."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seer_otel.event import (
    MAX_PASSAGES,
    MAX_QUESTION,
    MAX_TEXT,
    METADATA_CUT,
    PASSAGES_CUT,
    SHRUNK_TEXT,
    TEXTS_CUT,
    Event,
    GroundTruth,
    Passage,
    clamp,
    encode,
    shrink,
)
from seer_otel.strict import (
    MAX_DEPTH,
    MAX_METADATA,
    bounded_metadata,
    clean_text,
    decimal,
    is_blank,
    plain,
)

from .hostile import Fails, Lies


def strict(body: bytes) -> Any:
    """Parse JSON as a strict parser does: UTF-8 without surrogates, no NUL in a text, no NaN, no key twice."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs), "a key stands twice"
        return dict(pairs)

    data = json.loads(body.decode("utf-8"), parse_constant=refuse, object_pairs_hook=members)
    for text in texts(data):
        assert "\0" not in text
        text.encode("utf-8")
    return data


def texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for item in data:
            yield from texts(item)
    elif isinstance(data, dict):
        yield from data
        for item in data.values():
            yield from texts(item)


def depth(data: Any) -> int:
    if isinstance(data, (dict, list)):
        return 1 + max(map(depth, data.values() if isinstance(data, dict) else data), default=0)
    return 0


def compact(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


class Colour(enum.Enum):
    RED = "red"


class Rank(enum.IntEnum):
    FIRST = 1


class Long(str):
    """A text that is not shown in full when a test fails."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Long({self[:3]!r} ... {len(self)})"


QUESTION = Long("?" * (MAX_QUESTION + 1))
# Characters of every kind, lone halves of surrogate pairs and NUL among them.
TEXT = st.text(st.characters(), max_size=8) | st.sampled_from(
    [
        "\0",
        "\ud83d",
        "\ude00",
        "\ud83d\ude00",
        "\ud83d\0\ude00",
        "\ude00\ud83d",
        "\ufeff",
        "\\u0000",
        "\\ud800",
    ]
)
CLEAN = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, 2**64, -(2**63) - 1, 10**700, math.nan, math.inf, -math.inf, -0.0]),
    st.floats(),
    TEXT,
    st.binary(max_size=4),
    st.just(uuid.UUID(int=1)),
    st.just(dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)),
    st.sampled_from([Colour.RED, Rank.FIRST]),
    st.builds(Fails),
    st.builds(Lies),
)
KEYS = TEXT | st.integers() | st.none() | st.booleans() | st.floats() | st.just(10**700)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.frozensets(TEXT, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=8,
)
METADATA = st.dictionaries(TEXT, ANYTHING, max_size=3)
PASSAGES = st.builds(
    Passage,
    text=TEXT | st.sampled_from([Long(part * MAX_TEXT) for part in ("x", "xy", "\0x", "\ud83d\ude00")]),
    id=st.none() | TEXT,
    source=st.none() | TEXT,
    score=st.none() | st.floats(),
    metadata=METADATA,
)
EVENTS = st.builds(
    Event,
    task=TEXT | st.just(QUESTION),
    context=st.lists(PASSAGES, max_size=3).map(tuple)
    | st.lists(PASSAGES, min_size=1, max_size=1).map(lambda few: tuple(few * (MAX_PASSAGES + 7))),
    metadata=METADATA,
    trace_id=st.none() | st.just("a" * 32),
    span_id=st.none() | st.just("b" * 16),
    parent_span_id=st.none() | st.just("c" * 16),
    span_name=st.none() | TEXT,
    is_final_context=st.booleans(),
    subquery=st.none() | TEXT | st.just(QUESTION),
    ground_truth=st.none()
    | st.builds(
        GroundTruth,
        gold_doc_ids=st.lists(TEXT, max_size=2).map(tuple),
        answer=st.none() | TEXT | st.just(QUESTION),
    ),
    created_at=st.none() | st.just("2026-11-30T21:00:00Z"),
    sample_rate=st.none() | st.floats(0, 1),
)


@given(ANYTHING)
def test_plain_is_strict_json(value: object) -> None:
    """Whatever a value is and holds, it becomes strict JSON, within the depth."""
    data = plain(value)
    assert strict(json.dumps(data, ensure_ascii=False).encode("utf-8")) == data
    assert depth(data) <= MAX_DEPTH


@given(
    st.recursive(
        st.none() | st.booleans() | NUMBERS | CLEAN,
        lambda inner: st.lists(inner) | st.dictionaries(CLEAN, inner),
        max_leaves=10,
    )
)
def test_plain_keeps_json(value: object) -> None:
    """What is JSON already stays as it is, if it is not too deep."""
    assert plain(value, max_depth=100) == value


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({"a": math.nan, "b": 1}, {"b": 1}),
        ([math.inf, 1], [None, 1]),
        (math.nan, None),
        (2**64 - 1, 2**64 - 1),
        (-(2**63), -(2**63)),
        (2**64, "18446744073709551616"),
        (-(2**63) - 1, "-9223372036854775809"),
        (2**127, str(2**127)),
        (b"caf\xc3\xa9 \xff", "café \ufffd"),
        ((1, (2,)), [1, [2]]),
        ({"a"}, ["a"]),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (Colour.RED, "Colour.RED"),
        ({1: True, None: "x"}, {"1": True, "None": "x"}),
        ({"a": Fails(), "b": Lies(), "c": [Fails()]}, {"c": [None]}),
        (Fails(), None),
        ({10**5_000: 1}, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_plain_values(value: object, data: object) -> None:
    """What becomes of values that JSON does not have."""
    assert plain(value) == data


def test_plain_depth() -> None:
    """Levels below the limit are left out, a list that holds itself too; the levels above stay."""
    endless: list[Any] = ["a"]
    endless.append(endless)
    assert plain(endless, 3) == ["a", ["a", ["a", None]]]
    assert plain({"a": {"b": {"c": 1}, "d": 2}}, 2) == {"a": {"d": 2}}
    nested: Any = 1
    for _ in range(20_000):
        nested = [nested]
    assert depth(plain(nested)) == MAX_DEPTH


@given(st.text(st.characters()))
@example("\ud83d\ude00")
@example("\ud83d\0\ude00")
@example("a\ud83d")
@example("\ude00\ud83db")
@example("\ufeff\ud800")
def test_clean_text(text: str) -> None:
    """NUL goes, halves that belong together are joined, lone ones become U+FFFD, all else stays in its place."""
    joined = text.replace("\0", "").encode("utf-16-le", "surrogatepass")
    expected, position = "", 0
    while position < len(joined):
        unit = int.from_bytes(joined[position : position + 2], "little")
        following = int.from_bytes(joined[position + 2 : position + 4], "little")
        if 0xD800 <= unit < 0xDC00 <= following < 0xE000:
            expected += chr(0x10000 + ((unit - 0xD800) << 10) + following - 0xDC00)
            position += 2
        else:
            expected += "\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit)
        position += 2
    assert clean_text(text) == expected


@pytest.mark.parametrize(
    ("text", "blank"),
    [
        ("", True),
        (" \t\n\u00a0\u2003", True),
        ("\0", True),
        (" \0 \0", True),
        ("\0a", False),
        ("\ud800", False),
        ("0", False),
    ],
)
def test_is_blank(text: str, blank: bool) -> None:
    """Blank is what has nothing to read once it is clean."""
    assert is_blank(text) is blank


@pytest.mark.parametrize("number", [0, -7, 2**63, 2**128 - 1, -(2**128)])
def test_decimal(number: int) -> None:
    """Whole numbers are written in full, ids of 128 bits too."""
    assert decimal(number) == str(number)


def test_decimal_of_a_huge_number() -> None:
    """A number that Python refuses to write in decimal is written all the same."""
    assert int(decimal(10**5_000), 16) == 10**5_000


@given(EVENTS)
def test_clamped_and_encoded(event: Event) -> None:
    """Whatever an event holds, it is within every limit and strict JSON, its marks say what was cut, no more is."""
    clamped = clamp(event)
    body = strict(encode(clamped.event))
    assert body["task"] == clean_text(event.task)[:MAX_QUESTION]
    assert len(body["context"]) == min(len(event.context), MAX_PASSAGES)
    cut = sum(
        len(clean_text(text)) > limit
        for text, limit in (
            (event.task, MAX_QUESTION),
            (event.subquery or "", MAX_QUESTION),
            ((event.ground_truth and event.ground_truth.answer) or "", MAX_QUESTION),
            *((passage.text, MAX_TEXT) for passage in event.context[:MAX_PASSAGES]),
        )
    )
    for passage, original in zip(body["context"], event.context, strict=False):
        assert passage["text"] == clean_text(original.text)[:MAX_TEXT]
        assert depth(passage.get("metadata", {})) <= MAX_DEPTH
        assert len(compact(passage.get("metadata", {}))) <= MAX_METADATA
    marks = body.get("metadata", {})
    assert clamped.texts_cut == cut == marks.get(TEXTS_CUT, 0)
    assert clamped.passages_cut == len(event.context) - len(body["context"]) == marks.get(PASSAGES_CUT, 0)


@settings(max_examples=50)
@given(EVENTS)
def test_clamp_twice(event: Event) -> None:
    """What is within the limits is left alone, but for our marks, for which there is always room."""
    once = replace(clamp(event).event, metadata={"env": "prod"})
    again = clamp(once)
    assert encode(again.event) == encode(once)
    assert (again.passages_cut, again.texts_cut) == (0, 0)


@settings(max_examples=50)
@given(EVENTS)
def test_encode_without_clamp(event: Event) -> None:
    """Encoding alone is strict too, for any event."""
    strict(encode(event))


def test_all_fields() -> None:
    """Every field arrives under its name on Seer's page, as it was given."""
    event = Event(
        task="Who directed Inception?",
        context=(
            Passage("Nolan directed it.", "doc-1", "wiki", 0.95, {"page": 1, "tags": ["film"]}),
            Passage("He is British-American."),
        ),
        metadata={"env": "prod"},
        trace_id="a" * 32,
        span_id="b" * 16,
        parent_span_id="c" * 16,
        span_name="retrieve",
        is_final_context=True,
        subquery="Who is Nolan?",
        ground_truth=GroundTruth(("doc-1", "doc-2"), "Christopher Nolan"),
        created_at="2026-11-30T21:00:00.000000Z",
        sample_rate=0.25,
    )
    assert strict(encode(clamp(event).event)) == {
        "task": "Who directed Inception?",
        "context": [
            {
                "text": "Nolan directed it.",
                "id": "doc-1",
                "source": "wiki",
                "score": 0.95,
                "metadata": {"page": 1, "tags": ["film"]},
            },
            {"text": "He is British-American."},
        ],
        "metadata": {"env": "prod"},
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
        "parent_span_id": "c" * 16,
        "span_name": "retrieve",
        "is_final_context": True,
        "subquery": "Who is Nolan?",
        "ground_truth": {"gold_doc_ids": ["doc-1", "doc-2"], "answer": "Christopher Nolan"},
        "created_at": "2026-11-30T21:00:00.000000Z",
        "sample_rate": 0.25,
    }


def test_absent_fields() -> None:
    """What an event does not have is not in the body; whether it is final, and an empty context, always are."""
    event = Event("Who?", (), ground_truth=GroundTruth(("a",)))
    expected = {"task": "Who?", "context": [], "is_final_context": False}
    assert strict(encode(event)) == {**expected, "ground_truth": {"gold_doc_ids": ["a"]}}
    assert strict(encode(clamp(replace(event, ground_truth=None)).event)) == expected


def test_falsy_fields() -> None:
    """0 is a score and a rate; empty texts are texts."""
    body = strict(encode(Event("Who?", (Passage("a", id="", score=0.0),), sample_rate=0.0, subquery="")))
    assert body["context"] == [{"text": "a", "id": "", "score": 0.0}]
    assert (body["sample_rate"], body["subquery"]) == (0.0, "")


def test_best_ranked_stay() -> None:
    """Of too many passages the first ones stay, in their order."""
    event = Event("Who?", tuple(Passage(str(rank)) for rank in range(120)))
    clamped = clamp(event)
    assert [passage.text for passage in clamped.event.context] == [str(rank) for rank in range(MAX_PASSAGES)]
    assert clamped.passages_cut == clamped.event.metadata[PASSAGES_CUT] == 70
    assert TEXTS_CUT not in clamped.event.metadata


def test_limit_counts_code_points() -> None:
    """4,000 emoji fit, though they are 16,000 bytes; one more does not, and no emoji is halved."""
    fits = clamp(Event("Who?", (Passage("\N{GRINNING FACE}" * MAX_TEXT),)))
    assert (fits.texts_cut, len(fits.event.context[0].text)) == (0, MAX_TEXT)
    halves = clamp(Event("Who?", (Passage("\ud83d\ude00" * (MAX_TEXT + 1)),)))
    assert (halves.texts_cut, halves.event.context[0].text) == (1, "\N{GRINNING FACE}" * MAX_TEXT)
    answer = "\ud83d\ude00" * MAX_QUESTION
    joined = clamp(Event("Who?", (), ground_truth=GroundTruth((), "a" + answer)))
    assert joined.event.ground_truth == GroundTruth((), "a" + "\N{GRINNING FACE}" * (MAX_QUESTION - 1))


def test_marks_are_never_cut() -> None:
    """However full the metadata is, what was cut is said, and that metadata was."""
    event = Event(
        "?" * (MAX_QUESTION + 1), (Passage("a", metadata={"b": "c" * 9_000, "d": 1}),), {"e": "f" * 9_000}
    )
    metadata = clamp(event).event.metadata
    assert metadata == {TEXTS_CUT: 1, METADATA_CUT: 2}


@pytest.mark.parametrize(("size", "fits"), [(MAX_METADATA, True), (MAX_METADATA + 1, False)])
def test_metadata_limit(size: int, fits: bool) -> None:
    """8,192 bytes fit, alone and beside what does not; one more does not."""
    alone = {"key": "v" * (size - len(compact({"key": ""})))}
    assert bounded_metadata(alone) == ((alone, 0) if fits else ({}, 1))
    assert bounded_metadata({"long": "v" * 9_000, **alone}) == ((alone, 1) if fits else ({}, 2))
    two = {"a": 1, "key": "v" * (size - len(compact({"a": 1, "key": ""})))}
    assert bounded_metadata({"long": "v" * 9_000, **two}) == ((two, 1) if fits else ({"a": 1}, 2))


@given(st.dictionaries(CLEAN, st.integers(0, 9_000).map(lambda length: Long("ü" * length)), max_size=8))
def test_metadata_fits(metadata: dict[str, str]) -> None:
    """The limit counts bytes of UTF-8; keys go whole, in order, and only where the next one does not fit."""
    kept, dropped = bounded_metadata(metadata)
    clean = plain(metadata)
    assert len(kept) + dropped == len(clean)
    assert kept.items() <= clean.items()
    assert [key for key in clean if key in kept] == list(kept)
    assert len(compact(kept)) <= MAX_METADATA
    for key in clean.keys() - kept.keys():
        assert len(compact(kept | {key: clean[key]})) > MAX_METADATA


def test_metadata_of_no_use() -> None:
    """A mapping that raises costs its content only."""
    assert bounded_metadata(Lies()) == ({}, 0)
    assert strict(encode(clamp(Event("Who?", (Passage("a", metadata=Lies()),), Lies())).event)) == {
        "task": "Who?",
        "context": [{"text": "a"}],
        "is_final_context": False,
    }


@settings(max_examples=50)
@given(EVENTS)
def test_shrink(event: Event) -> None:
    """Shrunk, an event is strict JSON with all passages in their order, shorter texts, and no passage metadata."""
    body = encode(clamp(event).event)
    whole, shrunk = strict(body), strict(shrink(body))
    assert [passage["text"] for passage in shrunk["context"]] == [
        passage["text"][:SHRUNK_TEXT] for passage in whole["context"]
    ]
    assert not any("metadata" in passage for passage in shrunk["context"])
    assert shrunk["metadata"][TEXTS_CUT] >= sum(
        len(passage["text"]) > SHRUNK_TEXT for passage in whole["context"]
    )
    assert shrunk.keys() - {"metadata"} == whole.keys() - {"metadata"}
    assert strict(shrink(shrink(body))) == shrunk


def test_shrink_counts() -> None:
    """What an earlier cut cost stays counted; a value of the user's under our key does not disturb."""
    long = Event("Who?", (Passage("a" * 5_000), Passage("b")))
    assert strict(shrink(encode(clamp(long).event)))["metadata"] == {TEXTS_CUT: 1}
    question = Event("?" * (MAX_QUESTION + 1), (Passage("b"),))
    assert strict(shrink(encode(clamp(question).event)))["metadata"] == {TEXTS_CUT: 1}
    users = Event("Who?", (Passage("a" * 2_000),), {TEXTS_CUT: "many", "env": "prod"})
    assert strict(shrink(encode(clamp(users).event)))["metadata"] == {TEXTS_CUT: 1, "env": "prod"}


@given(
    st.dictionaries(
        st.text(max_size=4),
        TEXT | st.integers() | st.floats() | st.booleans() | st.none() | st.lists(st.integers(), max_size=2),
        max_size=5,
    )
)
@example({"a": float("nan")})
@example({"a": "\ud800"})
@example({"a": "\0"})
@example({"a": 2**64})
def test_metadata_at_a_glance(metadata: dict[str, Any]) -> None:
    """Metadata that is handed on as it stands is what making it plain gives; so is what is not."""
    kept, dropped = bounded_metadata(metadata)
    assert dropped == 0
    assert compact(dict(kept)) == compact(plain(metadata))


class Unlooked(list[int]):
    """A value that nobody may look into."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError


@pytest.mark.parametrize("value", ["x" * 100_000, b"x" * 100_000, Unlooked(range(10_000))])
def test_huge_metadata_is_not_looked_into(value: object) -> None:
    """What is far too large goes by its length alone, and counts as cut."""
    assert bounded_metadata({"huge": value, "a": 1}) == ({"a": 1}, 1)


def test_very_many_keys() -> None:
    """Keys beyond those that can fit are not converted, and count as cut."""
    few = {str(number): number for number in range(2_000)}
    kept, dropped = bounded_metadata({**few, **{f"more {number}": Unlooked() for number in range(3_000)}})
    assert len(kept) + dropped == 5_000
    assert len(kept) < 2_000


@pytest.mark.parametrize("rest", [0, 1, 7_000])
def test_text_of_bad_characters(rest: int) -> None:
    """A long text full of what is removed still gives what is behind that, up to the limit."""
    clamped = clamp(Event("Who?", (Passage("\0" * 20_000 + "x" * rest),)))
    assert clamped.event.context[0].text == "x" * min(rest, MAX_TEXT)
    assert clamped.texts_cut == (rest > MAX_TEXT)


def test_clamp_keeps_what_fits() -> None:
    """An event within the limits comes back as the same object, with its passages."""
    event = Event("Who?", (Passage("a", metadata={"b": 1.5}),), {"c": "d"}, subquery="What?")
    assert clamp(event).event is event


def test_blank_beginning() -> None:
    """Of a very long text the beginning tells whether there is anything to read in it."""
    assert not is_blank("\0" * 50_000 + "x")
    assert is_blank("\0" * 200_000 + "x")
    assert is_blank(" " * 200_000 + "x")


def nested(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("metadata", "kept", "cut"),
    [
        pytest.param({"a": [1, {"b": (2,)}]}, {"a": [1, {"b": (2,)}]}, 0, id="plain"),
        pytest.param({"a": nested(1, MAX_DEPTH - 1)}, {"a": nested(1, MAX_DEPTH - 1)}, 0, id="deep"),
        pytest.param({"a": nested(1, MAX_DEPTH)}, {"a": nested(None, MAX_DEPTH - 1)}, 0, id="too deep"),
        pytest.param({"a": [math.nan, Colour.RED]}, {"a": [None, "Colour.RED"]}, 0, id="to be cleaned"),
        pytest.param({"a": [[1] * 5_000], "b": 2}, {"b": 2}, 1, id="too large as it stands"),
        pytest.param({"a": [math.nan] * 3_000, "b": 2}, {"b": 2}, 1, id="too large once it is clean"),
        pytest.param({"a": [[math.nan] * 8_000], "b": [math.nan]}, {}, 2, id="too much to clean"),
        pytest.param({"a": ["x" * 9_000, math.nan], "b": 2}, {"b": 2}, 1, id="a long text inside"),
        pytest.param({"a": "x" * 9_000, "b": 2}, {"b": 2}, 1, id="a long text"),
        pytest.param({"a": "\ud800" * 4_200, "b": 2}, {"b": 2}, 1, id="halves, too many"),
        pytest.param({"a": "\ud83d\ude00" * 2_040}, {"a": "\U0001f600" * 2_040}, 0, id="pairs that fit"),
        pytest.param({"a": "x\0" * 4_000, "b": 2}, {"a": "x" * 4_000, "b": 2}, 0, id="NULs that go"),
        pytest.param({"a": {"b": {math.nan}, "c": b"\0d"}}, {"a": {"b": [None], "c": "d"}}, 0, id="a set"),
        pytest.param({"a": set(range(9_000)), "b": 2}, {"b": 2}, 1, id="a large set"),
        pytest.param(
            {"a": "x" * 8_178, "b": 2, "c": 3}, {"a": "x" * 8_178, "b": 2}, 1, id="no room for more"
        ),
    ],
)
def test_metadata_member_by_member(metadata: dict[str, Any], kept: dict[str, Any], cut: int) -> None:
    """Each member that is no plain value is handed on, cleaned, or left out for its size or for the effort."""
    assert bounded_metadata(metadata) == (kept, cut)


def test_more_values_than_can_fit() -> None:
    """A member of metadata that holds more values than the limit has bytes is left out without a look at each."""
    shared: object = 1
    for _ in range(6):
        shared = [shared] * 40  # four thousand million, were each looked at
    clamped = clamp(Event("a question", (), {"shared": shared, "small": 1})).event
    assert clamped.metadata == {"small": 1, METADATA_CUT: 1}
