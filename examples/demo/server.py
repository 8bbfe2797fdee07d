"""The embedded backend of the demo: `seer-otel serve`, and what it has."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(".seer-otel-demo")
PORT = 8790
PATIENCE = 60
"""Seconds for judging what has arrived."""


def place() -> tuple[Path, int]:
    """Where to store and which port to use: the usual ones, unless another backend is there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, os.name == "posix")
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return Path(tempfile.mkdtemp(prefix="seer-otel-demo-")), 0
    for old in FOLDER.glob("events.db*"):  # the last run's
        old.unlink()
    return FOLDER, PORT


@contextlib.contextmanager
def running(folder: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `seer-otel serve`; the values are its process and its address."""
    command = [sys.executable, "-m", "seer_otel.cli", "serve", "--port", str(port), "--data", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first.startswith("Listening on "):
            sys.exit("The backend did not start.")
        yield process, first.split()[2]
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)


def wait_until_judged(url: str) -> None:
    """Return when nothing is left to be judged, or when that takes too long, which the report will say."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with urllib.request.urlopen(f"{url}/healthz", timeout=10) as answer:
            if not json.load(answer)["pending"]:
                return
        time.sleep(0.1)


def received(folder: Path) -> list[dict[str, Any]]:
    """What the backend has, with its figures."""
    command = [sys.executable, "-m", "seer_otel.cli", "show", "--json", "--limit", "1000"]
    command += ["--data", str(folder)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def program() -> str:
    """How to call `seer-otel` from this shell."""
    beside = Path(sys.executable).with_name("seer-otel")
    found = shutil.which("seer-otel")
    if found and Path(found).parent == beside.parent:
        return "seer-otel"
    if not beside.exists():
        return f"{os.path.relpath(sys.executable)} -m seer_otel.cli"
    return os.path.relpath(beside)
