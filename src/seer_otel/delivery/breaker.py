"""Whether the backend may be asked now: always, not before some time, or by one request that tries. Pure."""

from __future__ import annotations

from enum import Enum, auto

FAILURES = 3
"""Failures in a row after which the backend counts as away."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
REFUSED_PAUSE = 60.0
"""Seconds after a refused key: a person has to act."""


class Health(Enum):
    """What an answer, or none, says of the backend, whatever it says of the event."""

    WELL = auto()
    FAILING = auto()
    BUSY = auto()
    """It asked for a pause."""
    REFUSING = auto()
    """It refused the key."""


class Breaker:
    """Closed while the backend is well; open after it failed; half open when one request may try.

    Attributes:
        health: what the last answer said.
    """

    def __init__(self) -> None:
        self.health = Health.WELL
        self._failures = 0
        self._openings = 0
        self._until: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests are held back."""
        return self._until is not None

    @property
    def opens_until(self) -> float:
        """When the next request may try; minus infinity while closed."""
        return float("-inf") if self._until is None else self._until

    def admits(self, now: float, in_flight: int) -> bool:
        """Return whether a request may be sent: any while closed, and one at a time to try."""
        return self._until is None or (now >= self._until and not in_flight)

    def note(self, health: Health, now: float, delay: float, jitter: float) -> bool:
        """Take note of an answer, or of none; return whether that opened or closed the breaker.

        Args:
            health: what it says of the backend.
            now: seconds of a monotonic clock.
            delay: for how long the backend asked to be left alone.
            jitter: a random number from 0 to 1; the whole pause is drawn, or clients come back in step.
        """
        was_open = self.is_open
        if health is Health.WELL:
            self._failures = self._openings = 0
            self._until = None
        elif self._until is not None and now < self._until:
            return False  # it was sent before the breaker opened
        else:
            self._failures += 1
            pause = jitter * min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._openings, 10))
            if health is Health.BUSY:
                pause = delay
            elif health is Health.REFUSING:
                pause = REFUSED_PAUSE
            if was_open or health is not Health.FAILING or self._failures >= FAILURES:
                self._openings += 1
                self._until = now + pause
        self.health = health
        return self.is_open != was_open

    def try_now(self, now: float) -> None:
        """Let one request try at once, unless the backend asked for a pause or refused the key."""
        if self._until is not None and self.health is Health.FAILING:
            self._until = min(self._until, now)
