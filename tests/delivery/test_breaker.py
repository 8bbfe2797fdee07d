"""When the backend may be asked, after what it answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.delivery.breaker import FAILURES, LONGEST_PAUSE, REFUSED_PAUSE, Breaker, Health


def opened(health: Health = Health.BUSY, delay: float = 10.0) -> Breaker:
    """A breaker that opened at second 100."""
    breaker = Breaker()
    for _ in range(FAILURES):
        breaker.note(health, 100.0, delay, 1.0)
    return breaker


def test_closed() -> None:
    """As long as the backend is well, any number of requests may be sent."""
    breaker = Breaker()
    assert breaker.admits(0.0, in_flight=8)
    assert breaker.note(Health.WELL, 1.0, 0.0, 0.5) is False
    assert not breaker.is_open


def test_failures_in_a_row_open_it() -> None:
    """Three failures in a row hold requests back; an answer in between begins the count anew."""
    breaker = Breaker()
    answers = [Health.FAILING, Health.FAILING, Health.WELL, Health.FAILING, Health.FAILING]
    assert not any(breaker.note(each, 100.0, 0.0, 1.0) for each in answers)
    assert breaker.note(Health.FAILING, 100.0, 0.0, 1.0) is True
    assert not breaker.admits(100.9, in_flight=0)
    assert breaker.admits(101.0, in_flight=0)


@pytest.mark.parametrize(("health", "pause"), [(Health.BUSY, 7.0), (Health.REFUSING, REFUSED_PAUSE)])
def test_some_answers_open_it_at_once(health: Health, pause: float) -> None:
    """A backend that asks for a pause gets it, and one that refuses the key is left alone for a minute."""
    breaker = Breaker()
    assert breaker.note(health, 100.0, 7.0, 0.0) is True
    assert breaker.opens_until == 100.0 + pause


def test_half_open() -> None:
    """After the pause one request tries at a time; its success closes, its failure opens for longer."""
    breaker = opened(Health.FAILING)
    assert breaker.admits(101.0, in_flight=0)
    assert not breaker.admits(101.0, in_flight=1)
    assert breaker.note(Health.FAILING, 101.0, 0.0, 1.0) is False
    assert breaker.opens_until == 103.0
    assert breaker.note(Health.WELL, 103.0, 0.0, 1.0) is True
    assert breaker.admits(103.0, in_flight=8)


def test_the_pause_grows() -> None:
    """Pauses double up to half a minute, are a random part of that, and begin anew after a success."""
    breaker, now, pauses = opened(Health.FAILING), 100.0, []
    for _ in range(8):
        now = breaker.opens_until
        breaker.note(Health.FAILING, now, 0.0, 1.0)
        pauses.append(breaker.opens_until - now)
    assert pauses == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]
    breaker.note(Health.WELL, now, 0.0, 1.0)
    for _ in range(FAILURES):
        breaker.note(Health.FAILING, now, 0.0, 0.5)
    assert breaker.opens_until == now + 0.5


def test_answers_to_older_requests() -> None:
    """Requests that were on their way when it opened do not make the pause longer, and one that succeeds ends it."""
    breaker = opened(delay=10.0)
    assert breaker.note(Health.FAILING, 105.0, 0.0, 1.0) is False
    assert breaker.opens_until == 110.0
    assert breaker.note(Health.WELL, 106.0, 0.0, 1.0) is True


def test_try_now() -> None:
    """At the end a request may try at once, unless the backend asked for a pause or refused the key."""
    for health, admitted in ((Health.FAILING, True), (Health.BUSY, False), (Health.REFUSING, False)):
        breaker = opened(health)
        breaker.try_now(100.0)
        assert breaker.admits(100.0, in_flight=0) is admitted
    Breaker().try_now(0.0)


@given(
    answers=st.lists(
        st.tuples(st.sampled_from(Health), st.floats(0, 100), st.floats(0, 300), st.floats(0, 1))
    )
)
def test_never_for_ever(answers: list[tuple[Health, float, float, float]]) -> None:
    """Whatever the answers, a request may try after a bounded time, and the next success opens the way for all."""
    breaker, now = Breaker(), 0.0
    for health, seconds, delay, jitter in answers:
        now += seconds
        was_open = breaker.is_open
        assert breaker.note(health, now, delay, jitter) is (breaker.is_open != was_open)
    assert breaker.opens_until <= now + max(LONGEST_PAUSE, REFUSED_PAUSE, 300.0)
    breaker.note(Health.WELL, now, 0.0, 0.0)
    assert breaker.admits(now, in_flight=8)
