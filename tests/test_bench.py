"""The measurements run, and their table and their JSON have every row. What they measure is no test's business."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.frameworks, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parent.parent
CHEAP = ("hooks", "drop", "slow", "encode", "imports")


def bench(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "bench", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def last(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A quick run of the cheap figures: its JSON, and what it printed beside an earlier run: itself."""
    path = tmp_path_factory.mktemp("bench") / "last.json"
    bench("--quick", "--only", "imports", "--json", path)
    return path, bench("--quick", "--only", ",".join(CHEAP), "--json", path, "--compare", path)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


def test_every_cheap_figure_has_its_rows(last: tuple[Path, str]) -> None:
    """Each row of the goals that is cheap to measure is there, with a value and with a verdict where it has a goal."""
    rows = rows_of(last[0])
    assert {row["figure"] for row in rows} == set(CHEAP)
    goals = {(row["figure"], row["goal"]) for row in rows if row["goal"]}
    assert goals >= {
        ("hooks", "<= 0.4x"),
        ("hooks", "<= 0.45x"),
        ("drop", "<= 0.05x"),
        ("drop", "<= 0"),
        ("slow", ">= 350 /s"),
        ("encode", "<= 20 us"),
        ("encode", "<= 1.25x"),
        ("imports", "<= 10 ms"),
    }
    for row in rows:
        assert row["ours"]["low"] <= row["ours"]["median"] <= row["ours"]["high"]
        assert row["holds"] in (True, False) if row["goal"] else row["holds"] is None
        assert (row["ratio"] is None) == (row["reference"] is None)


def test_the_table_shows_every_row_within_its_width(last: tuple[Path, str]) -> None:
    """The printed table names every row of the JSON, beside the earlier run too, and fits a terminal of 120 columns."""
    table = last[1].splitlines()
    assert max(map(len, table)) <= 120
    for row in rows_of(last[0]):
        assert any(line.startswith(f"  {row['name']}  ") for line in table)
    assert sum(line.startswith("import seer_otel, over") for line in table) == 1
    assert any(" goals hold" in line for line in table)


def test_the_markdown_takes_its_place_in_a_page(last: tuple[Path, str], tmp_path: Path) -> None:
    """With a page's name, the table replaces what stands between the two marks, and nothing else."""
    page = tmp_path / "page.md"
    page.write_text(
        "above\n<!-- figures: begin -->\nwhat an earlier run left\n<!-- figures: end -->\nbelow\n",
        encoding="utf-8",
    )
    bench("--markdown", page, "--json", last[0])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("above\n<!-- figures: begin -->\n")
    assert text.endswith("\n<!-- figures: end -->\nbelow\n")
    assert bench("--markdown", "--json", last[0]).strip() in text
    assert "what an earlier run left" not in text


def test_the_markdown_shows_the_run_that_was_kept(last: tuple[Path, str]) -> None:
    """`--markdown` measures nothing anew: a line of Markdown for each row that the run left."""
    lines = bench("--markdown", "--json", last[0]).splitlines()
    for row in rows_of(last[0]):
        assert any(line.startswith(f"| {row['name']} |") for line in lines)
