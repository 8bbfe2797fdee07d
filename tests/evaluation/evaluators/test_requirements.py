from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.evaluation.evaluators import evaluator
from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.evaluators.question import question
from seer_otel.evaluation.evaluators.requirements import asked, judged


def texts(query: str) -> list[str]:
    return [part.text for part in asked(query)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What is machine learning and who coined the term?", ["machine learning", "who coined term"]),
        ("When did Victoria enact its constitution?", ["Victoria", "when enact constitution"]),
        (
            "Are Skeptical Inquirer and The Progressive Populist both tabloid-style magazines?",
            ["Skeptical Inquirer", "Progressive Populist", "tabloid style magazines"],
        ),
        ('In which year was "Got My Mind Set on You" released?', ["Got My Mind Set on You", "year released"]),
        ("how do I change the timeout", ["how change timeout"]),
        ("Is it?", ["Is it"]),
        ("???", ["an answer"]),
        ("", ["an answer"]),
    ],
)
def test_named_things_and_what_each_clause_asks_for(query: str, expected: list[str]) -> None:
    """Names come first, then what is left of each clause."""
    assert texts(query) == expected


@given(st.text(max_size=400))
def test_requirements_are_short_disjoint_and_at_least_one(query: str) -> None:
    """Whatever the query; together they ask for nothing that it does not ask for."""
    parts = asked(query)
    assert 1 <= len(parts) <= 8
    assert all(0 < len(part.text) <= 200 for part in parts)
    terms = [term for part in parts for term in part.terms]
    assert len(terms) == len(set(terms))
    assert set(terms) <= set(question(query).terms)


def met(sufficiency: float) -> list[bool]:
    query = "Who directed Sixth Sense, and in which city was Hitchcock born?"
    passage = "Sixth Sense was directed by Shyamalan. Hitchcock was born in the city of London."
    whole, known = question(query), [frozenset(question(passage).terms)]
    weights = dict.fromkeys(whole.terms, 1.0)
    return [each.present for each in judged(asked(query), whole, weights, [0], known, sufficiency)]


def test_sufficiency_can_speak_against_what_is_covered() -> None:
    """All is covered: all is met if an answer is likely there, half of it if it is half as likely, else nothing."""
    assert all(met(0.9))
    assert sum(met(0.25)) == len(met(0.25)) // 2
    assert not any(met(0.0))


def test_an_uncited_passage_covers_nothing() -> None:
    """A requirement is met by cited passages only."""
    query = "Who directed Sixth Sense?"
    whole = question(query)
    known = [frozenset(whole.terms), frozenset[str]()]
    found = judged(asked(query), whole, dict.fromkeys(whole.terms, 1.0), [1], known, 1.0)
    assert not any(each.present or each.citations for each in found)


def test_nothing_is_met_by_an_empty_context() -> None:
    """All requirements are missing, and the evidence does not suffice."""
    judgement = evaluator("lexical").judge("Who directed Sixth Sense?", [], Corpus())
    assert judgement.cited == ()
    assert judgement.sufficiency == 0.0
    assert [each.present for each in judgement.requirements] == [False] * len(judgement.requirements)
