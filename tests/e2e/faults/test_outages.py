"""The backend is away or answers badly: nothing is lost, and what cannot be helped takes no neighbour along."""

from __future__ import annotations

import pytest

from .conftest import KEY, Fault
from .sink import Answer

pytestmark = pytest.mark.e2e

WAITS = """
retrieve(60)
taken(60)
until(lambda: stats().retries >= 3)
say()
wait()
flush()
say()
"""


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            None, id="refused", marks=pytest.mark.fault("connections are refused, then taken again")
        ),
        pytest.param(
            Answer(hangs=True), id="hangs", marks=pytest.mark.fault("connections hang until they time out")
        ),
        pytest.param(Answer(500), id="500", marks=pytest.mark.fault("500 to everything")),
        pytest.param(
            Answer(503, {"Retry-After": "0"}),
            id="503",
            marks=pytest.mark.fault("503 with Retry-After to everything"),
        ),
        pytest.param(Answer(429), id="429", marks=pytest.mark.fault("429 to everything")),
        pytest.param(
            Answer(200, raw=b"", reset=True, hangs=False),
            id="reset",
            marks=pytest.mark.fault("each event is taken, and the connection reset in place of an answer"),
        ),
    ],
)
def test_an_outage(fault: Fault, answer: Answer | None) -> None:
    """What is retrieved while the backend fails, in whatever way, waits, and arrives when it is well again."""
    fault.sink.fails(answer)
    child = fault.start(WAITS, SEER_OTEL_TIMEOUT="0.2")
    said = child.says()
    assert (said.seen, said.sent, said.held, said.spooled) == (60, 0, 60, 60 if fault.spools else 0)
    fault.sink.is_well()
    child.go()
    said = child.says()
    assert (said.seen, said.sent) == (60, 60)
    child.ends()
    assert fault.sink.tasks == [f"question {i:04}" for i in range(60)]
    assert child.log.count("The backend at") == 1
    fault.ends(60)


@pytest.mark.fault("the backend is back after the pause that its Retry-After asked for")
def test_retry_after(fault: Fault) -> None:
    """While the backend asks for a pause it is left alone: one request is refused, and all arrive after it."""
    fault.sink.first = [Answer(503, {"Retry-After": "1"})]
    child = fault.start("retrieve(60); taken(60); say(); flush(); say()")
    assert child.says().held == 60
    assert child.says().sent == 60
    child.ends()
    assert fault.sink.requests == 61
    fault.ends(60)


@pytest.mark.fault("an outage of 2,000 retrievals, where memory holds 500")
def test_more_than_memory_holds(fault: Fault) -> None:
    """What finds no room in memory waits on disk; without a spool it is dropped and counted."""
    fault.sink.goes_away()
    child = fault.start(
        "backlog.MAX_EVENTS = 500; retrieve(2000); taken(2000); say(); wait(); flush(); say()"
    )
    said = child.says()
    assert said.dropped == ({} if fault.spools else {"outbox_full": 1500})
    assert said.spooled == (2000 if fault.spools else 0)
    fault.sink.is_well()
    child.go()
    assert child.says().sent == (2000 if fault.spools else 500)
    child.ends()
    assert fault.sink.repeated == 0
    fault.ends(2000, lost=1500)


@pytest.mark.fault("401 to everything; the next process has the right key")
def test_a_refused_key(fault: Fault) -> None:
    """What a backend refuses for its key is kept on disk until a process has the right one, and asked for once."""
    fault.sink.key = KEY
    child = fault.start(
        "retrieve(60); until(lambda: stats().seen == 60 and stats().spooled in (0, 60)); say()",
        SEER_API_KEY="seer_canary_wrong",
    )
    said = child.says()
    assert said.sent == 0
    assert said.spooled == (60 if fault.spools else 0)
    child.ends()
    assert fault.sink.requests <= 8  # those on their way when the first answer came
    assert child.log.count("SEER_API_KEY") == 1
    fault.run("flush()")
    fault.ends(60, lost=60)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"),
            id="truncated",
            marks=pytest.mark.fault("an answer is cut off in its body"),
        ),
        pytest.param(
            Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Le", reset=True),
            id="reset",
            marks=pytest.mark.fault("the connection is reset in the middle of an answer"),
        ),
        pytest.param(
            Answer(raw=b"\x16\x03\x01 no HTTP at all\r\n\r\n"),
            id="garbage",
            marks=pytest.mark.fault("an answer is garbage"),
        ),
    ],
)
def test_a_broken_answer(fault: Fault, answer: Answer) -> None:
    """An event whose answer cannot be read is sent again, with the same key; where the status was read, it counts."""
    fault.sink.first = [answer]
    child = fault.start("retrieve(60); flush(); say()")
    said = child.says()
    assert said.sent == 60
    child.ends()
    assert fault.sink.repeated == said.retries <= 1
    fault.ends(60)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(
            Answer(500),
            None,
            id="500",
            marks=pytest.mark.fault(
                "one event is answered with 500 for ever; it stays, its neighbours arrive"
            ),
        ),
        pytest.param(
            Answer(400),
            "rejected",
            id="400",
            marks=pytest.mark.fault("neighbours of an event that is refused with 400"),
        ),
        pytest.param(
            Answer(413),
            "too_large",
            id="413",
            marks=pytest.mark.fault("neighbours of an event that is refused with 413, even cut"),
        ),
        pytest.param(
            Answer(307, {"Location": "http://127.0.0.1:9/elsewhere"}),
            "rejected",
            id="307",
            marks=pytest.mark.fault("neighbours of an event that is answered with a redirect"),
        ),
    ],
)
def test_a_poison_event(fault: Fault, answer: Answer, reason: str | None) -> None:
    """An event that the backend cannot digest takes none of its neighbours along, and is counted."""
    fault.sink.by_task = {"question 0007": answer}
    dropped = {} if reason is None else {reason: 1}
    child = fault.start(
        f"retrieve(60); until(lambda: stats().sent == 59 and stats().dropped == {dropped}); say(); wait()"
    )
    said = child.says()
    assert said.dropped == dropped
    assert said.held == (reason is None)
    assert "question 0007" not in fault.sink.tasks
    if reason is None:
        fault.ends(60, held=0 if fault.spools else 1)
    else:
        fault.ends(59)


@pytest.mark.fault("a burst of 2,000 retrievals, faster than they are taken")
def test_a_burst(fault: Fault) -> None:
    """The queue holds a burst, and all of it arrives."""
    code = "with processor._pipeline._working:  # the worker does not get to it\n    retrieve(2000)\nflush(40)\nsay()"
    said = fault.tells(code)
    assert (said.seen, said.sent) == (2000, 2000)
    assert fault.sink.repeated == 0
    fault.ends(2000)


def test_a_full_queue(fault: Fault) -> None:
    """What finds no room in the queue is counted, with its reason; all that was taken arrives."""
    code = """
    with processor._pipeline._working:  # the worker does not get to it
        retrieve(2000)
    flush()
    say()
    """
    child = fault.start(code, SEER_OTEL_MAX_QUEUE_SIZE="1024")
    said = child.says()
    assert said.seen == 2000
    assert set(said.dropped) == {"queue_full"}
    assert said.sent + said.dropped["queue_full"] == 2000
    child.ends()
    assert child.log.count("SEER_OTEL_MAX_QUEUE_SIZE") == 1
    assert len(fault.sink.taken) == said.sent > 0
