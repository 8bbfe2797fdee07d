"""`seer-otel evaluate`: how good the retrievals of labelled files are, and how well an evaluator judges them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from .._version import __version__
from ..endpoint import ConfigurationError
from . import accuracy, datasets, evaluators
from .accuracy import FAILED, Row, Summary
from .accuracy_report import show
from .bars import Bar, bar
from .evaluators.corpus import Corpus
from .judging import Evaluator
from .partial import Partial


def run(arguments: argparse.Namespace) -> int:
    """Print the report, and write it as JSON where that is asked for.

    Returns the exit status: 0, 1 where no example could be evaluated or a file cannot be read or written, 2 where there
    is no such evaluator, 130 where it was interrupted.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a pipe may be in an encoding of few characters
    files = list(dict.fromkeys(arguments.files))
    target = None if arguments.json is None else Path(arguments.json).expanduser()
    if target is not None and target.is_symlink():  # the report takes the place of the file, not of the link
        target = Path(os.path.realpath(target))
    if target is not None and target.exists() and not target.is_file():
        return _complain(f"--json {arguments.json} is there already, and is no file", 2)
    try:
        evaluator = evaluators.evaluator(arguments.evaluator)
        with ExitStack() as stack:
            steps = stack.enter_context(bar())
            data = _survey(files, steps)
            kept = None if target is None else stack.enter_context(closing(_kept(target, evaluator, data)))
            rows = list(_judged(data, evaluator, kept, steps))
            summaries = [accuracy.summary([row for row in rows if row["file"] == file]) for file in files]
            overall = accuracy.overall([[row for row in rows if row["file"] == file] for file in files])
            if kept is not None and target is not None:
                kept.finish(target, _report(evaluator, files, summaries, overall, rows))
    except ConfigurationError as error:
        return _complain(str(error), 2)
    except (datasets.DatasetError, OSError) as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return _complain(
            "interrupted" + ("" if target is None else "; the same command goes on from there"), 130
        )
    try:
        show(evaluator, files, summaries, overall)
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    failures = [row for row in rows if row["left_out"] == FAILED]
    for row in failures[:3]:
        _complain(f"{row['file']}, line {row['line']} could not be evaluated: {row['error']}")
    return 1 if len(failures) == len(rows) else 0


@dataclass(frozen=True, slots=True)
class _Data:
    """What the files hold: how many examples, how common words are in them, and a name for all of it."""

    files: Sequence[str]
    examples: int
    corpus: Corpus
    digest: str


def _survey(files: Sequence[str], steps: Bar) -> _Data:
    """Read all files once: an evaluator has to know how common words are before it judges the first example."""
    corpus, digest, seen, count = Corpus(), blake2b(), set(), 0
    for file in files:
        before = count
        for example in steps("Reading", datasets.read(file)):
            count += 1
            digest.update(repr((example.file, example.line, example.data)).encode("utf-8", "replace"))
            for text in example.texts:
                name = blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
                if name not in seen:
                    seen.add(name)
                    corpus.add(evaluators.stems(text))
        if count == before:
            raise datasets.DatasetError(file, 1, "", "the file holds no example")
    return _Data(files, count, corpus, digest.hexdigest())


def _kept(target: Path, evaluator: Evaluator, data: _Data) -> Partial:
    fingerprint = f"seer-otel {__version__}, {evaluator.name} {evaluator.version}, {data.digest}"
    return Partial(target.with_name(f"{target.name}.partial"), fingerprint)


def _judged(data: _Data, evaluator: Evaluator, kept: Partial | None, steps: Bar) -> Iterator[Row]:
    """Judge all examples, but those that an interrupted run has judged before."""
    done = [] if kept is None else kept.done
    examples = (example for file in data.files for example in datasets.read(file))
    for number, example in enumerate(steps("Evaluating", examples, data.examples)):
        if number < len(done):
            yield done[number]
            continue
        row = accuracy.evaluate(example, evaluator, data.corpus)
        if kept is not None:
            kept.add(row)
        yield row


def _report(
    evaluator: Evaluator,
    files: Sequence[str],
    summaries: Sequence[Summary],
    overall: Summary,
    rows: list[Row],
) -> dict[str, Any]:
    return {
        "evaluator": {
            "name": evaluator.name,
            "version": evaluator.version,
            "accuracy": evaluator.accuracy,
        },
        "metrics": {
            "overall": overall.as_json(),
            "files": {file: each.as_json() for file, each in zip(files, summaries, strict=True)},
        },
        "examples": rows,
    }


def _complain(text: str, status: int = 1) -> int:
    sys.stderr.write(f"seer-otel evaluate: {text}\n")
    return status
