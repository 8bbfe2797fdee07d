"""The tables as they were in the beginning."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from seer_otel.local.storage import search
from seer_otel.local.storage.migrations import FIRST_CUT

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables. The one that the first cut of this package made stays under another name."""
    connection = op.get_bind()
    if sa.inspect(connection).has_table("events"):
        op.rename_table("events", FIRST_CUT)
        op.drop_index("ix_events_trace_id", FIRST_CUT)
        op.drop_index("ix_events_created_at", FIRST_CUT)
    search.create(connection)
    op.create_table(
        "arrivals",
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=64), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("last_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("hour", "outcome", name=op.f("pk_arrivals")),
    )
    op.create_table(
        "evaluators",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("accuracy", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluators")),
        sa.UniqueConstraint("name", "version", name=op.f("uq_evaluators_name_version")),
    )
    op.create_table(
        "latencies",
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("evaluator_id", sa.Integer(), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("hour", "evaluator_id", "bucket", name=op.f("pk_latencies")),
    )
    op.create_table(
        "rollups",
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("evaluator_id", sa.Integer(), nullable=False),
        sa.Column("segment_id", sa.Integer(), nullable=False),
        sa.Column("metric", sa.String(length=32), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("total", sa.Float(), nullable=False),
        sa.Column("squares", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("hour", "evaluator_id", "segment_id", "metric", name=op.f("pk_rollups")),
    )
    op.create_table(
        "segments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("env", sa.String(length=200), nullable=False),
        sa.Column("feature_flag", sa.String(length=200), nullable=False),
        sa.Column("index", sa.String(length=200), nullable=False),
        sa.Column("span_name", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_segments")),
        sa.UniqueConstraint(
            "env",
            "feature_flag",
            "index",
            "span_name",
            name=op.f("uq_segments_env_feature_flag_index_span_name"),
        ),
    )
    op.create_table(
        "stems",
        sa.Column("stem", sa.String(length=64), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("stem", name=op.f("pk_stems")),
    )
    op.create_table(
        "traces",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.Column("sampled_by", sa.String(length=8), nullable=False),
        sa.Column("sample_rate", sa.Float(), nullable=False),
        sa.Column("started_at", sa.String(length=32), nullable=False),
        sa.Column("ended_at", sa.String(length=32), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("final_event_id", sa.Integer(), nullable=True),
        sa.Column("task", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_traces")),
        sa.UniqueConstraint("name", name=op.f("uq_traces_name")),
    )
    op.create_index(op.f("ix_traces_ended_at"), "traces", ["ended_at"], unique=False)
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("record_id", sa.String(length=64), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("trace_id", sa.Integer(), nullable=False),
        sa.Column("span_id", sa.String(length=16), nullable=True),
        sa.Column("parent_span_id", sa.String(length=16), nullable=True),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("received_at", sa.String(length=32), nullable=False),
        sa.Column("is_final_context", sa.Boolean(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trace_id"], ["traces.id"], name=op.f("fk_events_trace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_events_idempotency_key")),
        sa.UniqueConstraint("record_id", name=op.f("uq_events_record_id")),
    )
    op.create_index(op.f("ix_events_created_at"), "events", ["created_at"], unique=False)
    op.create_index(
        "ix_events_pending",
        "events",
        ["id"],
        unique=False,
        sqlite_where=sa.text("state = 0"),
        postgresql_where=sa.text("state = 0"),
    )
    op.create_index(
        "ix_events_sampled_out",
        "events",
        ["received_at"],
        unique=False,
        sqlite_where=sa.text("state = 2"),
        postgresql_where=sa.text("state = 2"),
    )
    op.create_index(op.f("ix_events_trace_id"), "events", ["trace_id"], unique=False)
    op.create_table(
        "metadata",
        sa.Column("trace_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("value", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(
            ["trace_id"], ["traces.id"], name=op.f("fk_metadata_trace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trace_id", "key", name=op.f("pk_metadata")),
    )
    op.create_index("ix_metadata_key_value", "metadata", ["key", "value", "trace_id"], unique=False)
    op.create_table(
        "results",
        sa.Column("trace_id", sa.Integer(), nullable=False),
        sa.Column("evaluator_id", sa.Integer(), nullable=False),
        sa.Column("event_id", sa.Integer(), nullable=False),
        sa.Column("segment_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("left_out", sa.String(length=32), nullable=True),
        sa.Column("milliseconds", sa.Float(), nullable=False),
        sa.Column("passages", sa.Integer(), nullable=False),
        sa.Column("cited", sa.Integer(), nullable=False),
        sa.Column("needed", sa.Integer(), nullable=False),
        sa.Column("requirements", sa.Integer(), nullable=False),
        sa.Column("present", sa.Integer(), nullable=False),
        sa.Column("recall", sa.Float(), nullable=True),
        sa.Column("precision", sa.Float(), nullable=True),
        sa.Column("f1", sa.Float(), nullable=True),
        sa.Column("ndcg", sa.Float(), nullable=True),
        sa.Column("sufficiency", sa.Float(), nullable=True),
        sa.Column("gt_recall", sa.Float(), nullable=True),
        sa.Column("gt_precision", sa.Float(), nullable=True),
        sa.Column("gt_f1", sa.Float(), nullable=True),
        sa.Column("evaluator_precision", sa.Float(), nullable=True),
        sa.Column("evaluator_recall", sa.Float(), nullable=True),
        sa.Column("evaluator_f1", sa.Float(), nullable=True),
        sa.Column("exact_match", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["evaluator_id"], ["evaluators.id"], name=op.f("fk_results_evaluator_id")),
        sa.ForeignKeyConstraint(["segment_id"], ["segments.id"], name=op.f("fk_results_segment_id")),
        sa.ForeignKeyConstraint(
            ["trace_id"], ["traces.id"], name=op.f("fk_results_trace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trace_id", "evaluator_id", name=op.f("pk_results")),
    )
    op.create_index(
        "ix_results_evaluator_id_created_at", "results", ["evaluator_id", "created_at"], unique=False
    )
    op.create_index(
        "ix_results_labelled",
        "results",
        ["evaluator_id", "created_at"],
        unique=False,
        sqlite_where=sa.text("exact_match IS NOT NULL"),
        postgresql_where=sa.text("exact_match IS NOT NULL"),
    )
    op.create_table(
        "judgements",
        sa.Column("event_id", sa.Integer(), nullable=False),
        sa.Column("evaluator_id", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(length=8), nullable=False),
        sa.Column("judged_at", sa.String(length=32), nullable=False),
        sa.Column("milliseconds", sa.Float(), nullable=False),
        sa.Column("recall", sa.Float(), nullable=True),
        sa.Column("precision", sa.Float(), nullable=True),
        sa.Column("f1", sa.Float(), nullable=True),
        sa.Column("ndcg", sa.Float(), nullable=True),
        sa.Column("sufficiency", sa.Float(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("cited", sa.JSON(), nullable=False),
        sa.Column("requirements", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["evaluator_id"], ["evaluators.id"], name=op.f("fk_judgements_evaluator_id")),
        sa.ForeignKeyConstraint(
            ["event_id"], ["events.id"], name=op.f("fk_judgements_event_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("event_id", "evaluator_id", "target", name=op.f("pk_judgements")),
    )
