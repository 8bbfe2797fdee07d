"""Watches every test for a key or a secret where none may be: in logs, in what processes write, in spool files.

The tests' keys hold `seer_canary`, and so do the errors that their hooks raise; secrets in the metadata of their
documents hold `canary_secret`. A test in whose time one of these shows up fails, and the failure names the place.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

KEY = "seer_canary"
SECRET = "canary_secret"
CANARIES = (KEY, SECRET)


def canary_in(data: object) -> str | None:
    """The canary in a text or in bytes, if one is there."""
    if isinstance(data, bytes):
        return next((each for each in CANARIES if each.encode() in data), None)
    return next((each for each in CANARIES if each in str(data)), None)


class Watch:
    """Notes where canaries show up.

    Attributes:
        found: what was found where.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self.records = 0

    def look(self, where: str, data: object) -> None:
        if data is not None and (canary := canary_in(data)) is not None:
            self.found.append(f"{canary} in {where}")

    def look_at_record(self, record: logging.LogRecord) -> None:
        self.records += 1
        try:
            text = logging.Formatter().format(record)
        except Exception:  # a record that cannot be formatted is written by nobody
            text = str(record.msg)
        self.look(f"a log record of {record.name}", text)

    def look_into(self, folder: Path) -> None:
        """Look into every file below a folder, as a spool's may have any name."""
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                with suppress(FileNotFoundError):  # a thread of the test may be about to tidy up
                    self.look(f"the file {path.relative_to(folder)}", path.read_bytes())

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at each log record, of any logger and level, and at what processes write that are waited for.

        A record that nobody would have seen at its logger's level goes no further: handlers, and `caplog`, get what
        they always get.
        """
        is_enabled, handle = logging.Logger.isEnabledFor, logging.Logger.handle
        communicate = subprocess.Popen.communicate
        watch = self

        def look_and_handle(logger: logging.Logger, record: logging.LogRecord) -> None:
            watch.look_at_record(record)
            if is_enabled(logger, record.levelno):
                handle(logger, record)

        def look_and_communicate(process: Any, *args: Any, **kwargs: Any) -> Any:
            written = communicate(process, *args, **kwargs)
            for name, data in zip(("stdout", "stderr"), written, strict=True):
                watch.look(f"the {name} of process {process.args}", data)
            return written

        with (
            mock.patch.object(logging.Logger, "isEnabledFor", return_value=True),
            mock.patch.object(logging.Logger, "handle", look_and_handle),
            mock.patch.object(subprocess.Popen, "communicate", look_and_communicate),
        ):
            yield
