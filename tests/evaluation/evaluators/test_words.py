from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.evaluation.evaluators import distinct_stems, stems
from seer_otel.evaluation.evaluators.words import sentences, stem


@pytest.mark.parametrize(
    "forms",
    [
        "write writes writing wrote written",
        "direct directed directs directing",
        "city cities",
        "hop hopped hopping hops",
        "hope hoped hoping hopes",
        "begin began begun",
        "agree agreed agrees",
        "configure configured configures configuring",
    ],
)
def test_forms_of_one_word_have_one_stem(forms: str) -> None:
    """Inflection does not keep a passage from being found, be it regular or not."""
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize("pair", ["found find", "bus but", "number numb", "planet plane"])
def test_what_must_stay_apart(pair: str) -> None:
    """Words that mean different things and look alike."""
    one, other = pair.split()
    assert stem(one) != stem(other)


def test_accents_and_case_do_not_matter() -> None:
    """Both spellings of a name are one stem."""
    assert stems("Beyoncé in ZÜRICH") == stems("beyonce IN Zurich")


def test_scripts_without_spaces_are_split_into_signs() -> None:
    """Chinese, Japanese and Thai texts can overlap in part."""
    assert set(stems("東京はどこ")) & set(stems("東京は日本にある"))
    assert len(stems("東京")) == 2


def test_a_text_without_sentences_is_cut_into_pieces() -> None:
    """A table or a log does not pass for one sentence that holds everything."""
    parts = sentences("word " * 1000)
    assert len(parts) > 10
    assert sum(map(len, parts)) == 1000


@given(st.text(max_size=300))
def test_sentences_and_stems_hold_the_same_words(text: str) -> None:
    """However a text is cut, no word is lost or made up."""
    assert [stem(word) for part in sentences(text) for word in part] == stems(text)


@given(st.text())
def test_what_was_taken_apart_for_judging_has_the_same_stems(text: str) -> None:
    """The stems that are counted of a passage are those of its text, however they are come by."""
    assert distinct_stems(text) == set(stems(text))


@given(st.lists(st.text(max_size=50), max_size=5))
def test_a_long_text_has_the_words_of_its_parts(parts: list[str]) -> None:
    """What is taken in pieces for its length is read as it would be whole."""
    filling = "é " * 2001
    assert stems(filling + " ".join(parts)) == stems(filling) + stems(" ".join(parts))


def test_a_text_of_combining_signs() -> None:
    """Two signs that have to be brought into order, 150,000 times: done at once, it takes minutes."""
    assert stems("Beyonce" + "\u05b0\u0591" * 150_000)[0] == "beyonc"


@given(st.text(min_size=50))
def test_stems_are_short(text: str) -> None:
    """No stem is longer than 64 characters, which is what a store keeps of one."""
    assert max(map(len, stems(text)), default=0) <= 64
