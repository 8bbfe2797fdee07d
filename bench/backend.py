"""The embedded backend: accepted events a second, what a killed server loses, evaluations a second, first screen."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from . import spans
from .child import ROOT, environment, fresh
from .figure import Goal, Row, Scale, row

SENDERS = 2
"""Processes that send: one alone has hardly as many events in an hour's traffic, and takes a core for it."""
IN_HAND = 1_000
"""Retrievals of one sender that are on their way at once: fewer than are kept without a spool."""
LEAD = 4.0
"""Seconds until all senders are ready to begin at the same time."""
OLDEST = 12 * 3600
"""Seconds for which a store of a million traces is used again: its last trace should be of today."""
STORE = ROOT / ".cache" / "bench"


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run `seer-otel serve` as users do; its process and its port."""
    command = [sys.executable, "-m", "seer_otel.cli", "serve", "--port", str(port), "--data", str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = "".join(iter(process.stdout.readline, "Stop: Ctrl-C\n"))
        found = re.search(r"Listening on http://127\.0\.0\.1:(\d+)", said)
        assert found, f"the backend did not start: {said}"
        yield process, int(found[1])
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def stored(folder: Path) -> int:
    """How many events there are, each counted once."""
    with closing(sqlite3.connect(folder / "events.db")) as connection:
        return int(connection.execute("SELECT count(DISTINCT span_id) FROM events").fetchone()[0])


def sender(url: str, count: int, begin: float, spool: str = "", patience: float = 120.0) -> dict[str, float]:
    """Run in a fresh process: send `count` retrievals of ten documents as fast as they are taken, from `begin` on."""
    from seer_otel import SeerSpanProcessor

    spool_dir = spool or None
    processor = SeerSpanProcessor(endpoint=f"{url}/v1/log", sample_rate=1.0, spool_dir=spool_dir)
    traced = spans.tracer(processor)
    # Of this process alone: the same texts from all senders would be the same documents.
    attributes = [spans.retrieval(number + 1_000 * (os.getpid() % 1_000)) for number in range(64)]
    time.sleep(max(0.0, begin - time.time()))
    began = time.time()
    for number in range(count):
        traced.start_span("bench", attributes=attributes[number % 64]).end()
        while number % 50 == 49 and number - processor.stats().sent > IN_HAND:
            time.sleep(0.002)
    until = time.time() + patience
    while (sent := processor.stats().sent) < count and time.time() < until:
        processor.flush(1.0)
    return {"began": began, "ended": time.time(), "sent": sent, "lost": count - sent}


def send(port: int, count: int, senders: int, **options: Any) -> list[dict[str, float]]:
    """Have several processes send at once, and return what each found."""
    found: list[dict[str, float]] = []
    arguments = {"url": f"http://127.0.0.1:{port}", "count": count, "begin": time.time() + LEAD, **options}
    threads = [
        threading.Thread(target=lambda: found.append(fresh("backend:sender", **arguments)))
        for _ in range(senders)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == senders, "a sender failed"
    return found


def accepted(scale: Scale) -> list[Row]:
    """Events a second from the product's own senders, while their judging is under way, too."""
    rates, lost = [], 0
    count = scale.count(6_000)
    for _ in range(scale.rounds(3)):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            with serving(data) as (_, port):
                found = send(port, count, SENDERS)
            took = max(each["ended"] for each in found) - min(each["began"] for each in found)
            rates.append(SENDERS * count / took)
            lost += SENDERS * count - stored(data)
    note = f"{SENDERS} sending processes, 10 documents, sample rate 1"
    goal = Goal("value", ">=", 2_000, "/s")
    return [
        row("backend", "events accepted", "/s", rates, goal=goal, note=note),
        row("backend", "events accepted but not stored, or lost", "", [lost], goal=Goal("value", "<=", 0)),
    ]


def killed(scale: Scale) -> list[Row]:
    """What is missing when the server gets `kill -9` in the middle, and is started again."""
    count = scale.count(6_000)
    with tempfile.TemporaryDirectory() as folder:
        data, found = Path(folder) / "data", []
        with serving(data) as (first, port):
            options = {"spool": str(Path(folder) / "spool")}
            sending = threading.Thread(target=lambda: found.extend(send(port, count, 1, **options)))
            sending.start()
            while (there := stored(data)) < count // 3 and sending.is_alive():
                time.sleep(0.02)
            first.send_signal(signal.SIGKILL)
            first.wait()
        with serving(data, port):
            sending.join()
        assert found, "the sender failed"
        missing = count - stored(data)
    note = f"kill -9 with {there:,} of {count:,} stored, started again; the sender has a spool"
    return [
        row("backend", "events missing after kill -9", "", [missing], goal=Goal("value", "<=", 0), note=note)
    ]


def evaluations(count: int) -> float:
    """Run in a fresh process: evaluations a second of CPU, as the judging process makes them."""
    import json

    from seer_otel.evaluation.evaluators import evaluator
    from seer_otel.evaluation.evaluators.corpus import Corpus
    from seer_otel.local.judging.process import Task, _judge

    chance = random.Random(1)
    words = ["".join(chance.choices("aeioulnrst", k=chance.randint(3, 9))) for _ in range(5_000)]

    def text(length: int) -> str:
        sentences = (" ".join(chance.choices(words, k=12)).capitalize() for _ in range(length // 12))
        return ". ".join(sentences) + "."

    def task(number: int) -> Task:
        context = [{"text": text(120), "id": f"d{n}", "score": 1 / (n + 1)} for n in range(10)]
        return Task(number, "", json.dumps({"task": text(12), "context": context}))

    tasks = [task(number) for number in range(count)]
    judge, corpus = evaluator(), Corpus()
    _judge(judge, corpus, tasks[:20])
    began = time.process_time()
    answer = _judge(judge, corpus, tasks)
    took = time.process_time() - began
    assert not any(each.failed for each in answer.judged)
    return count / took


def judging(scale: Scale) -> list[Row]:
    """Evaluations a second a core, by the default evaluator."""
    rates = [fresh("backend:evaluations", count=scale.count(600)) for _ in range(scale.rounds(3))]
    goal = Goal("value", ">=", 300, "/s")
    note = "10 passages of 120 words; reading, figures and counting of stems included"
    return [row("backend", "evaluations by `lexical`, one core", "/s", rates, goal=goal, note=note)]


def filled(count: int) -> Path:
    """A store of so many traces, which is kept for some hours."""
    from . import fill

    folder = STORE / f"backend-{count}"
    file = folder / "events.db"
    if not file.exists() or time.time() - file.stat().st_mtime > OLDEST:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(dir=folder.parent))
        fill.fill(making, count, datetime.now(timezone.utc))
        making.rename(folder)
    return folder


def screen(scale: Scale) -> list[Row]:
    """Milliseconds until the first page is there."""
    count = scale.count(1_000_000)
    with serving(filled(count)) as (_, port):
        times = []
        for _ in range(scale.rounds(10) + 1):
            began = time.perf_counter()
            with urlopen(f"http://127.0.0.1:{port}/") as answer:
                size = len(answer.read())
            times.append(1e3 * (time.perf_counter() - began))
    first, others = times[0], statistics.median(times[1:])
    note = f"{count:,} events, {size / 1e3:.0f} KB; after the start {first:.0f} ms, then {others:.0f} ms"
    goal = Goal("value", "<=", 300, "ms")
    return [row("backend", "first screen", "ms", times, goal=goal, note=note)]


def backend(scale: Scale) -> list[Row]:
    """All of it."""
    return [each for figure in (accepted, killed, judging, screen) for each in figure(scale)]
