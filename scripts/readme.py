"""Write the parts of README.md that come from the code: the settings, and a request as it leaves the process.

python scripts/readme.py            # writes them
python scripts/readme.py --check    # exit status 1 where README.md differs
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import set_span_in_context

from seer_otel import InMemoryTransport, SeerSpanProcessor
from seer_otel.config import settings_table

README = Path(__file__).parent.parent / "README.md"


class _Ids(IdGenerator):
    """The same ids in every run."""

    def __init__(self) -> None:
        self._last = 0xB7AD6B7169203330

    def generate_trace_id(self) -> int:
        return 0x4BF92F3577B34DA6A3CE929D0E0E4736

    def generate_span_id(self) -> int:
        self._last += 1
        return self._last


def settings() -> str:
    """The table of environment variables."""
    rows = ["| variable | argument | meaning | default |", "| --- | --- | --- | --- |"]
    for variable, argument, meaning, default in settings_table():
        shown = f"`{argument}`" if argument else ""
        rows.append(f"| `{variable}` | {shown} | {meaning} | `{default}` |")
    return "\n".join(rows)


def request() -> str:
    """One request of a small trace, by the real pipeline."""
    transport = InMemoryTransport()
    provider = TracerProvider(id_generator=_Ids(), shutdown_on_exit=False)
    provider.add_span_processor(
        SeerSpanProcessor(
            transport=transport, endpoint="https://api.seersearch.com", api_key="seer_live_", sample_rate=0.5
        )
    )
    tracer = provider.get_tracer("app")
    start, end = 1_790_000_000_000_000_000, 1_790_000_000_041_000_000
    # This trace id is among those that a rate of 0.5 keeps.
    root = tracer.start_span(
        "answer",
        start_time=start,
        attributes={
            "openinference.span.kind": "CHAIN",
            "input.value": "What awards did the director of Inception win?",
            "metadata": '{"env": "prod", "feature_flag": "reranker-v2", "customer": "never sent"}',
        },
    )
    retriever = tracer.start_span(
        "VectorStoreRetriever",
        context=set_span_in_context(root),
        start_time=start + 1_000_000,
        attributes={
            "openinference.span.kind": "RETRIEVER",
            "input.value": "What awards has Christopher Nolan won?",
            "retrieval.documents.0.document.id": "doc-7",
            "retrieval.documents.0.document.content": "Christopher Nolan won the Academy Award for Best Director.",
            "retrieval.documents.0.document.score": 0.92,
            "retrieval.documents.0.document.metadata": '{"source": "wiki/Christopher_Nolan", "page": 7}',
        },
    )
    retriever.end(end_time=end)
    root.end(end_time=end + 1_000_000)
    provider.shutdown()
    body, key = transport.requests[0]
    return "\n".join(
        [
            "```http",
            "POST /v1/log HTTP/1.1",
            "Host: api.seersearch.com",
            "Authorization: Bearer seer_live_...",
            "Content-Type: application/json",
            f"Idempotency-Key: {key}",
            "",
            json.dumps(json.loads(body), indent=2, ensure_ascii=False),
            "```",
        ]
    )


def rendered(text: str) -> str:
    """README.md with those parts as they are now."""
    for name, part in (("settings", settings()), ("request", request())):
        pattern = rf"(<!-- {name}: [^>]*-->\n).*?(<!-- /{name} -->)"
        text, count = re.subn(
            pattern, lambda match, part=part: match[1] + part + "\n" + match[2], text, flags=re.DOTALL
        )
        if count != 1:
            raise SystemExit(f"README.md has no place for {name}")
    return text


def main() -> int:
    """Write or check."""
    now = README.read_text(encoding="utf-8")
    new = rendered(now)
    if "--check" in sys.argv[1:]:
        return int(now != new)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
