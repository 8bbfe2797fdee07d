"""A long run that goes on where it was interrupted: its results so far, beside the file that they end up in."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO


class Partial:
    """Results in a file, one JSON object a line, after a first line that says what run they belong to.

    Each is in the hands of the operating system before `add` returns, so that no end of this process loses it. A line
    that was cut in the middle is taken away when the file is opened again; the results of another run are, too.

    Args:
        path: the file; it stays until `finish`.
        fingerprint: what the run is made of: the same inputs, in the same order, by the same code.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._file: BinaryIO = path.open("r+b" if path.exists() else "w+b")
        self.done: list[dict[str, Any]] = []
        """The results that were there when the file was opened."""
        head = _line({"fingerprint": fingerprint})
        end = len(head)
        if self._file.readline() == head:
            for line in self._file:
                try:
                    row = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    row = None
                if row is None:
                    break
                self.done.append(row)
                end += len(line)
            self._file.seek(end)
            self._file.truncate()
        else:
            self._file.seek(0)
            self._file.truncate()
            self._file.write(head)
        self._file.flush()

    def close(self) -> None:
        """Let go of the file, which stays for the next run."""
        self._file.close()

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep one more result."""
        self._file.write(_line(row))
        self._file.flush()

    def finish(self, path: Path, report: Mapping[str, Any]) -> None:
        """Write the report, whole or not at all, and take the results so far away."""
        self._file.close()
        write(path, report)
        self._path.unlink()


def write(path: Path, report: Mapping[str, Any]) -> None:
    """Write a report as JSON; whoever reads the file finds the old one or the new one, and never a part."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="ascii") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row).encode() + b"\n"
