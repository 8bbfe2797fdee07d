"""From the spans of one trace to its events: which retrievals count, what they answer, which one is final. Pure.

Every rule here names the kind of trace that it serves. None names a framework: what a framework writes in its
own way is the business of `conventions`.
"""

from .assemble import Assembly, Memory, Rules, assemble

__all__ = ["Assembly", "Memory", "Rules", "assemble"]
