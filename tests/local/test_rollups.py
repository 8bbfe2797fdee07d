from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seer_otel.local.schema import parse
from seer_otel.local.storage import rollups
from seer_otel.local.storage.retention import delete
from seer_otel.local.storage.store import FILE_NAME, Store
from seer_otel.local.storage.tables import METRICS, State, events, results, traces

from .histories import judge_all, recomputed, stored

TRACES = ["a" * 32, "b" * 32, "c" * 32]
EVENT = st.fixed_dictionaries(
    {
        "task": st.sampled_from(["what", "what is", "who raise", "nonsense"]),
        "context": st.lists(st.sampled_from(["what", "is it", "who"]), max_size=3),
        "trace_id": st.sampled_from(TRACES),
        "sample_rate": st.sampled_from([0.0, 1.0, 1.0]),
        "created_at": st.sampled_from([f"2026-01-01T0{hour}:59:59Z" for hour in range(3)]),
        "is_final_context": st.booleans(),
        "metadata": st.sampled_from([{}, {"env": "a"}, {"env": "b"}, {"seer_otel.partial": "flush"}]),
    },
    optional={"ground_truth": st.just({"gold_doc_ids": ["d"]}), "subquery": st.just("is")},
)
STEP = st.one_of(EVENT, EVENT, EVENT, st.just("judge"), st.sampled_from(TRACES))


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with nothing in it."""
    folder = tmp_path_factory.mktemp("blank")
    Store(folder).close()
    return folder / FILE_NAME


@given(st.lists(STEP, max_size=25))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_sums_are_those_of_the_results(blank: Path, history: list[Any]) -> None:
    """Whatever comes in, is judged, comes late, is labelled or deleted, sums equal those of the results made anew.

    And once everything is judged, each evaluated trace has the result of its final context, and no other trace has one.
    """
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(blank, folder)
        with closing(Store(Path(folder))) as store:
            for step in [*history, "judge"]:
                if step == "judge":
                    judge_all(store)
                elif isinstance(step, str):
                    delete(store, step)
                else:
                    store.add(parse(json.dumps(step)), json.dumps(step))
            assert stored(store) == recomputed(store)
            with store.engine.connect() as connection:
                kept = connection.execute(
                    sa.select(traces.c.id, traces.c.final_event_id).where(traces.c.kept)
                ).all()
                made = connection.execute(sa.select(results.c.trace_id, results.c.event_id)).all()
                waiting = connection.execute(sa.select(events).where(events.c.state == State.PENDING)).all()
            assert sorted(map(tuple, made)) == sorted(map(tuple, kept))
            assert waiting == []


def result(**columns: Any) -> dict[str, Any]:
    return dict.fromkeys(METRICS) | {"left_out": None, "passages": 1} | columns


def test_what_a_result_counts_in() -> None:
    """A result is in the sum of each figure it has; below 1 recall is flagged; what is left out is in no average."""
    assert dict(rollups.contributions(result(recall=0.5, gt_f1=1.0))) == {
        "traces": 1, "recall": 0.5, "gt_f1": 1.0, "flagged": 1
    }  # fmt: skip
    assert dict(rollups.contributions(result(recall=1.0))) == {"traces": 1, "recall": 1.0, "flagged": 0}
    assert dict(rollups.contributions(result(passages=0))) == {"traces": 1, "empty": 1}
    cut = result(recall=0.5, left_out="seer_otel.passages_cut", passages=0)
    assert dict(rollups.contributions(cut)) == {"traces": 1, "left_out": 1, "empty": 1}
    assert dict(rollups.contributions(result(left_out="failed", gt_recall=1.0))) == {"traces": 1, "failed": 1}


def test_the_buckets_of_latencies() -> None:
    """A bucket is 9 % wide, and no latency is too small for one."""
    assert [rollups.bucket(value) for value in (1.0, 1.05, 1.1, 2.0, 1_000.0)] == [0, 0, 1, 8, 79]
    assert rollups.bucket(0.0) == rollups.bucket(0.001)
