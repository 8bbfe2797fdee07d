"""How figures and times read on the page. Pure; each is also a template filter of its name.

"Not available" is a dash, never 0.
"""

from __future__ import annotations

from datetime import datetime, timezone

from markupsafe import Markup

from seer_otel.evaluation.statistics import Interval
from seer_otel.local import times

DASH = "\N{EN DASH}"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share from 0 to 1 as `83.3%`."""
    return DASH if value is None else f"{100 * value:.{digits}f}%"


def points(value: float | None) -> str:
    """Return a difference of two shares in percentage points, with its sign: `+1.2`."""
    if value is None:
        return DASH
    rounded = round(100 * value, 1) or 0.0  # no -0.0
    return f"{rounded:+.1f}".replace("-", "\N{MINUS SIGN}") if rounded else "±0.0"


def interval(value: Interval | None) -> str:
    """Return an interval of shares as two percentages, `80.1-86.2%`, and nothing where there is none."""
    return "" if value is None else f"{100 * value.low:.1f}\N{EN DASH}{100 * value.high:.1f}%"


def number(value: float | None) -> str:
    """Return a count as `1,234`."""
    return DASH if value is None else f"{value:,.0f}"


def duration(milliseconds: float | None) -> str:
    """Return `0.42 ms`, `12 ms`, `1.3 s` or `4.0 min`."""
    if milliseconds is None:
        return DASH
    if milliseconds < 10:
        return f"{milliseconds:.2g} ms"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 100_000:
        return f"{milliseconds / 1_000:.1f} s"
    return f"{milliseconds / 60_000:.1f} min"


def when(value: str | datetime | None) -> Markup:
    """Return a `time` element in UTC, `30 Nov 2026, 14:05`, for a time as the tables hold it or a datetime."""
    if value is None:
        return Markup("\N{EN DASH}")
    moment = (times.read(value) if isinstance(value, str) else value).astimezone(timezone.utc)
    exact = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    shown = f"{moment.day} {moment:%b %Y, %H:%M}"
    # `format` escapes what it puts in.
    template = Markup('<time datetime="{0}" title="{0}">{1}</time>')
    return template.format(exact, shown)


def ago(value: str | None, now: datetime) -> str:
    """Return how long ago a stored time was: `just now`, `5 min ago`, `3 h ago`, `2 days ago`."""
    if value is None:
        return "never"
    seconds = (now - times.read(value)).total_seconds()
    if seconds < 60:
        return "just now"
    if seconds < 3_600:
        return f"{seconds // 60:.0f} min ago"
    if seconds < 2 * 86_400:
        return f"{seconds // 3_600:.0f} h ago"
    return f"{seconds // 86_400:.0f} days ago"


def short(text: str, length: int = 120) -> str:
    """Return `text` on one line, cut to `length` characters with an ellipsis."""
    line = " ".join(text[: 4 * length + 40].split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def period(hours: int) -> str:
    """Return `7 days` or `36 hours`."""
    count, unit = (hours // 24, "day") if hours % 24 == 0 and hours > 24 else (hours, "hour")
    return f"{count:,} {unit}" if count == 1 else f"{count:,} {unit}s"
