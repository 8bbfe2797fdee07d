"""The Celery application of the fault tests; its broker is a folder."""

from __future__ import annotations

import os
from pathlib import Path

import application
import celery

folder = Path(os.environ["BROKER"])
app = celery.Celery("tasks", broker="filesystem://")
app.conf.broker_transport_options = {
    "data_folder_in": str(folder),
    "data_folder_out": str(folder),
    "control_folder": str(folder / "control"),
}


@app.task
def work(name: str) -> None:
    """Retrieve in a trace that began elsewhere, as it does where Celery's instrumentation carries it on."""
    application.by_a_caller(name)
