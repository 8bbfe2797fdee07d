"""What sits on a tracer provider, and how many documents fit into its spans."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanLimits

from ..event import MAX_PASSAGES, MAX_TEXT
from ..exporter import SeerSpanExporter
from ..processor import SeerSpanProcessor
from .lines import Line, counted, no, note, yes

OTHERS = 5
"""Attributes of a retriever's span beside its documents, in the recorded spans of LangChain and LlamaIndex at most."""
PER_DOCUMENT = {"LlamaIndex": 4, "LangChain": 2}
"""Attributes a document, as their instrumentors write it."""
ENOUGH = 10_000
_KNOWN = {"phoenix": "Phoenix", "arize": "Arize", "langfuse": "Langfuse"}
_LIMIT = "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"


class AppError(Exception):
    """The application named by `--app` cannot be imported; its text says why."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One span processor.

    Attributes:
        text: what it is.
        is_ours: whether it sends events.
    """

    text: str
    is_ours: bool


def load(app: str) -> object:
    """Import `module[:attribute]`; return the attribute if it is a provider, else the global provider.

    Raises:
        AppError: that failed.
    """
    module, _, attribute = app.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` has it: applications are in the current folder
    try:
        with redirect_stdout(sys.stderr):  # ours is for the answers
            found: Any = importlib.import_module(module)
        for name in filter(None, attribute.split(".")):
            found = getattr(found, name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an application may do anything
        raise AppError(f"importing {app} failed: {type(error).__name__}: {error}") from None
    return found if hasattr(found, "add_span_processor") else trace.get_tracer_provider()


def is_set(provider: object) -> bool:
    """Return whether `provider` is one, and not the stand-in before one is set."""
    return callable(getattr(provider, "add_span_processor", None))


def sampler_of(provider: object) -> str | None:
    """Return what the provider's sampler says of itself."""
    describe = getattr(getattr(provider, "sampler", None), "get_description", None)
    return str(describe()) if callable(describe) else None


def look(provider: object) -> list[Line]:
    """Return the provider, its processors in their order, and whether one of them is ours."""
    kind = type(provider)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if not is_set(provider):
        return [
            no(
                "provider",
                f"none is set ({name})",
                "Call opentelemetry.trace.set_tracer_provider() in the application, or start it with"
                " opentelemetry-instrument.",
            )
        ]
    seen = [_see(each) for each in processors_of(provider)]
    numbered = [note(f"processor {number}", each.text) for number, each in enumerate(seen, 1)]
    return [yes("provider", name + _product(kind)), *numbered, ours(seen)]


def ours(seen: Sequence[Seen]) -> Line:
    """Return whether events would be made. Pure."""
    at = [str(number) for number, each in enumerate(seen, 1) if each.is_ours]
    if not at:
        return no(
            "seer-otel on it",
            "no processor or exporter of seer-otel is on the provider",
            "Call seer_otel.attach() after the provider is set, or start the application with"
            " opentelemetry-instrument.",
        )
    if len(at) > 1:
        return note(
            "seer-otel on it",
            f"processors {' and '.join(at)}: events may be sent twice",
            "Use seer_otel.attach(), which adds one.",
        )
    return yes("seer-otel on it", f"processor {at[0]} of {len(seen)}")


def processors_of(provider: object) -> list[object]:
    """Return the span processors; there is no public way to them. Empty if the provider hides them."""
    multi = getattr(provider, "_active_span_processor", None)
    return list(getattr(multi, "_span_processors", ()))


def _see(processor: object) -> Seen:
    kind = type(processor)
    if isinstance(processor, SeerSpanProcessor):
        state = "" if processor.config.enabled else ", switched off"
        return Seen(f"{kind.__name__}{state}", processor.config.enabled)
    text = kind.__name__ + _product(kind)
    exporter = getattr(processor, "span_exporter", None)
    if exporter is not None:
        text += f" to {type(exporter).__name__}" + _product(type(exporter))
    batch = getattr(
        processor, "_batch_processor", processor
    )  # the older SDK has these on the processor itself
    for words, name in (("batches of", "max_export_batch_size"), ("a queue of", "max_queue_size")):
        size = getattr(batch, f"_{name}", None) or getattr(batch, name, None)
        if isinstance(size, int):
            text += f", {words} {size:,}"
    return Seen(text, isinstance(exporter, SeerSpanExporter) and exporter.config.enabled)


def _product(kind: type) -> str:
    """Whose class it is, if it is a known product's."""
    for each in kind.__mro__:
        product = _KNOWN.get(each.__module__.partition(".")[0])
        if product is not None:
            return f" ({product})"
    return ""


def limits(provider: object, environment: Mapping[str, str], raised: int | None) -> list[Line]:
    """Return the limits of a span's attributes that are in force.

    Args:
        provider: the one that was looked at; None for what a new one would have.
        environment: the process's.
        raised: `SEER_OTEL_RAISE_ATTRIBUTE_LIMIT`.
    """
    found: Any = getattr(provider, "_span_limits", None)
    whose = "the provider's"
    if found is None:
        whose, found = "of a new provider", SpanLimits()
    count = getattr(found, "max_span_attributes", None)
    if count is not None and raised is not None and provider is None:
        whose, count = (
            f"{whose}, which SEER_OTEL_RAISE_ATTRIBUTE_LIMIT raises under zero-code",
            max(count, raised),
        )
    if provider is None and environment.get("OTEL_CONFIG_FILE"):
        whose += "; under zero-code that of OTEL_CONFIG_FILE counts"
    return [documents(count, whose), text_length(getattr(found, "max_span_attribute_length", None))]


def documents(limit: int | None, whose: str) -> Line:
    """Return how many documents a span with that limit has room for. Pure."""
    check = "attribute limit"
    if limit is None:
        return yes(check, f"none ({whose}): every document fits")
    fitting = {name: max(0, (limit - OTHERS) // each) for name, each in PER_DOCUMENT.items()}
    room = " to ".join(f"{number:,} documents ({name})" for name, number in fitting.items())
    value = f"{limit:,} a span ({whose}): room for {room}"
    advice = f"Set {_LIMIT}={ENOUGH}: beyond that the best documents are lost first."
    fewest = min(fitting.values())
    if fewest >= MAX_PASSAGES:
        return yes(check, value)
    return no(check, value, advice) if fewest == 0 else note(check, value, advice)


def text_length(limit: int | None) -> Line:
    """Return what a limit of a value's length does to passages. Pure."""
    if limit is None:
        return yes("text length", "no limit")
    value = f"values are cut at {counted(limit, 'character')}"
    if limit >= MAX_TEXT:
        return yes("text length", f"{value}; a passage has at most {MAX_TEXT:,}")
    return note(
        "text length",
        f"{value}, passages and questions too, without a trace",
        "Unset OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT and OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT, or raise them to"
        f" {MAX_TEXT}.",
    )
