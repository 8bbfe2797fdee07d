from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from seer_otel.evaluation.statistics import Interval
from seer_otel.local.pages import formats


def test_shares() -> None:
    """Shares are percentages with one digit, differences are points with a sign, and what is not there is a dash."""
    assert formats.percent(5 / 6) == "83.3%"
    assert formats.percent(1.0, 0) == "100%"
    assert formats.percent(None) == "\N{EN DASH}"
    assert formats.points(0.012) == "+1.2"
    assert formats.points(-0.0004) == "±0.0"
    assert formats.points(-0.5) == "\N{MINUS SIGN}50.0"
    assert formats.points(None) == "\N{EN DASH}"
    assert formats.interval(Interval(0.801, 0.862)) == "80.1\N{EN DASH}86.2%"
    assert formats.interval(None) == ""


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0.421, "0.42 ms"),
        (9.96, "10 ms"),
        (12.4, "12 ms"),
        (1_300, "1.3 s"),
        (240_000, "4.0 min"),
        (None, "\N{EN DASH}"),
    ],
)
def test_durations(milliseconds: float | None, text: str) -> None:
    """A duration has two or three digits and the unit that suits."""
    assert formats.duration(milliseconds) == text


def test_times() -> None:
    """A time is a `time` element in UTC, whatever zone it came in."""
    element = '<time datetime="2026-11-30T14:05:00Z" title="2026-11-30T14:05:00Z">30 Nov 2026, 14:05</time>'
    assert formats.when("2026-11-30T14:05:00.000000Z") == element
    assert formats.when(datetime(2026, 11, 30, 15, 5, tzinfo=timezone(timedelta(hours=1)))) == element
    assert formats.when(None) == "\N{EN DASH}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "just now"), (59, "just now"), (600, "10 min ago"), (7_200, "2 h ago"), (3 * 86_400, "3 days ago")],
)
def test_how_long_ago(seconds: int, text: str) -> None:
    """A past time in the unit that suits; a clock that is a little ahead is no future."""
    now = datetime(2026, 11, 30, 14, tzinfo=timezone.utc)
    written = (now - timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    assert formats.ago(written, now) == text
    assert formats.ago(None, now) == "never"


def test_short_texts() -> None:
    """A text is one line of at most that length, and is cut with an ellipsis."""
    assert formats.short("a\n  b", 5) == "a b"
    assert formats.short("a" * 200, 10) == "a" * 9 + "…"
    assert formats.short(" " * 100_000 + "a", 10) == ""


def test_periods() -> None:
    """Whole days from two on are days."""
    assert [formats.period(hours) for hours in (1, 24, 36, 48, 168)] == [
        "1 hour", "24 hours", "36 hours", "2 days", "7 days",
    ]  # fmt: skip
