from __future__ import annotations

import json
import multiprocessing
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import sqlalchemy as sa

from seer_otel.evaluation.evaluators import evaluator
from seer_otel.local.judging.judge import Judge, ask_again, count_pending
from seer_otel.local.judging.process import _work
from seer_otel.local.schema import parse
from seer_otel.local.storage import results as written
from seer_otel.local.storage.retention import delete
from seer_otel.local.storage.store import Store
from seer_otel.local.storage.tables import State, evaluators, events, judgements, results, stems

from .waiting import wait_until

if TYPE_CHECKING:
    from conftest import Serving

Judging = Callable[..., Judge]
FIRST = "a" * 32


def add(store: Store, task: str = "what is it", context: Any = ("what is",), **fields: Any) -> str:
    body = json.dumps({"task": task, "context": list(context), "sample_rate": 1.0} | fields)
    return store.add(parse(body), body)


def rows(store: Store, table: sa.Table) -> list[Any]:
    with store.engine.connect() as connection:
        return list(connection.execute(sa.select(table)).mappings())


def states(store: Store) -> list[State]:
    return [State(row["state"]) for row in rows(store, events)]


def test_an_event_is_judged(store: Store, stand_in: ModuleType, judging: Judging) -> None:
    """What the evaluator says, and the figures from it, are kept with the event, its trace and the evaluator's name."""
    passages = [
        {"text": "is it", "id": "d1", "score": 0.5},
        {"text": "no", "id": "d2", "score": 0.9},
        {"text": "it"},
    ]
    passages[2] |= {"id": "d1", "score": 0.1}
    labels = {"gold_doc_ids": ["d1", "d2", "d3"]}
    add(store, "what is it", passages, trace_id=FIRST, ground_truth=labels, metadata={"env": "e", "index": 7})
    judging(store, stand_in.StandIn)
    [judgement], [result], [who] = rows(store, judgements), rows(store, results), rows(store, evaluators)
    assert (who["name"], who["version"], who["accuracy"]) == ("stand-in", "1", "not measured")
    assert judgement["requirements"] == [
        {"text": "what", "present": False, "citations": []},
        {"text": "is", "present": True, "citations": [0]},
        {"text": "it", "present": True, "citations": [0, 2]},
    ]
    assert (judgement["target"], judgement["cited"], judgement["error"]) == ("task", [0, 2], None)
    figures = {"recall": 2 / 3, "precision": 1 / 2, "f1": 4 / 7, "sufficiency": 0.0}
    assert {name: judgement[name] for name in figures} == pytest.approx(figures)
    assert 0 < judgement["ndcg"] < 1
    labelled = {
        "gt_recall": 2 / 3, "gt_precision": 1.0, "gt_f1": 0.8,
        "evaluator_precision": 1.0, "evaluator_recall": 0.5, "evaluator_f1": 2 / 3, "exact_match": 0.0,
    }  # fmt: skip
    counted = {"passages": 3, "cited": 2, "needed": 3, "requirements": 3, "present": 2}
    assert {name: result[name] for name in figures | labelled | counted} == pytest.approx(
        figures | labelled | counted
    )
    assert result["left_out"] is None
    assert result["ndcg"] == judgement["ndcg"]
    assert states(store) == [State.JUDGED]


def test_a_hop_is_judged_twice(store: Store, stand_in: ModuleType, judging: Judging) -> None:
    """With a subquery an event is judged against both; the trace's figures are those against the task."""
    add(store, "what is it", ["what"], subquery="what")
    judging(store, stand_in.StandIn)
    assert {row["target"]: row["recall"] for row in rows(store, judgements)} == {
        "task": pytest.approx(1 / 3), "subquery": 1.0
    }  # fmt: skip
    assert rows(store, results)[0]["recall"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("task", "error"),
    [
        ("raise", "ValueError: asked to"),
        ("crash", "exit code 3"),
        ("hang", "more than 1 s"),
        ("nonsense", "cites"),
    ],
)
def test_an_event_that_cannot_be_judged(
    store: Store, stand_in: ModuleType, judging: Judging, task: str, error: str
) -> None:
    """It is not evaluated, which is never 0, with the reason; its neighbours are judged, and judging goes on."""
    for each in ("what is it", task, "what is it"):
        add(store, each)
    judge = judging(store, stand_in.StandIn, patience=1.0)
    assert states(store) == [State.JUDGED, State.FAILED, State.JUDGED]
    failed = rows(store, judgements)[1]
    assert error in failed["error"]
    assert [failed[name] for name in ("recall", "precision", "f1", "ndcg", "sufficiency")] == [None] * 5
    good, bad, _ = rows(store, results)
    assert (good["left_out"], bad["left_out"], bad["recall"]) == (None, "failed", None)
    add(store)
    wait_until(lambda: count_pending(store.engine) == 0)
    assert states(store)[3] == State.JUDGED
    judge.stop()
    counted = {row["stem"]: row["n"] for row in rows(store, stems)}
    assert counted[""] == (
        3 if task in ("crash", "hang") else 4
    )  # a passage that was never looked at has no words


def test_a_subquery_that_cannot_be_judged(store: Store, stand_in: ModuleType, judging: Judging) -> None:
    """Where only the subquery fails, the figures against the task count."""
    add(store, "what is it", subquery="raise")
    judging(store, stand_in.StandIn)
    assert states(store) == [State.JUDGED]
    assert {row["target"]: row["error"] for row in rows(store, judgements)} == {
        "task": None, "subquery": "ValueError: asked to"
    }  # fmt: skip


def test_marked_events(store: Store, stand_in: ModuleType, judging: Judging) -> None:
    """What our client marks as cut, dropped or partial is judged, and says why it is in no average."""
    marks = [f"seer_otel.{name}" for name in ("passages_cut", "texts_cut", "attributes_dropped", "partial")]
    for mark in marks:
        add(store, metadata={mark: 3})
        add(store, metadata={mark: 0, "seer_otel.final": "inferred"})
    judging(store, stand_in.StandIn)
    there = rows(store, results)
    assert [row["left_out"] for row in there] == [each for mark in marks for each in (mark, None)]
    assert all(row["recall"] is not None for row in there)


def test_a_late_event(store: Store, stand_in: ModuleType, judging: Judging) -> None:
    """A later event that becomes the final context changes its trace's result, another one does not."""
    judge = judging(store, stand_in.StandIn)

    def result_after(context: str, **fields: Any) -> Any:
        add(store, "what is it", [context], trace_id=FIRST, **fields)
        wait_until(lambda: count_pending(store.engine) == 0)
        [row] = rows(store, results)
        return row["event_id"], row["recall"]

    assert result_after("what is it", created_at="2026-01-01T00:00:01Z") == (1, 1.0)
    assert result_after("what", created_at="2026-01-01T00:00:00Z") == (1, 1.0)
    assert result_after("no", created_at="2026-01-01T00:00:02Z") == (3, 0.0)
    assert result_after("what is it", created_at="2026-01-01T00:00:00Z", is_final_context=True) == (4, 1.0)
    judge.stop()


def test_sampled_out_events_are_not_judged(store: Store, stand_in: ModuleType, judging: Judging) -> None:
    """A trace that was sampled out is judged when a label comes, all of it."""
    add(store, trace_id=FIRST, sample_rate=0)
    judging(store, stand_in.StandIn)
    assert rows(store, judgements) == []
    add(store, trace_id=FIRST, sample_rate=0, ground_truth={"gold_doc_ids": []})
    wait_until(lambda: count_pending(store.engine) == 0)
    assert len(rows(store, judgements)) == 2


def test_what_was_counted_outlives_the_process(store: Store, stand_in: ModuleType, judging: Judging) -> None:
    """How common stems are is kept, and an evaluator gets what was counted before the event."""
    for _ in range(40):
        add(store, "what", ["what what is", "is"])
    judging(store, stand_in.StandIn).stop()
    counted = {row["stem"]: row["n"] for row in rows(store, stems)}
    assert counted[""] == 80
    assert max(n for stem, n in counted.items() if stem) == 80
    add(store, "what", ["what"])
    judging(store, stand_in.StandIn)
    said = [row["sufficiency"] for row in rows(store, judgements)]
    assert said == pytest.approx([2 * number / 1_000 for number in range(41)])


def test_an_event_that_was_deleted_meanwhile(store: Store, stand_in: ModuleType) -> None:
    """A judgement of an event that is gone is dropped, also if its id belongs to another one by now."""
    from seer_otel.evaluation.evaluators.corpus import Corpus
    from seer_otel.local.judging import figures

    record_id = add(store)
    number = store.write(partial(written.evaluator_id, evaluator=stand_in.StandIn()))
    event = parse('{"task": "what", "context": []}')
    judged = figures.judged(stand_in.StandIn(), Corpus(), 1, record_id, event)
    delete(store, record_id)
    store.write(partial(written.write, evaluator=number, judged=[judged], counted={}))
    add(store)
    assert rows(store, events)[0]["id"] == 1
    store.write(partial(written.write, evaluator=number, judged=[judged], counted={}))
    assert (rows(store, judgements), rows(store, results), states(store)) == ([], [], [State.PENDING])


def test_another_evaluator(store: Store, stand_in: ModuleType, judging: Judging) -> None:
    """Another version judges what comes in; what is there only when asked to, and both sets of figures stay."""
    add(store)
    add(store, sample_rate=0)
    judging(store, stand_in.StandIn).stop()
    newer = judging(store, stand_in.Newer)
    assert len(rows(store, results)) == 1
    ask_again(store, newer.evaluator_id)
    store.news.set()
    wait_until(lambda: count_pending(store.engine) == 0)
    assert sorted((row["event_id"], row["evaluator_id"]) for row in rows(store, results)) == [(1, 1), (1, 2)]
    newer.stop()
    ask_again(store, newer.evaluator_id)
    assert count_pending(store.engine) == 0


def test_a_process_that_does_not_start(
    store: Store, stand_in: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    """Where no evaluator can be made, events stay pending, and the log says so."""
    add(store)
    judge = Judge(store, stand_in.Broken)
    judge.start()
    wait_until(lambda: "Judging pauses" in caplog.text)
    judge.stop()
    assert states(store) == [State.PENDING]


def test_a_parent_that_is_gone(stand_in: ModuleType) -> None:
    """The process ends without a word where the one that started it is gone before it is ready."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    ours.close()
    process = context.Process(target=_work, args=(theirs, stand_in.StandIn, 0, {}))
    process.start()
    theirs.close()
    process.join()
    assert process.exitcode == 0


def test_the_default_evaluator(store: Store, judging: Judging) -> None:
    """The evaluator that comes with the package judges events here, also ones without any passage."""
    add(store, "Who directed Inception?", ["Inception was directed by Christopher Nolan.", "Bread is baked."])
    add(store, "Who directed Inception?", [])
    judging(store, evaluator)
    assert states(store) == [State.JUDGED] * 2
    full, empty = rows(store, results)
    assert (full["cited"], full["left_out"], empty["cited"], empty["precision"]) == (1, None, 0, None)


@pytest.mark.e2e
def test_a_server_judges(serving: Serving, tmp_path: Path) -> None:
    """A running server judges what it accepts, and its health says when nothing is left."""
    server = serving(tmp_path / "data")
    for number in range(100):
        event = {"task": f"What is {number}?", "context": [f"{number} is a number."], "sample_rate": 1.0}
        assert httpx.post(f"{server.url}/v1/log", json=event).status_code == 200
    wait_until(lambda: httpx.get(f"{server.url}/healthz").json()["pending"] == 0)
    assert server.stop() == 0


@pytest.mark.e2e
def test_no_process_is_left_behind(
    serving: Serving, tmp_path: Path, require_binary: Callable[[str], None]
) -> None:
    """When the server is killed, the process in which events are judged ends, too."""
    require_binary("ps")
    server = serving(tmp_path / "data")
    event = {"task": "What?", "context": ["text"], "sample_rate": 1.0}
    assert httpx.post(f"{server.url}/v1/log", json=event).status_code == 200
    wait_until(lambda: httpx.get(f"{server.url}/healthz").json()["pending"] == 0)

    def running(*options: str) -> set[str]:
        found = subprocess.run(["ps", "-o", "pid=", *options], capture_output=True, text=True, check=False)
        return set(found.stdout.split())

    children = running("--ppid", str(server.process.pid))
    assert children
    server.stop(9)
    wait_until(lambda: not running("-p", ",".join(children)))
