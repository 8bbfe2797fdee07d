"""An evaluator whose judgements are plain to see. Its module has to be found by the process in which it judges."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.judging import Judgement, Requirement


class StandIn:
    """Each word of the query is a requirement, which the passages that have the word meet; some words do harm.

    `sufficiency` says how many passages were counted before, in thousandths.
    """

    name = "stand-in"
    version = "1"
    accuracy = "not measured"

    def judge(self, query: str, passages: Sequence[str], corpus: Corpus) -> Judgement:
        words = query.split()
        if "raise" in words:
            raise ValueError("asked to")
        if "crash" in words:
            os._exit(3)
        if "hang" in words:
            time.sleep(600)
        found = [tuple(n for n, text in enumerate(passages) if word in text.split()) for word in words]
        requirements = [Requirement(word, bool(at), at) for word, at in zip(words, found, strict=True)]
        cited = sorted({position for at in found for position in at})
        if "nonsense" in words:
            cited = [len(passages)]
        return Judgement(tuple(requirements), tuple(cited), corpus.documents / 1_000)


class Newer(StandIn):
    version = "2"


class Broken(StandIn):
    """One that cannot be made in the process."""

    def __init__(self) -> None:
        if "seer-otel-judging" in __import__("multiprocessing").current_process().name:
            raise ValueError("broken")
