"""Marks of our client in words."""

from __future__ import annotations

from seer_otel.local.marks import notes


def test_each_mark_with_a_value_is_a_sentence() -> None:
    """In a fixed order; what is absent, empty or nobody's mark says nothing."""
    metadata = {
        "seer_otel.texts_cut": 2,
        "seer_otel.passages_cut": 7,
        "seer_otel.metadata_cut": 0,
        "env": "prod",
    }
    assert notes(metadata) == [
        "Passages left out, as at most 50 are sent: 7.",
        "Texts cut at 4,000 characters: 2.",
    ]
    assert notes(None) == []


def test_why_a_trace_is_partial_is_said() -> None:
    """A reason that is not known stands as it came, made fit for where it is shown."""
    [known] = notes({"seer_otel.partial": "flush"})
    assert known.endswith("a flush sent what was there before the trace had ended.")
    [other] = notes({"seer_otel.partial": "<new>"}, lambda text: text.strip("<>"))
    assert other.endswith(": new.")
