"""The process in which atheris runs: libFuzzer ends it, whatever it finds.

It takes libFuzzer's own arguments; `readers.py` starts it.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["seer_otel"]):
    from .readers import try_one

if __name__ == "__main__":
    atheris.Setup(sys.argv, try_one)
    atheris.Fuzz()
