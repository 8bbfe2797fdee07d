"""The tables of the local backend. SQLAlchemy Core only, so that another database can take SQLite's place.

    events       what was sent, whole, one row an event
    traces       one row a trace: whether it is evaluated, and which event is its final context
    metadata     a trace's metadata by key, for filters: of its final event, and what that lacks of its others; scalars
                 as text (true and false in lower case), without the `seer_otel.` keys
    evaluators   who judged
    judgements   what an evaluator says about one event: against the question, and against the subquery
    results      one row a trace and evaluator: the figures of its final context
    segments     what results are grouped by: env, feature_flag, index, span name
    rollups      sums of results by hour, segment and metric, so that a page never reads a million rows
    latencies    how long judging took, as a histogram by hour
    arrivals     what came in, by hour and outcome
    stems        in how many passages a stem was seen

Beside them is `traces_search` for a full-text search in tasks, see `search.py`.

Times are text in UTC with microseconds and a `Z`, which sorts as time does; `hour` is such a time's hours since 1970.
"Not available" is NULL everywhere, never 0. Long columns come last: SQLite need not read past what a query asks for.
A change here needs a migration; a test compares the two.
"""

from __future__ import annotations

from enum import IntEnum

import sqlalchemy as sa

tables = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class State(IntEnum):
    """What became of an event."""

    PENDING = 0
    JUDGED = 1
    SAMPLED_OUT = 2
    FAILED = 3


METRICS = (
    "recall",
    "precision",
    "f1",
    "ndcg",
    "sufficiency",
    "gt_recall",
    "gt_precision",
    "gt_f1",
    "evaluator_precision",
    "evaluator_recall",
    "evaluator_f1",
    "exact_match",
)
"""Columns of `results`, each from 0 to 1 or NULL. Each has a row of its name in `rollups`."""

COUNTS = ("traces", "flagged", "empty", "left_out", "failed")
"""Further names in `rollups`. `traces`: all results, counted or not; `flagged`: recall below 1, n being those in the
average of recall and total those flagged; `empty`: no passage, counted or not; `left_out`: shown, but in no average
because of a mark; `failed`: not evaluated. Of the others n equals total."""

# The id of a trace without a trace id is the record id of its only event, `rec_...`.
events = sa.Table(
    "events",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("record_id", sa.String(64), nullable=False, unique=True),
    sa.Column("idempotency_key", sa.Text, unique=True),
    sa.Column("trace_id", sa.ForeignKey("traces.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("span_id", sa.String(16)),
    sa.Column("parent_span_id", sa.String(16)),
    sa.Column("created_at", sa.String(32), nullable=False, index=True),
    sa.Column("received_at", sa.String(32), nullable=False),
    sa.Column("is_final_context", sa.Boolean, nullable=False),
    sa.Column("state", sa.SmallInteger, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    # What is yet to be judged is found without a look at the rest.
    sa.Index(
        "ix_events_pending", "id", sqlite_where=sa.text("state = 0"), postgresql_where=sa.text("state = 0")
    ),
    # And how many were sampled out in a period.
    sa.Index(
        "ix_events_sampled_out",
        "received_at",
        sqlite_where=sa.text("state = 2"),
        postgresql_where=sa.text("state = 2"),
    ),
)

traces = sa.Table(
    "traces",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),  # 32 hex digits, or a record id
    sa.Column("kept", sa.Boolean, nullable=False),
    sa.Column("sampled_by", sa.String(8), nullable=False),  # rate, label
    sa.Column("sample_rate", sa.Float, nullable=False),  # what decided
    sa.Column("started_at", sa.String(32), nullable=False),  # of its first event by time
    sa.Column("ended_at", sa.String(32), nullable=False, index=True),  # of its last
    sa.Column("size", sa.Integer, nullable=False),  # events
    sa.Column("final_event_id", sa.Integer),
    sa.Column("task", sa.Text, nullable=False),  # of the final event
)

metadata = sa.Table(
    "metadata",
    tables,
    sa.Column("trace_id", sa.ForeignKey("traces.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("value", sa.String(200), nullable=False),
    sa.Index("ix_metadata_key_value", "key", "value", "trace_id"),
)

evaluators = sa.Table(
    "evaluators",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("version", sa.String(32), nullable=False),
    sa.Column("accuracy", sa.Text, nullable=False),
    sa.UniqueConstraint("name", "version"),
)

judgements = sa.Table(
    "judgements",
    tables,
    sa.Column("event_id", sa.ForeignKey("events.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("evaluator_id", sa.ForeignKey("evaluators.id"), primary_key=True),
    sa.Column("target", sa.String(8), primary_key=True),  # task, subquery
    sa.Column("judged_at", sa.String(32), nullable=False),
    sa.Column("milliseconds", sa.Float, nullable=False),
    sa.Column("recall", sa.Float),
    sa.Column("precision", sa.Float),
    sa.Column("f1", sa.Float),
    sa.Column("ndcg", sa.Float),
    sa.Column("sufficiency", sa.Float),
    sa.Column("error", sa.Text),  # why it was not evaluated; then all figures are NULL
    sa.Column("cited", sa.JSON, nullable=False),  # positions of passages, from 0
    sa.Column("requirements", sa.JSON, nullable=False),  # {"text", "present", "citations"} each
)

segments = sa.Table(
    "segments",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("env", sa.String(200), nullable=False),  # "" where the event says nothing, here and below
    sa.Column("feature_flag", sa.String(200), nullable=False),
    sa.Column("index", sa.String(200), nullable=False),
    sa.Column("span_name", sa.String(200), nullable=False),
    sa.UniqueConstraint("env", "feature_flag", "index", "span_name"),
)

results = sa.Table(
    "results",
    tables,
    sa.Column("trace_id", sa.ForeignKey("traces.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("evaluator_id", sa.ForeignKey("evaluators.id"), primary_key=True),
    sa.Column("event_id", sa.Integer, nullable=False),  # the final context
    sa.Column("segment_id", sa.ForeignKey("segments.id"), nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.Column("hour", sa.Integer, nullable=False),
    # Why it is in no average: a mark as in metadata, such as `seer_otel.partial`, or "failed"; NULL where it counts.
    sa.Column("left_out", sa.String(32)),
    sa.Column("milliseconds", sa.Float, nullable=False),
    sa.Column("passages", sa.Integer, nullable=False),
    sa.Column("cited", sa.Integer, nullable=False),  # passages cited
    sa.Column(
        "needed", sa.Integer, nullable=False
    ),  # rank of the last cited passage: the k that is enough; 0 if none
    sa.Column("requirements", sa.Integer, nullable=False),
    sa.Column("present", sa.Integer, nullable=False),
    *(sa.Column(name, sa.Float) for name in METRICS),
    sa.Index("ix_results_evaluator_id_created_at", "evaluator_id", "created_at"),
    # The few with labels among many without: `exact_match` is there for each of them that was evaluated.
    sa.Index(
        "ix_results_labelled",
        "evaluator_id",
        "created_at",
        sqlite_where=sa.text("exact_match IS NOT NULL"),
        postgresql_where=sa.text("exact_match IS NOT NULL"),
    ),
)

rollups = sa.Table(
    "rollups",
    tables,
    sa.Column("hour", sa.Integer, primary_key=True),
    sa.Column("evaluator_id", sa.Integer, primary_key=True),
    sa.Column("segment_id", sa.Integer, primary_key=True),
    sa.Column("metric", sa.String(32), primary_key=True),  # of METRICS or COUNTS
    sa.Column("n", sa.Integer, nullable=False),
    sa.Column("total", sa.Float, nullable=False),
    sa.Column("squares", sa.Float, nullable=False),
)

# By the hour of the result, so that a period's latencies are those of its traces; a failed one has none.
latencies = sa.Table(
    "latencies",
    tables,
    sa.Column("hour", sa.Integer, primary_key=True),
    sa.Column("evaluator_id", sa.Integer, primary_key=True),
    sa.Column("bucket", sa.Integer, primary_key=True),  # floor(8 * log2(milliseconds)), so 9 % wide
    sa.Column("n", sa.Integer, nullable=False),
)

arrivals = sa.Table(
    "arrivals",
    tables,
    sa.Column("hour", sa.Integer, primary_key=True),
    sa.Column("outcome", sa.String(64), primary_key=True),  # accepted, duplicate, or an error's code
    sa.Column("n", sa.Integer, nullable=False),
    sa.Column("last_at", sa.String(32), nullable=False),
)

stems = sa.Table(
    "stems",
    tables,
    sa.Column("stem", sa.String(64), primary_key=True),  # "" counts the passages
    sa.Column("n", sa.Integer, nullable=False),
)
