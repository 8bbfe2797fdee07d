"""How long `import seer_otel` takes where the SDK is imported already."""

from __future__ import annotations

import json
import subprocess
import sys

from .child import ROOT, environment
from .figure import Goal, Row, Scale, row

PROGRAM = """
import time
began = time.perf_counter()
import opentelemetry.sdk.trace
middle = time.perf_counter()
import seer_otel
ended = time.perf_counter()
import json, sys
late = [name for name in ("httpx", "sqlite3", "asyncio", "ssl") if name in sys.modules]
print(json.dumps([1000 * (ended - middle), 1000 * (middle - began), late]))
"""


def imports(scale: Scale) -> list[Row]:
    """Start-up."""
    found = []
    for turn in range(scale.rounds(15) + 1):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            check=True,
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        if turn:  # the first writes byte code
            found.append(json.loads(done.stdout))
    late = found[0][2]
    return [
        row(
            "imports",
            "import seer_otel, over opentelemetry.sdk.trace",
            "ms",
            [ours for ours, _, _ in found],
            [sdk for _, sdk, _ in found],
            "opentelemetry.sdk.trace",
            goal=Goal("value", "<=", 10, "ms"),
            note=f"has {', '.join(late)} imported" if late else "",
        )
    ]
