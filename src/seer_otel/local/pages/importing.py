"""A labelled file that comes in through the accuracy page's form: each line becomes an event with labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from python_multipart.exceptions import FormParserError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from seer_otel.local.pages.reading.labelled import DATASET
from seer_otel.local.schema import InvalidEventError, NotJsonError, parse
from seer_otel.local.storage.ingest import Incoming
from seer_otel.local.storage.store import Store

MAX_BYTES = 10 * 1024 * 1024
MAX_DISCARDED = 64 * 1024 * 1024
"""Bytes read on, and thrown away, of a form that is too large: browsers show no answer before they have sent all."""
MAX_LINES = 20_000
MAX_NAME = 64
MAX_PROBLEMS = 20
"""Lines that are named when something is wrong with them."""
_BATCH = 100

# What makes the line's question; not its ids or times, which would put it into another trace or another year.
_KEPT = ("task", "subquery", "context", "ground_truth")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why nothing was stored."""

    summary: str
    status: int = 422
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Upload:
    """What the form sent.

    Attributes:
        text: the lines of the file, or else those that were pasted.
        dataset: the name that was given, else the file's without its ending; "" where there is neither.
        pasted: what was pasted, to be shown again where something is wrong with it.
    """

    text: bytes
    dataset: str
    pasted: str = ""


async def read(request: Request) -> Upload | Problem:
    """Read the form, of at most `MAX_BYTES`."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return Problem("A labelled file comes through the form on this page.", 415)
    chunks, size = list[bytes](), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MAX_BYTES:
            chunks.append(chunk)
        elif size > MAX_DISCARDED:
            break
    if size > MAX_BYTES:
        return Problem(f"The file is larger than {MAX_BYTES // 2**20} MB; split it.", 413)

    async def stream() -> AsyncGenerator[bytes, None]:
        yield b"".join(chunks)

    parser = MultiPartParser(request.headers, stream(), max_files=1, max_fields=2, max_part_size=MAX_BYTES)
    try:
        form = await parser.parse()
    except (MultiPartException, FormParserError):
        return Problem("The form did not arrive whole; send it again.", 400)
    try:
        file, lines, name = form.get("file"), form.get("lines"), form.get("dataset")
        pasted = lines if isinstance(lines, str) else ""
        dataset = name.strip() if isinstance(name, str) else ""
        text = b""
        if isinstance(file, UploadFile):
            text = await file.read()
            dataset = dataset or (PurePath(file.filename or "").stem if text else "")
    finally:
        await form.close()
    return Upload(text or pasted.encode("utf-8", "replace"), dataset[:MAX_NAME], pasted)


def store(into: Store, upload: Upload) -> int | Problem:
    """Store an event for each line and return how many, or nothing at all where a line is wrong.

    A line that was imported before under the same dataset's name is not stored twice.
    """
    events, wrong = list[Incoming](), list[str]()
    lines = upload.text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if len(events) == MAX_LINES:
            return Problem(f"There are more than {MAX_LINES:,} lines; split the file.", 413)
        try:
            events.append(_incoming(line, upload.dataset))
        except (NotJsonError, InvalidEventError) as error:
            field = f", {error.field}" if isinstance(error, InvalidEventError) and error.field else ""
            wrong.append(f"Line {number}{field}: {error}")
    if wrong:
        more = len(wrong) - MAX_PROBLEMS
        shown = (*wrong[:MAX_PROBLEMS], *([f"and {more:,} more"] if more > 0 else []))
        noun = "line is" if len(wrong) == 1 else "lines are"
        return Problem(f"{len(wrong):,} {noun} not what is expected:", lines=shown)
    if not events:
        return Problem("There is no line in it. Choose a file, or paste lines.")
    _write(into, events)
    return len(events)


def _write(into: Store, events: Sequence[Incoming]) -> None:
    for start in range(0, len(events), _BATCH):
        into.add_all(events[start : start + _BATCH]).result()


def _incoming(line: bytes, dataset: str) -> Incoming:
    event = parse(line)
    if event.ground_truth is None:
        raise InvalidEventError("Expected labels: an object with `gold_doc_ids`", "ground_truth")
    given = json.loads(line)
    metadata = dict(event.metadata or {}) | ({DATASET: dataset} if dataset else {})
    body = {name: given[name] for name in _KEPT if given.get(name) is not None}
    body |= {"metadata": metadata, "is_final_context": True, "sample_rate": 1.0}
    text = json.dumps(body, sort_keys=True)
    key = f"import-{hashlib.sha256(text.encode()).hexdigest()[:40]}"
    return Incoming(parse(text.encode()), text, key)
