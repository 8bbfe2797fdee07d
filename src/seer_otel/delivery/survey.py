"""What a spool holds, file by file, for those who ask."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .spool_file import files, look
from .stored import SpoolError


@dataclass(frozen=True, slots=True)
class Found:
    """What is in one file of a spool.

    Attributes:
        path: the file.
        endpoint: where its events go.
        running: whether it belongs to a running process.
        events: how many.
        bytes: of their bodies.
        oldest: when the oldest one was born, in Unix seconds.
        newest: when the newest one was born.
        trouble: why it cannot be read; "" if it can.
    """

    path: Path
    endpoint: str = ""
    running: bool = False
    events: int = 0
    bytes: int = 0
    oldest: float = 0.0
    newest: float = 0.0
    trouble: str = ""


def survey(folder: Path) -> list[Found]:
    """Return what a spool holds, file by file; changes nothing.

    Raises:
        SpoolError: the folder cannot be read.
    """
    found = []
    for path in files(folder):
        try:
            with look(path) as file:
                events, size, oldest, newest = file.summary()
                if events or file.running:
                    found.append(
                        Found(
                            path, file.endpoint or "", file.running, events, size, oldest / 1e6, newest / 1e6
                        )
                    )
        except SpoolError as error:
            if path.exists():  # else it has just been taken over
                found.append(Found(path, trouble=str(error)))
    return found
