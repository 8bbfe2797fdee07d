"""What the marks of our client in an event's metadata say, in words for whoever looks at the event. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seer_otel.event import MAX_PASSAGES, MAX_TEXT, METADATA_CUT, PASSAGES_CUT, TEXTS_CUT

PARTIAL = "seer_otel.partial"
ATTRIBUTES_DROPPED = "seer_otel.attributes_dropped"

# A mark is shown where its value is not empty.
_WORDS = {
    PASSAGES_CUT: f"Passages left out, as at most {MAX_PASSAGES} are sent: {{}}.",
    TEXTS_CUT: f"Texts cut at {MAX_TEXT:,} characters: {{}}.",
    METADATA_CUT: "Metadata keys left out, as all together were too long: {}.",
    ATTRIBUTES_DROPPED: "Attributes that the span lost, so documents may be missing: {}. "
    "Raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT.",
    PARTIAL: "Only a part of this trace was seen, so no final context was inferred from it: {}.",
}
_WHY_PARTIAL = {
    "flush": "a flush sent what was there before the trace had ended",
    "max_trace_age": "the trace was still open after SEER_OTEL_MAX_TRACE_AGE seconds",
    "max_traces": "more traces were open at the same time than are kept",
    "max_trace_spans": "the trace has more spans than are kept of one",
    "max_bytes": "the open traces together took more memory than they may",
    "queue_full": "the application made spans faster than they could be taken, and some were lost",
    "sampled_late": "it had been sampled out until a later span brought labels or a sample rate",
}


def notes(metadata: Mapping[str, Any] | None, shown: Callable[[str], str] = str) -> list[str]:
    """Return a sentence for each mark in `metadata`; `shown` makes a value fit for where it is printed."""
    values = {key: (metadata or {}).get(key) for key in _WORDS}
    words = {key: shown(str(value)) for key, value in values.items() if value}
    if PARTIAL in words:
        words[PARTIAL] = _WHY_PARTIAL.get(words[PARTIAL], words[PARTIAL])
    return [_WORDS[key].format(value) for key, value in words.items()]
