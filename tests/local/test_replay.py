"""`seer-otel replay` into the local backend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from seer_otel import cli

if TYPE_CHECKING:
    from conftest import Backend


def shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """All events of a backend."""
    capsys.readouterr()
    cli.main(["show", "--json", "--limit", "1000", "--data", str(folder)])
    return [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]


def test_a_replay_does_not_double(
    backend: Backend, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each example is there once, however often the file is replayed; under another name it is there again."""
    file = tmp_path / "set.jsonl"
    lines = [
        {
            "task": f"question {number}",
            "context": [{"text": "a", "id": "x", "rank": 1}, "b"],
            "ground_truth": {"gold_doc_ids": ["x"]},
        }
        for number in range(40)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for _ in range(2):
        assert cli.main(["replay", str(file), "--endpoint", backend.url]) == 0
    events = shown(tmp_path / "data", capsys)
    assert sorted(event["task"] for event in events) == sorted(str(line["task"]) for line in lines)
    assert all(event["metadata"] == {"dataset": "set"} for event in events)
    assert all(event["context"] == lines[0]["context"] for event in events)
    assert cli.main(["replay", str(file), "--endpoint", backend.url, "--dataset", "other"]) == 0
    assert len(shown(tmp_path / "data", capsys)) == 80
