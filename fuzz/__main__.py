"""Look for spans that break something, or that cost too much.

python -m fuzz                             everything, about a quarter of an hour
python -m fuzz --only readers,giants       some of it
python -m fuzz --again .cache/fuzz/FILE    one input that broke something, and its spans

The readers take what a fuzzer makes up (--seconds), the whole pipeline takes --spans, and each span of a catalogue of
giants is measured; on a slow or busy machine --factor 2 doubles what these may cost.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

PARTS = ("readers", "million", "giants")


def names(text: str) -> list[str]:
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    return chosen


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", type=names, default=list(PARTS), metavar="NAMES", help=f"of {', '.join(PARTS)}"
    )
    parser.add_argument("--seconds", type=float, default=120.0, help="for the readers; 120 by default")
    parser.add_argument(
        "--spans", type=int, default=1_000_000, help="for the whole pipeline; a million by default"
    )
    parser.add_argument("--kinds", default="", metavar="TEXT", help="only giants with this in their name")
    parser.add_argument(
        "--factor", type=float, default=1.0, help="what a giant may cost, in limits; 1 by default"
    )
    parser.add_argument("--seed", type=int, default=1, help="other inputs and spans; 1 by default")
    parser.add_argument("--again", type=Path, metavar="FILE", help="try one input of the readers, and end")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    # Each part is imported when its turn comes: those that fork want no threads, and atheris a process of its own.
    if args.again:
        from .readers import again

        return again(args.again)
    held = True
    if "readers" in args.only:
        from . import readers

        held &= readers.run(args.seconds, args.seed)
    if "giants" in args.only:
        from . import giants

        held &= giants.run(args.factor, args.kinds)
    if "million" in args.only:
        from . import million

        held &= million.run(args.spans, args.seed)
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
