"""Measure, print one table, and keep the run.

python -m bench                                    everything, about ten minutes
python -m bench --only hooks,send                  some of it
python -m bench --compare FILE                     beside an earlier run
python -m bench --markdown [docs/performance.md]   the last run's table as Markdown, without measuring

Absolute figures depend on the machine; the ratios are what counts. Nothing beyond loopback is reached.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

from . import report
from .backend import backend
from .encoding import encoding
from .figure import Row, Scale
from .hooks import drop, hooks
from .imports import imports
from .memory import memory, traces
from .paced import paced
from .sending import peers, send, slow

FIGURES = {
    "hooks": hooks,
    "drop": drop,
    "paced": paced,
    "send": send,
    "slow": slow,
    "encode": encoding,
    "memory": memory,
    "traces": traces,
    "imports": imports,
    "backend": backend,
    "peers": peers,
}


def names(text: str) -> list[str]:
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in FIGURES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no figure {unknown[0]}; there are {', '.join(FIGURES)}")
    return chosen


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=names, metavar="NAMES", help=f"of {', '.join(FIGURES)}")
    parser.add_argument("--quick", action="store_true", help="runs everything once; the values mean nothing")
    parser.add_argument("--long", action="store_true", help="a million traces, which takes some minutes more")
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="an earlier run's JSON to show beside this one"
    )
    parser.add_argument(
        "--markdown",
        nargs="?",
        const="-",
        metavar="PAGE",
        help="print the last run's table as Markdown, or put it into PAGE between its marks, and end",
    )
    parser.add_argument(
        "--json", type=Path, default=report.LAST, metavar="FILE", help="where the last run is kept"
    )
    return parser.parse_args()


def measure(chosen: list[str], scale: Scale) -> list[Row]:
    rows: list[Row] = []
    for name in chosen:
        print(f"{name} ...", end=" ", flush=True, file=sys.stderr)
        began = time.monotonic()
        try:
            rows += FIGURES[name](scale)
        except Exception as error:  # noqa: BLE001 - the other figures are still worth having
            traceback.print_exception(error)
            rows.append(
                Row(name, f"{name}: not measured", "", None, holds=False, note=str(error).splitlines()[-1])
            )
        print(f"{time.monotonic() - began:.0f} s", flush=True, file=sys.stderr)
    return rows


def main() -> int:
    args = arguments()
    if args.markdown:
        text = report.markdown(report.load(args.json))
        print(text) if args.markdown == "-" else report.fill_in(Path(args.markdown), text)
        return 0
    earlier = report.load(args.compare) if args.compare else None  # first, as it may be the file we write
    scale = Scale(args.quick, args.long)
    began = time.monotonic()
    rows = measure(args.only or list(FIGURES), scale)
    words = "quick: the values mean nothing" if args.quick else "long" if args.long else "default"
    result = report.run(rows, words, time.monotonic() - began)
    report.save(result, args.json)
    print(report.table(result))
    if earlier is not None:
        print(f"\n{report.compared(earlier, result)}")
    return int(any(row.ours is None and row.holds is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
