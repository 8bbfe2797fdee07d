"""What the application pays, and how fast events leave: each figure beside its reference, measured in the same run.

`make bench` runs it; `docs/performance.md` says how it measures and how to read it.
"""
