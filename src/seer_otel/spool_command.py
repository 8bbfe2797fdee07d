"""`seer-otel spool`: what waits on disk for the backend; show it, send it, take it out as text, delete it."""

from __future__ import annotations

import argparse
import heapq
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from . import config
from .delivery import spool_file
from .delivery.outbox import Outbox
from .delivery.spool import Spool, SpoolError
from .delivery.spool_file import Row, SpoolFile
from .delivery.survey import Found, survey
from .delivery.transport import HttpTransport
from .endpoint import ConfigurationError, shown_url
from .notices import Notices
from .stats import Counters

BATCH = 64


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked for and return the exit status; 2 where the settings do not say what to do."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a pipe may be in an encoding of few characters
    given = arguments.dir or os.environ.get("SEER_OTEL_SPOOL_DIR", "").strip()
    if not given:
        return _complain("which folder? Set SEER_OTEL_SPOOL_DIR, or give --dir.", status=2)
    folder = spool_file.folder_of(given)
    try:
        return _ACTIONS[arguments.action](folder, arguments)
    except ConfigurationError as error:
        return _complain(str(error), status=2)
    except (SpoolError, OSError) as error:
        return _complain(str(error))


def _show(folder: Path, arguments: argparse.Namespace) -> int:
    found = survey(folder)
    endpoints = _by_endpoint(found)
    unreadable = {each.path.name: each.trouble for each in found if each.trouble}
    aside = folder / spool_file.UNREADABLE
    if arguments.json:
        report = {
            "folder": str(folder),
            "exists": folder.exists(),
            "bytes_on_disk": _bytes_on_disk(folder),
            "endpoints": endpoints,
            "unreadable": unreadable,
            "moved_aside": str(aside) if aside.exists() else None,
        }
        _say(json.dumps(report))
        return 0
    events = sum(each["events"] for each in endpoints)
    if not folder.exists():
        _say(f"{folder} does not exist: nothing has been spooled there yet.")
    else:
        _say(f"{folder}: {_events(events)}, {_size(_bytes_on_disk(folder))} on disk.")
    for each in endpoints:
        waiting = each["events"] - each["running"]
        _say("", shown_url(each["endpoint"]))
        _say(f"  {_events(each['events'])}, {_size(each['bytes'])}, {_ages(each['oldest'], each['newest'])}")
        if each["running"]:
            _say(f"  {each['running']:,} of running processes, which send them themselves")
        if waiting:
            _say(
                f"  {waiting:,} of no running process; the next with this URL sends them, or `seer-otel spool drain`"
            )
    for trouble in unreadable.values():
        _say("", f"Cannot be read: {trouble}")
    if aside.exists():
        _say(
            "",
            f"A damaged file was moved to {aside}; its events are not in these numbers. Delete it at will.",
        )
    return 0


def _drain(folder: Path, arguments: argparse.Namespace) -> int:
    settings = config.load({}, os.environ)
    if not settings.enabled:
        return _complain("SEER_OTEL_ENABLED or OTEL_SDK_DISABLED switches seer-otel off.", status=2)
    counters, notices = Counters(), Notices(settings.endpoint, spool=str(folder))
    spool = Spool(
        str(folder),
        settings.endpoint,
        max_bytes=settings.spool_max_bytes,
        max_age=settings.spool_max_age,
        any_endpoint=arguments.all,
    )
    outbox = Outbox(
        HttpTransport(settings.endpoint, settings.api_key, settings.timeout),
        counters,
        notices,
        spool=spool,
        spool_max_age=settings.spool_max_age,
    )
    deadline = time.monotonic() + arguments.timeout
    while outbox.recover():
        pass
    outbox.drain(deadline)
    outbox.close(time.monotonic())
    stats = counters.snapshot()
    gone = [each for each in survey(folder) if not each.running]
    left = sum(each.events for each in gone if arguments.all or each.endpoint == settings.endpoint)
    others = sum(each.events for each in gone) - left
    _say(f"{_events(stats.sent)} sent to {shown_url(settings.endpoint)}, {left:,} left.")
    for reason, count in stats.dropped.items():
        _say(f"{_events(count)} dropped: {reason}.")
    if others:
        _say(f"{_events(others)} meant for another endpoint; --all sends them here, too.")
    return 1 if left or any(each.trouble for each in gone) else 0


def _export(folder: Path, arguments: argparse.Namespace) -> int:
    count = 0
    with ExitStack() as stack:
        opened, status = _open_all(folder, stack, spool_file.look)
        if arguments.out is None:
            out: BinaryIO = sys.stdout.buffer
        else:
            out = stack.enter_context(Path(arguments.out).open("wb"))
        try:
            for row in heapq.merge(*map(_rows, opened)):
                out.write(row[3] + b"\n")
                count += 1
            out.flush()
        except BrokenPipeError:  # whoever reads has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if arguments.out is not None:
        _say(f"{_events(count)} written to {arguments.out}.")
    return status


def _clear(folder: Path, arguments: argparse.Namespace) -> int:
    with ExitStack() as stack:
        opened, status = _open_all(folder, stack, spool_file.take)
        summaries = [file.summary() for file in opened]
        events, size = sum(each[0] for each in summaries), sum(each[1] for each in summaries)
        if events and not arguments.yes:
            _say(f"{_events(events)}, {_size(size)}, would be deleted for good; --yes does it.")
            return 1
        for file in opened:
            file.remove()
        _say(f"{_events(events)} deleted.")
    running = sum(each.events for each in survey(folder) if each.running)
    if running:
        _say(f"{_events(running)} of running processes kept.")
    return status


_ACTIONS: dict[str, Callable[[Path, argparse.Namespace], int]] = {
    "show": _show,
    "drain": _drain,
    "export": _export,
    "clear": _clear,
}


def _open_all(
    folder: Path, stack: ExitStack, how: Callable[[Path], SpoolFile | None]
) -> tuple[list[SpoolFile], int]:
    """Open what can be opened, complain of what cannot, and return the exit status that follows."""
    opened, status = [], 0
    for path in spool_file.files(folder):
        try:
            if (file := how(path)) is not None:
                opened.append(stack.enter_context(file))
        except SpoolError as error:
            status = _complain(str(error))
    return opened, status


def _rows(file: SpoolFile) -> Iterator[Row]:
    last = -1
    while rows := file.rows(BATCH, last):
        yield from rows
        last = rows[-1][0]


def _by_endpoint(found: Iterable[Found]) -> list[dict[str, Any]]:
    endpoints: dict[str, dict[str, Any]] = {}
    for each in found:
        if not each.events:
            continue
        total = endpoints.setdefault(
            each.endpoint,
            {
                "endpoint": each.endpoint,
                "events": 0,
                "bytes": 0,
                "running": 0,
                "oldest": each.oldest,
                "newest": each.newest,
            },
        )
        total["events"] += each.events
        total["bytes"] += each.bytes
        total["running"] += each.events if each.running else 0
        total["oldest"] = min(total["oldest"], each.oldest)
        total["newest"] = max(total["newest"], each.newest)
    return [endpoints[name] for name in sorted(endpoints)]


def _bytes_on_disk(folder: Path) -> int:
    try:
        return sum(each.stat().st_size for each in folder.glob("spool*"))
    except OSError:  # one has just gone
        return 0


def _events(count: int) -> str:
    return f"{count:,} event{'' if count == 1 else 's'}"


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _ages(oldest: float, newest: float) -> str:
    now = time.time()
    old, new = _duration(now - oldest), _duration(now - newest)
    return f"{old} old" if old == new else f"{new} to {old} old"


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


def _say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


def _complain(text: str, status: int = 1) -> int:
    sys.stderr.write(f"seer-otel spool: {text}\n")
    return status
