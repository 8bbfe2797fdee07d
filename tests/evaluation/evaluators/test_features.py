from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.evaluators.features import FIRST, Context
from seer_otel.evaluation.evaluators.passage import Passage
from seer_otel.evaluation.evaluators.question import question


def context(query: str, *passages: str) -> Context:
    return Context(question(query), [Passage(text) for text in passages], Corpus())


def column(name: str, seen: Context) -> list[float]:
    return [row[FIRST.index(name)] for row in seen.first()]


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("How many seats are there?", "number"),
        ("What is the population of Norrby?", "number"),
        ("When did it open?", "date"),
        ("in what year was it built", "date"),
        ("Who wrote it?", "person"),
        ("which European country is larger", "place"),
        ("Explain the design.", ""),
    ],
)
def test_the_kind_of_answer_that_is_wanted(query: str, kind: str) -> None:
    """It is read off the question word and the noun that goes with it."""
    assert question(query).kind == kind


def test_a_query_of_stop_words_is_about_those() -> None:
    """So it can still be matched."""
    assert question("who are they").terms == ("who", "are", "thei")
    assert question("").terms == ()


def test_abbreviations_are_spelt_out_where_they_are_names() -> None:
    """`us` is a country after `the` only."""
    assert "unit" in question("who ruled the us first").terms
    assert "unit" in question("laws of the U.K.").terms
    assert "unit" not in question("who told us first").terms


@pytest.mark.parametrize(
    ("text", "titled", "heading"),
    [
        ("Brindle loom (machine)\nIt is a loom.", True, ("brindl", "loom")),
        ("## Limits\n\nTen at most.", True, ("limit",)),
        ("The Brindle loom is a loom.\nMore of it.", False, ("brindl",)),
        ("Marta Oldacre was a weaver.", False, ("marta", "oldacr")),
        ("it rains", False, ()),
        ("", False, ()),
    ],
)
def test_a_passage_is_known_by_its_heading_or_its_first_name(
    text: str, titled: bool, heading: tuple[str, ...]
) -> None:
    """Brackets that tell namesakes apart are no part of the name."""
    passage = Passage(text)
    assert (passage.titled, passage.heading) == (titled, heading)


def test_a_passage_is_linked_to_the_one_that_names_it() -> None:
    """The link that a second hop is found by goes from the heading to where it is mentioned."""
    seen = context(
        "Who made the loom?", "Loom\nMade by Marta Oldacre.", "Marta Oldacre\nA weaver.", "Rain\nIt rains."
    )
    assert seen.named_by == [[], [0], []]
    assert seen.naming == [[1], [], []]


def test_scores_are_relative_to_the_other_passages() -> None:
    """Ahead of the second best, behind the best; the share of the others that are better."""
    seen = context("red green blue", "red green blue", "red green", "red", "grey")
    assert column("cover_rank", seen) == [0.0, pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]
    ahead = column("cover_ahead", seen)
    assert ahead[0] > 0 > ahead[1] > ahead[2] > ahead[3] == -1.0


def test_a_related_form_counts_in_part() -> None:
    """`Mexican` is some evidence for `Mexico`, less than the word itself, more than none."""
    mexico, mexican, neither = column("soft", context("Mexico", "In Mexico.", "A Mexican town.", "A town."))
    assert mexico > mexican > neither == 0


TEXTS = st.lists(
    st.one_of(
        st.text(max_size=80),
        st.sampled_from(["Red Fox\nA red fox.", "The Red Fox of 1822.", "foxes are red"]),
    ),
    min_size=1,
    max_size=6,
)


@given(st.one_of(st.text(max_size=60), st.just("When was Red Fox seen?")), TEXTS)
def test_every_number_is_finite_and_shares_are_shares(query: str, passages: list[str]) -> None:
    """Whatever the texts; trees take no NaN."""
    seen = context(query, *passages)
    rows = seen.second([0.5] * len(passages))
    assert all(math.isfinite(value) for row in rows for value in row)
    for name in ("cover", "bm25", "topic", "window", "pairs", "exclusive", "soft", "heading", "found"):
        assert all(-1e-9 <= value <= 1 + 1e-9 for value in column(name, seen))


@given(TEXTS)
def test_a_passage_that_is_there_twice_looks_the_same_twice(passages: list[str]) -> None:
    """Nothing depends on where a passage stands but ties for the best."""
    seen = context("When was Red Fox seen?", *passages, passages[0])
    for name in ("cover", "bm25_rank", "topic", "soft_ahead", "heading_asked", "kind"):
        values = column(name, seen)
        assert values[0] == values[-1]
