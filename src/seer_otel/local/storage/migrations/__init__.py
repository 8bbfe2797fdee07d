"""The schema's history, and how a database is brought up to it.

A file in `versions` is one step. `HEAD` names the last one, and a test compares where they lead with `tables.py`.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from seer_otel.local.storage.database import WRITING

HEAD = "0001"
FIRST_CUT = "events_first_cut"
"""Where the events of a store stand that was made before there were migrations; `Store` takes them over."""


class NewerSchemaError(Exception):
    """The database was written by a newer version of this package than this one."""


def migrate(engine: sa.Engine) -> None:
    """Make the tables, or bring those that are there up to `HEAD`. Raises NewerSchemaError."""
    if current(engine) == HEAD:
        return
    # Imported here, as most starts have nothing to do.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    # One transaction that has the lock from its start: of several processes that start at once one migrates.
    with engine.connect().execution_options(**WRITING) as connection, connection.begin():
        there = _version(connection)
        known = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
        if there is not None and there not in known:
            raise NewerSchemaError(
                f"a newer seer-otel wrote it (its schema is {there}, this version knows up to {HEAD}): "
                "upgrade seer-otel, or choose another folder with --data"
            )
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def current(engine: sa.Engine) -> str | None:
    """Return the last step that was made, None before the first."""
    with engine.connect() as connection:
        return _version(connection)


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = sa.table("alembic_version", sa.column("version_num"))
    found: str | None = connection.execute(sa.select(version.c.version_num)).scalar()
    return found
