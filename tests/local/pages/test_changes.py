"""The view of two variants, and what it computes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from seer_otel.evaluation.judging import Judgement
from seer_otel.local.pages import bars
from seer_otel.local.pages.reading.comparison import FEWEST, compare
from seer_otel.local.pages.reading.variants import Unit

from .judged import Judged as Site
from .judged import judgement, serving
from .test_trace import EVIL, plain

ALL, HALF, NONE = (
    judgement([("a", True, (0,)), ("b", True, (0,))]),
    judgement([("a", True, (0,)), ("b", False, ())]),
    judgement([("a", False, ()), ("b", False, ())]),
)


def units(
    values: Sequence[float], tasks: str = "q", *, index: str = "", metric: str = "recall"
) -> list[Unit]:
    """One trace for each value; questions are numbered, and begin with `tasks`."""
    return [
        Unit(f"{tasks}{at}", f"{tasks}{at}", index, "s", {metric: value}) for at, value in enumerate(values)
    ]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving(tmp_path / "data") as running:
        yield running


class TestComparing:
    def test_a_question_asked_of_both_is_compared_with_itself(self) -> None:
        """Means per question and variant, whatever number of traces each has."""
        base = units([0.0, 1.0] * 10)
        test = [*units([0.5, 1.0] * 10), *units([0.0] * 20)]
        outcome = compare(base, test)
        assert outcome.paired
        # Question 0: 0 against (.5 + 0) / 2; question 1: 1 against (1 + 0) / 2.
        assert (outcome.primary.base, outcome.primary.test) == (0.5, 0.375)
        assert (outcome.primary.n, outcome.primary.base_n, outcome.primary.test_n) == (20, 20, 40)
        assert outcome.primary.comparison is not None
        assert outcome.primary.comparison.difference == pytest.approx(-0.125)
        assert (outcome.better_count, outcome.worse_count, outcome.same_count) == (10, 10, 0)

    def test_pairing_shows_what_the_spread_of_questions_hides(self) -> None:
        """The same gain is shown where questions are paired, and is not where they differ."""
        chance = random.Random(1)
        before = [chance.random() * 0.9 for _ in range(60)]
        after = [value + 0.05 + chance.uniform(-0.02, 0.02) for value in before]
        assert compare(units(before), units(after)).primary.verdict == "better"
        apart = compare(units(before), units(after, "other"))
        assert not apart.paired
        assert apart.primary.verdict == "open"
        assert apart.common == 0

    def test_a_few_common_questions_do_not_stand_for_all(self) -> None:
        """Under half of the smaller side's questions, all traces are compared with all."""
        base = [*units([1.0] * 12, "both"), *units([0.0] * 30, "base")]
        test = [*units([1.0] * 12, "both"), *units([0.0] * 30, "test")]
        outcome = compare(base, test)
        assert (outcome.paired, outcome.common, outcome.primary.n) == (False, 12, 42)
        assert outcome.same_count == 12

    def test_under_ten_nothing_is_said(self) -> None:
        """No interval, no p, no verdict, however large the difference."""
        few = FEWEST - 1
        for test in (units([1.0] * few), units([1.0] * few, "other"), []):
            row = compare(units([0.0] * few), test).primary
            assert (row.comparison, row.adjusted, row.needed, row.verdict) == (None, None, None, "few")

    def test_what_is_needed_grows_with_the_square_of_what_is_looked_for(self) -> None:
        """A difference half as large needs four times the traces; rounded up to two digits."""
        chance = random.Random(2)
        base, test = ([chance.random() for _ in range(100)] for _ in range(2))
        needed = {
            target: compare(units(base), units(test, "other"), target).primary.needed
            for target in (0.05, 0.1)
        }
        assert needed[0.05] == pytest.approx(4 * (needed[0.1] or 0), rel=0.06)
        assert (needed[0.05] or 0) % 10 == 0

    def test_with_enough_traces_no_difference_is_no_longer_open(self) -> None:
        """`open` says wait, `none` says decide; neither says equal."""
        chance = random.Random(3)
        before = [chance.random() for _ in range(400)]
        after = [value + chance.choice((-0.01, 0.01)) for value in before]
        assert compare(units(before), units(after)).primary.verdict == "none"
        assert compare(units(before[:40]), units(after[:40], "other")).primary.verdict == "open"

    def test_guardrails_are_corrected_together_and_the_primary_metric_is_not(self) -> None:
        """Holm over the guardrails, of which only those that have values are shown."""
        chance = random.Random(4)

        def side(gain: float) -> list[Unit]:
            rows = []
            for at in range(60):
                values = {name: chance.gauss(0.5 + gain, 0.2) for name in ("recall", "f1", "precision")}
                rows.append(Unit(f"t{at}", f"{gain}{at}", "", "", values))
            return rows

        outcome = compare(side(0.0), side(0.06))
        assert [row.name for row in outcome.metrics] == ["recall", "f1", "precision"]
        first, *guardrails = outcome.metrics
        assert first.comparison is not None
        assert first.adjusted == first.comparison.p
        ps = sorted(row.comparison.p for row in guardrails if row.comparison)
        assert sorted(row.adjusted or 0 for row in guardrails) == pytest.approx(
            [min(1, 2 * ps[0]), max(min(1, 2 * ps[0]), ps[1])]
        )

    def test_segments_are_compared_each_for_itself(self) -> None:
        """The largest first, small ones marked; one segment alone is the whole and not repeated."""
        base = [*units([0.0, 1.0] * 20, "x", index="large"), *units([0.5] * 5, "y", index="small")]
        test = [*units([1.0, 1.0] * 20, "x", index="large"), *units([0.5] * 5, "y", index="small")]
        outcome = compare(base, test)
        assert [(row.name, row.n, row.few, row.verdict) for row in outcome.segments["index"]] == [
            ("large", 40, False, "better"),
            ("small", 5, True, "few"),
        ]
        assert outcome.segments["span_name"] == []

    def test_questions_are_listed_by_how_much_they_changed(self) -> None:
        """The one that lost most first among the worse, with the newest trace of each side."""
        new, old = (
            Unit(name, "q", "", "", {"recall": value}) for name, value in (("new", 1.0), ("old", 0.8))
        )
        base = [new, old, *units([1.0, 0.2])]
        test = [Unit("there", "q", "", "", {"recall": 0.0}), *units([0.5, 0.9])]
        outcome = compare(base, test)
        assert [(one.task, one.base_trace, one.test_trace) for one in outcome.worse] == [
            ("q", "new", "there"),
            ("q0", "q0", "q0"),
        ]
        assert [(one.task, one.difference) for one in outcome.better] == [("q1", pytest.approx(0.7))]


class TestBars:
    def test_the_axis_is_as_long_as_the_widest_interval(self) -> None:
        """One scale for all rows, of round numbers."""
        assert [bars.scale(reach) for reach in (0.0, 0.05, 0.051, 0.4, 0.7, 2.0)] == [
            0.05,
            0.05,
            0.1,
            0.5,
            1.0,
            1.0,
        ]

    def test_zero_is_in_the_middle_and_what_reaches_beyond_is_clipped(self) -> None:
        """An interval that holds zero crosses the axis."""
        drawn = bars.difference_bar(0.0, -0.5, 0.05, 0.1, "none")
        middle = bars.WIDTH / 2
        assert f'cx="{middle}"' in drawn
        assert f"M2.0 8.0H{2 + 0.75 * (bars.WIDTH - 4)}" in drawn
        assert "style" not in drawn


class TestView:
    def fill(self, site: Site, n: int, base: Judgement = HALF, test: Judgement = ALL, **more: Any) -> None:
        """The same `n` questions of both variants; the base is older."""
        for number in range(n):
            for flag, judged, minutes in (("old", base, 3000.0), ("new", test, 60.0)):
                metadata = {"feature_flag": flag, "env": "prod"}
                site.put(f"Question {number}?", ["text"], judged, minutes=minutes, metadata=metadata, **more)

    def test_two_variants_are_compared_without_being_named(self, site: Site) -> None:
        """The older one is the base; the answer, its numbers and the questions stand on the page."""
        self.fill(site, 12)
        said = plain(site.get("/changes"))
        assert "Recall is 50.0 points better with new" in said
        assert "Paired: 12 questions were asked of both variants" in said
        assert "12 and 12 traces count" in said
        assert "Better 12" in said
        assert "Worse 0" in said
        assert "Question 3?" in said

    def test_the_variants_can_be_swapped_and_named(self, site: Site) -> None:
        """`base` and `test` are parameters, so the view is a link."""
        self.fill(site, 12)
        assert "Recall is 50.0 points worse with old" in plain(site.get("/changes?base=new&test=old"))
        assert "the same variant" in plain(site.get("/changes?base=new&test=new"))

    def test_equal_variants_are_not_called_equal(self, site: Site) -> None:
        """What was not shown is said, with what would have been seen."""
        self.fill(site, 12, HALF, HALF)
        said = plain(site.get("/changes"))
        assert "No difference in recall shown" in said
        assert "That is not “equal”" in said

    def test_too_little_is_said_with_what_is_needed(self, site: Site) -> None:
        """Under ten, no figure but the counts."""
        self.fill(site, 3)
        said = plain(site.get("/changes"))
        assert "Not enough data yet" in said
        assert "at least 10 evaluated traces: old has 3, new has 3" in said

    def test_without_a_second_variant_it_says_how_to_get_one(self, site: Site) -> None:
        """An empty store, and one variant alone."""
        assert "No variant was evaluated in this period" in plain(site.get("/changes"))
        site.put("Q", ["text"], ALL, metadata={"feature_flag": "<i>one</i>"})
        page = site.get("/changes")
        assert "Only one variant was seen in this period: <i>one</i>" in plain(page).replace("&lt;", "<")
        assert "<i>" not in page
        assert "feature_flag" in page

    def test_traces_without_a_flag_are_a_variant(self, site: Site) -> None:
        """What says nothing can be the base."""
        for number in range(10):
            site.put(f"Question {number}?", ["text"], HALF, minutes=900)
            site.put(f"Question {number}?", ["text"], ALL, metadata={"feature_flag": "new"})
        for path in ("/changes?base=(none)&test=new", "/changes"):
            assert "Recall is 50.0 points better with new" in plain(site.get(path))
        # Not where two variants have names.
        site.put("Q", ["text"], ALL, metadata={"feature_flag": "third"}, minutes=800)
        assert "third has 1, new has 10" in plain(site.get("/changes"))

    def test_what_is_in_no_average_is_in_no_comparison(self, site: Site) -> None:
        """Cut and failed ones are counted, and not compared."""
        self.fill(site, 10)
        marked = {"feature_flag": "new", "seer_otel.passages_cut": 1}
        site.put("Cut", ["text"], NONE, metadata=marked)
        site.put("Broken", ["text"], "it broke", metadata={"feature_flag": "new"})
        said = plain(site.get("/changes"))
        assert "10 and 10 traces count, judged by script 3; 2 incomplete or failed ones do not" in said
        assert "Recall is 50.0 points better" in said

    def test_filters_choose_what_is_compared(self, site: Site) -> None:
        """Environment, period and metadata; a feature flag in the address chooses nothing here."""
        self.fill(site, 10)
        assert "10 and 10 traces count" in plain(site.get("/changes?env=prod&feature_flag=old"))
        assert "No variant" in plain(site.get("/changes?env=staging"))
        assert "Only one variant was seen in this period: new" in plain(site.get("/changes?range=24h"))
        assert "has 0" in plain(site.get("/changes?meta.env=elsewhere"))

    def test_labels_are_guardrails_where_there_are_any(self, site: Site) -> None:
        """GT rows only then."""
        self.fill(site, 10)
        assert "GT recall" not in site.get("/changes")
        self.fill(site, 10, ground_truth={"gold_doc_ids": ["a"]})
        assert "GT recall" in site.get("/changes")

    def test_what_users_wrote_is_text(self, site: Site) -> None:
        """Questions, variants, indices and names of spans."""
        for number in range(10):
            for flag, judged in ((EVIL + "1", HALF), (EVIL + "2", ALL)):
                metadata = {"feature_flag": flag, "index": f"{EVIL}{number % 2}"}
                site.put(
                    f"{EVIL} {number}", ["text"], judged, metadata=metadata, span_name=f"{EVIL}{number % 2}"
                )
        page = site.get("/changes")
        assert "<script>alert" not in page
        assert "<b>" not in page
        assert "By index" in page

    def test_bad_parameters_are_no_failure(self, site: Site) -> None:
        """They choose nothing."""
        self.fill(site, 10)
        for query in (
            "base=nope&test=nope",
            "target=0",
            "target=abc",
            "base=" + "x" * 199,
            "base=%00",
            "test=%F0%9F",
        ):
            assert "Recall is 50.0 points better with new" in plain(site.get(f"/changes?{query}"))
