"""`seer-otel show`: what the local backend received, as a list, one trace in full, or JSON lines."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text
from sqlalchemy.exc import SQLAlchemyError

from seer_otel.evaluation.metrics import RetrievalScores, retrieval_scores
from seer_otel.local import DEFAULT_FOLDER
from seer_otel.local.marks import notes
from seer_otel.local.schema import LoggedEvent, LoggedPassage
from seer_otel.local.storage.migrations import NewerSchemaError
from seer_otel.local.storage.records import Record, Verdict
from seer_otel.local.storage.store import FILE_NAME, Store
from seer_otel.local.storage.tables import State

PASSAGES_SHOWN = 3
QUESTION_SHOWN = 240
"""Characters of a question in the list; a passage gets one line."""
NAME_SHOWN = 40
"""Characters of an id or the name of a span in the list."""
TEXT_SHOWN = 200
"""Characters of a passage where a trace is shown in full."""
WHOLE = 4_000
"""Characters of anything else there."""
MAX_WIDTH = 1_000
"""Columns of a passage's line, however wide the terminal says it is."""

LEGEND = (
    "GT recall: share of the gold documents retrieved; "
    "GT precision: share of the retrieved documents that is gold."
)
JUDGED_LEGEND = (
    "Recall: share of what the question needs that the passages hold; precision: share of the documents that "
    "support it; both as judged by {}."
)
_STATES = {
    State.PENDING: "not judged yet; a running `seer-otel serve` does so",
    State.SAMPLED_OUT: "not judged, as its trace was sampled out",
}


def run(arguments: argparse.Namespace) -> int:
    """Print what is stored; return 0, or 1 where the trace asked for is not here or the store cannot be read."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a pipe may be in an encoding of few characters
    folder = Path(arguments.data).expanduser()
    if not (folder / FILE_NAME).is_file():
        return _nothing(arguments)
    try:
        with contextlib.closing(Store(folder)) as store:
            traces = store.traces(arguments.limit, arguments.trace)
            whole = bool(arguments.trace)
            shown = _print_json(traces) if arguments.json else _print_traces(traces, whole)
    except (OSError, SQLAlchemyError, NewerSchemaError) as error:
        if isinstance(error, BrokenPipeError):
            # Whoever read the output has seen enough; Python shall not complain at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        sys.stderr.write(f"seer-otel show: failed for {folder}: {getattr(error, 'orig', error)}\n")
        return 1
    return 0 if shown else _nothing(arguments)


def _nothing(arguments: argparse.Namespace) -> int:
    where = Path(arguments.data).expanduser().resolve()
    elsewhere = (
        "A backend that stores elsewhere needs its folder here: `seer-otel serve` prints the whole command,\n"
        "`seer-otel show --data FOLDER`, when it starts.\n"
    )
    if arguments.trace:
        sys.stderr.write(
            f"No trace in {where} has an id that begins with {printable(arguments.trace)}.\n{elsewhere}"
        )
        return 1
    found = "Nothing has arrived in" if (where / FILE_NAME).is_file() else "No backend has stored anything in"
    data = "" if arguments.data == DEFAULT_FOLDER else f" --data {shlex.quote(arguments.data)}"
    (sys.stderr if arguments.json else sys.stdout).write(
        f"{found} {where} yet.\n{elsewhere}"
        f"If no backend is running, start one with `seer-otel serve{data}`; it says how to point an application\n"
        "at it. Then ask the application something.\n"
    )
    return 0


def _print_json(traces: Iterator[list[Record]]) -> int:
    count = 0
    for records in traces:
        for record in records:
            scores = _scores(record.event())
            line = {
                "record_id": record.record_id,
                "received_at": record.received_at,
                "created_at": record.created_at,
                "gt_recall": scores and scores.recall,
                "gt_precision": scores and scores.precision,
                "gt_f1": scores and scores.f1,
                "is_final": record.is_final,
                "state": record.state.name.lower(),
                "judged": {target: _line(verdict) for target, verdict in record.verdicts.items()},
                "event": json.loads(record.body),
            }
            # ASCII: it can neither break the encoding of a pipe nor steer a terminal.
            sys.stdout.write(json.dumps(line) + "\n")
            count += 1
    sys.stdout.flush()
    return count


def _line(verdict: Verdict) -> dict[str, object]:
    said: dict[str, object] = {"evaluator": verdict.evaluator, **verdict.figures, "missing": verdict.missing}
    return said | ({"error": verdict.error} if verdict.error else {})


def _print_traces(traces: Iterator[list[Record]], whole: bool) -> int:
    console = Console(highlight=False, markup=False, emoji=False)
    count, labelled = 0, False
    evaluators: dict[str, None] = {}
    for count, records in enumerate(traces, 1):
        if count > 1:
            console.print()
        _print_trace(console, records, whole)
        labelled = labelled or any(_scores(record.event()) for record in records)
        evaluators |= dict.fromkeys(each.evaluator for record in records for each in record.verdicts.values())
    if labelled or evaluators:
        console.print()
    if evaluators:
        _print(console, Text(JUDGED_LEGEND.format(", ".join(map(printable, evaluators))), "dim"))
    if labelled:
        _print(console, Text(LEGEND, "dim"))
    return count


def _print_trace(console: Console, records: Sequence[Record], whole: bool) -> None:
    events = [record.event() for record in records]
    first, question = records[0], events[-1].task
    length = WHOLE if whole else QUESTION_SHOWN
    name = f"Trace {first.trace_id}" if first.trace_id else f"No trace, record {first.record_id}"
    began = datetime.fromisoformat(first.created_at[:-1]).strftime("%Y-%m-%d %H:%M:%S UTC")
    _print(console, Text.assemble((name, "bold"), f"  {_count(len(events), 'retrieval')}  {began}"))
    _print(console, Text(_short(question, length), "cyan"), "  Question: ")
    for number, (record, event) in enumerate(zip(records, events, strict=True), 1):
        final = "final context" if record.is_final and (event.is_final_context or len(events) > 1) else ""
        if final and not event.is_final_context:
            final = "final context (last by time)"
        _print_hop(console, number, record, final)
        if event.task != question:
            _print(console, Text(_short(event.task, length), "cyan"), "      Question: ")
        if event.subquery:
            _print(console, Text(_short(event.subquery, length), "cyan"), "      Asked: ")
        if whole:
            _print_origin(console, record, event)
            _print_all_passages(console, event)
        else:
            _print_passages(console, event.passages())
        scores = _scores(event)
        if scores is not None:
            words = f"GT recall {_percent(scores.recall)}, GT precision {_percent(scores.precision)}"
            _print(console, Text(words, "magenta"), "      ")
        _print_verdicts(console, record, whole)
        for words in notes(event.metadata, _short):
            _print(console, Text(words, "yellow"), "      Note: ")
        if whole:
            _print_metadata(console, event)


def _print_hop(console: Console, number: int, record: Record, final: str) -> None:
    event = record.event()
    line = Text.assemble(
        (_short(event.span_name or "retrieval", NAME_SHOWN), "bold"),
        (f"  {record.created_at[11:23]}", "dim"),
        f"  {_count(len(event.context), 'passage')}",
    )
    if final:
        line.append(f"  << {final}", "bold green")
    _print(console, line, f"  {number:>2}  ")


def _print_passages(console: Console, passages: Sequence[LoggedPassage]) -> None:
    for passage in passages[:PASSAGES_SHOWN]:
        line = Text("      - ")
        if passage.id:
            line.append(_short(passage.id, NAME_SHOWN), "bold").append(": ")
        # What is beyond the line is never seen, so most of a long text need not be measured.
        line.append(printable(passage.text[:MAX_WIDTH]))
        line.truncate(min(console.width, MAX_WIDTH), overflow="ellipsis")
        line.rstrip()
        console.print(line, soft_wrap=True)
    if len(passages) > PASSAGES_SHOWN:
        _print(console, Text(f"and {len(passages) - PASSAGES_SHOWN} more", "dim"), "      ")


def _print_verdicts(console: Console, record: Record, whole: bool) -> None:
    """Print what the evaluator says, in full or only of what is judged."""
    for target, verdict in record.verdicts.items():
        against = "Judged" if target == "task" else "Judged by what was asked"
        if verdict.error is not None:
            _print(console, Text(f"{against}: not evaluated: {_short(verdict.error)}", "red"), "      ")
            continue
        recall, precision = verdict.figures["recall"], verdict.figures["precision"]
        words = f"{against}: recall {_percent(recall)}, precision {_percent(precision)}"
        _print(console, Text(words, "magenta"), "      ")
        for name in verdict.missing:
            _print(console, Text(_short(name), "magenta"), "      Not found: ")
    if whole and record.state in _STATES:
        _print(console, Text(_STATES[record.state], "dim"), "      State: ")


def _print_origin(console: Console, record: Record, event: LoggedEvent) -> None:
    span = f"{event.span_id or 'unknown'}, parent {event.parent_span_id or 'none'}"
    _print(console, Text(span), "      Span: ")
    _print(console, Text(record.created_at), "      Retrieved at: ")
    _print(console, Text(f"{record.received_at} as {record.record_id}"), "      Received at:  ")


def _print_all_passages(console: Console, event: LoggedEvent) -> None:
    """Print every passage with the beginning of its text, and what the labels say about them."""
    passages, gold = event.passages(), event.ground_truth.gold_doc_ids if event.ground_truth else []
    for number, passage in enumerate(passages, 1):
        line = Text.assemble((_short(passage.id, WHOLE), "bold") if passage.id else ("no id", "dim"))
        if passage.score is not None:
            line.append(f" (score {passage.score:.4g})")
        if passage.id and passage.id in gold:
            line.append(" [gold]", "bold green")
        line.append(": ").append(_short(passage.text, TEXT_SHOWN))
        _print(console, line, f"      {number:>2}  ")
    if event.ground_truth is None:
        return
    missing = [name for name in dict.fromkeys(gold) if name not in {passage.id for passage in passages}]
    retrieved = f"{len(set(gold)) - len(missing)} of {len(set(gold))} retrieved"
    _print(console, Text(retrieved, "magenta"), "      Gold documents: ")
    for name in missing:
        _print(console, Text(_short(name, WHOLE), "magenta"), "      Missing: ")
    if event.ground_truth.answer:
        _print(console, Text(_short(event.ground_truth.answer, WHOLE)), "      Right answer: ")


def _print_metadata(console: Console, event: LoggedEvent) -> None:
    metadata = event.metadata or {}
    if metadata:
        _print(console, Text("Metadata:"), "      ")
    for key, value in metadata.items():
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        _print(console, Text(f"{_short(key, WHOLE)}: {_short(words, WHOLE)}"), "        ")


def _print(console: Console, text: Text, lead: str = "") -> None:
    """Print `text` after `lead`, further lines below its start."""
    for line in text.wrap(console, max(20, min(console.width, MAX_WIDTH) - len(lead))):
        line.rstrip()
        console.print(Text(lead) + line, soft_wrap=True)
        lead = " " * len(lead)


def _scores(event: LoggedEvent) -> RetrievalScores | None:
    if event.ground_truth is None:
        return None
    return retrieval_scores(event.ground_truth.gold_doc_ids, [passage.id for passage in event.passages()])


def _percent(share: float | None) -> str:
    return "not available" if share is None else f"{share:.0%}"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _short(text: str, length: int = QUESTION_SHOWN) -> str:
    text = printable(text[: 2 * length])
    return text if len(text) <= length else text[: length - 1] + "\N{HORIZONTAL ELLIPSIS}"


def printable(text: str) -> str:
    """Return `text` on one line and harmless on a terminal.

    White space becomes one space; what steers a terminal or turns the direction of writing shows as an escape.
    Joiners stay, as emoji and several scripts are written with them.
    """
    return "".join(_escaped(character) for character in re.sub(r"\s+", " ", text).strip())


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in ("Cc", "Cf", "Cs") or character in "\u200c\u200d":
        return character
    return character.encode("unicode_escape").decode()
