"""What follows from an answer, and from none."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seer_otel import DropReason, Reply
from seer_otel.delivery.breaker import Health
from seer_otel.delivery.policy import LONGEST_DELAY, MAX_AGE, MAX_RETRY_AFTER, Action, judge, retry_after

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@given(
    status=st.integers(200, 299), attempt=st.integers(1, 1000), age=st.floats(0, 1e6), shrunk=st.booleans()
)
def test_any_2xx_is_delivered(status: int, attempt: int, age: float, shrunk: bool) -> None:
    """Every status from 200 to 299 means delivered, however old the event is."""
    assert judge(Reply(status), attempt, age, shrunk, 0.5, NOW).action is Action.DONE


@pytest.mark.parametrize("status", [None, 408, 429, 500, 502, 503, 504, 599])
def test_retried(status: int | None) -> None:
    """No answer, 408, 429 and 5xx are tried again after a random part of 1, 2, 4 ... 30 seconds."""
    reply = None if status is None else Reply(status)
    longest = [judge(reply, attempt, 0.0, False, 1.0, NOW).delay for attempt in range(1, 9)]
    assert longest == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert judge(reply, 3, 0.0, False, 0.25, NOW).delay == 1.0
    assert judge(reply, 10**9, 0.0, False, 1.0, NOW).delay == LONGEST_DELAY
    assert judge(reply, 1, 0.0, False, 0.5, NOW).action is Action.RETRY


@pytest.mark.parametrize("status", [None, 408, 429, 503])
def test_expired(status: int | None) -> None:
    """An event is given up when its next try would come more than ten minutes after its first."""
    reply = None if status is None else Reply(status)
    assert judge(reply, 9, MAX_AGE - 30.0, False, 1.0, NOW).action is Action.RETRY
    late = judge(reply, 9, MAX_AGE - 29.0, False, 1.0, NOW)
    assert (late.action, late.reason) == (Action.GIVE_UP, DropReason.EXPIRED)
    assert judge(reply, 9, MAX_AGE, False, 1.0, NOW, max_age=2 * MAX_AGE).action is Action.RETRY


@pytest.mark.parametrize("status", [401, 403])
def test_refused_key(status: int) -> None:
    """401 and 403 give the event up and say that the backend refuses the key."""
    verdict = judge(Reply(status, "1"), 1, 0.0, False, 0.5, NOW)
    assert (verdict.action, verdict.reason) == (Action.GIVE_UP, DropReason.UNAUTHORIZED)
    assert verdict.health is Health.REFUSING


def test_too_large() -> None:
    """413 is tried once more, cut; a second one is final."""
    assert judge(Reply(413), 1, 0.0, False, 0.5, NOW).action is Action.SHRINK
    verdict = judge(Reply(413), 2, 0.0, True, 0.5, NOW)
    assert (verdict.action, verdict.reason) == (Action.GIVE_UP, DropReason.TOO_LARGE)


@pytest.mark.parametrize(
    "status", [300, 301, 302, 303, 307, 308, 400, 404, 405, 409, 410, 415, 422, 431, 451]
)
def test_final(status: int) -> None:
    """Every other 3xx and 4xx is final, also with a Retry-After, and says nothing against the backend."""
    verdict = judge(Reply(status, "5"), 1, 0.0, False, 0.5, NOW)
    assert (verdict.action, verdict.reason) == (Action.GIVE_UP, DropReason.REJECTED)
    assert verdict.health is Health.WELL


def test_retry_after_is_honoured() -> None:
    """The seconds of a Retry-After are the delay, without jitter, and the other events wait as well."""
    for header in ("7", " 7 ", "Tue, 14 Nov 2023 22:13:27 GMT", "Tuesday, 14-Nov-23 22:13:27 GMT"):
        for status in (408, 429, 503):
            verdict = judge(Reply(status, header), 1, 0.0, False, 0.01, NOW)
            assert (verdict.action, verdict.delay, verdict.health) == (Action.RETRY, 7.0, Health.BUSY)


@pytest.mark.parametrize("header", ["0", "Mon, 13 Nov 2023 22:13:30 GMT"])
def test_a_pause_of_nothing(header: str) -> None:
    """A Retry-After of no seconds, or a date that is over, leads to our own delay and to no loop of requests."""
    verdict = judge(Reply(503, header), 3, 0.0, False, 0.5, NOW)
    assert (verdict.action, verdict.delay, verdict.health) == (Action.RETRY, 2.0, Health.FAILING)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0.0),
        ("120", 120.0),
        ("301", MAX_RETRY_AFTER),
        ("9" * 5000, MAX_RETRY_AFTER),
        ("-1", None),
        ("1.5", None),
        ("\u0663", None),
        ("soon", None),
        ("1, 2", None),
        ("Tue, 14 Nov 2023 22:13:30 GMT", 10.0),
        ("Tue, 14 Nov 2023 23:13:30 +0100", 10.0),
        ("Tue, 14 Nov 2023 22:13:30 -0000", 10.0),
        ("Tue Nov 14 22:13:30 2023", 10.0),
        ("Mon, 13 Nov 2023 22:13:30 GMT", 0.0),
        ("Thu, 14 Nov 2999 22:13:30 GMT", MAX_RETRY_AFTER),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0.0),
        ("Mon, 32 Jan 2023 00:00:00 GMT", None),
        ("Mon, 01 Jan 2023 00:00:00 +99999999999999999999", None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    """Seconds or a date become seconds of at most five minutes; what is neither becomes nothing."""
    assert retry_after(header, NOW) == seconds


DATES = st.builds(
    "{}, {} {} {} {}:{}:{} {}".format,
    st.sampled_from(["Mon", "Tue", "x", ""]),
    st.integers(-1, 99),
    st.sampled_from(["Jan", "Feb", "Dec", "x"]),
    st.integers(-1, 10**20),
    st.integers(-1, 99),
    st.integers(-1, 99),
    st.integers(-1, 10**12),
    st.one_of(
        st.sampled_from(["GMT", "EST", "-0000", ""]), st.integers(-(10**20), 10**20).map("{:+05d}".format)
    ),
)


@given(header=st.one_of(st.text(), DATES), now=st.floats(0, 4e9))
@example(header="Mon, 01 Jan 0001 00:00:00 +2359", now=0.0)
@example(header="Fri, 31 Dec 9999 23:59:59 -2359", now=0.0)
def test_retry_after_never_raises(header: str, now: float) -> None:
    """Any header is nothing, or from no seconds to five minutes."""
    seconds = retry_after(header, now)
    assert seconds is None or 0.0 <= seconds <= MAX_RETRY_AFTER


@given(
    reply=st.one_of(
        st.none(), st.builds(Reply, st.integers(-1, 10_000), st.one_of(st.none(), st.text(), DATES))
    ),
    attempt=st.integers(1, 10**9),
    age=st.floats(0, 1e9),
    shrunk=st.booleans(),
    jitter=st.floats(0, 1),
    now=st.floats(0, 4e9),
)
def test_judge_never_raises(
    reply: Reply | None, attempt: int, age: float, shrunk: bool, jitter: float, now: float
) -> None:
    """Any answer has one verdict: a delay only for a retry and within ten minutes, a reason only for giving up."""
    verdict = judge(reply, attempt, age, shrunk, jitter, now)
    assert (verdict.reason is not None) == (verdict.action is Action.GIVE_UP)
    if verdict.action is Action.RETRY:
        assert 0 <= verdict.delay <= MAX_RETRY_AFTER
        assert age + verdict.delay <= MAX_AGE
    elif verdict.reason is not DropReason.EXPIRED:
        assert verdict.delay == 0
    if verdict.action is Action.SHRINK:
        assert not shrunk
