"""`make fuzz` looks where it says: each part runs, and tells what is broken. What it finds is no test's business."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parent.parent


def fuzz(*arguments: str, status: int = 0) -> str:
    command = [sys.executable, "-m", "fuzz", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_readers_hold_for_a_few_seconds() -> None:
    """Random spans give bodies within the limits, or none. (Without atheris, which this environment has not.)"""
    assert "inputs, and everything held" in fuzz("--only", "readers", "--seconds", "5")


def test_many_spans_pass_through_the_whole_pipeline() -> None:
    """No exception leaves a hook, every retrieval is accounted for, and nothing is held after a flush."""
    assert "million: 20,000 spans" in fuzz("--only", "million", "--spans", "20000")


def test_giants_are_measured() -> None:
    """A giant is within limits that are wide enough, and beyond those that are nothing, which fails the run."""
    giant = "--only", "giants", "--kinds", "metadata above: words, 10M"
    assert "1 in" in fuzz(*giant, "--factor", "1000")
    assert "1 beyond 0 ms and 0 MB" in fuzz(*giant, "--factor", "0", status=1)


def test_an_input_is_tried_again(tmp_path: Path) -> None:
    """`--again` shows the spans that an input stands for, and what becomes of them."""
    path = tmp_path / "input"
    path.write_bytes(bytes(10) + b"\1\0")
    told = fuzz("--again", str(path))
    assert "Span(" in told
    assert told.endswith("1 events, and everything holds\n")
