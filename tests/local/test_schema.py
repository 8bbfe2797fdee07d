from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.event import Event, GroundTruth, Passage, clamp, encode
from seer_otel.local.schema import MAX_NESTING, InvalidEventError, NotJsonError, instant, parse
from seer_otel.strict import clean_text

TEXT = st.text(max_size=30)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT)
METADATA = st.dictionaries(
    TEXT,
    st.recursive(
        SCALARS, lambda of: st.one_of(st.lists(of, max_size=3), st.dictionaries(TEXT, of, max_size=3))
    ),
)
PASSAGES = st.builds(
    Passage,
    TEXT,
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
EVENTS = st.builds(
    Event,
    task=TEXT.filter(lambda text: text.replace("\0", "").strip()),
    context=st.lists(PASSAGES, max_size=60).map(tuple),
    metadata=METADATA,
    trace_id=st.none() | st.from_regex("[0-9a-f]{32}", fullmatch=True),
    span_id=st.none() | st.from_regex("[0-9a-f]{16}", fullmatch=True),
    parent_span_id=st.none() | st.from_regex("[0-9a-f]{16}", fullmatch=True),
    span_name=st.none() | TEXT,
    is_final_context=st.booleans(),
    subquery=st.none() | TEXT,
    ground_truth=st.none() | st.builds(GroundTruth, st.lists(TEXT, max_size=3).map(tuple), st.none() | TEXT),
    created_at=st.none() | st.datetimes(timezones=st.just(timezone.utc)).map(datetime.isoformat),
    sample_rate=st.none() | st.floats(0, 1),
)


def body(**fields: Any) -> bytes:
    """A small event with `fields` added or replaced."""
    return json.dumps({"task": "What is ML?", "context": []} | fields).encode()


@given(EVENTS)
def test_what_the_client_sends_is_accepted(event: Event) -> None:
    """Every event that our own client clamps and encodes is read back with its values."""
    sent = clamp(event).event
    read = parse(encode(sent))
    assert (read.task, read.trace_id, read.span_id) == (clean_text(sent.task), sent.trace_id, sent.span_id)
    assert [passage.text for passage in read.passages()] == [
        clean_text(passage.text) for passage in sent.context
    ]
    assert read.is_final_context == sent.is_final_context
    assert read.sample_rate == sent.sample_rate


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"context": ["a", "b", "c", {"text": 4}]}, "context[3].text"),
        ({"context": [{"text": "a" * 4_001}]}, "context[0].text"),
        ({"context": ["a" * 4_001]}, "context[0]"),
        ({"context": ["a"] * 51}, "context"),
        ({"context": "a"}, "context"),
        ({"context": [["a"]]}, "context[0]"),
        ({"context": [{"id": "a"}]}, "context[0].text"),
        ({"context": [{"text": "a", "id": 7}]}, "context[0].id"),
        ({"context": [{"text": "a", "score": "1"}]}, "context[0].score"),
        ({"context": [{"text": "a", "metadata": []}]}, "context[0].metadata"),
        ({"context": None}, "context"),
        ({"task": None}, "task"),
        ({"task": ""}, "task"),
        ({"task": " \n\t"}, "task"),
        ({"metadata": "a"}, "metadata"),
        ({"trace_id": "a" * 31}, "trace_id"),
        ({"trace_id": "A" * 32}, "trace_id"),
        ({"trace_id": "a" * 32 + "\n"}, "trace_id"),
        ({"span_id": "a" * 32}, "span_id"),
        ({"parent_span_id": "g" * 16}, "parent_span_id"),
        ({"is_final_context": 1}, "is_final_context"),
        ({"sample_rate": 1.01}, "sample_rate"),
        ({"sample_rate": -0.1}, "sample_rate"),
        ({"sample_rate": True}, "sample_rate"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"created_at": 1_700_000_000}, "created_at"),
        ({"created_at": "9999-12-31T23:59:59-12:00"}, "created_at"),
        ({"ground_truth": {}}, "ground_truth.gold_doc_ids"),
        ({"ground_truth": {"gold_doc_ids": [1]}}, "ground_truth.gold_doc_ids[0]"),
        ({"ground_truth": {"gold_doc_ids": [], "answer": 4}}, "ground_truth.answer"),
    ],
)
def test_what_is_wrong_has_a_path(fields: dict[str, Any], field: str) -> None:
    """An event that breaks the schema or a limit is refused with the path of the field."""
    with pytest.raises(InvalidEventError) as caught:
        parse(body(**fields))
    assert caught.value.field == field


@pytest.mark.parametrize(("fields", "field"), [({"context": []}, "task"), ({"task": "a"}, "context")])
def test_what_is_missing_has_a_path(fields: dict[str, Any], field: str) -> None:
    """An event without a field that must be there is refused with the path of that field."""
    with pytest.raises(InvalidEventError) as caught:
        parse(json.dumps(fields))
    assert caught.value.field == field


@pytest.mark.parametrize("other", [b"[]", b"null", b'"text"', b"1", b"{}"])
def test_json_that_is_no_event(other: bytes) -> None:
    """Any JSON value but an object with a task and a context is refused as no event."""
    with pytest.raises(InvalidEventError):
        parse(other)


def test_what_is_tolerated() -> None:
    """Null for each optional field, unknown keys, texts as passages, and an empty context are accepted."""
    optional = (
        "metadata",
        "trace_id",
        "span_id",
        "parent_span_id",
        "span_name",
        "is_final_context",
        "subquery",
    )
    absent = dict.fromkeys((*optional, "ground_truth", "created_at", "sample_rate"))
    assert parse(body(**absent, new_field={"a": 1})).context == []
    passage = dict.fromkeys(("id", "source", "score", "rank", "metadata")) | {"text": "a", "more": 1}
    assert [each.text for each in parse(body(context=["b", passage])).passages()] == ["b", "a"]
    assert parse(body(ground_truth={"gold_doc_ids": [], "answer": None})).ground_truth is not None
    assert parse(body(sample_rate=1, context=[{"text": "", "score": 1}])).sample_rate == 1.0


def test_the_limits_are_inclusive_and_count_code_points() -> None:
    """50 passages of 4,000 characters outside the basic plane are accepted."""
    assert len(parse(body(context=["\N{GRINNING FACE}" * 4_000] * 50)).context) == 50


def test_each_cut_is_no_json() -> None:
    """A body cut anywhere is refused as no JSON, never as an event with a wrong field."""
    whole = body(context=["a", {"text": "b", "score": 1.5}], sample_rate=0.5, metadata={"k": [True, None]})
    for length in range(len(whole)):
        with pytest.raises(NotJsonError):
            parse(whole[:length])


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"task": "a", "context": [], "metadata": {"x": NaN}}',
        b'{"task": "\\ud800", "context": []}',
        b'{"task": "\xff", "context": []}',
        b"\xef\xbb\xbf{}",
        b"task=a",
        body() + b"x",
    ],
)
def test_what_strict_json_forbids(wrong: bytes) -> None:
    """NaN, half a surrogate pair, broken UTF-8 and anything after the value are no JSON."""
    with pytest.raises(NotJsonError):
        parse(wrong)


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 1_000, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting(levels: int, opening: str) -> None:
    """A body nested deeper than the limit is refused, in known and unknown keys, however deep it is."""
    closing = "]" if opening == "[" else "}"
    value = opening * (levels - 1) + "1" + closing * (levels - 1)
    for key in ("metadata", "unknown"):
        with pytest.raises(NotJsonError, match="64 levels"):
            parse(f'{{"task": "a", "context": [], "{key}": {value}}}'.encode())


def test_nesting_within_the_limit() -> None:
    """A body of exactly as many levels as allowed is accepted."""
    value = "[" * (MAX_NESTING - 1) + "1" + "]" * (MAX_NESTING - 1)
    parse(f'{{"task": "a", "context": [], "unknown": {value}}}'.encode())


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-04T05:06:07Z",
        "2026-03-04T05:06:07+00:00",
        "2026-03-04T05:06:07",
        "2026-03-04 05:06:07",
        "2026-03-04T07:06:07+02:00",
        "2026-03-04T05:06:07.000000000Z",
    ],
)
def test_times(text: str) -> None:
    """ISO 8601 times with and without offset and fraction are one moment in UTC."""
    assert instant(text) == datetime(2026, 3, 4, 5, 6, 7, tzinfo=timezone.utc)


def test_a_date_alone() -> None:
    """A date without a time is its first moment."""
    assert instant("2026-03-04") == datetime(2026, 3, 4, tzinfo=timezone.utc)
