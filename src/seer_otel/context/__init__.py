"""The `using_*` blocks: what the application knows about its retrievals, written on the spans started inside.

    with using_task("What is the refund policy?"), using_metadata({"env": "prod"}):
        chain.invoke(...)

    @using_ground_truth(["doc-7"], answer="30 days")
    async def answer(): ...

Each is a block for `with` and `async with`, and a decorator for functions, coroutine functions, generator
functions and async generator functions. The values travel in the OpenTelemetry context: they reach what is
called inside, and the tasks and threads that carry this context. A span processor writes them on each span
that starts (`attributes_in`).

Nothing here raises: a value that cannot be used is named in one warning, and then counts as not given.
"""

from .stored import attributes_in
from .using import (
    Using,
    using_final_context,
    using_ground_truth,
    using_metadata,
    using_sample_rate,
    using_subquery,
    using_task,
)

__all__ = [
    "Using",
    "attributes_in",
    "using_final_context",
    "using_ground_truth",
    "using_metadata",
    "using_sample_rate",
    "using_subquery",
    "using_task",
]
