"""The folder where events wait on disk."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from ..delivery.spool_file import folder_of
from ..delivery.stored import SpoolError
from ..delivery.survey import Found, survey
from .lines import Line, counted, no, note, yes

_ELSEWHERE = "Set SEER_OTEL_SPOOL_DIR to a folder on a local disk that can be written."


def look(spool_dir: str | None, endpoint: str | None) -> list[Line]:
    """Return whether events outlive this process and an outage, and what waits already.

    Args:
        spool_dir: `SEER_OTEL_SPOOL_DIR`.
        endpoint: where events would go.
    """
    if spool_dir is None:
        return [
            note(
                "spool",
                "none: what waits for the backend is lost when the process is killed, or after ten minutes",
                "Set SEER_OTEL_SPOOL_DIR to a folder on a local disk to keep it.",
            )
        ]
    folder = folder_of(spool_dir)
    try:
        # A folder that is not there yet is made.
        place = next(each for each in (folder, *folder.parents) if each.exists())
        if not place.is_dir():
            return [no("spool", f"{place} is no folder", _ELSEWHERE)]
        if not os.access(place, os.W_OK | os.X_OK):
            return [no("spool", f"{place} cannot be written", _ELSEWHERE)]
        found = survey(folder)
    except (OSError, SpoolError) as error:
        return [no("spool", str(error), _ELSEWHERE)]
    made = "" if place == folder else ", which is made"
    return [yes("spool", f"{folder}{made}"), *waiting(found, endpoint, time.time())]


def waiting(found: Sequence[Found], endpoint: str | None, now: float) -> list[Line]:
    """Return what waits in a spool. Pure.

    Args:
        found: its files.
        endpoint: where events would go.
        now: Unix seconds.
    """
    full = [each for each in found if each.events]
    events = sum(each.events for each in full)
    if not events:
        lines = [yes("in the spool", "no event waits")]
    else:
        age = now - min(each.oldest for each in full)
        lines = [note("in the spool", f"{counted(events, 'event')}, the oldest for {_duration(age)}")]
    others = sum(each.events for each in full if each.endpoint != endpoint)
    if others:
        text = f"{counted(others, 'event')} for another URL, which only a process with that one sends"
        lines.append(note("for others", text, "`seer-otel spool show` lists them."))
    broken = [each.trouble for each in found if each.trouble]
    if broken:
        lines.append(no("spool files", "; ".join(broken), "`seer-otel spool show` has the details."))
    return lines


def _duration(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size:
            return counted(int(seconds // size), unit)
    return counted(max(0, int(seconds)), "second")
