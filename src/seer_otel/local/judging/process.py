"""The process in which events are judged, so that judging takes no time from what comes in, and may crash.

The parent sends lists of events over a pipe and gets their judgements back. The process ends with the pipe, so it
does not outlive a parent that is killed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from seer_otel.evaluation.evaluators import distinct_stems
from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.judging import Evaluator
from seer_otel.local.judging.figures import Judged, judged
from seer_otel.local.schema import LoggedEvent, parse
from seer_otel.local.storage.results import PASSAGES

MAX_STEMS = 500_000
"""Stems that are counted; beyond that only known ones are: texts without end need not take memory without end."""
START = 120.0
"""Seconds that a process has to start."""

Make = Callable[[], Evaluator]
"""Makes the evaluator, in the process; pickled by its name."""


@dataclass(frozen=True, slots=True)
class Task:
    """An event that is to be judged."""

    event_id: int
    record_id: str
    body: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a list of tasks: one judgement each, and how many more passages hold each stem."""

    judged: list[Judged]
    counted: dict[str, int]


class ProcessEndedError(Exception):
    """The process is gone, or took so long that it was ended."""


class NotStartedError(Exception):
    """The process did not come up."""


class JudgingProcess:
    """One process. Not for several threads at once, but for `kill`.

    Args:
        make: makes the evaluator.
        corpus: how common stems are at the start.

    Raises NotStartedError.
    """

    def __init__(self, make: Make, corpus: Corpus) -> None:
        # A new interpreter: a copy of this one would hold its locks and connections.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_work,
            args=(theirs, make, corpus.documents, corpus.frequencies),
            name="seer-otel-judging",
            daemon=True,
        )
        self._process.start()
        theirs.close()
        try:
            self._receive(START)
        except ProcessEndedError as error:
            self.close()
            raise NotStartedError(str(error)) from None

    def judge(self, tasks: Sequence[Task], patience: float) -> Answer:
        """Judge events; raises ProcessEndedError if that takes more than `patience` seconds or the process ends."""
        try:
            self._pipe.send(list(tasks))
        except OSError:
            raise ProcessEndedError("it had ended") from None
        answer: Answer = self._receive(patience)
        return answer

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def close(self) -> None:
        """End the process, and wait for its end."""
        self._process.kill()
        self._process.join()
        self._pipe.close()
        self._process.close()

    def _receive(self, patience: float) -> Any:
        try:
            if not self._pipe.poll(patience):
                self._process.kill()
                raise ProcessEndedError(f"it took more than {patience:g} s")
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(5)
            raise ProcessEndedError(f"the process ended (exit code {self._process.exitcode})") from None


def _work(pipe: Connection, make: Make, documents: int, frequencies: Mapping[str, int]) -> None:
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches all processes of a terminal; the parent ends this one
    if hasattr(os, "nice"):
        os.nice(10)  # what comes in goes first
    evaluator, corpus = make(), Corpus(documents, frequencies)
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        pipe.send("ready")
        while True:
            pipe.send(_judge(evaluator, corpus, pipe.recv()))


def _judge(evaluator: Evaluator, corpus: Corpus, tasks: Sequence[Task]) -> Answer:
    found, counted = [], Counter[str]()
    for task in tasks:
        event = parse(task.body.encode())
        found.append(judged(evaluator, corpus, task.event_id, task.record_id, event))
        # Afterwards: an evaluator counts what it has at hand by itself.
        _count(corpus, event, counted)
    return Answer(found, dict(counted))


def _count(corpus: Corpus, event: LoggedEvent, counted: Counter[str]) -> None:
    """Add an event's passages to the corpus, and to what was counted."""
    for passage in event.passages():
        there: AbstractSet[str] = distinct_stems(passage.text)
        if len(corpus.frequencies) >= MAX_STEMS:
            there &= corpus.frequencies.keys()
        corpus.add(there)
        counted.update(there)
        counted[PASSAGES] += 1
