"""What the doctor says: lines, as text and as JSON. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum

MIN_WIDTH = 60
MAX_WIDTH = 100


class Mark(str, Enum):
    """The answer of a line."""

    YES = "yes"
    NO = "no"
    """It stands in the way."""
    NOTE = "note"
    """It may be meant so, or could not be looked at."""


@dataclass(frozen=True, slots=True)
class Line:
    """One answer.

    Attributes:
        mark: the answer.
        check: what was looked at; scripts may rely on it.
        value: what was found.
        advice: what to do, with the setting that does it; each `no` has one.
    """

    mark: Mark
    check: str
    value: str
    advice: str = ""


def yes(check: str, value: str, advice: str = "") -> Line:
    """Return a line that says all is well."""
    return Line(Mark.YES, check, value, advice)


def no(check: str, value: str, advice: str) -> Line:
    """Return a line that says what stands in the way, and what to do."""
    return Line(Mark.NO, check, value, advice)


def note(check: str, value: str, advice: str = "") -> Line:
    """Return a line that is for information."""
    return Line(Mark.NOTE, check, value, advice)


def in_the_way(lines: Sequence[Line]) -> list[str]:
    """Return the names of the checks whose answer is no."""
    return [line.check for line in lines if line.mark is Mark.NO]


def as_text(lines: Sequence[Line], width: int) -> str:
    """Return the lines in columns, and a last one that sums up."""
    width = max(MIN_WIDTH, min(width, MAX_WIDTH))
    names = max((len(line.check) for line in lines), default=0)
    indent = " " * (6 + names + 2)
    wrap = textwrap.TextWrapper(width, break_on_hyphens=False, subsequent_indent=indent)
    text = []
    for line in lines:
        wrap.initial_indent = f"{line.mark.value:<6}{line.check:<{names}}  "
        text += wrap.wrap(_plain(line.value)) or [wrap.initial_indent.rstrip()]
        if line.advice:
            wrap.initial_indent = f"{indent}-> "
            wrap.subsequent_indent = f"{indent}   "
            text += wrap.wrap(_plain(line.advice))
            wrap.subsequent_indent = indent
    blocked = in_the_way(lines)
    end = f"In the way: {', '.join(blocked)}." if blocked else "Nothing stands in the way."
    return "\n".join([*text, "", *textwrap.wrap(end, width)]) + "\n"


def as_json(lines: Sequence[Line]) -> str:
    """Return one JSON object: `ok`, `in_the_way` and `checks`."""
    blocked = in_the_way(lines)
    checks = [asdict(line) | {"mark": line.mark.value} for line in lines]
    return json.dumps({"ok": not blocked, "in_the_way": blocked, "checks": checks}, indent=2) + "\n"


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, which takes an s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _plain(text: str) -> str:
    """Without what could steer a terminal: an application's error, or a setting, may hold it."""
    return "".join(each if each.isprintable() else " " for each in text)
