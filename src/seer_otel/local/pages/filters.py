"""The filter bar: what a URL's parameters choose. Every view takes the same ones, so each of them is a link. Pure.

    range        24h, 7d (the default), 30d, 90d: until now
    since, until instead of `range`: ISO 8601, UTC unless it says otherwise; widened to whole hours
    env, feature_flag, index, span_name    a segment's value; `(none)` is an event that says nothing
    evaluator    `name/version`; without it, the one that judged last
    meta.KEY     a trace's metadata; `meta_key` and `meta_value`, which a form can send, are another way to write it

Periods are whole hours, as the rollups are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import urlencode

import sqlalchemy as sa

from seer_otel.local import times

RANGES = {"24h": 24, "7d": 7 * 24, "30d": 30 * 24, "90d": 90 * 24}
"""Hours of each range."""
DEFAULT_RANGE = "7d"
SEGMENTS = ("env", "feature_flag", "index", "span_name")
"""The filters that are columns of `segments`."""
NONE = "(none)"
"""Stands in a URL for the segment value "", since a form sends an empty value for "any"."""

MAX_VALUE = 200
MAX_METADATA = 5
MAX_HOURS = 5 * 366 * 24

_HOUR = timedelta(hours=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class BadParameterError(ValueError):
    """A parameter that cannot be meant; the message is for the person who wrote the URL."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """A row of `evaluators`: who judged, and how far it can be trusted."""

    id: int
    name: str
    version: str
    accuracy: str

    @property
    def key(self) -> str:
        """What stands in the URL for it."""
        return f"{self.name}/{self.version}"


@dataclass(frozen=True, slots=True)
class Filters:
    """What is looked at.

    Attributes:
        start, end: the period, whole hours in UTC; `end` is not in it.
        range: a key of RANGES, or "" where the URL names `since` and `until`.
        evaluator: whose figures; None in a store in which nothing was judged.
        evaluator_named: whether the URL names it.
        env, feature_flag, index, span_name: the segment's value, "" for events that say nothing; None is any.
        metadata: keys and the values that they must have.
    """

    start: datetime
    end: datetime
    range: str = DEFAULT_RANGE
    evaluator: Evaluator | None = None
    evaluator_named: bool = False
    env: str | None = None
    feature_flag: str | None = None
    index: str | None = None
    span_name: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, params: Mapping[str, str], now: datetime, evaluators: Sequence[Evaluator] = ()) -> Filters:
        """Read a URL's parameters; `evaluators[0]` is the default. Raises BadParameterError.

        An unknown range or evaluator is the default one. Parameters that are no filters are left alone.
        """
        for name, value in params.items():
            if len(name) > MAX_VALUE or len(value) > MAX_VALUE:
                raise BadParameterError(f"The parameter {name[:40]} is longer than {MAX_VALUE} characters.")
        start, end, range_ = _period(params, now)
        named = params.get("evaluator", "")
        chosen = next((one for one in evaluators if one.key == named), None)
        return cls(
            start,
            end,
            range_,
            chosen or next(iter(evaluators), None),
            chosen is not None,
            metadata=_metadata(params),
            **{name: _segment(params.get(name, "")) for name in SEGMENTS},
        )

    def query(self, **changes: object) -> str:
        """Return the query string, without `?`, of this choice with `changes` to its parameters.

        A change to None or "" removes a parameter; other names than the filters' are added as they are:
        `filters.query(env="prod", sort="recall")`, `filters.query(**{"meta.team": None})`. A change to `since` and
        `until` (datetimes or text) removes `range`.
        """
        pairs = self.parameters()
        if changes.get("since") or changes.get("until"):
            pairs.pop("range", None)
        for name, value in changes.items():
            pairs[name] = iso(value) if isinstance(value, datetime) else "" if value is None else str(value)
        return urlencode({name: value for name, value in pairs.items() if value != ""})

    def parameters(self) -> dict[str, str]:
        """Return the parameters that make this choice, those that are not the default."""
        pairs: dict[str, str] = {}
        if not self.range:
            pairs |= {"since": iso(self.start), "until": iso(self.end)}
        elif self.range != DEFAULT_RANGE:
            pairs["range"] = self.range
        for name in SEGMENTS:
            value = getattr(self, name)
            if value is not None:
                pairs[name] = value or NONE
        if self.evaluator is not None and self.evaluator_named:
            pairs["evaluator"] = self.evaluator.key
        return pairs | {f"meta.{key}": value for key, value in self.metadata}

    @property
    def start_hour(self) -> int:
        """Hours since 1970, as in the tables."""
        return hour_of(self.start)

    @property
    def end_hour(self) -> int:
        """The first hour that is not in the period."""
        return hour_of(self.end)

    @property
    def narrowed(self) -> bool:
        """Whether anything but the period and the evaluator is chosen."""
        return bool(self.metadata) or any(getattr(self, name) is not None for name in SEGMENTS)

    def widened(self) -> Filters:
        """Return the same period and evaluator with nothing else chosen."""
        return replace(self, env=None, feature_flag=None, index=None, span_name=None, metadata=())

    def without(self, key: str) -> Filters:
        """Return the same choice but for one metadata key."""
        return replace(self, metadata=tuple(pair for pair in self.metadata if pair[0] != key))

    def previous(self) -> Filters:
        """Return the same choice for the period of equal length before this one."""
        return replace(self, start=self.start - (self.end - self.start), end=self.start, range="")

    def where(
        self, results: sa.FromClause, segments: sa.FromClause, metadata: sa.FromClause
    ) -> list[sa.ColumnElement[bool]]:
        """Return the conditions on `results` (the table, or an alias of it); neither of the others need be joined."""
        conditions: list[sa.ColumnElement[bool]] = [
            results.c.evaluator_id == self._evaluator_id(),
            results.c.created_at >= times.text(self.start),
            results.c.created_at < times.text(self.end),
            *self._of_segment(results.c.segment_id, segments),
        ]
        for key, value in self.metadata:
            same = sa.select(metadata.c.trace_id).where(metadata.c.key == key, metadata.c.value == value)
            conditions.append(results.c.trace_id.in_(same))
        return conditions

    def where_rollups(self, rollups: sa.FromClause, segments: sa.FromClause) -> list[sa.ColumnElement[bool]]:
        """Return the conditions on `rollups`, which know nothing of `metadata`."""
        return [
            rollups.c.hour >= self.start_hour,
            rollups.c.hour < self.end_hour,
            rollups.c.evaluator_id == self._evaluator_id(),
            *self._of_segment(rollups.c.segment_id, segments),
        ]

    def _evaluator_id(self) -> int:
        return -1 if self.evaluator is None else self.evaluator.id

    def _of_segment(self, column: Any, segments: sa.FromClause) -> list[sa.ColumnElement[bool]]:
        wanted = {name: getattr(self, name) for name in SEGMENTS if getattr(self, name) is not None}
        if not wanted:
            return []
        same = sa.select(segments.c.id).where(*(segments.c[name] == value for name, value in wanted.items()))
        return [column.in_(same)]


def hour_of(moment: datetime) -> int:
    """Return the hour of a moment, counted since 1970."""
    return (moment - _EPOCH) // _HOUR


def moment_of(hour: int) -> datetime:
    """Return when an hour, counted since 1970, begins."""
    return _EPOCH + hour * _HOUR


def iso(moment: datetime) -> str:
    """Return a time as it stands in a URL, to the minute."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%MZ")


def _period(params: Mapping[str, str], now: datetime) -> tuple[datetime, datetime, str]:
    # Until the end of the hour that is running.
    until = moment_of(hour_of(now) + 1)
    range_ = params.get("range", "")
    if not (params.get("since") or params.get("until")):
        range_ = range_ if range_ in RANGES else DEFAULT_RANGE
        return until - RANGES[range_] * _HOUR, until, range_
    end = _moment(params, "until", now)
    start = _moment(params, "since", end - RANGES[DEFAULT_RANGE] * _HOUR)
    if start >= end:
        raise BadParameterError("The period ends before it begins: since must be earlier than until.")
    first, last = hour_of(start), hour_of(end + _HOUR - timedelta.resolution)
    if last - first > MAX_HOURS:
        raise BadParameterError(f"A period has at most {MAX_HOURS // (366 * 24)} years.")
    return moment_of(first), moment_of(last), ""


def _moment(params: Mapping[str, str], name: str, default: datetime) -> datetime:
    value = params.get(name, "").strip()
    if not value:
        return default
    try:
        # Until Python 3.11, `fromisoformat` does not know `Z`.
        moment = datetime.fromisoformat(value[:-1] + "+00:00" if value[-1:] in "zZ" else value)
        moment = moment.replace(tzinfo=moment.tzinfo or timezone.utc).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise BadParameterError(f"{name} is no time that can be read; write 2026-11-30T14:00Z.") from None
    if not 1970 < moment.year < 9000:
        raise BadParameterError(f"{name} is out of range; write a time such as 2026-11-30T14:00Z.")
    return moment


def _segment(value: str) -> str | None:
    return None if value == "" else "" if value == NONE else value


def _metadata(params: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    wanted = {
        name[5:]: value for name, value in params.items() if name.startswith("meta.") and name[5:] and value
    }
    key = params.get("meta_key", "").strip()
    if key and params.get("meta_value", ""):
        wanted[key] = params["meta_value"]
    if len(wanted) > MAX_METADATA:
        raise BadParameterError(f"At most {MAX_METADATA} metadata keys can be chosen at once.")
    return tuple(sorted(wanted.items()))
