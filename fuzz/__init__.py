"""Spans that nobody would make on purpose, on the readers and through the whole pipeline.

`make fuzz` runs it; `CONTRIBUTING.md` says what it looks for.
"""
