"""What the examples share: a few passages, a search without a model, and the way to the backend."""

from __future__ import annotations

import math
import os
import re
import socket
import sys
from operator import mul
from urllib.parse import urlsplit

from opentelemetry.trace import Tracer

from seer_otel import SeerSpanProcessor

PASSAGES = {
    "inception": "Inception is a film of 2010 that Christopher Nolan directed and wrote.",
    "nolan-awards": "Christopher Nolan won an award for best director, the Academy Award, for Oppenheimer.",
    "nolan-life": "Christopher Nolan was born in London and made his first film in 1998.",
    "matrix": "The Matrix is a film of 1999 by Lana and Lilly Wachowski.",
    "london": "London is the capital of the United Kingdom and lies on the Thames.",
}
_VOCABULARY = sorted({word for text in PASSAGES.values() for word in re.findall(r"\w+", text.lower())})


def embed(text: str) -> list[float]:
    """An embedding without a model: which of the passages' words are in `text`."""
    words = set(re.findall(r"\w+", text.lower()))
    vector = [float(word in words) for word in _VOCABULARY]
    length = math.hypot(*vector) or 1.0
    return [value / length for value in vector]


def search(query: str, k: int = 2) -> list[tuple[str, str, float]]:
    """The `k` best passages: id, text, score."""
    wanted = embed(query)
    scored = [(name, text, sum(map(mul, wanted, embed(text)))) for name, text in PASSAGES.items()]
    return sorted(scored, key=lambda each: -each[2])[:k]


def retrieve(tracer: Tracer, query: str) -> dict[str, str]:
    """A retriever that traces itself, as manual_spans.py shows; returns the texts by id."""
    with tracer.start_as_current_span("retrieve") as span:
        span.set_attributes({"openinference.span.kind": "RETRIEVER", "input.value": query})
        found = search(query)
        for rank, (name, text, score) in enumerate(found):
            document = f"retrieval.documents.{rank}.document"
            span.set_attributes(
                {f"{document}.id": name, f"{document}.content": text, f"{document}.score": score}
            )
    return {name: text for name, text, _ in found}


def endpoint() -> str:
    """Where events go: `SEER_INGESTION_URL`, by default the local backend. Ends the program if nobody is there."""
    url = os.environ.get("SEER_INGESTION_URL") or "http://127.0.0.1:8790/v1/log"
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), timeout=3).close()
    except (OSError, ValueError):
        sys.exit(
            f"Nobody answers at {url}.\nStart the local backend in another terminal, `seer-otel serve`, or set"
            " SEER_INGESTION_URL to the URL of yours."
        )
    return url


def finish(seer: SeerSpanProcessor) -> None:
    """Send what is left and say what became of it."""
    result = seer.flush()
    stats = seer.stats()
    dropped = {reason.value: count for reason, count in stats.dropped.items() if not reason.by_design}
    print(f"Events sent: {stats.sent}. `seer-otel serve` printed at its start how to see them.")
    if dropped or not result.complete:
        sys.exit(f"Not sent: {dropped or result.held}")
