"""Which traces are kept."""

from __future__ import annotations

import math
import random
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from seer_otel.sampling import keeps

IDS = st.integers(1, 2**128 - 1)
RATES = st.floats(0, 1)


def seeded(count: int) -> list[int]:
    generator = random.Random(20261130)
    return [generator.getrandbits(128) for _ in range(count)]


@given(IDS, RATES)
def test_formula(trace_id: int, rate: float) -> None:
    """The decision is the published formula, which other processes and the backend compute for themselves."""
    digest = blake2b(trace_id.to_bytes(16, "big"), key=b"seer", digest_size=8).digest()
    assert keeps(trace_id, rate) == (int.from_bytes(digest, "big") < round(rate * 2**64))


def test_known_decisions() -> None:
    """Decisions for fixed ids never change, whatever becomes of the code."""
    assert [number for number in range(1, 41) if keeps(number, 0.25)] == [
        5,
        14,
        18,
        20,
        23,
        24,
        30,
        34,
        37,
        39,
    ]


def test_border() -> None:
    """A trace whose hash is the rate itself is not kept; with the next higher rate it is."""
    digests = (
        (
            number,
            int.from_bytes(blake2b(number.to_bytes(16, "big"), key=b"seer", digest_size=8).digest(), "big"),
        )
        for number in range(1, 2**20)
    )
    # A hash that is a float without rounding, so that there is such a rate.
    trace_id, digest = next((number, digest) for number, digest in digests if int(float(digest)) == digest)
    assert not keeps(trace_id, digest / 2**64)
    assert keeps(trace_id, math.nextafter(digest / 2**64, 1))


@given(IDS, RATES, RATES)
def test_nested(trace_id: int, one: float, other: float) -> None:
    """What a lower rate keeps, a higher one keeps too."""
    low, high = sorted((one, other))
    assert keeps(trace_id, low) <= keeps(trace_id, high)


@given(IDS)
def test_ends(trace_id: int) -> None:
    """A rate of 0 keeps nothing, a rate of 1 everything."""
    assert not keeps(trace_id, 0)
    assert keeps(trace_id, 1)


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.1, 0.25, 0.5, 0.9, 0.999])
def test_share(rate: float) -> None:
    """Of 100,000 traces the share that is kept is the rate, within four standard deviations."""
    ids = seeded(100_000)
    kept = sum(keeps(trace_id, rate) for trace_id in ids)
    assert abs(kept - rate * len(ids)) < 4 * (len(ids) * rate * (1 - rate)) ** 0.5


@pytest.mark.parametrize("head_rate", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("rate", [0.5, 0.1])
def test_independent_of_the_head_sampler(head_rate: float, rate: float) -> None:
    """Of what OpenTelemetry's ratio sampler keeps, which compares the id's low bits, we keep our share too."""
    head = TraceIdRatioBased(head_rate)
    sampled = [each for each in seeded(100_000) if head.should_sample(None, each, "").decision.is_sampled()]
    kept = sum(keeps(trace_id, rate) for trace_id in sampled)
    assert len(sampled) > 800
    assert abs(kept - rate * len(sampled)) < 4 * (len(sampled) * rate * (1 - rate)) ** 0.5


def test_ids_in_a_row() -> None:
    """Ids that count up, as test tools and some vendors make them, are spread as well as random ones."""
    kept = sum(keeps(trace_id, 0.1) for trace_id in range(1, 10_001))
    assert 880 < kept < 1_120
