"""Documents out of span attributes: indices, fields, ids, scores, sources, metadata."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seer_otel.conventions.documents import (
    MAX_ALL_METADATA,
    MAX_METADATA,
    document,
    documents,
    fields_of,
    id_of,
    is_empty_list,
    number,
    output_elements,
    source_of,
    text_of,
    unflatten,
)
from seer_otel.conventions.layout import MAX_DOCUMENTS
from seer_otel.conventions.openinference import retrieval
from seer_otel.privacy import REDACTED
from seer_otel.retrieval import Document, State
from seer_otel.spans import Span
from seer_otel.strict import bounded_metadata

from ..hostile import Fails, Lies

PREFIX = "retrieval.documents"

NO_NUMBERS = ["01", "00", "-1", "+1", " 1", "1 ", "1\n", "1_0", "1e3", "0x1", "", "x"]
# Python's str.isdigit() and int() take these for numbers.
NO_NUMBERS += ["\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT THREE}", "9" * 5_000]
INDICES = st.integers(0, 1_200).map(str) | st.sampled_from(["999999999", "1000000000", *NO_NUMBERS])
FIELDS = st.sampled_from(["content", "id", "score", "metadata"])
VALUES = st.text(max_size=5) | st.integers() | st.floats(allow_nan=False) | st.booleans()


def key(index: str, field: str) -> str:
    return f"{PREFIX}.{index}.document.{field}"


@given(st.dictionaries(st.tuples(INDICES, FIELDS), VALUES, max_size=40), st.randoms())
@example({(str(index), "content"): "x" for index in range(500)}, None)
@example({("9" * 5_000, "content"): "x", ("01", "content"): "y", ("1", "content"): "z"}, None)
def test_unflatten(values: dict[tuple[str, str], Any], random: Any) -> None:
    """Fields are grouped by index and ranked by it as a number; a key whose index is none is passed over."""
    items = [(key(index, field), value) for (index, field), value in values.items()]
    if random is not None:
        random.shuffle(items)
    expected: dict[int, dict[str, Any]] = {}
    indices = {index for index, _ in values if re.fullmatch("0|[1-9][0-9]{0,8}", index)}
    canonical = sorted((int(index), index) for index in indices)
    for rank, index in canonical:
        expected[rank] = {field: value for (other, field), value in values.items() if other == index}
    found = unflatten({"input.value": "Who?", **dict(items), "openinference.span.kind": "RETRIEVER"}, PREFIX)
    assert found == (expected or ({} if values else None))
    assert list(found or {}) == [rank for rank, _ in canonical]


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"retrieval": "x", "retrieval.documentsx": 1, "retrieval.documents_count": 3, "input.value": "a"},
        {"retrieval.documents": None, "retrieval.documents.0.document.content": None},
        {1: 2, None: 3, ("retrieval.documents",): 4},
    ],
    ids=["nothing", "other keys", "no values", "keys that are no text"],
)
def test_no_documents(attributes: Any) -> None:
    """Without a key of its own there is no list, which is something else than an empty list."""
    assert unflatten(attributes, PREFIX) is None


LISTS = [{"document.content": "a", "document.id": "1"}, {"content": "b", "score": 0.5}]


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({PREFIX: LISTS}, id="objects"),
        pytest.param({PREFIX: tuple(LISTS)}, id="tuple of objects"),
        pytest.param({PREFIX: json.dumps(LISTS)}, id="JSON"),
        pytest.param({PREFIX: json.dumps({"documents": LISTS})}, id="JSON object with the list"),
        pytest.param({PREFIX: {"documents": LISTS}}, id="object with the list"),
        pytest.param({f"{PREFIX}.0": LISTS[0], f"{PREFIX}.1": LISTS[1]}, id="object on an index"),
        pytest.param(
            {f"{PREFIX}.0.document": json.dumps(LISTS[0]), f"{PREFIX}.1": json.dumps(LISTS[1])},
            id="JSON on an index",
        ),
        pytest.param({f"{PREFIX}.1": LISTS[1], key("0", "content"): "a", key("0", "id"): "1"}, id="mixed"),
        pytest.param(
            {
                f"{PREFIX}.0.content": "a",
                f"{PREFIX}.0.id": "1",
                f"{PREFIX}.1.content": "b",
                f"{PREFIX}.1.score": 0.5,
            },
            id="flattened without document",
        ),
    ],
)
def test_not_flattened(attributes: dict[str, Any]) -> None:
    """Documents that were not flattened, or in another way, are the same documents."""
    found = unflatten(attributes, PREFIX)
    assert found is not None
    read = [document(fields) for fields in found.values()]
    assert read == [Document("a", id="1"), Document("b", score=0.5)]


@pytest.mark.parametrize("first", ["flattened", "whole"])
def test_flattened_keys_count_more(first: str) -> None:
    """Where a document stands twice its flattened fields count, whichever came first; so a mask is not undone."""
    flattened = {key("0", "content"): REDACTED, key("1", "content"): "b", key("2", "id"): "2"}
    whole = {PREFIX: [{"content": "secret", "id": "0"}, {"id": "1"}, {"content": "c", "id": "other"}]}
    attributes = flattened | whole if first == "flattened" else whole | flattened
    found = unflatten(attributes, PREFIX)
    assert found == {
        0: {"content": REDACTED, "id": "0"},
        1: {"content": "b", "id": "1"},
        2: {"content": "c", "id": "2"},
    }


def test_flattened_metadata() -> None:
    """Metadata may be flattened too, and then counts before a text of it."""
    attributes = {
        key("0", "content"): "a",
        key("0", "metadata"): '{"source": "wiki", "page": 1}',
        key("0", "metadata.page"): 2,
        key("0", "metadata.author.name"): "Nolan",
    }
    found = unflatten(attributes, PREFIX)
    assert found is not None
    assert document(found[0]) == Document(
        "a", source="wiki", metadata={"source": "wiki", "page": 2, "author.name": "Nolan"}
    )


def test_huge_lists() -> None:
    """Of very many documents the best-ranked are read, whatever form they have."""
    many = MAX_DOCUMENTS + 1_000
    flattened = unflatten({key(str(index), "content"): str(index) for index in reversed(range(many))}, PREFIX)
    assert flattened is not None
    assert list(flattened) == list(range(MAX_DOCUMENTS))
    text = json.dumps([{"content": str(index)} for index in range(many)])
    whole = unflatten({PREFIX: text}, PREFIX)
    assert whole == flattened
    assert output_elements(text) == [{"content": str(index)} for index in range(MAX_DOCUMENTS)]


def test_long_keys() -> None:
    """A key of unusual length is no document's, and costs no others."""
    attributes = {f"{PREFIX}.0.document.{'x' * 100_000}": "a", key("0", "content"): "b"}
    assert unflatten(attributes, PREFIX) == {0: {"content": "b"}}


@pytest.mark.parametrize("value", [[], (), "[]", " [ ] ", "{}", {}, '{"documents": []}', {"docs": []}])
def test_empty_list(value: object) -> None:
    """LangChain and DSPy say with an empty list on the bare key that nothing was found."""
    assert is_empty_list({PREFIX: value}, PREFIX)


@pytest.mark.parametrize(
    "value", [None, "", "none", [{}], '[{"content": "a"}]', [""], 0, False, '{"documents": null}']
)
def test_no_empty_list(value: object) -> None:
    """Everything else is no empty list."""
    assert not is_empty_list({PREFIX: value}, PREFIX)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        (" a ", " a "),
        (b"caf\xc3\xa9", "café"),
        (b"\xff", "\ufffd"),
        (0, "0"),
        (1.5, "1.5"),
        (10**700, hex(10**700)),
        (10**5_000, hex(10**5_000)),
        *(
            (nothing, None)
            for nothing in ("", "  ", "\0", b"", None, True, False, [], ["a"], {"a": 1}, object())
        ),
    ],
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) or value < 9 else "huge",
)
def test_text(value: object, text: str | None) -> None:
    """A passage's text is a text that is not blank, or a number; nothing is made of anything else."""
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("value", "identity"),
    [
        ("doc-1", "doc-1"),
        (0, "0"),
        (7, "7"),
        (-1, "-1"),
        (2**127, str(2**127)),
        (1.5, "1.5"),
        *((nothing, None) for nothing in (None, "", " ", "\0", REDACTED, f" {REDACTED}", True, False)),
        *((nothing, None) for nothing in (math.nan, math.inf, [1], {"a": 1})),
    ],
)
def test_id(value: object, identity: str | None) -> None:
    """0 is an id; null, the empty text, a boolean and the mark of a hidden value are none."""
    assert id_of(value) == identity


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (0.5, 0.5),
        (0, 0.0),
        (-3.2, -3.2),
        (20, 20.0),
        ("0.5", 0.5),
        (" 7 ", 7.0),
        ("-1e-3", -0.001),
        *(
            (value, None)
            for value in (math.nan, math.inf, -math.inf, "nan", "inf", "1e999", "", "high", "9" * 64, None)
        ),
        *((value, None) for value in (True, False, "True", [0.5], {"score": 1}, 10**400, b"0.5", object())),
    ],
)
def test_score(value: object, score: float | None) -> None:
    """A score is a finite number, or text that is one, as it is; a boolean is none."""
    assert number(value) == score
    assert score is None or type(number(value)) is float


@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        ({"source": "wiki", "url": "u"}, "wiki"),
        ({"url": "u", "doc_uri": "d"}, "d"),
        ({"file_name": "n", "file_path": "p", "url": "u"}, "u"),
        ({"file_name": "n", "file_path": "p"}, "p"),
        ({"file_name": "n"}, "n"),
        ({"source": "", "url": "u"}, "u"),
        ({"source": "\0", "url": "u"}, "u"),
        ({"source": 3, "url": ["u"], "file_name": "n"}, "n"),
        ({"source": REDACTED, "url": "u"}, "u"),
        ({"location": {"s3Location": {"uri": "s3://b/k"}, "type": "S3"}}, "s3://b/k"),
        ({"location": {"s3Location": {"uri": REDACTED}}}, None),
        ({"location": {"s3Location": "s3://b/k"}}, None),
        ({"location": "here"}, None),
        ({"location": {"webLocation": {"url": "u"}}}, None),
        ({}, None),
    ],
)
def test_source(metadata: dict[str, Any], source: str | None) -> None:
    """The source is the first of the usual metadata keys that has a text, else Bedrock's S3 address."""
    assert source_of(metadata) == source


@pytest.mark.parametrize(
    ("metadata", "read"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        (json.dumps('{"a": 1}'), {"a": 1}),
        ('{"a": {"b": [1]}}', {"a": {"b": [1]}}),
        *((value, {}) for value in ("{}", "", "text", "[1]", [1], None, 3, True, "NaN", REDACTED)),
        *((value, {}) for value in ("{'a': 1}", '{"a": 1')),
        (json.dumps(json.dumps(json.dumps({"a": 1}))), {}),
    ],
)
def test_metadata(metadata: object, read: dict[str, Any]) -> None:
    """Metadata is an object, as JSON or as JSON of JSON; a repr, a list and JSON that was cut are none."""
    assert document({"content": "x", "metadata": metadata}) == Document(
        "x", metadata=read, masked=metadata == REDACTED
    )


def test_metadata_with_nan() -> None:
    """One NaN does not cost the metadata around it."""
    read = document({"content": "x", "metadata": '{"source": "wiki", "score": NaN, "relevance_score": 0.5}'})
    assert read is not None
    assert (read.source, read.score) == ("wiki", 0.5)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"score": 0.5, "metadata": {"score": 0.9}}, 0.5, id="own"),
        pytest.param({"metadata": {"score": 0.9, "relevance_score": 0.1}}, 0.9, id="metadata"),
        pytest.param({"metadata": {"relevance_score": "0.1"}}, 0.1, id="relevance"),
        pytest.param(
            {"score": "n/a", "metadata": {"score": False, "relevance_score": 0.1}}, 0.1, id="unreadable"
        ),
        pytest.param({"score": 0, "metadata": {"score": 0.9}}, 0.0, id="zero counts"),
        pytest.param({"metadata": {"distance": 0.3}}, None, id="a distance is no score"),
    ],
)
def test_score_from_metadata(fields: dict[str, Any], expected: float | None) -> None:
    """Without a score of its own a document has the one that the retriever wrote into its metadata."""
    read = document({"content": "x", **fields})
    assert read is not None
    assert read.score == expected


def test_id_from_metadata() -> None:
    """Only metadata keys that a setting names hold ids."""
    fields = {"content": "x", "metadata": {"doc_id": 0, "uuid": "u"}}
    assert [
        read.id for keys in ((), ("uuid",), ("none", "doc_id", "uuid")) if (read := document(fields, keys))
    ] == [
        None,
        "u",
        "0",
    ]
    own = document({**fields, "id": "own"}, ("uuid",))
    assert own is not None
    assert own.id == "own"


@pytest.mark.parametrize(
    "content", [None, "", " ", REDACTED, f"\n{REDACTED}", REDACTED.encode(), True, ["a"]]
)
def test_no_document(content: object) -> None:
    """Without a text, or with a hidden one, there is no document, whatever else is known of it."""
    assert document({"content": content, "id": "1", "score": 1.0}) is None


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        ({"id": REDACTED}, Document("x", masked=True)),
        ({"metadata": REDACTED}, Document("x", masked=True)),
        ({"metadata": {"source": REDACTED, "page": 1}}, Document("x", metadata={"page": 1}, masked=True)),
        ({"metadata": {"a": [REDACTED, {"b": REDACTED}]}}, Document("x", metadata={"a": [{}]})),
        ({"metadata.": {"source": REDACTED}}, Document("x", masked=True)),
    ],
)
def test_masked(fields: dict[str, Any], read: Document) -> None:
    """A hidden field is absent, and the document says that something of it is hidden."""
    assert document({"content": "x", **fields}) == read


@pytest.mark.parametrize(
    ("element", "fields"),
    [
        pytest.param({"content": "a"}, {"content": "a"}, id="content"),
        pytest.param({"page_content": "a", "type": "Document"}, {"content": "a"}, id="LangChain"),
        pytest.param({"text": "a"}, {"content": "a"}, id="text"),
        pytest.param({"content": "", "text": "a"}, {"content": "a"}, id="first that is not blank"),
        pytest.param({"content": "a", "text": REDACTED}, {"content": REDACTED}, id="one text hidden"),
        pytest.param(
            {"content": "a", "id": 0, "score": 0}, {"content": "a", "id": 0, "score": 0}, id="zeros"
        ),
        pytest.param({"content": "a", "id": None, "score": None}, {"content": "a"}, id="nulls"),
        pytest.param(
            {"content": "a", "metadata": {"b": 1}}, {"content": "a", "metadata": {"b": 1}}, id="metadata"
        ),
        pytest.param({"content": "a", "meta": '{"b": 1}'}, {"content": "a", "metadata": {"b": 1}}, id="meta"),
        pytest.param(
            {"content": "a", "url": "u", "page": None, "metadata": {"b": 1}},
            {"content": "a", "metadata": {"url": "u", "b": 1}},
            id="other keys are metadata",
        ),
        pytest.param(
            {"content": "a", "embedding": [0.1], "vector": [0.2]}, {"content": "a"}, id="no vectors"
        ),
        pytest.param(
            {"content": "a", "metadata": REDACTED}, {"content": "a", "metadata": REDACTED}, id="hidden"
        ),
        pytest.param(
            {"content": "a", "meta": REDACTED}, {"content": "a", "metadata": REDACTED}, id="hidden meta"
        ),
        pytest.param(
            {"node": {"text": "a", "id": "n", "metadata": {"b": 1}}, "score": 0.5, "rank": 1},
            {"content": "a", "id": "n", "score": 0.5, "metadata": {"b": 1}, "rank": 1},
            id="text in the object inside",
        ),
        pytest.param({"id": "a"}, {"content": None, "id": "a"}, id="no text"),
        pytest.param({"content": {"a": 1}}, {"content": None}, id="content that is no text"),
        pytest.param(["a"], None, id="list"),
        pytest.param("a", None, id="bare text"),
        pytest.param(None, None, id="null"),
    ],
)
def test_fields(element: object, fields: dict[str, Any] | None) -> None:
    """The fields of a document that is an object, as frameworks and people write it."""
    assert fields_of(element) == fields


@pytest.mark.parametrize(
    ("value", "elements"),
    [
        pytest.param('[{"content": "a"}]', [{"content": "a"}], id="list"),
        pytest.param('["a", "b"]', ["a", "b"], id="texts or reprs"),
        pytest.param([{"content": "a"}], [{"content": "a"}], id="list that the SDK kept"),
        pytest.param('{"documents": [{"page_content": "a"}]}', [{"page_content": "a"}], id="LangChain"),
        pytest.param('{"documents": ["Document(id=1)"]}', ["Document(id=1)"], id="Haystack"),
        pytest.param(
            '{"answer": "x", "hits": [{"text": "a"}], "tags": ["b"]}', [{"text": "a"}], id="some key"
        ),
        pytest.param('{"data": {"x": [{"text": "a"}]}}', [{"text": "a"}], id="nested"),
        pytest.param(
            '{"usage": [{"tokens": 3}], "foo": [{"text": "a"}]}', [{"text": "a"}], id="the one with texts"
        ),
        pytest.param(
            '{"usage": [{"tokens": 3}], "documents": []}', [], id="empty beside objects without text"
        ),
        pytest.param('{"documents": [], "embedding": [0.1]}', [], id="empty beside a vector"),
        pytest.param('{"documents": [{"id": 1, "score": 0.5}]}', [{"id": 1, "score": 0.5}], id="OTel GenAI"),
        pytest.param('{"found": []}', [], id="the only list"),
        pytest.param("[]", [], id="empty list"),
        pytest.param("{}", [], id="empty object"),
        pytest.param({}, [], id="empty object that the SDK kept"),
        pytest.param('{"a": [1], "b": [2]}', None, id="two lists of something"),
        pytest.param('{"answer": "Nolan"}', None, id="no list"),
        pytest.param('{"documents": null}', None, id="null"),
        pytest.param('"text"', None, id="JSON text"),
        pytest.param("Nolan directed it.", None, id="text"),
        pytest.param("[Document(id=1)]", None, id="repr"),
        pytest.param('{"documents": [{"page_con', None, id="cut"),
        pytest.param(REDACTED, None, id="hidden"),
        pytest.param("", None, id="nothing"),
        pytest.param(None, None, id="none"),
        pytest.param(3, None, id="number"),
        pytest.param(b"[]", None, id="bytes"),
    ],
)
def test_output(value: object, elements: list[Any] | None) -> None:
    """Where an output has its list of documents; an empty list is a list, no list is none."""
    assert output_elements(value) == elements


def test_output_of_many_objects() -> None:
    """Objects nested by the thousand, or side by side, are looked through as far as is reasonable."""
    deep: dict[str, Any] = {"documents": [{"text": "a"}]}
    for _ in range(200):
        deep = {"inner": deep}
    assert output_elements(deep) == [{"text": "a"}]
    wide = {str(number): {"a": 1} for number in range(20_000)}
    assert output_elements({**wide, "x": {"documents": []}}) is None
    assert output_elements({"x": {"documents": []}, **wide}) == []
    lists = {str(number): [number] for number in range(20_000)}
    assert output_elements({"documents": [{"text": "a"}], **lists}) == [{"text": "a"}]


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.builds(Fails),
    st.builds(Lies),
    st.sampled_from(
        [10**700, REDACTED, '{"content": "a", "metadata": "{}"}', "[[{}]]", '{"a":' * 3_000, "\0"]
    ),
)
KEYS = st.sampled_from(["content", "text", "id", "score", "metadata", "documents", "location"])
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(KEYS | st.text(max_size=3), inner)
    ),
    max_leaves=10,
)
PLACES = st.sampled_from(["", ".0", ".1.document", ".", "..", ".0.", ".2.document.metadata.a"]).map(
    PREFIX.__add__
)


@given(st.dictionaries(PLACES | st.builds(key, st.integers(0, 3).map(str), FIELDS), ANYTHING))
def test_any_value(attributes: dict[str, Any]) -> None:
    """Values of any type are read or passed over; what is read has a text that may be sent."""
    for fields in (unflatten(attributes, PREFIX) or {}).values():
        read = document(fields, ("id",))
        if read is not None:
            assert read.text.strip("\0 ")
            assert read.text.strip() != REDACTED
            assert read.score is None or math.isfinite(read.score)
            assert read.id is None or (read.id.strip() and read.id.strip() != REDACTED)
    is_empty_list(attributes, PREFIX)


@pytest.mark.parametrize(
    "whole",
    [
        ('{"content": "a", "id": "1"}', '{"content": "b", "id": "2"}'),
        {"0": {"document": {"content": "a", "id": "1"}}, "1": {"document": {"content": "b", "id": "2"}}},
        json.dumps(json.dumps([{"content": "a", "id": "1"}, {"content": "b", "id": "2"}])),
    ],
    ids=["list of JSON texts", "object by index", "JSON of JSON"],
)
def test_other_ways_to_hold_the_whole_list(whole: object) -> None:
    """The list on the bare key may be a list of JSON texts, the one form that OpenTelemetry has always allowed."""
    found = unflatten({PREFIX: whole}, PREFIX)
    assert found is not None
    assert [(fields["content"], fields["id"]) for fields in found.values()] == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize("key", ["page_content", "text"])
def test_flattened_under_another_name(key: str) -> None:
    """A flattened text may have the names that it has in JSON."""
    assert unflatten({f"{PREFIX}.0.document.{key}": "a"}, PREFIX) == {0: {key: "a", "content": "a"}}


def test_source_in_flattened_metadata() -> None:
    """An S3 address is found in metadata that was flattened to its leaves, too."""
    fields = {"content": "a", "metadata.": {"location.s3Location.uri": "s3://b/k"}}
    found = document(fields)
    assert found is not None
    assert found.source == "s3://b/k"


def test_number_with_an_underscore() -> None:
    """Python's way of writing 10 as 1_0 is no score."""
    assert number("1_0") is None


@given(
    st.dictionaries(
        st.sampled_from(["a", "source", REDACTED]),
        st.sampled_from([REDACTED, f" {REDACTED}\n", "x", "é", 1, None, [REDACTED, "x"], {"b": REDACTED}]),
        max_size=3,
    ),
    st.booleans(),
)
@example({"a": "\\u005f"}, True)
def test_marks_in_metadata(metadata: dict[str, Any], ascii: bool) -> None:
    """Metadata as JSON text loses the same marks as the same metadata as an object, however they are spelled."""
    plain = json.dumps(metadata, ensure_ascii=ascii)
    spelled = plain.replace("__REDACTED__", "\\u005f_REDACTED__")
    as_object = document({"content": "x", "metadata": metadata})
    assert document({"content": "x", "metadata": plain}) == as_object
    assert document({"content": "x", "metadata": spelled}) == as_object


def test_huge_metadata_stays_unread() -> None:
    """Metadata text beyond what an event could take is not parsed: one value, too long to be sent, stands for it."""
    text = json.dumps({"source": "a", "more": "x" * 70_000})
    found = document({"content": "x", "metadata": text})
    assert found == Document("x", metadata={"metadata": text})
    assert bounded_metadata(found.metadata) == ({}, 1)


def test_ids_have_an_end() -> None:
    """A text of thousands of characters is no id and no source."""
    assert id_of("x" * 4_000) == "x" * 4_000
    assert id_of("x" * 4_001) is None
    assert source_of({"source": "x" * 4_001, "url": "u"}) == "u"


def test_many_other_keys() -> None:
    """Keys that come once each fill no memory for good, and later ones are still read."""
    many = {f"{PREFIX}.{index}.document.x{index}": 1 for index in range(20_000)}
    unflatten(many, PREFIX)
    assert unflatten({key("3", "content"): "x", key("3", "brand new"): 1}, PREFIX) == {
        3: {"content": "x", "brand new": 1}
    }


METADATA_TEXTS = st.sampled_from(
    [
        '{"source": "wiki", "page": 1}',
        '{"source": "wiki", "page": 1}',
        '{"url": "u"}',
        '{"source": 3}',
        '{"source": " lead"}',
        "{}",
        " {} ",
        '{"a":1},{"b":2}',
        '{"a": "',
        '"}',
        '"{}"',
        "[1]",
        "null",
        '{"score": 0.3}',
        '{"a": NaN}',
        '{"a": 1.5, "b": [1, {"c": 2}]}',
        '{"doc_id": 123456789012345678901234567890}',
        '{"a": 0.12345678901234567890}',
        '{"a": "\\u0000", "b": "\\ud800"}',
        '{"a": "\ud800"}',
        f'{{"a": "{REDACTED}"}}',
        '{"a": "\\u005f_REDACTED__"}',
        REDACTED,
    ]
)
USUAL = st.fixed_dictionaries(
    {"content": st.sampled_from(["a", "b c"])},
    optional={
        "id": st.sampled_from(["1", "2"]),
        "score": st.sampled_from([0.5, 0.25, 1e308]),
        "metadata": METADATA_TEXTS,
    },
)
ODD = st.fixed_dictionaries(
    {},
    optional={
        "content": st.sampled_from(["a", "", " a", REDACTED, 3, None, b"a"]),
        "id": st.sampled_from(["1", "", " 1", REDACTED, 7, None, "x" * 4_001]),
        "score": st.sampled_from([0.5, 0.0, math.nan, math.inf, 1, "0.5", True, None]),
        "metadata": METADATA_TEXTS | st.sampled_from([{"a": 1}, None, 3]),
        "metadata.page": st.just(2),
        "text": st.just("t"),
    },
)
LISTS_OF_DOCUMENTS = st.lists(USUAL, max_size=4) | st.lists(USUAL | ODD, max_size=4)
OUTPUTS = st.none() | st.sampled_from(
    ["text", '[{"content": "a", "id": "from the output"}]', '["score=None 1"]']
)


@given(LISTS_OF_DOCUMENTS, OUTPUTS, st.sampled_from([(), ("doc_id", "page")]))
@example([{"content": "a", "id": "1", "score": 0.5, "metadata": '{"source": "wiki"}'}] * 2, "text", ())
@example([{"content": "a", "id": "1", "score": 0.5, "metadata": '{"a": NaN}'}], None, ())
@example([{"content": "a", "id": "1", "score": 0.5, "metadata": "[1]"}], None, ())
@example([{"content": "a", "id": "1", "score": math.nan}], None, ())
@example([{"content": "a", "id": "1", "score": 0.0}], "text", ())
@example([{"content": "a", "id": "1", "score": 0.5, "metadata": f'{{"a": "{REDACTED}"}}'}], None, ())
@example([{"content": "a", "metadata": '{"a": 123456789012345678901}'}], None, ())
@example([{"content": "a", "metadata": '{"score": 0.3}'}], None, ())
@example([{"content": "a"}], None, ())
@example([{"content": "a"}], "text", ())
@example([{"content": "a", "id": " 1"}], None, ())
@example([{"content": "a", "metadata": '{"source": " lead"}'}], None, ())
def test_the_short_way(written: list[dict[str, Any]], output: str | None, id_keys: tuple[str, ...]) -> None:
    """Documents that are written as most are read as all others are: a key that says nothing makes no difference."""
    attributes = {
        key(str(index), field): value
        for index, fields in enumerate(written)
        for field, value in fields.items()
    }
    attributes |= {"openinference.span.kind": "RETRIEVER"} | ({"output.value": output} if output else {})
    read, expected = (
        retrieval(Span(1, 1, None, False, "s", 0, 1, attributes=each), id_keys)
        for each in (attributes, {**attributes, f"{PREFIX}.note": None})
    )
    assert read is not None
    assert expected is not None
    assert read.documents == expected.documents
    assert repr(read.documents) == repr(expected.documents)
    assert (read.hidden_ids, read.hides_nameless) == (expected.hidden_ids, expected.hides_nameless)
    assert read.state is expected.state


def test_much_metadata() -> None:
    """Of very much metadata that of the best-ranked documents is read; the others' is one value that is too long."""
    text = json.dumps({"a": "x" * (MAX_METADATA - 9)})
    assert len(text) == MAX_METADATA
    count = MAX_ALL_METADATA // MAX_METADATA
    attributes = {
        key(str(index), field): value
        for index in range(count + 3)
        for field, value in {"content": "c", "metadata": text}.items()
    }
    attributes[key(str(count + 2), "metadata")] = '{"b": 1}'
    found = retrieval(Span(1, 1, None, False, "s", 0, 1, attributes=attributes))
    assert found is not None
    assert found.state is State.FOUND
    assert [[*each.metadata] for each in found.documents] == [["a"]] * count + [["metadata"]] * 2 + [["b"]]
    assert documents([{"content": "c", "metadata": text + " "}])[0].metadata == {"metadata": text + " "}
