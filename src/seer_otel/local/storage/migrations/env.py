"""What Alembic runs for each of its commands; `migrate` gives it the connection, and the transaction around it."""

from __future__ import annotations

from alembic import context

from seer_otel.local.storage.tables import tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables,
    render_as_batch=True,  # SQLite changes a table by making it anew
)
context.run_migrations()
