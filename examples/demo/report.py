"""What the demo prints: what was asked, what arrived, how the two variants compare, and where to look."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from questions import EVENTS, VARIANTS, Asked
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from server import program

WORST = 5
"""Questions shown of those with the worst final contexts."""
LEFT_OUT = {
    "nested": "spans inside a retrieval that found the same (LlamaIndex traces each search twice); nothing is missing"
}
"""What a reason says about this application."""
FAULTS = 3
"""Faults shown; where one thing breaks, all the others do."""

console = Console(highlight=False, markup=False, emoji=False)

Line = dict[str, Any]
"""One event as `seer-otel show --json` prints it."""


@dataclass(frozen=True)
class Ran:
    """What a run of the application did: questions, the processor's counters, and what it said in the log."""

    asked: list[Asked]
    stats: Any
    notes: list[str]
    sample_rate: float

    def keeps(self, asked: Asked) -> bool:
        """Whether the trace should have been kept: labelled ones and the wide one are, the others by their id."""
        from seer_otel.sampling import keeps

        return bool(asked.gold) or asked.engine == "wide" or keeps(asked.trace_id, self.sample_rate)


def report(ran: Ran, events: Sequence[Line]) -> bool:
    """Print what was asked and what arrived; return whether all that should have arrived did, and was judged."""
    expected = Counter(
        {f"{each.trace_id:032x}": EVENTS[each.engine] for each in ran.asked if ran.keeps(each)}
    )
    arrived = Counter(event["event"]["trace_id"] for event in events)
    finals = [event for event in events if event["event"].get("is_final_context")]
    console.print()
    put(_counts(ran, expected, arrived, finals))
    for note in ran.notes:
        put(Text(f"Note: {note}"))
    console.print()
    put(_variants(finals))
    console.print()
    put(_worst(finals))
    faults = _faults(ran, expected, arrived, events)
    for fault in faults[:FAULTS]:
        console.print(f"Wrong: {fault}", style="red")
    if len(faults) > FAULTS:
        console.print(f"Wrong: {len(faults) - FAULTS} more like these", style="red")
    return not faults


def _counts(ran: Ran, expected: Counter[str], arrived: Counter[str], finals: Sequence[Line]) -> Table:
    stats = ran.stats
    lost = {reason.value: count for reason, count in stats.dropped.items() if not reason.by_design}
    table = Table("", "", "", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.columns[1].justify = "right"

    def row(name: str, value: object, remark: str = "") -> None:
        table.add_row(name, str(value), Text(remark, "dim"))

    row(
        "Questions asked",
        len(ran.asked),
        f"one trace each; {sum(bool(each.gold) for each in ran.asked)} are labelled with the documents to find (gold) "
        f"and always kept, the others are sampled at {ran.sample_rate:.0%}",
    )
    row("Sampled out", stats.traces_sampled_out, "whole traces, chosen by their ids")
    row(
        "Events received",
        arrived.total(),
        f"{expected.total()} expected, from {len(expected)} traces: an event is one retrieval, and a multi-hop "
        "question has three (two searches and a reranker)",
    )
    row("Final contexts", len(finals), "what the model answered from, one for each trace")
    for reason, count in stats.dropped.items():
        if reason.by_design:
            remark = LEFT_OUT.get(reason.value, "by design; nothing is missing")
            row(f"Left out: {reason.value}", count, remark)
    row("Lost", sum(lost.values()), ", ".join(f"{reason} {count}" for reason, count in lost.items()))
    row("Passages cut", stats.passages_cut, "of the one retrieval that found 60")
    row("Texts cut", stats.texts_cut, "the backend takes 4,000 characters")
    return table


def _variants(finals: Sequence[Line]) -> Table:
    """Each variant's final contexts: what an evaluator says of all, and what labels say of some."""
    evaluator = next((event["judged"]["task"]["evaluator"] for event in finals if event["judged"]), "nobody")
    table = Table(
        title=f"The two variants, as {evaluator} judges them without labels, and as the labels do",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column("feature_flag")
    for name in ("traces", "recall", "precision", "F1", "labelled", "GT recall", "GT precision"):
        table.add_column(name, justify="right")
    for variant in VARIANTS:
        own = [event for event in finals if event["event"]["metadata"].get("feature_flag") == variant]
        judged = [event["judged"]["task"] for event in own if "task" in event["judged"]]
        labelled = [event for event in own if event["gt_recall"] is not None]
        table.add_row(
            variant,
            str(len(own)),
            *(percent(mean_of(judged, name)) for name in ("recall", "precision", "f1")),
            str(len(labelled)),
            *(percent(mean_of(labelled, name)) for name in ("gt_recall", "gt_precision")),
        )
    return table


def _faults(ran: Ran, expected: Counter[str], arrived: Counter[str], events: Sequence[Line]) -> list[str]:
    finals = Counter(event["event"]["trace_id"] for event in events if event["event"].get("is_final_context"))
    faults = [
        f"trace {trace_id}: {arrived[trace_id]} events, {expected[trace_id]} expected"
        for trace_id in sorted(expected | arrived)
        if arrived[trace_id] != expected[trace_id]
    ]
    faults += [
        f"trace {each}: {finals[each]} final contexts" for each in sorted(expected) if finals[each] != 1
    ]
    faults += [f"record {each['record_id']}: {each['state']}" for each in events if each["state"] != "judged"]
    scored = sum(event["gt_recall"] is not None and event["is_final"] for event in events)
    labelled = sum(bool(each.gold) for each in ran.asked)
    if scored != labelled:
        faults.append(f"{scored} final contexts have a score, {labelled} expected")
    return faults


def put(renderable: RenderableType) -> None:
    """Print without the blanks that fill a table's lines up."""
    for line in console.render_lines(renderable, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        console.print(text, soft_wrap=True)


def percent(share: float | None) -> str:
    """As `seer-otel show` writes it."""
    return "none" if share is None else f"{share:.0%}"


def mean_of(lines: Sequence[Line], name: str) -> float | None:
    """The mean of what is available."""
    values = [line[name] for line in lines if line[name] is not None]
    return mean(values) if values else None


def _ranked(finals: Sequence[Line]) -> list[Line]:
    """The labelled final contexts, the worst first."""
    labelled = [event for event in finals if event["gt_recall"] is not None]
    return sorted(
        labelled, key=lambda event: (event["gt_recall"], event["gt_precision"], event["event"]["task"])
    )


def _worst(finals: Sequence[Line]) -> Table:
    table = Table(
        title="The labelled questions with the worst final contexts",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column("GT recall", justify="right", no_wrap=True)
    table.add_column("feature_flag", no_wrap=True)
    table.add_column("question", ratio=3)
    table.add_column("gold documents not found", ratio=2)
    for event in _ranked(finals)[:WORST]:
        found = {passage["id"] for passage in event["event"]["context"]}
        missing = [name for name in event["event"]["ground_truth"]["gold_doc_ids"] if name not in found]
        table.add_row(
            percent(event["gt_recall"]),
            event["event"]["metadata"]["feature_flag"],
            Text(event["event"]["task"]),
            Text(", ".join(name.removeprefix("hp:") for name in missing)),
        )
    return table


def where_next(folder: Path, url: str | None, events: Sequence[Line]) -> None:
    """Say where to look: the page while it is there, and the command that needs no server."""
    show = f"{program()} show --data {shlex.quote(str(folder))}"
    worst = _ranked([event for event in events if event["is_final"]])[:1]
    console.print("\nWhere to look next", style="bold")
    if url is not None:
        console.print("The page, with all of this and the comparison of the two variants:")
        console.print(f"  {url}/", soft_wrap=True)
        console.print(f"  {url}/changes?base={VARIANTS[0]}&test={VARIANTS[1]}", soft_wrap=True)
    console.print("What arrived, the newest trace first:")
    console.print(f"  {show}", soft_wrap=True)
    for event in worst:
        put(Text("The worst question: all that was retrieved, and which gold documents are missing:"))
        console.print(f"  {show} --trace {event['event']['trace_id'][:8]}", soft_wrap=True)
    if url is not None:
        console.print("\nThe backend goes on, for the other examples too, until Ctrl-C.")
