"""A way to run an example as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@dataclass(frozen=True)
class Shell:
    """The environment of an example: this Python first on the path, and the recording backend."""

    environment: dict[str, str]

    def command(self, name: str) -> list[str]:
        return ["sh" if name.endswith(".sh") else sys.executable, str(EXAMPLES / name)]

    def run(self, name: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run an example to its end."""
        environment = {**self.environment, **more}
        return subprocess.run(
            self.command(name), env=environment, capture_output=True, text=True, timeout=150, check=False
        )


@pytest.fixture
def shell(recorder: Any) -> Shell:
    """What a user has who set `SEER_INGESTION_URL`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return Shell({**os.environ, "PATH": path, "SEER_INGESTION_URL": f"{recorder.url}/v1/log"})
