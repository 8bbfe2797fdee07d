"""Runs one function of this package in a fresh process, and hands its result back as JSON."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOREIGN = ("SEER_", "OTEL_", "OPENINFERENCE_", "LANGFUSE_", "BRAINTRUST_", "PHOENIX_")
PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def environment(**more: str) -> dict[str, str]:
    """This process's, without anything that settles how a processor works."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(FOREIGN) and name.lower() not in PROXIES
    }
    return kept | more


def fresh(function: str, /, variables: dict[str, str] | None = None, **arguments: Any) -> Any:
    """Call `module:function` of this package with these arguments in a new interpreter, and return what it returns."""
    command = [sys.executable, "-m", "bench.child", function, json.dumps(arguments)]
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env=environment(**(variables or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    if done.returncode:
        raise RuntimeError(f"{function} {arguments} failed:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    module, _, name = sys.argv[1].partition(":")
    result = getattr(importlib.import_module(f"bench.{module}"), name)(**json.loads(sys.argv[2]))
    print(json.dumps(result), flush=True)
    os._exit(0)  # whatever a processor still holds is not measured any more
