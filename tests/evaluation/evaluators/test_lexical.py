from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seer_otel.endpoint import ConfigurationError
from seer_otel.evaluation.evaluators import DEFAULT, evaluator, names, stems
from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.evaluators.features import FIRST, SECOND, Context
from seer_otel.evaluation.evaluators.lexical import MODEL, SIGNALS, Lexical, citations, signals
from seer_otel.evaluation.evaluators.passage import Passage
from seer_otel.evaluation.evaluators.question import question
from seer_otel.evaluation.evaluators.trees import Logistic, Trees
from seer_otel.evaluation.judging import Evaluator, Judgement

FIXTURE = Path(__file__).with_name("lexical_rows.json")
QUESTION = "In which city was the inventor of the Brindle loom born?"
LOOM = "Brindle loom\nThe Brindle loom is a hand loom for narrow ribbons. It was invented by Marta Oldacre in 1822."
INVENTOR = "Marta Oldacre\nMarta Oldacre (1791 - 1860) was a weaver. She was born in the city of Tallinn, to a tailor."
OTHERS = [
    "Power loom\nA power loom is a mechanised loom. The first one was built in 1785.",
    "Ribbon\nA ribbon is a thin band of cloth, used for binding and tying.",
    "Harlan Pike\nHarlan Pike was a baker. He was born in the village of Norrby.",
    "City\nA city is a large settlement with many people, and with extensive systems for housing.",
    "Tailor\nA tailor makes, repairs and alters clothing, mostly for men.",
    "Weaving\nWeaving is a way of making cloth in which two sets of yarn are crossed at right angles.",
]
CONTEXT = [OTHERS[0], LOOM, *OTHERS[1:4], INVENTOR, *OTHERS[4:]]

PASSAGES = st.lists(st.one_of(st.text(max_size=120), st.sampled_from(CONTEXT)), max_size=8)


def judge(query: str, passages: list[str], corpus: Corpus | None = None) -> Judgement:
    return evaluator(DEFAULT).judge(query, passages, corpus or Corpus())


def test_the_registry_names_its_choices() -> None:
    """The default is the first of them, and a name that is none is refused with the names that there are."""
    lexical: Evaluator = evaluator(DEFAULT)
    assert names()[0] == DEFAULT == lexical.name
    assert evaluator() is lexical
    with pytest.raises(ConfigurationError, match=r"no evaluator 'nope'; there are: lexical"):
        evaluator("nope")


def test_its_accuracy_and_version_come_from_the_model() -> None:
    """What stands beside its numbers is what was measured."""
    kept = json.loads(MODEL.read_text("utf-8"))
    lexical = evaluator("lexical")
    assert (lexical.version, lexical.accuracy) == (kept["version"], kept["accuracy"])
    assert "cites with F1 ." in lexical.accuracy


def test_the_model_was_fitted_on_the_columns_that_are_computed() -> None:
    """Else each number would mean something else than what was learnt."""
    kept = json.loads(MODEL.read_text("utf-8"))
    assert kept["columns"] == {"first": list(FIRST), "second": list(SECOND), "signals": list(SIGNALS)}
    context = Context(question(QUESTION), [Passage(text) for text in CONTEXT], Corpus())
    chances = [0.5] * len(CONTEXT)
    assert {len(row) for row in context.first()} == {len(FIRST)}
    assert {len(row) for row in context.second(chances)} == {len(SECOND)}
    assert len(signals(context, chances, [0])) == len(SIGNALS)
    assert len(kept["sufficiency"]["weights"]) == len(kept["answerable"]["weights"]) == len(SIGNALS)


def test_the_trees_give_what_scikit_learn_gave() -> None:
    """Walked in plain Python, rounded as they are kept, they give the same to five digits."""
    rows = json.loads(FIXTURE.read_text("utf-8"))
    trees = Trees(json.loads(MODEL.read_text("utf-8"))["first"])
    assert len(rows["rows"]) > 10
    assert [trees(row) for row in rows["rows"]] == pytest.approx(rows["chances"], abs=1e-5)


def test_a_tree_goes_left_up_to_the_threshold() -> None:
    """A worked example: the base, and one leaf of each tree, through the logistic function."""
    trees = Trees({"base": -1.0, "trees": [[0, 0.5, 1.0, [1, 2.0, 3.0, 5.0]], 0.0]})
    assert trees([0.5, 9.0]) == pytest.approx(0.5)
    assert trees([0.6, 2.0]) == pytest.approx(0.880797, abs=1e-6)
    assert trees([0.6, 2.1]) == pytest.approx(0.982014, abs=1e-6)


def test_a_logistic_model_far_out_does_not_overflow() -> None:
    """Any row gets a probability."""
    model = Logistic({"intercept": 0.0, "weights": [1.0]})
    assert [model([-1e6]), model([0.0]), model([1e6])] == [0.0, 0.5, 1.0]


def test_both_hops_of_a_question_are_cited() -> None:
    """The second passage hardly resembles the question: it is found by the name that the first one mentions."""
    judgement = judge(QUESTION, CONTEXT)
    assert [CONTEXT[place] for place in judgement.cited] == [LOOM, INVENTOR]
    without = judge(QUESTION, [text for text in CONTEXT if text != INVENTOR])
    assert judgement.sufficiency is not None
    assert without.sufficiency is not None
    assert without.sufficiency < judgement.sufficiency


def test_a_context_about_something_else_is_not_cited() -> None:
    """Not a word of the question is there."""
    judgement = judge("zygomatic flexure", ["The weather is nice.", "Bread is baked."])
    assert judgement.cited == ()
    assert judgement.sufficiency == 0.0
    assert not any(each.present for each in judgement.requirements)


def test_the_citations_make_the_expected_f1_greatest() -> None:
    """One sure passage stands alone; two that are as likely go together; of a few unlikely ones several are tried."""
    assert citations([0.9, 0.1, 0.05]) == (0,)
    assert citations([0.1, 0.8, 0.8]) == (1, 2)
    assert citations([0.0, 0.0]) == ()
    assert citations([]) == ()


def consistent(judgement: Judgement, count: int) -> bool:
    """What `Judgement` promises."""
    places = set(range(count))
    cited = set(judgement.cited)
    return (
        cited <= places
        and list(judgement.cited) == sorted(cited)
        and len(judgement.requirements) > 0
        and all(set(each.citations) <= cited for each in judgement.requirements)
        and all(each.present == bool(each.citations) for each in judgement.requirements)
        and judgement.sufficiency is not None
        and 0 <= judgement.sufficiency <= 1
    )


@given(st.one_of(st.text(max_size=120), st.just(QUESTION)), PASSAGES)
def test_any_text_gets_a_consistent_judgement(query: str, passages: list[str]) -> None:
    """No text makes it raise, and what it says holds together."""
    assert consistent(judge(query, passages), len(passages))


@given(st.permutations(CONTEXT))
@settings(max_examples=30)
def test_the_order_of_passages_does_not_matter(passages: list[str]) -> None:
    """It reads what the passages say, not where the retriever put them."""
    assert {passages[place] for place in judge(QUESTION, passages).cited} == {LOOM, INVENTOR}


def test_common_words_tell_less_where_the_corpus_says_so() -> None:
    """What a store knows of its words counts: in one that is all about looms, the word says nothing."""
    corpus = Corpus()
    for _ in range(500):
        corpus.add(stems("a loom is a loom"))
    context = Context(question(QUESTION), [Passage(text) for text in CONTEXT], corpus)
    assert context.weights.terms["loom"] < 0.1 < context.weights.terms["brindl"]


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("who " * 250_000, "x" * 4000),
        ("Wer? " + "a" * 1_000_000, "word " * 800),
        ("\n".join("ab" for _ in range(300_000)), "A. " * 1300),
        ("東" * 1_000_000, "東京" * 2000),
        ("A B " * 250_000, "A B " * 1000),
        ('"' * 1_000_000, '"A' * 2000),
        ("(" * 1_000_000, "(" * 4000),
        ("ﷺ" * 100_000, "ﷺ" * 4000),
        ("what a b c " * 100_000, "\x00\n" * 2000),
        ("\ud800" * 1000, "\udfff" * 4000),
    ],
    ids=[
        "words",
        "letters",
        "lines",
        "signs",
        "names",
        "quotes",
        "brackets",
        "expanding",
        "clauses",
        "surrogates",
    ],
)
@pytest.mark.timeout(20)
def test_giant_input_is_judged_in_time(query: str, passage: str) -> None:
    """A megabyte of query and fifty passages of 4,000 characters cost what their length says; the limit is generous."""
    assert consistent(judge(query, [f"{passage[:3998]}{place}" for place in range(50)]), 50)


def test_each_process_judges_alike() -> None:
    """No figure depends on the order in which a process happens to keep its sets."""
    program = (
        "import json, sys; from seer_otel.evaluation.evaluators import evaluator;"
        "from seer_otel.evaluation.evaluators.corpus import Corpus;"
        "query, passages = json.loads(sys.stdin.read());"
        "print(repr(evaluator('lexical').judge(query, passages, Corpus())))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps([QUESTION, CONTEXT]),
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert said == {f"{judge(QUESTION, CONTEXT)!r}\n"}


def test_what_is_fitted_is_what_is_shipped() -> None:
    """A model given by hand judges as the one on disk does."""
    again = Lexical(json.loads(MODEL.read_text("utf-8")))
    assert again.judge(QUESTION, CONTEXT, Corpus()) == judge(QUESTION, CONTEXT)
