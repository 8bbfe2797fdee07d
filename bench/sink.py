"""A backend on loopback in a process of its own: takes whatever is posted, answers at once or late, and counts.

It parses no more of HTTP than the length of a body, so that it is not what limits a sender.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import mmap
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

from .child import ROOT, environment

COUNT = struct.Struct("Q")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def spans_in(body: bytes) -> int:
    """How many spans an OTLP request holds: resource_spans (2 fields down) each hold scope_spans, and these spans."""

    def fields(start: int, end: int) -> Iterator[tuple[int, int, int]]:
        while start < end:
            key, start = varint(start)
            if key & 7 == 0:
                _, start = varint(start)
            elif key & 7 == 2:
                length, start = varint(start)
                yield key >> 3, start, start + length
                start += length
            else:
                start += 8 if key & 7 == 1 else 4

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while body[at] & 0x80:
            value |= (body[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
        return value | body[at] << shift, at + 1

    return sum(
        span == 2
        for resource, begin, end in fields(0, len(body))
        if resource == 1
        for scope, first, last in fields(begin, end)
        if scope == 2
        for span, _, _ in fields(first, last)
    )


class Sink(asyncio.Protocol):
    """One connection."""

    def __init__(self, counts: dict[str, Any], board: mmap.mmap, delay: float) -> None:
        self._counts = counts
        self._board = board
        self._delay = delay
        self._data = bytearray()
        self._needed = 0
        self._body = 0
        self._head = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while True:
            if not self._needed:
                end = self._data.find(b"\r\n\r\n")
                if end < 0:
                    return
                self._head = bytes(self._data[:end]).lower()
                self._body = end + 4
                at = self._head.find(b"\r\ncontent-length:")
                length = int(self._head[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
                self._needed = self._body + length
            if len(self._data) < self._needed:
                return
            body = bytes(self._data[self._body : self._needed])
            del self._data[: self._needed]
            self._needed = 0
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        if self._head.startswith(b"get "):
            counts = json.dumps(self._counts).encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(counts), counts))
        elif self._delay:
            asyncio.get_running_loop().call_later(self._delay, self._take, body)
        else:
            self._take(body)

    def _take(self, body: bytes) -> None:
        self._transport.write(OK)
        self._counts["requests"] += 1
        self._counts["bytes"] += len(body)
        if b"/v1/traces " in self._head.split(b"\r\n", 1)[0]:
            body = gzip.decompress(body) if b"\r\ncontent-encoding: gzip" in self._head else body
            self._counts["arrived"] += spans_in(body)
        else:
            self._counts["arrived"] += 1  # one event a request
        COUNT.pack_into(self._board, 0, self._counts["arrived"])


async def serve(delay: float) -> None:
    loop = asyncio.get_running_loop()
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(COUNT.size)
        board = mmap.mmap(file.fileno(), COUNT.size)
        counts = {"requests": 0, "bytes": 0, "arrived": 0, "board": file.name}
        server = await loop.create_server(lambda: Sink(counts, board, delay), "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await loop.run_in_executor(None, sys.stdin.read)  # until whoever started it closes it


@contextmanager
def running(delay: float = 0.0) -> Iterator[str]:
    """Run a sink that answers after `delay` seconds; its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.sink", str(delay)],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


class Watch:
    """Sees what arrived at a sink since this began, in memory that both share: asking would cost the sender CPU."""

    def __init__(self, url: str) -> None:
        with urlopen(url) as answer:
            counts = json.load(answer)
        with open(counts["board"], "rb") as file:  # noqa: PTH123
            self._board = mmap.mmap(file.fileno(), COUNT.size, prot=mmap.PROT_READ)
        self._before = 0
        self._before = self.arrived()

    def arrived(self) -> int:
        """How many retrievals (or spans) arrived."""
        return int(COUNT.unpack_from(self._board)[0]) - self._before

    def close(self) -> None:
        self._board.close()


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(float(sys.argv[1])))
    else:
        uvloop.run(serve(float(sys.argv[1])))
