"""`seer-otel replay`: send a file of labelled retrievals to a backend, which then judges them all."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from .. import config
from ..delivery.outbox import Outbox
from ..delivery.transport import HttpTransport, Reply, TransportError
from ..endpoint import ConfigurationError
from ..event import MAX_PASSAGES, MAX_TEXT
from ..notices import Notices
from ..reasons import DropReason
from ..stats import Counters
from . import datasets
from .bars import bar
from .datasets import DatasetError, Example

BATCH = 128
"""Events that are handed over at a time; threads send them side by side where the backend is slow."""
PATIENCE = 30.0
"""Seconds without a single answer after which the rest is not sent."""
MAX_LINES = 10
"""Lines that are named for one reason."""

# Whose they were does not matter here: each example becomes a trace of its own, and is retrieved now.
_REPLACED = ("trace_id", "span_id", "parent_span_id", "created_at", "sample_rate", "is_final_context")


def run(arguments: argparse.Namespace) -> int:
    """Send the file.

    Returns the exit status: 0 where all was delivered, 1 where not or where the file is no dataset, 2 where the
    settings do not say where to send, 130 where it was interrupted.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a pipe may be in an encoding of few characters
    name = (arguments.dataset or Path(arguments.file).stem).encode("utf-8", "replace").decode()
    try:
        settings = config.load({"endpoint": arguments.endpoint}, os.environ)
        if not settings.enabled:
            return _complain("SEER_OTEL_ENABLED or OTEL_SDK_DISABLED switches seer-otel off.", 2)
        transport = _Noting(settings.endpoint, settings.api_key, settings.timeout)
        # All of it is looked at before any of it is sent.
        lines = {
            identity(each, name): each.line for each in datasets.read(arguments.file) if encode(each, name)
        }
    except ConfigurationError as error:
        return _complain(str(error), 2)
    except (DatasetError, OSError) as error:
        return _complain(str(error))
    total, status = len(lines), 0
    try:
        with bar() as steps:
            for _ in steps("Sending", _send(arguments.file, name, transport, settings.endpoint), total):
                pass
    except KeyboardInterrupt:
        status = 130
    statuses = dict(transport.statuses)  # of this moment: what is under way may still be answered
    delivered = sum(1 for key in lines if 200 <= statuses.get(key, 0) < 300)
    _say(f"{delivered:,} of {total:,} examples sent to {settings.endpoint} as dataset {name}.")
    for reason, of_them in _undelivered(lines, statuses).items():
        more = f" and {len(of_them) - MAX_LINES:,} more" if len(of_them) > MAX_LINES else ""
        named = ", ".join(map(str, of_them[:MAX_LINES]))
        _complain(f"{reason}: {len(of_them):,}, line{'s' * (len(of_them) > 1)} {named}{more}.")
    if delivered < total:
        _complain("run it again once that is put right: what is stored already is not stored twice.")
    return status or int(delivered < total)


def identity(example: Example, name: str) -> str:
    """Return the id of an example's trace, which is its idempotency key as well: the same at each replay.

    It depends on the name of the dataset, the line and what stands there.
    """
    content = orjson.dumps(example.data, option=orjson.OPT_SORT_KEYS)
    return blake2b(b"%s\0%d\0%s" % (name.encode(), example.line, content), digest_size=16).hexdigest()


def encode(example: Example, name: str) -> bytes:
    """Return an example as an event in strict JSON. Raises DatasetError for one that no backend would take."""
    where = (example.file, example.line)
    if len(example.passages) > MAX_PASSAGES:
        raise DatasetError(
            *where, "context", f"{len(example.passages)} passages, and a backend takes {MAX_PASSAGES}"
        )
    for place, text in enumerate(example.texts):
        if len(text) > MAX_TEXT:
            trouble = f"{len(text):,} characters, and a backend takes {MAX_TEXT:,}"
            raise DatasetError(*where, f"context[{place}].text", trouble)
    kept = {key: value for key, value in example.data.items() if key not in _REPLACED}
    event: dict[str, Any] = kept | {
        "metadata": {**example.metadata, "dataset": name},
        "is_final_context": True,
        "sample_rate": 1.0,
    }
    try:
        return orjson.dumps(event | {"trace_id": identity(example, name)})
    except TypeError:  # the only thing that was read and cannot be written
        raise DatasetError(*where, "", "objects or lists are nested too deeply") from None


class _Noting(HttpTransport):
    """Keeps the last status of each key; 0 where no answer came."""

    def __init__(self, endpoint: str, api_key: str | None, timeout: float) -> None:
        super().__init__(endpoint, api_key, timeout)
        self.statuses: dict[str, int] = {}

    def send(self, body: bytes, idempotency_key: str, timeout: float | None = None) -> Reply:
        try:
            reply = super().send(body, idempotency_key, timeout)
        except TransportError:
            self.statuses[idempotency_key] = 0
            raise
        self.statuses[idempotency_key] = reply.status
        return reply


class _Notices(Notices):
    """Says that the backend is away; what is dropped, and why, stands in the summary."""

    def dropped(self, reason: DropReason, status: int | None = None, count: int = 1) -> None:
        pass


def _send(file: str, name: str, transport: _Noting, endpoint: str) -> Iterator[Example]:
    """Send the examples as a processor would: with retries, and pauses where the backend asks for them.

    Each example is passed on when it has an answer, or will have none.
    """
    counters = Counters()
    outbox = Outbox(transport, counters, _Notices(endpoint))
    try:
        examples = datasets.read(file)
        answers = True
        while batch := list(islice(examples, BATCH)):
            if answers:
                for example in batch:
                    outbox.put(encode(example, name), identity(example, name), not example.passages)
                answers = _answered(outbox, counters)
            yield from batch
    finally:
        outbox.close(time.monotonic())


def _answered(outbox: Outbox, counters: Counters) -> bool:
    """Wait until all have an answer; return whether it is of use to send more."""
    before = counters.snapshot()
    while outbox.drain(time.monotonic() + PATIENCE):
        after = counters.snapshot()
        if (after.sent, after.dropped) == (before.sent, before.dropped):
            return False
        before = after
    return DropReason.UNAUTHORIZED not in counters.snapshot().dropped


def _undelivered(lines: dict[str, int], statuses: dict[str, int]) -> dict[str, list[int]]:
    """The lines that were not delivered, by reason."""
    found: dict[str, list[int]] = {}
    for key, line in lines.items():
        status = statuses.get(key)
        if status is None or not 200 <= status < 300:
            found.setdefault(_reason(status), []).append(line)
    return found


def _reason(status: int | None) -> str:
    if status is None:
        return "not sent"
    if not status:
        return "no answer (is the backend running? is SEER_INGESTION_URL right?)"
    cures = {
        401: " (look at SEER_API_KEY)",
        403: " (look at SEER_API_KEY)",
        404: " (SEER_INGESTION_URL must be the full URL of a log endpoint)",
        405: " (SEER_INGESTION_URL must be the full URL of a log endpoint)",
        413: " (too large)",
        422: " (for the backend it is no event)",
        429: " (the backend is busy)",
    }
    return f"refused with status {status}{cures.get(status, '')}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _complain(text: str, status: int = 1) -> int:
    sys.stderr.write(f"seer-otel replay: {text}\n")
    return status
