"""The evaluators that come with this package, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ...endpoint import ConfigurationError
from ..judging import Evaluator
from .lexical import Lexical, parsed
from .words import stems

__all__ = ["DEFAULT", "distinct_stems", "evaluator", "names", "stems"]

DEFAULT = "lexical"
_EVALUATORS: dict[str, Callable[[], Evaluator]] = {"lexical": Lexical}


def names() -> tuple[str, ...]:
    """The names that `evaluator` knows, the default first."""
    return tuple(_EVALUATORS)


def evaluator(name: str = DEFAULT) -> Evaluator:
    """The evaluator of that name, the same object each time; ConfigurationError names the choices."""
    if name not in _EVALUATORS:
        raise ConfigurationError(f"there is no evaluator {name!r}; there are: {', '.join(_EVALUATORS)}")
    return _made(name)


def distinct_stems(text: str) -> frozenset[str]:
    """The same as `set(stems(text))`, for next to nothing where `lexical` has just judged this passage."""
    return parsed(text).known


@cache
def _made(name: str) -> Evaluator:
    return _EVALUATORS[name]()
