"""One to six spans of a trace, and the settings under which they are read, out of a fuzzer's bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from seer_otel.assembly import Memory, Rules
from seer_otel.assembly.metadata import DEFAULT_KEYS
from seer_otel.privacy import Hiding
from seer_otel.spans import Span

from . import hostile
from .choices import Choices
from .recordings import recordings

MAX_SPANS = 6
_SETTINGS = 10
"""Bytes before those of the spans; all zero they are the default settings."""


@dataclass(frozen=True)
class Case:
    """What one input of the fuzzer stands for.

    Attributes:
        spans: those of one trace.
        rules: the settings that the assembly obeys.
        memory: what an earlier part of the trace left.
        partial: why the trace was not seen whole.
        scrub_all: whether questions and passages are scrubbed too.
    """

    spans: list[Span]
    rules: Rules
    memory: Memory
    partial: str | None
    scrub_all: bool


def case(data: bytes) -> Case:
    """The case that these bytes stand for."""
    choices = Choices(data)
    rules = Rules(
        nested=choices.pick(("outermost", "all")),
        metadata_keys=choices.pick((DEFAULT_KEYS, (*DEFAULT_KEYS, "user_id", "session_id"), ("query", ""))),
        passage_metadata_keys=choices.pick((None, (), ("source", "query"))),
        id_keys=choices.pick(((), ("source",), ("query", "id"))),
        hiding=Hiding(choices.one_in(8), choices.one_in(8), choices.one_in(8)),
    )
    memory = choices.pick(
        (Memory(), Memory(final_sent=True), Memory(False, "Asked before?", frozenset({1, 2})))
    )
    partial = choices.pick((None, None, None, "flush"))
    scrub_all = choices.one_in(2)
    spans = _made(choices) if choices.below(2) else _recorded(choices)
    return Case(spans, rules, memory, partial, scrub_all)


def seeds() -> Iterator[bytes]:
    """Inputs to begin with: each stretch of each recording, unchanged."""
    for number, spans in enumerate(recordings()):
        for first in range(0, len(spans), MAX_SPANS):
            yield bytes([0] * _SETTINGS + [0, number, first])


def _recorded(choices: Choices) -> list[Span]:
    """A stretch of a recording, with a few things changed."""
    spans = choices.pick(recordings())
    first = choices.below(len(spans))
    return [_changed(choices, span) for span in spans[first : first + MAX_SPANS]]


def _changed(choices: Choices, span: Span) -> Span:
    attributes: dict[Any, Any] = dict(span.attributes)
    for _ in range(choices.below(6)):
        names = list(attributes) or [""]
        name = choices.pick(names)
        change = choices.below(6)
        if change == 0:
            attributes[name] = hostile.value(choices)
        elif change == 1:
            attributes.pop(name, None)
        elif change == 2:
            attributes[name] = hostile.MARK
        elif change == 3:
            attributes[name] = repr(attributes.get(name))[: choices.below(1_000)]
        elif change == 4:
            attributes[name] = attributes.get(choices.pick(names))
        else:
            key, value = hostile.attribute(choices)
            attributes[key] = value
    changed = replace(span, attributes=attributes)
    return _shaken(choices, changed) if choices.one_in(4) else changed


def _made(choices: Choices) -> list[Span]:
    """Spans from nothing; the first ones are likely to be retrievals beneath one another."""
    blank = Span(0xABC, 0, None, False, "span", 0, 10)
    return [
        _shaken(choices, replace(blank, span_id=number, attributes=_attributes(choices)))
        for number in range(1, 2 + choices.below(MAX_SPANS))
    ]


def _attributes(choices: Choices) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    if not choices.one_in(4):
        found = {"openinference.span.kind": choices.pick(hostile.KINDS), "input.value": hostile.text(choices)}
        prefix = choices.pick(hostile.LISTS)
        for rank in range(choices.pick((1, 2, 3, 60, 0))):
            found[f"{prefix}.{rank}.document.content"] = hostile.text(choices)
            found[f"{prefix}.{rank}.document.metadata"] = hostile.value(choices)
    return found | hostile.attributes(choices, 12)


def _shaken(choices: Choices, span: Span) -> Span:
    """The span with an id, a parent and times that may be those of others, or of nobody."""
    return replace(
        span,
        span_id=choices.pick((span.span_id, 1, 2, 3, 0, 2**64 - 1)),
        parent_id=choices.pick((None, 1, 2, 3, 4, 5, 6, 99, span.span_id)),
        parent_is_remote=choices.one_in(4),
        name=hostile.text(choices),
        start=choices.pick(hostile.TIMES),
        end=choices.pick(hostile.TIMES),
        failed=choices.one_in(8),
        resource=hostile.attributes(choices, 2),
        dropped_attributes=choices.pick((0, 0, 3)),
    )
