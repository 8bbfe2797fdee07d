"""`seer-otel delete`: delete one trace, also while a server uses the store."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from seer_otel.local.storage import retention
from seer_otel.local.storage.migrations import NewerSchemaError
from seer_otel.local.storage.store import FILE_NAME, Store


def run(arguments: argparse.Namespace) -> int:
    """Delete the trace; return 0, or 1 where there is none of this id or the store cannot be used."""
    folder = Path(arguments.data).expanduser()
    try:
        if (folder / FILE_NAME).is_file():
            with contextlib.closing(Store(folder)) as store:
                if retention.delete(store, arguments.trace):
                    sys.stdout.write(
                        "Deleted: its events, what was judged of them, and its share of all figures.\n"
                    )
                    return 0
    except (OSError, SQLAlchemyError, NewerSchemaError) as error:
        sys.stderr.write(f"seer-otel delete: failed for {folder}: {getattr(error, 'orig', error)}\n")
        return 1
    where = f"no trace in {folder.resolve()} has exactly this id; `seer-otel show` lists them"
    sys.stderr.write(f"seer-otel delete: {where}\n")
    return 1
