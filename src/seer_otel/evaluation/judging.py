"""What an evaluator says about a context, and what an evaluator is. Pure.

An evaluator breaks a query into requirements, says which of them the passages meet, and cites the passages that do.
Source: Seer's metrics page; see `docs/evaluators.md` for how far each evaluator can be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .evaluators.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that the query asks for.

    Attributes:
        text: the requirement, in words of the query.
        present: whether the context meets it.
        citations: positions of the passages that support it, from 0, ascending; empty where none does.
    """

    text: str
    present: bool
    citations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an evaluator says about one query and its passages.

    Attributes:
        requirements: what the query asks for, at least one.
        cited: positions of all passages that are cited, from 0, ascending. Each citation of a requirement is among
            them; a passage may be cited as evidence without completing any requirement.
        sufficiency: the probability, from 0 to 1, that the context holds all that an answer needs; None where the
            evaluator gives none.
    """

    requirements: tuple[Requirement, ...]
    cited: tuple[int, ...]
    sufficiency: float | None = None


class Evaluator(Protocol):
    """Judges contexts. It keeps no state between calls, and the same input gives the same judgement.

    Attributes:
        name: what users choose it by, such as `lexical`.
        version: changes whenever a judgement may differ.
        accuracy: how well it cites, as measured, in one line that stands beside its numbers.
    """

    @property
    def name(self) -> str:
        """See the class."""
        ...

    @property
    def version(self) -> str:
        """See the class."""
        ...

    @property
    def accuracy(self) -> str:
        """See the class."""
        ...

    def judge(self, query: str, passages: Sequence[str], corpus: Corpus) -> Judgement:
        """Judge `passages`, the best-ranked first; `corpus` says how common words are where they come from.

        Any exception means "not evaluated"; whoever calls records it and goes on.
        """
        ...
