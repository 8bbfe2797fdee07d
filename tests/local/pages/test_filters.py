from __future__ import annotations

from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.local.pages.filters import BadParameterError, Evaluator, Filters, hour_of, moment_of

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=timezone.utc)
LEXICAL, JUDGE = Evaluator(1, "lexical", "1", ""), Evaluator(2, "judge", "small model", "")


def of(**params: str) -> Filters:
    return Filters.of(params, NOW, (LEXICAL, JUDGE))


def test_without_parameters() -> None:
    """The last seven days, until the end of the hour that runs, of the first evaluator, and a URL without anything."""
    filters = of()
    assert filters.end == datetime(2026, 12, 1, 10, tzinfo=timezone.utc)
    assert filters.end - filters.start == timedelta(days=7)
    assert filters.evaluator == LEXICAL
    assert not filters.narrowed
    assert filters.query() == ""


def test_a_period_is_widened_to_whole_hours() -> None:
    """`since` goes back to its hour's beginning, `until` on to its hour's end; both are read in any time zone."""
    filters = of(since="2026-11-30T10:20Z", until="2026-11-30T14:00:01+02:00")
    assert filters.start == datetime(2026, 11, 30, 10, tzinfo=timezone.utc)
    assert filters.end == datetime(2026, 11, 30, 13, tzinfo=timezone.utc)
    assert of(since="2026-11-30T10:00", until="2026-11-30T11:00").end_hour == hour_of(filters.start) + 1


@pytest.mark.parametrize(
    "params",
    [
        {"since": "yesterday"},
        {"since": "2026-11-30T10:00Z", "until": "2026-11-30T09:00Z"},
        {"until": "0001-01-01T00:00+14:00"},
        {"since": "1900-01-01"},
        {"since": "2000-01-01", "until": "2026-01-01"},
        {"since": "Z"},
        {"env": "x" * 201},
        {"x" * 201: "y"},
        {f"meta.{key}": "v" for key in "abcdef"},
    ],
)
def test_what_cannot_be_meant(params: dict[str, str]) -> None:
    """A period that is none, one that is too long, values and filters beyond the limits are refused in words."""
    with pytest.raises(BadParameterError, match=r"\.$"):
        Filters.of(params, NOW)


def test_what_is_not_known() -> None:
    """An unknown range or evaluator, as of an old link, is the default one."""
    filters = of(range="1y", evaluator="gone/1")
    assert filters.range == "7d"
    assert filters.evaluator == LEXICAL
    assert filters.query() == ""


def test_values_that_say_nothing() -> None:
    """An empty value, as a form sends it, is any; `(none)` is the value of events that say nothing."""
    assert of(env="").env is None
    assert of(env="(none)").env == ""
    assert of(env="(none)").query() == "env=%28none%29"


def test_metadata_as_a_form_sends_it() -> None:
    """`meta_key` and `meta_value` are another way to write `meta.KEY`."""
    assert of(meta_key="team", meta_value="a&b").query() == "meta.team=a%26b"


def test_changes() -> None:
    """A change replaces or removes a parameter, a period replaces the range, and other names are added."""
    filters = Filters.of({"range": "24h", "env": "prod", "meta.team": "a"}, NOW, (LEXICAL, JUDGE))
    assert filters.query(env=None, sort="recall") == "range=24h&meta.team=a&sort=recall"
    assert filters.query(**{"meta.team": ""}) == "range=24h&env=prod"
    since = filters.query(since=moment_of(490_000), until=moment_of(490_001))
    assert since == "env=prod&meta.team=a&since=2025-11-24T16%3A00Z&until=2025-11-24T17%3A00Z"
    assert of(since="2026-11-30", until="2026-12-01").query(since=None, until=None) == ""
    assert (
        of(since="2026-11-30", until="2026-12-01").query(range="30d", since=None, until=None) == "range=30d"
    )


def test_the_period_before() -> None:
    """It has the same length and choices, and ends where this one begins."""
    filters = of(range="24h", env="prod")
    assert filters.previous().end == filters.start
    assert filters.previous().end_hour - filters.previous().start_hour == 24
    assert filters.previous().env == "prod"


value = st.text(st.characters(codec="utf-8"), min_size=1, max_size=50)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "range": st.sampled_from(["24h", "7d", "30d", "90d"]),
            "env": value,
            "feature_flag": value,
            "index": value,
            "span_name": value,
            "evaluator": st.sampled_from([LEXICAL.key, JUDGE.key]),
            "meta.team": value,
            "meta.a b&c=": value,
        },
    )
)
def test_a_query_string_leads_back(params: dict[str, str]) -> None:
    """What `query` writes is read as the same choice, whatever the values are."""
    filters = Filters.of(params, NOW, (LEXICAL, JUDGE))
    assert Filters.of(dict(parse_qsl(filters.query())), NOW, (LEXICAL, JUDGE)) == filters
