"""Dialects of span attributes, each read into the same `Retrieval`. Pure.

A convention is a module with the functions of `openinference`. There is one so far, so this is all of a registry.
"""

from . import openinference as convention
from .layout import Layout, layout_of

__all__ = ["Layout", "convention", "layout_of"]
