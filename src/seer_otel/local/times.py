"""Times as the tables hold them: text in UTC with microseconds and a `Z`, which sorts as time does."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def now() -> str:
    """Return the time."""
    return text(datetime.now(timezone.utc))


def text(moment: datetime) -> str:
    """Write a moment in UTC."""
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def read(written: str) -> datetime:
    """Read what `text` wrote."""
    # Python 3.10 does not read the `Z`.
    return datetime.fromisoformat(written[:-1]).replace(tzinfo=timezone.utc)


def hour(written: str) -> int:
    """Return the hours since 1970 of a time that `text` wrote."""
    return (read(written) - _EPOCH) // timedelta(hours=1)
