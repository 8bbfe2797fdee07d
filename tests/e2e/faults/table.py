"""The table in docs/reliability.md: read from there, made from what the fault tests find, and written there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[2] / "docs" / "reliability.md"
BEGIN = "<!-- faults: written by `make reliability` from a run of tests/e2e/faults -->"
END = "<!-- /faults -->"
GROUPS = {
    "test_outages.py": "The backend is away, or answers badly",
    "test_restarts.py": "Processes that end, die or share a folder during an outage",
    "test_disks.py": "The disk of the spool",
    "test_ends.py": "How a process ends",
    "test_forks.py": "Forks, pools and workers",
    "test_servers.py": "Servers",
}
"""The modules with fault tests, and what stands above their rows."""
HEAD = """\
| fault | retrievals | sent | held | lost | sent with a spool | held | lost |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


@dataclass(frozen=True)
class Outcome:
    """What became of the retrievals of one story."""

    sent: int
    held: int
    lost: int


@dataclass
class Row:
    """One fault, without a spool and with one."""

    retrievals: int
    without: Outcome | None = None
    with_spool: Outcome | None = None


FOUND = pytest.StashKey[dict[str, Row]]()


def names(module: str) -> list[str]:
    """Return the faults that a module tests, in its order."""
    text = (HERE / module).read_text(encoding="utf-8")
    return re.findall(r'mark\.fault\(\s*"([^"]+)"', text)


def read() -> dict[str, Row]:
    """Return the rows in the document."""
    rows = {}
    for line in _parts()[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 8 and cells[1].isdigit():
            rows[cells[0]] = Row(int(cells[1]), _outcome(cells[2:5]), _outcome(cells[5:8]))
    return rows


def write(found: dict[str, Row]) -> None:
    """Write the table anew: what was found now, and else what was there, of the faults that are tested."""
    rows = read()
    for name, row in found.items():
        if name in rows and row.retrievals == rows[name].retrievals:
            row.without = row.without or rows[name].without
            row.with_spool = row.with_spool or rows[name].with_spool
        rows[name] = row
    parts = []
    for module, heading in GROUPS.items():
        lines = [_line(name, rows[name]) for name in names(module) if name in rows]
        parts.append("\n".join([f"**{heading}**", "", HEAD, *lines]))
    before, _, after = _parts()
    table = "\n\n".join(parts)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def _parts() -> tuple[str, str, str]:
    """What stands before the table, the table, and what stands after it."""
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)
    table, after = rest.split(END)
    return before, table, after


def _outcome(cells: list[str]) -> Outcome | None:
    return Outcome(*map(int, cells)) if all(cell.isdigit() for cell in cells) else None


def _line(name: str, row: Row) -> str:
    cells = [name, str(row.retrievals)]
    for outcome in (row.without, row.with_spool):
        cells += ["", "", ""] if outcome is None else map(str, (outcome.sent, outcome.held, outcome.lost))
    return f"| {' | '.join(cells)} |"
