"""The table: on a terminal, as Markdown, and beside an earlier run's. The last run is kept as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import wrap
from typing import Any

from .figure import Row, Spread

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
LAST = Path(__file__).parent / "results" / "last.json"
PACKAGES = (
    "seer-otel",
    "opentelemetry-sdk",
    "opentelemetry-exporter-otlp-proto-http",
    "httpx",
    "orjson",
    "uvloop",
    "langfuse",
    "braintrust",
    "arize-phoenix-otel",
)
TITLES = {
    "hooks": "Hooks, CPU of the application's thread for a span",
    "drop": "Drops, CPU of the application's thread for a span",
    "paced": "An application at its own pace",
    "send": "Saturated, all included",
    "slow": "A slow backend",
    "encode": "From span to bytes",
    "memory": "Memory",
    "traces": "Open traces",
    "imports": "Start-up",
    "peers": "The span processors of others, on the same spans",
    "backend": "The embedded backend",
}
HEADINGS = ("", "ours", "reference", "ratio", "spread", "goal", "")
WIDTH = 118
COLUMNS = (50, 9, 9, 7, 13, 9, 5)
"""Widths that fit, and an indent."""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def run(rows: Sequence[Row], scale: str, seconds: float) -> dict[str, Any]:
    """All that is kept of a run."""
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "scale": scale,
        "seconds": round(seconds),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "rows": [asdict(row) for row in rows],
    }


def save(result: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    try:
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        sys.exit(f"there is no {path} yet: make bench writes it")
    return result


def rows_of(result: dict[str, Any]) -> list[Row]:
    def spread(value: dict[str, float] | None) -> Spread | None:
        return Spread(**value) if value is not None else None

    rows = (Row(**each) for each in result["rows"])
    return [
        replace(each, ours=spread(each.ours), reference=spread(each.reference), ratio=spread(each.ratio))  # type: ignore[arg-type]
        for each in rows
    ]


def number(value: float) -> str:
    """Three digits, as far as they matter."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}".removesuffix(".00")


def cells(row: Row) -> tuple[str, ...]:
    """One line's cells, without its note."""
    if row.ours is None:
        return row.name, "", "", "", "", row.goal, ""
    shown = row.ratio or row.ours
    return (
        row.name,
        f"{number(row.ours.median)} {row.unit}".strip(),
        f"{number(row.reference.median)} {row.unit}".strip() if row.reference else "",
        f"{row.ratio.median:.2f}x" if row.ratio else "",
        f"{number(shown.low)}..{number(shown.high)}" if shown.low != shown.high else "",
        row.goal,
        {True: "yes", False: "NO", None: ""}[row.holds],
    )


def about(result: dict[str, Any]) -> str:
    packages = result["packages"]
    named = ", ".join(
        f"{name} {packages[name]}" for name in ("seer-otel", "opentelemetry-sdk") if name in packages
    )
    scale = "" if result["scale"] == "default" else f", {result['scale']}"
    return (
        f"{result['when']}, {named}, Python {result['python']}, {result['system']},"
        f" {result['cores']} cores, {result['seconds']} s{scale}"
    )


def verdict(rows: Sequence[Row]) -> str:
    goals = [row for row in rows if row.holds is not None]
    missed = [row.name for row in goals if not row.holds]
    told = f"{len(goals) - len(missed)} of {len(goals)} goals hold"
    return told + (f"; not: {'; '.join(missed)}." if missed else ".")


def line(texts: Sequence[str]) -> str:
    first, *others = (
        text.ljust(width) if at in (0, 5) else text.rjust(width)
        for at, (text, width) in enumerate(zip(texts, COLUMNS, strict=True))
    )
    return "  ".join((first, *others)).rstrip()


def sections(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.figure, []).append(row)
    return found


def references(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(row.reference_name for row in rows if row.reference_name))
    return f"v {', '.join(names)}" if names else ""


def table(result: dict[str, Any]) -> str:
    """The table for a terminal of 120 columns."""
    rows = rows_of(result)
    lines = [*wrap(about(result), WIDTH), "", "  " + line((*HEADINGS[:-1], "holds"))]
    for figure, members in sections(rows).items():
        lines += ["", f"{TITLES[figure]}  {references(members)}".rstrip()]
        for row in members:
            lines.append("  " + line((row.name, *cells(row)[1:])))
            if row.note:
                lines.append(f"      {row.note}")
    return "\n".join([*lines, "", *wrap(verdict(rows), WIDTH, subsequent_indent="  ")])


def markdown(result: dict[str, Any]) -> str:
    """The table as Markdown, for docs/performance.md."""
    rows = rows_of(result)
    headings = ("figure", "ours", "reference", "ratio", "spread", "goal", "holds", "beside, notes")
    lines = [f"Measured {about(result)}.", "", f"| {' | '.join(headings)} |", "| --- " * len(headings) + "|"]
    for figure, members in sections(rows).items():
        lines.append(f"| **{TITLES[figure]}** " + "| " * (len(headings) - 1) + "|")
        for row in members:
            note = "; ".join(filter(None, (row.reference_name, row.note)))
            lines.append("| " + " | ".join((*cells(row), note)) + " |")
    return "\n".join([*lines, "", verdict(rows)])


def fill_in(path: Path, text: str) -> None:
    """Put the table between the two marks of a page."""
    before, _, rest = path.read_text(encoding="utf-8").partition(f"{BEGIN}\n")
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"{path} has no {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def compared(earlier: dict[str, Any], later: dict[str, Any]) -> str:
    """Two runs side by side, by ratio where there is one: an absolute figure means little elsewhere."""
    before = {(row.figure, row.name, row.reference_name): row for row in rows_of(earlier)}
    lines = wrap(f"earlier: {about(earlier)}", WIDTH) + wrap(f"later: {about(later)}", WIDTH) + [""]
    lines.append(f"{'':52}  {'earlier':>10}  {'later':>10}  {'change':>8}  {'spread, earlier and later':>27}")
    for row in rows_of(later):
        old = before.get((row.figure, row.name, row.reference_name))
        if row.ours is None or old is None or old.ours is None:
            continue
        now, then = row.ratio or row.ours, old.ratio or old.ours
        unit = "x" if row.ratio else f" {row.unit}".rstrip()
        change = f"{100 * (now.median / then.median - 1):+.0f} %" if then.median else ""
        spreads = "  ".join(f"{number(each.low)}..{number(each.high)}".rjust(13) for each in (then, now))
        lines.append(
            f"{row.name:52}  {number(then.median) + unit:>10}  {number(now.median) + unit:>10}  {change:>8}  {spreads}"
        )
    return "\n".join(lines)
