"""Everything included, until it has arrived: CPU a retrieval, and retrievals a second without a loss."""

from __future__ import annotations

import time
from typing import Any

from . import arrangements, sink, spans
from .child import fresh
from .figure import Goal, Row, Scale, row

IN_HAND = 1_500
"""Retrievals that are on their way at once: fewer than a batch processor's queue holds, so none need be lost."""
LOOK = 0.01
"""Seconds between two looks at what has arrived."""


def saturated(
    name: str, url: str, count: int, load: str = "retrieval", documents: int = 10
) -> dict[str, float]:
    """Run in a fresh process: make `count` spans as fast as they are taken off, and wait until all have arrived.

    Of spans that are no retrieval ours sends nothing, so there is nothing to wait for but the flush.
    """
    processor = arrangements.sending(name, url)
    traced = spans.tracer(processor)
    small = load == "no retrieval"
    attributes = [spans.NO_RETRIEVAL if small else spans.retrieval(number, documents) for number in range(64)]
    waits = name != "nothing" and not (small and name == "seer")
    for each in attributes:  # what comes with the first events is no pace
        traced.start_span("bench", attributes=each).end()
    processor.force_flush(10_000)
    watch = sink.Watch(url)
    cpu, began = time.process_time(), time.perf_counter()
    for number in range(count):
        traced.start_span("bench", attributes=attributes[number % 64]).end()
        if waits and number % 100 == 99:
            await_arrival(watch, number + 1 - IN_HAND)
    processor.force_flush(60_000)
    arrived = await_arrival(watch, count, 5.0) if waits else count
    took = time.perf_counter() - began
    spent = time.process_time() - cpu
    return {"cpu": 1e6 * spent / count, "rate": count / took, "lost": count - arrived}


def await_arrival(watch: sink.Watch, wanted: int, patience: float = 30.0) -> int:
    until = time.perf_counter() + patience
    while (arrived := watch.arrived()) < wanted and time.perf_counter() < until:
        time.sleep(LOOK)
    return arrived


def compared(names: list[str], rounds: int, **load: Any) -> dict[str, dict[str, list[float]]]:
    """Run each arrangement in each round; CPU (over making the spans), rate and losses by arrangement."""
    found: dict[str, dict[str, list[float]]] = {name: {"cpu": [], "rate": [], "lost": []} for name in names}
    with sink.running() as url:
        for _ in range(rounds):
            floor = fresh("sending:saturated", name="nothing", url=url, **load)["cpu"]
            for name in names:
                result = fresh("sending:saturated", name=name, url=url, **load)
                found[name]["cpu"].append(max(result["cpu"] - floor, 0.1))
                found[name]["rate"].append(result["rate"])
                found[name]["lost"].append(result["lost"])
    return found


def losses(found: dict[str, dict[str, list[float]]]) -> str:
    lost = {name: int(sum(result["lost"])) for name, result in found.items()}
    return ", ".join(f"{name} lost {count}" for name, count in lost.items() if count) or "no loss"


def send(scale: Scale) -> list[Row]:
    """CPU and rate, saturated."""
    beside = "BatchSpanProcessor + OTLP"
    ten = compared(["batch", "seer"], scale.rounds(5), count=scale.count(2_000))
    one = compared(["batch", "seer"], scale.rounds(3), count=scale.count(2_000), documents=1)
    small = compared(["batch", "seer"], scale.rounds(3), count=scale.count(10_000), load="no retrieval")
    rate_goal = Goal("ratio", ">=", 0.9)
    rows = []
    for words, found, cpu_goal in (
        ("10 documents", ten, Goal("ratio", "<=", 1.25)),
        ("1 document", one, None),
    ):
        ours, batch = found["seer"], found["batch"]
        rows += [
            row("send", f"CPU a retrieval, {words}", "us", ours["cpu"], batch["cpu"], beside, goal=cpu_goal),
            row(
                "send",
                f"sustained rate, {words}",
                "/s",
                ours["rate"],
                batch["rate"],
                beside,
                goal=rate_goal if cpu_goal else None,
                note=losses(found),
            ),
        ]
    ours, batch = small["seer"], small["batch"]
    rows.append(row("send", "CPU a span that is no retrieval", "us", ours["cpu"], batch["cpu"], beside))
    rows.append(
        row(
            "send",
            "sustained rate, spans that are no retrieval",
            "/s",
            ours["rate"],
            batch["rate"],
            beside,
            note=losses(small),
        )
    )
    lost = sum(ten["seer"]["lost"]) + sum(one["seer"]["lost"])
    rows.append(row("send", "retrievals lost", "", [lost], goal=Goal("value", "<=", 0)))
    return rows


def backlog(url: str, count: int) -> float:
    """Run in a fresh process: events a second from a backlog, from the time when all threads are at it."""
    processor = arrangements.sending("seer", url)
    traced = spans.tracer(processor)
    watch = sink.Watch(url)
    attributes = [spans.retrieval(number) for number in range(64)]
    for number in range(count):
        traced.start_span("bench", attributes=attributes[number % 64]).end()
    start = await_arrival(watch, count // 4)
    began = time.perf_counter()
    end = await_arrival(watch, count)
    return (end - start) / (time.perf_counter() - began)


def slow(scale: Scale) -> list[Row]:
    """A backend that takes 20 ms."""
    with sink.running(delay=0.02) as url:
        rounds = scale.rounds(3)
        rates = [fresh("sending:backlog", url=url, count=scale.count(1_600)) for _ in range(rounds)]
    return [
        row(
            "slow",
            "events/s, backend takes 20 ms, 8 in flight",
            "/s",
            rates,
            [8 / 0.02] * rounds,
            "8 / 20 ms",
            goal=Goal("value", ">=", 350, "/s"),
        )
    ]


def peers(scale: Scale) -> list[Row]:
    """The span processors of others, on the same spans."""
    from .hooks import SPANS, measured

    there = [peer for peer in arrangements.PEERS if arrangements.is_installed(peer)]
    names = ["batch", "seer", *there]
    hooks = measured(names, scale.rounds(7), scale.count(SPANS))
    sent = compared(names, scale.rounds(3), count=scale.count(1_000))
    rows = []
    for name in ("seer", *arrangements.PEERS):
        words = "seer-otel" if name == "seer" else arrangements.NAMES[name]
        if name not in names:
            rows.append(Row("peers", words, "", None, note="not installed here"))
            continue
        for kind, costs in hooks.items():
            rows.append(
                row(
                    "peers",
                    f"{words}: both hooks, {kind}",
                    "ns",
                    costs[name],
                    costs["batch"],
                    "BatchSpanProcessor",
                )
            )
        rows.append(
            row(
                "peers",
                f"{words}: CPU a retrieval",
                "us",
                sent[name]["cpu"],
                sent["batch"]["cpu"],
                "BatchSpanProcessor + OTLP",
                note=losses({words: sent[name]}),
            )
        )
    return rows
