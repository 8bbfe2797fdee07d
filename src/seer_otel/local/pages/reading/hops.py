"""What one trace's page computes: its passages with what is known about each, and how recall grows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seer_otel.local.pages.reading.highlight import Highlighted, Highlighter
from seer_otel.local.pages.reading.traces import Hop, Judged, Trace
from seer_otel.local.schema import LoggedPassage


@dataclass(frozen=True, slots=True)
class Shown:
    """One passage of a hop.

    Attributes:
        rank: from 1.
        cited_for: the numbers, from 1, of the question's requirements that it supports; `cited` may hold without any.
        cited_for_subquery: whether it is cited for what this hop asked.
        gold: whether a label names it; None where there are no labels.
        same_as: the rank of the passage before it with the same document.
        hops: the numbers of the other hops that hold it, too.
    """

    rank: int
    passage: LoggedPassage
    text: Highlighted
    cited: bool | None
    cited_for: tuple[int, ...]
    cited_for_subquery: bool
    gold: bool | None
    same_as: int | None
    hops: tuple[int, ...]

    @property
    def metadata(self) -> dict[str, Any]:
        """The passage's metadata."""
        return self.passage.metadata or {}


@dataclass(frozen=True, slots=True)
class Growth:
    """What the hops up to one have found together.

    Attributes:
        met: how many of the question's `requirements` any of them met; `requirements` is 0 where none was evaluated.
        found: how many of the `gold` documents any of them retrieved.
        new: the requirements that none before had met.
    """

    met: int
    requirements: int
    found: int
    gold: int
    new: tuple[str, ...]

    @property
    def recall(self) -> float | None:
        """The share of the requirements."""
        return self.met / self.requirements if self.requirements else None

    @property
    def gold_recall(self) -> float | None:
        """The share of the gold documents."""
        return self.found / self.gold if self.gold else None


@dataclass(frozen=True, slots=True)
class Bloat:
    """What was sent against what was cited.

    Attributes:
        enough: the k that would have been enough, the rank of the last cited passage; 0 where none is cited.
        unused: the share of the characters that stands in passages that are not cited; None for an empty context.
    """

    sent: int
    cited: int
    enough: int
    unused: float | None


def order(passages: Sequence[LoggedPassage]) -> list[int]:
    """Return the positions of passages in rank order: by `rank` where each has one, else as they came."""
    ranks = [passage.rank for passage in passages]
    named = [rank for rank in ranks if rank is not None]
    if len(named) < len(ranks):
        return list(range(len(ranks)))
    return sorted(range(len(ranks)), key=lambda position: named[position])


def gold_of(hop: Hop) -> list[str] | None:
    """Return the gold documents, each once, or None where the event has no labels."""
    truth = hop.event.ground_truth
    return None if truth is None else list(dict.fromkeys(truth.gold_doc_ids))


def shown(hop: Hop, hops: Sequence[Hop], highlight: Highlighter) -> list[Shown]:
    """Return a hop's passages in rank order, each with what is known about it."""
    passages = hop.event.passages()
    gold = gold_of(hop)
    task, subquery = _evaluated(hop, "task"), _evaluated(hop, "subquery")
    others = {
        one.number: {_document(passage) for passage in one.event.passages()}
        for one in hops
        if one.number != hop.number
    }
    first: dict[str, int] = {}
    result = []
    for rank, position in enumerate(order(passages), 1):
        passage = passages[position]
        document = _document(passage)
        before = first.setdefault(document, rank)
        result.append(
            Shown(
                rank,
                passage,
                highlight(passage.text),
                None if task is None else position in task.cited,
                ()
                if task is None
                else tuple(
                    number for number, one in enumerate(task.requirements, 1) if position in one.citations
                ),
                subquery is not None and position in subquery.cited,
                None if gold is None else passage.id in gold,
                None if before == rank else before,
                tuple(number for number, held in others.items() if document in held),
            )
        )
    return result


def ranks(hop: Hop) -> dict[int, int]:
    """Return the rank of each position, so that a citation can be shown as what the page calls the passage."""
    return {position: rank for rank, position in enumerate(order(hop.event.passages()), 1)}


def missing(hop: Hop, hops: Sequence[Hop]) -> list[tuple[str, tuple[int, ...]]]:
    """Return the gold documents that a hop's context lacks, each with the hops that did retrieve it."""
    held = {one.number: {passage.id for passage in one.event.passages()} for one in hops}
    return [
        (name, tuple(number for number, ids in held.items() if name in ids))
        for name in gold_of(hop) or ()
        if name not in held[hop.number]
    ]


def growth(hops: Sequence[Hop]) -> list[Growth]:
    """Return, hop by hop, what they have found so far.

    Requirements are the same where their words are: an evaluator breaks one question into the same ones each time.
    """
    judged = [(_evaluated(hop, "task"), gold_of(hop) or ()) for hop in hops]
    wanted = {one.text for task, _ in judged if task for one in task.requirements}
    gold = {name for _, names in judged for name in names}
    met: set[str] = set()
    found: set[str] = set()
    result = []
    for hop, (task, _) in zip(hops, judged, strict=True):
        present = [one.text for one in task.requirements if one.present] if task else []
        new = tuple(text for text in dict.fromkeys(present) if text not in met)
        met.update(present)
        found.update(gold & {passage.id or "" for passage in hop.event.passages()})
        result.append(Growth(len(met), len(wanted), len(found), len(gold), new))
    return result


def bloat(hop: Hop) -> Bloat | None:
    """Return what a hop sent for nothing; None where it was not evaluated."""
    task = _evaluated(hop, "task")
    if task is None:
        return None
    passages = hop.event.passages()
    place = ranks(hop)
    cited = [position for position in task.cited if position < len(passages)]
    characters = sum(len(passage.text) for passage in passages)
    used = sum(len(passages[position].text) for position in cited)
    return Bloat(
        len(passages),
        len(cited),
        max((place[position] for position in cited), default=0),
        1 - used / characters if characters else None,
    )


def why_final(trace: Trace) -> str:
    """Say why the final context is the one it is."""
    final = trace.final
    if final is None:
        return ""
    if not final.event.is_final_context:
        return "none is marked, so it is the last by time" if trace.size > 1 else "the only retrieval"
    how = {"explicit": "marked by the application", "inferred": "marked by the client, which inferred it"}
    word = (final.event.metadata or {}).get("seer_otel.final")
    said = how.get(word if isinstance(word, str) else "", "marked by the sender")
    return said if trace.marked < 2 else f"{said}; the latest of {trace.marked} marks"


def _evaluated(hop: Hop, target: str) -> Judged | None:
    judged = hop.judged.get(target)
    return None if judged is None or judged.error is not None else judged


def _document(passage: LoggedPassage) -> str:
    # A passage without an id is known by its text; the prefix keeps the two apart.
    return f"id:{passage.id}" if passage.id else f"text:{passage.text}"
