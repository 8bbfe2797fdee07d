"""What the demo asks, and in which variants of the application."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("questions.jsonl")
VARIANTS = ("single-hop", "multi-hop")
"""The `feature_flag` of each variant, and the query engine that it uses."""
EVENTS = {"single-hop": 1, "multi-hop": 3, "wide": 1}
"""Events of one question by query engine: a multi-hop one has two retrievals and a reranker."""


@dataclass(frozen=True)
class Asked:
    """A question that the application answered, in the trace `trace_id`, through one of its engines."""

    question: str
    trace_id: int
    engine: str
    gold: tuple[str, ...] = ()


def load() -> list[dict[str, Any]]:
    """The labelled questions, each with passages to index."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
