"""The `using_*` helpers: each returns a block that is a decorator too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, cast

from opentelemetry.util.types import AttributeValue

from .. import marks
from . import values
from .decorators import decorated
from .stored import Block

F = TypeVar("F", bound=Callable[..., Any])


class Using(Block):
    """What each `using_*` helper returns: a block, and a decorator that opens one for each call.

    It keeps no state of its own: what is in force stands in the OpenTelemetry context alone. So one instance
    can be entered again inside itself, and in many threads and tasks at once.

    A plain block in a generator's body that spans a `yield` is in force in the consumer too until the next
    step, as any context variable is; the decorator confines it to the body.
    """

    __slots__ = ()

    def __call__(self, function: F) -> F:
        """Return `function` with this block around each call; for generators around each step of the body."""
        if not self.attributes:
            return function
        target: object = function
        if isinstance(target, (staticmethod, classmethod)):
            return cast(F, type(target)(self(target.__func__)))
        if not callable(target) or inspect.isclass(target):
            values.warn("a using_* decorator takes a function", type(target).__name__)
            return function
        return cast(F, decorated(target, lambda: Using(self.attributes)))


def using_task(text: str) -> Using:
    """Name the question that the user asked, for all retrievals inside.

    Args:
        text: the question, not blank.
    """
    return Using({marks.TASK: values.valid("using_task takes a text that is not blank", values.text, text)})


def using_subquery(text: str) -> Using:
    """Name what the retrievals inside ask, where that is not the task.

    Args:
        text: the query, not blank.
    """
    return Using(
        {marks.SUBQUERY: values.valid("using_subquery takes a text that is not blank", values.text, text)}
    )


def using_final_context(final: bool = True) -> Using:
    """Say whether the model answers from what is retrieved inside.

    Args:
        final: true marks the last retrieval inside, false rules all of them out.
    """
    return Using(
        {marks.IS_FINAL_CONTEXT: values.valid("using_final_context takes True or False", values.flag, final)}
    )


def using_ground_truth(gold_doc_ids: Collection[str | float] | str, answer: str | None = None) -> Using:
    """Label the retrievals inside. Traces with labels are always kept, whatever the sample rate.

    Args:
        gold_doc_ids: the ids of the relevant documents; numbers become text, and a single text is one id.
        answer: the right answer, if known. An outer block's answer does not count: it belongs to other ids.
    """
    ids = values.valid(
        "using_ground_truth takes a list of ids, each a text or a number", values.ids, gold_doc_ids
    )
    if ids is None:
        return Using({})
    if answer is not None:
        answer = values.valid(
            "using_ground_truth takes as answer a text that is not blank", values.text, answer
        )
    return Using({marks.GROUND_TRUTH_IDS: ids, marks.GROUND_TRUTH_ANSWER: answer})


def using_metadata(metadata: Mapping[str, object]) -> Using:
    """Put `metadata` on the events of the retrievals inside, merged key by key with that of outer blocks.

    Args:
        metadata: text, booleans, numbers and lists of one of them stay what they are, anything else is stored
            as text, in JSON where it has parts. None and numbers that are not finite count as absent.
    """
    takes = "using_metadata takes a mapping whose keys are texts that are not blank"
    attributes: dict[str, AttributeValue | None] = {}
    for key, value in (values.valid(takes, values.items, metadata) or {}).items():
        name = values.valid(takes, values.text, key)
        if name is not None:
            attribute = values.valid(
                "using_metadata takes values that JSON can hold", values.attribute, value
            )
            attributes[marks.METADATA_PREFIX + name] = attribute
    return Using(attributes)


def using_sample_rate(rate: float) -> Using:
    """Keep this share of the traces whose spans start inside, instead of the configured one.

    Args:
        rate: 0 (none) to 1 (all).
    """
    return Using(
        {marks.SAMPLE_RATE: values.valid("using_sample_rate takes a number from 0 to 1", values.rate, rate)}
    )
