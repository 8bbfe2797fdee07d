"""A run that goes on where it was interrupted."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from seer_otel.evaluation.partial import Partial

ROWS = [{"n": number, "task": "é\n"} for number in range(3)]


def kept(path: Path, fingerprint: str, *rows: dict[str, object]) -> list[dict[str, object]]:
    """What was there before; `rows` are added to it."""
    with closing(Partial(path, fingerprint)) as partial:
        for row in rows:
            partial.add(row)
        return partial.done


def test_results_are_there_again(tmp_path: Path) -> None:
    """What was added is there in the next run of the same fingerprint, at once and in order."""
    path = tmp_path / "p"
    with closing(Partial(path, "run")) as partial:
        partial.add(ROWS[0])
        assert json.loads(path.read_bytes().splitlines()[1]) == ROWS[0]
        partial.add(ROWS[1])
    assert kept(path, "run", ROWS[2]) == ROWS[:2]
    assert kept(path, "run") == ROWS


@pytest.mark.parametrize("cut", [1, 10])
def test_a_line_cut_in_the_middle(tmp_path: Path, cut: int) -> None:
    """A result that was not written whole is taken away, and the next one stands in its place."""
    path = tmp_path / "p"
    kept(path, "run", *ROWS)
    path.write_bytes(path.read_bytes()[:-cut])
    assert kept(path, "run", ROWS[2]) == ROWS[:2]
    assert kept(path, "run") == ROWS


def test_a_damaged_line(tmp_path: Path) -> None:
    """From a line that cannot be read on, nothing is used."""
    path = tmp_path / "p"
    kept(path, "run", *ROWS)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\0" * 20 + b"\n", *lines[3:]]))
    assert kept(path, "run") == ROWS[:1]
    assert path.read_bytes() == b"".join(lines[:2])


def test_another_run(tmp_path: Path) -> None:
    """Results of another run, and files that are something else, count as nothing."""
    path = tmp_path / "p"
    kept(path, "run", *ROWS)
    assert kept(path, "another run", ROWS[0]) == []
    assert kept(path, "another run") == ROWS[:1]
    path.write_bytes(b"\xff\xfe something else\n" * 50)
    assert kept(path, "run") == []


def test_finish(tmp_path: Path) -> None:
    """The report is written whole in place of an old one, and nothing else is left."""
    target = tmp_path / "report.json"
    target.write_text("old")
    partial = Partial(tmp_path / "report.json.partial", "run")
    partial.add(ROWS[0])
    assert target.read_text() == "old"
    partial.finish(target, {"rows": ROWS})
    assert json.loads(target.read_bytes()) == {"rows": ROWS}
    assert list(tmp_path.iterdir()) == [target]
