"""What stands in the OpenTelemetry context: the blocks in force, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from opentelemetry.context import Context, attach, create_key, get_current, set_value
from opentelemetry.util.types import AttributeValue

from .. import marks

_KEY = create_key("seer-otel")
_NOTHING: Mapping[str, AttributeValue] = MappingProxyType({})
in_use = False
"""Whether this process has ever opened a block. Most never do, and hooks look at it at the start of every span."""


class Block:
    """One block: the span attributes that it sets."""

    __slots__ = ("attributes",)

    def __init__(self, attributes: Mapping[str, AttributeValue | None]) -> None:
        """Hold `attributes`; those that are None count as absent."""
        self.attributes = {name: value for name, value in attributes.items() if value is not None}

    def __enter__(self) -> None:
        if self.attributes:
            put((*current(), self))

    def __exit__(self, *_: object) -> None:
        blocks = current()
        # Found by identity, without a token: a block may end in another context than it began in (a generator
        # closed by another task), where a token fails loudly. What is not in force there needs no removal.
        if self in blocks:
            last = len(blocks) - 1 - blocks[::-1].index(self)
            put(blocks[:last] + blocks[last + 1 :])

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


def attributes_in(context: Context | None) -> Mapping[str, AttributeValue]:
    """Return the attributes for a span that starts with the parent context `context`.

    Without one the current context counts: LangChain starts its root spans with none.
    """
    if not in_use:
        return _NOTHING
    blocks = (get_current() if context is None else context).get(_KEY)
    return blocks.attributes if isinstance(blocks, _Blocks) else _NOTHING


@dataclass(frozen=True, slots=True)
class _Blocks:
    """What stands in the OpenTelemetry context: the blocks in force, outermost first, and what they say."""

    blocks: tuple[Block, ...]
    attributes: Mapping[str, AttributeValue]


def current() -> tuple[Block, ...]:
    """Return the blocks in force, outermost first."""
    value = get_current().get(_KEY)
    return value.blocks if isinstance(value, _Blocks) else ()


def put(blocks: tuple[Block, ...]) -> None:
    """Make `blocks` those in force here, and leave all else in the context (spans, baggage) as it is."""
    global in_use  # noqa: PLW0603 - a fact of the process
    in_use = True
    if not blocks:
        attach(Context({key: value for key, value in get_current().items() if key != _KEY}))
        return
    merged: dict[str, AttributeValue] = {}
    for block in blocks:
        if marks.GROUND_TRUTH_IDS in block.attributes:
            merged.pop(marks.GROUND_TRUTH_ANSWER, None)
        merged |= block.attributes
    attach(set_value(_KEY, _Blocks(blocks, MappingProxyType(merged))))
