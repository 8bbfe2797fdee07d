"""The pure core on what a fuzzer makes up: spans to bodies, and what always holds of these.

With atheris the fuzzer is guided by the branches that an input reaches (`guided.py`); without it, its inputs are
random, which finds much less.
"""

from __future__ import annotations

import hashlib
import importlib.util
import random
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from seer_otel.assembly import assemble
from seer_otel.event import SHRUNK_TEXT, Event, clamp, encode, shrink
from seer_otel.scrub import scrub

from . import hostile
from .cases import case, seeds
from .checks import check_assembly, check_body, expect
from .recordings import ROOT

FOLDER = ROOT / ".cache" / "fuzz"
MAX_LENGTH = 2_048
"""Bytes of one input."""
SLOWEST = 20
"""Seconds for one input, instrumented."""


def try_one(data: bytes) -> int:
    """Take one input through the pure core; return how many events it gave. Raises if anything does not hold."""
    tried = case(data)
    result = assemble(tried.spans, tried.rules, memory=tried.memory, partial=tried.partial)
    check_assembly(tried, result)
    marks = {"seer_otel.sample_rate": 0.1, "seer_otel.sampled_by": "trace"}
    for event in result.events:
        ready = replace(event, sample_rate=1.0, metadata={**event.metadata, **marks})
        scrubbed, _ = scrub(ready, everywhere=tried.scrub_all)
        again, count = scrub(scrubbed, everywhere=tried.scrub_all)
        expect(again is scrubbed and count == 0, "what was scrubbed is scrubbed again")
        _check(scrubbed)
    return len(result.events)


def _check(event: Event) -> None:
    clamped = clamp(event)
    body = encode(clamped.event)
    check_body(body)
    expect(encode(clamp(clamped.event).event) == body, "what was cut is cut again")
    check_body(shrink(body), SHRUNK_TEXT)


def run(seconds: float, seed: int) -> bool:
    """Try inputs for so long; whether everything held."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    for data in seeds():
        if not _holds(data):
            return False
    if importlib.util.find_spec("atheris") is None:
        print("readers: atheris is not installed here, so the inputs are random", flush=True)
        return _random(began + seconds, seed)
    return _guided(seconds, seed)


def again(path: Path) -> int:
    """Try the input in a file, and show the spans that it stands for; raises as it did."""
    data = path.read_bytes()
    tried = case(data)
    print(replace(tried, spans=[]))
    for span in tried.spans:
        print(f"\n{span!r:.20000}")
    print(f"\n{try_one(data)} events, and everything holds")
    return 0


def _random(until: float, seed: int) -> bool:
    count = 0
    for data in _inputs(random.Random(seed)):
        if time.monotonic() > until:
            break
        if not _holds(data):
            return False
        count += 1
    print(f"readers: {count:,} inputs, and everything held")
    return True


def _inputs(choose: random.Random) -> Iterator[bytes]:
    while True:
        settings = choose.randbytes(10) if choose.random() < 0.5 else bytes(10)
        yield settings + choose.randbytes(choose.choice((8, 40, 200, 1_000)))


def _holds(data: bytes) -> bool:
    try:
        try_one(data)
    except Exception:  # noqa: BLE001 - that is what is looked for
        path = (
            FOLDER / f"crash-{hashlib.sha1(data, usedforsecurity=False).hexdigest()}"
        )  # as libFuzzer names it
        path.write_bytes(data)
        traceback.print_exc(file=sys.stdout)
        _tell(path)
        return False
    return True


def _guided(seconds: float, seed: int) -> bool:
    corpus, first, words = FOLDER / "corpus", FOLDER / "seeds", FOLDER / "words"
    for folder in (corpus, first):
        folder.mkdir(exist_ok=True)
    for number, data in enumerate((*seeds(), *islice(_inputs(random.Random(seed)), 50))):
        (first / f"{number:04}").write_bytes(data)
    texts = (text for text in (*hostile.TEXTS, *hostile.NAMES) if len(text) < 60)
    words.write_text("".join(f"{_quoted(text)}\n" for text in texts), encoding="ascii")
    before = set(FOLDER.glob("*-*"))
    options = {
        "max_total_time": int(seconds),
        "seed": seed,
        "max_len": MAX_LENGTH,
        "timeout": SLOWEST,
        "rss_limit_mb": 1_024,
        "dict": words,
        "artifact_prefix": f"{FOLDER}/",
        "len_control": 0,
    }
    command = [sys.executable, "-m", "fuzz.guided", *(f"-{name}={value}" for name, value in options.items())]
    done = subprocess.run(
        [*command, corpus, first], cwd=ROOT, check=False, capture_output=True, text=True, errors="replace"
    )
    log = done.stdout + done.stderr
    (FOLDER / "log").write_text(log, encoding="utf-8")
    if done.returncode == 0:
        count, reached = re.findall(r"#(\d+)\s+DONE\s+cov: (\d+)", log)[-1]
        print(f"readers: {int(count):,} inputs, {int(reached):,} branches, and everything held", flush=True)
        return True
    _, _, what = done.stdout.partition("=== Uncaught Python exception: ===")
    print(what[:4_000] or log[-4_000:])
    for path in sorted(set(FOLDER.glob("*-*")) - before):
        _tell(path)
    return False


def _quoted(text: str) -> str:
    """A text as libFuzzer's dictionaries have it."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in text.encode("utf-8", "surrogatepass")) + '"'


def _tell(path: Path) -> None:
    print(f"\nAgain: make fuzz ARGS='--again {path.relative_to(ROOT)}'", flush=True)
