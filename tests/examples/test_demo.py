"""The demo: what `make demo` runs, to its end and with a terminal, and how it reports what is missing."""

from __future__ import annotations

import importlib
import os
import re
import select
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from seer_otel import DropReason, Stats

DEMO = Path(__file__).parents[2] / "examples" / "demo"
RUN = [sys.executable, str(DEMO / "run.py")]
PATIENCE = 200
"""Seconds; it takes 15 on an idle machine."""


@pytest.mark.e2e
@pytest.mark.frameworks
@pytest.mark.timeout(PATIENCE + 60)
def test_once(tmp_path: Path) -> None:
    """It ends by itself with as many events as expected, whatever is set, and the commands it names work."""
    environment = {**os.environ, "SEER_SAMPLE_RATE": "0", "SEER_API_KEY": "not a key", "COLUMNS": "100"}
    finished = subprocess.run(
        [*RUN, "--once"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (finished.returncode, finished.stderr) == (0, "")
    counts = dict(re.findall(r"^([A-Z].*?)  +(\d+)%?(?:  |$)", finished.stdout, re.MULTILINE))
    received = re.search(
        r"^Events received +(\d+) +(\d+) expected, from (\d+) traces", finished.stdout, re.MULTILINE
    )
    assert received is not None
    assert received[1] == received[2]
    assert counts["Questions asked"] == "121"
    assert int(counts["Sampled out"]) == 121 - int(received[3])
    assert counts["Sampled out"] == "23"  # in each run, as the ids are the same
    assert counts["Final contexts"] == received[3]
    assert counts["Lost"] == "0"
    assert counts["Passages cut"] == "10"
    variants = re.findall(
        r"^(\S+-hop) +(\d+) +(\d+)% .* (\d+) +(\d+)% +(\d+)%$", finished.stdout, re.MULTILINE
    )
    assert [variant[0] for variant in variants] == ["single-hop", "multi-hop"]
    assert all(50 < int(recall) < 100 for variant in variants for recall in (variant[2], variant[4]))
    assert int(variants[0][4]) < int(
        variants[1][4]
    )  # looking up a second time is worth it, as the labels say
    assert not re.search(" $", finished.stdout, re.MULTILINE)
    assert "Ctrl-C" not in finished.stdout
    assert "Wrong" not in finished.stdout
    commands = re.findall(
        r"^  (\S*seer-otel show .*|\S*python\S* -m seer_otel.cli show .*)$", finished.stdout, re.MULTILINE
    )
    assert len(commands) == 2
    assert (
        "Gold documents: 0 of "
        in subprocess.run(
            commands[1], shell=True, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=20
        ).stdout
    )
    for command in commands:
        shown = subprocess.run(
            command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=20
        )
        assert "Question: " in shown.stdout


@pytest.mark.e2e
@pytest.mark.frameworks
@pytest.mark.timeout(PATIENCE + 60)
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_terminal(tmp_path: Path) -> None:
    """On a terminal the backend goes on until Ctrl-C, which ends it and the demo with status 0."""
    import pty

    here, there = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | {"TERM": "xterm"}
    demo = subprocess.Popen(
        RUN, cwd=tmp_path, env=environment, stdin=there, stdout=there, stderr=there, start_new_session=True
    )
    os.close(there)
    try:
        shown = read_until(here, "until Ctrl-C")
        assert demo.poll() is None
        pages = re.findall(r"^  (http://\S+)\r?$", shown, re.MULTILINE)
        assert len(pages) == 2
        for page in pages:
            with urllib.request.urlopen(page, timeout=20) as answer:
                assert b"multi-hop" in answer.read()
        os.killpg(demo.pid, 2)
        assert demo.wait(20) == 0
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, 9)
            demo.wait(20)
        os.close(here)
    assert "Asking 60 questions" in shown


def read_until(terminal: int, text: str) -> str:
    """What the terminal shows until `text` is there."""
    shown, deadline = "", time.monotonic() + PATIENCE
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, shown[-500:]
        shown += os.read(terminal, 65536).decode(errors="replace")
    return shown


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The demo's report, as its modules find each other."""
    names = ("questions", "server", "report")
    monkeypatch.syspath_prepend(str(DEMO))
    yield importlib.import_module("report")
    for name in names:
        sys.modules.pop(name, None)


def final(trace_id: int, **more: Any) -> dict[str, Any]:
    event = {"trace_id": f"{trace_id:032x}", "task": "q", "context": [{"id": "a"}], "is_final_context": True}
    event |= {"ground_truth": {"gold_doc_ids": ["a"]}, "metadata": {"feature_flag": "single-hop"}}
    judged = {"task": {"evaluator": "lexical 1", "recall": 1.0, "precision": 1.0, "f1": 1.0}}
    line = {"record_id": "rec_1", "state": "judged", "is_final": True, "judged": judged, "event": event}
    return {**line, "gt_recall": 1.0, "gt_precision": 1.0, **more}


def ran(demo: ModuleType, stats: Stats) -> Any:
    return demo.Ran([demo.Asked("q", 1, "single-hop", ("a",))], stats, ["a note"], 1.0)


def test_report_of_what_is_right(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """All expected events, each trace with its final context, judged, and labels scored: the report is good."""
    assert demo.report(ran(demo, Stats()), [final(1)]) is True
    assert "Wrong" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "events",
    [
        [],
        [final(1), final(1)],
        [final(1), final(2)],
        [final(1, gt_recall=None)],
        [final(1, state="failed", judged={})],
    ],
    ids=["missing", "twice", "unexpected", "without a score", "not judged"],
)
def test_report_of_what_is_wrong(
    events: list[dict[str, Any]], demo: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing, comes twice, was sampled out, was not judged or has no score is named: the report is bad."""
    lost = Stats(dropped={DropReason.REJECTED: 1})

    assert demo.report(ran(demo, lost), events) is False
    shown = capsys.readouterr().out
    assert "Wrong: " in shown
    assert "Note: a note" in shown
    assert "rejected 1" in shown


def test_questions_have_their_notice() -> None:
    """There are at most 60 questions, and beside them stands under which licence they are."""
    lines = (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert 0 < len(lines) <= 60
    assert "CC BY-SA 4.0" in (DEMO / "ATTRIBUTION.md").read_text(encoding="utf-8")
