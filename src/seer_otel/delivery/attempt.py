"""One request for one event, and what its answer means."""

from __future__ import annotations

import random
import time
from functools import partial

from .backlog import Item
from .policy import Verdict, judge
from .transport import HttpTransport, Reply, Transport, TransportError


def attempt(
    transport: Transport, item: Item, timeout: float | None, age: float, max_age: float
) -> tuple[Verdict, int | None, str]:
    """Send an event; return what the answer means, its status if one came, and why none came. Never raises.

    Args:
        transport: where to.
        item: the event; its `attempts` count this one.
        timeout: seconds for the answer, where that is less than the transport's own.
        age: seconds since it was first to be sent.
        max_age: seconds for which it is retried.
    """
    reply, error = _send(transport, item, timeout)
    verdict = judge(reply, item.attempts, age, item.shrunk, jitter(), time.time(), max_age)
    return verdict, reply.status if reply is not None else None, error


def _send(transport: Transport, item: Item, timeout: float | None) -> tuple[Reply | None, str]:
    send = transport.send
    if timeout is not None and isinstance(transport, HttpTransport):
        send = partial(transport.send, timeout=timeout)
    try:
        reply: object = send(item.body, item.key)
        return (reply, "") if isinstance(reply, Reply) else (None, "the transport returned no Reply")
    except TransportError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 - a transport of the user's, say; its text may hold the key
        return None, type(error).__name__


def jitter() -> float:
    """Return a random number from 0 to 1."""
    return random.random()  # noqa: S311 - no secret
