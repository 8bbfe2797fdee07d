"""Charts as SVG, made on the server; scripts are not needed for any of them. Pure.

No `style` attribute: the content policy forbids it. Colours come from the style sheet by class. Shares run from 0
to 1 and are clipped to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from seer_otel.evaluation.statistics import Interval


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a trend; `value` is None where there is none, `x` counts buckets from 0."""

    x: int
    value: float | None
    interval: Interval | None = None


def interval_bar(value: float | None, interval: Interval | None = None, width: int = 160) -> Markup:
    """Return a bar from 0 to a share, with a whisker where its interval is. Decoration: the figure stands beside it."""
    parts = [f'<rect class="track" x="0.5" y="1.5" width="{width - 1}" height="7" rx="2"/>']
    if value is not None:
        parts.append(
            f'<rect class="bar" x="0.5" y="1.5" width="{_n(_clip(value) * (width - 1))}" height="7" rx="2"/>'
        )
    if interval is not None:
        low, high = (_n(_clip(end) * (width - 2) + 1) for end in (interval.low, interval.high))
        parts.append(
            f'<path class="whisker" d="M{low} 5H{high}M{low} 2V8M{high} 2V8" vector-effect="non-scaling-stroke"/>'
        )
    return _svg("bars", width, 10, "".join(parts), stretch=True)


def share_bar(part: float, whole: float, width: int = 80) -> Markup:
    """Return a bar that is full to `part` of `whole`. Decoration, too."""
    filled = _clip(part / whole) if whole else 0.0
    return _svg(
        "bars",
        width,
        10,
        f'<rect class="track" x="0.5" y="1.5" width="{width - 1}" height="7" rx="2"/>'
        f'<rect class="part" x="0.5" y="1.5" width="{_n(filled * (width - 1))}" height="7" rx="2"/>',
        stretch=True,
    )


def sparkline(values: Sequence[float | None], label: str, *, width: int = 120, height: int = 28) -> Markup:
    """Return a small line, gaps where there is no value, with `label` as its text. The scale is the values' own."""
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    span = (high - low) or 1.0
    step = (width - 4) / max(len(values) - 1, 1)
    lines = _lines(
        [
            None if value is None else (2 + at * step, height - 3 - (value - low) / span * (height - 6))
            for at, value in enumerate(values)
        ]
    )
    return _svg("spark", width, height, lines, label=label)


def trend(points: Sequence[Point], buckets: int, label: str, *, top: float = 1.0) -> Markup:
    """Return a line over `buckets` buckets with the band of the intervals; the scale runs from 0 to `top`.

    Single values between gaps are dots. It is what stands where scripts do not run; `label` says it in words.
    """
    width, height, foot = 600, 150, 8
    scale = (height - 2 * foot) / (top or 1.0)

    def place(x: int, value: float) -> tuple[float, float]:
        return (x + 0.5) * width / max(buckets, 1), height - foot - min(max(value, 0.0), top) * scale

    grid = "".join(
        f'<path class="axis" d="M0 {_n(height - foot - share * top * scale)}H{width}"/>'
        for share in (0, 0.5, 1)
    )
    bands, run = [], list[Point]()
    for point in [*points, Point(buckets, None)]:
        if point.interval is not None and (not run or run[-1].x == point.x - 1):
            run.append(point)
            continue
        if len(run) > 1:
            upper = [place(one.x, one.interval.high) for one in run if one.interval]
            lower = [place(one.x, one.interval.low) for one in reversed(run) if one.interval]
            bands.append(f'<path class="band" d="M{"L".join(_xy(at) for at in upper + lower)}Z"/>')
        run = [point] if point.interval is not None else []
    by_x = {point.x: point.value for point in points}
    values = [by_x.get(x) for x in range(buckets)]
    line = _lines([None if value is None else place(x, value) for x, value in enumerate(values)])
    return _svg("plain", width, height, grid + "".join(bands) + line, label=label, stretch=True)


def _lines(places: Sequence[tuple[float, float] | None]) -> str:
    parts, run = [], list[tuple[float, float]]()
    for place in [*places, None]:
        if place is not None:
            run.append(place)
            continue
        if len(run) == 1:
            parts.append(f'<circle class="dot" cx="{_n(run[0][0])}" cy="{_n(run[0][1])}" r="2.5"/>')
        elif run:
            parts.append(f'<path class="line" d="M{"L".join(map(_xy, run))}"/>')
        run = []
    return "".join(parts)


def _svg(
    name: str, width: int, height: int, inside: str, *, label: str = "", stretch: bool = False
) -> Markup:
    spoken = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    # Stretched ones take the width that there is; lines keep theirs.
    ratio = ' preserveAspectRatio="none"' if stretch else ""
    # All of `inside` is ours, figures as text; `label` is escaped above.
    return Markup(  # noqa: S704
        f'<svg class="{name}" viewBox="0 0 {width} {height}" width="{width}" height="{height}"{ratio} {spoken}>'
        f"{inside}</svg>"
    )


def _clip(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _xy(place: tuple[float, float]) -> str:
    return f"{_n(place[0])} {_n(place[1])}"
