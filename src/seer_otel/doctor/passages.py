"""Whether recorded passages have the length that Seer recommends."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..event import MAX_PASSAGES, MAX_TEXT
from .lines import Line, counted, note, yes

SHORTEST, LONGEST = 200, 1_000
"""Characters of a passage that Seer recommends."""
USUAL = 0.1
"""Share outside these that is worth no word."""


@dataclass
class Lengths:
    """What was counted.

    Attributes:
        events: events.
        passages: their passages.
        short: passages below the recommended length.
        long: passages above it.
        cut: passages at the limit of a text or beyond.
        crowded: events with as many passages as the limit, or more.
        others: lines that are no event.
    """

    events: int = 0
    passages: int = 0
    short: int = 0
    long: int = 0
    cut: int = 0
    crowded: int = 0
    others: int = 0

    def add(self, line: str) -> None:
        """Count one line: an event, or an object that has one under `event`."""
        texts = _texts(line)
        if texts is None:
            self.others += 1
            return
        self.events += 1
        self.crowded += len(texts) >= MAX_PASSAGES
        for text in texts:
            self.passages += 1
            self.short += len(text) < SHORTEST
            self.long += len(text) > LONGEST
            self.cut += len(text) >= MAX_TEXT


def count(lines: Iterable[str]) -> Lengths:
    """Count the events of JSON lines."""
    lengths = Lengths()
    for line in lines:
        if line.strip():
            lengths.add(line)
    return lengths


def _texts(line: str) -> list[str] | None:
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, dict) and isinstance(data.get("event"), dict):
        data = data["event"]
    context = data.get("context") if isinstance(data, dict) else None
    if not isinstance(context, list):
        return None
    texts = (each.get("text") if isinstance(each, dict) else each for each in context)
    return [text for text in texts if isinstance(text, str)]


def lines(lengths: Lengths) -> list[Line]:
    """Return what the lengths mean."""
    others = f"; {counted(lengths.others, 'line')} without one" if lengths.others else ""
    seen = f"{counted(lengths.passages, 'passage')} of {counted(lengths.events, 'event')}{others}"
    if not lengths.passages:
        return [note("passages", seen)]
    outside = (lengths.short + lengths.long) / lengths.passages
    value = (
        f"{seen}: {_share(lengths.short, lengths)} shorter than {SHORTEST} characters,"
        f" {_share(lengths.long, lengths)} longer than {LONGEST:,}"
    )
    advice = f"Seer recommends chunks of {SHORTEST} to {LONGEST:,} characters."
    said = [yes("passages", value) if outside <= USUAL else note("passages", value, advice)]
    if lengths.cut:
        text = f"{_share(lengths.cut, lengths)} at the limit of {MAX_TEXT:,} characters or beyond, and so cut"
        said.append(note("long passages", text, "Split documents into smaller chunks."))
    if lengths.crowded:
        text = f"{counted(lengths.crowded, 'event')} with {MAX_PASSAGES} passages or more"
        said.append(note("many passages", f"{text}; the best {MAX_PASSAGES} are sent"))
    return said


def _share(number: int, lengths: Lengths) -> str:
    return f"{number / lengths.passages:.0%}"
