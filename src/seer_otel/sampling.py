"""Which traces are kept. Pure."""

from __future__ import annotations

from hashlib import blake2b


def keeps(trace_id: int, rate: float) -> bool:
    """Return whether a share `rate` (0 to 1) of all traces includes this one.

    The answer depends on the id and the rate alone, so every process and the backend give the same; the set
    of a lower rate lies inside that of a higher one; and the keyed hash makes it independent of head samplers,
    which compare the id's own bits (a threshold on those kept nothing at all of what a 0.1 % sampler kept).
    """
    digest = blake2b(trace_id.to_bytes(16, "big"), key=b"seer", digest_size=8).digest()
    return int.from_bytes(digest, "big") < round(rate * 2**64)
