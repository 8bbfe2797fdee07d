"""Differences as SVG, made on the server. Pure. Decoration: the figures stand beside each."""

from __future__ import annotations

from markupsafe import Markup

WIDTH, HEIGHT = 180, 16


def scale(reach: float) -> float:
    """Return what one end of the axis stands for, for differences of at most `reach`: 0.05, 0.1, 0.2, 0.3, 0.5 or 1."""
    return next((end for end in (0.05, 0.1, 0.2, 0.3, 0.5) if reach <= end), 1.0)


def difference_bar(difference: float, low: float, high: float, end: float, name: str) -> Markup:
    """Return an interval beside the axis of zero, which runs from -`end` to `end`.

    `name` is a class, such as the row's verdict. What reaches beyond the axis is clipped.
    """

    def at(value: float) -> str:
        return f"{2 + (min(max(value / end, -1.0), 1.0) + 1) / 2 * (WIDTH - 4):.1f}"

    middle = HEIGHT / 2
    return Markup(  # noqa: S704 - numbers, and a class of ours
        f'<svg class="difference {name}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        ' aria-hidden="true">'
        f'<path class="axis" d="M{WIDTH / 2} 0V{HEIGHT}"/>'
        f'<path class="reach" d="M{at(low)} {middle}H{at(high)}"/>'
        f'<circle class="point" cx="{at(difference)}" cy="{middle}" r="4"/></svg>'
    )
