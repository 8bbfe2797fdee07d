"""The view of one trace, and what it computes."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from seer_otel.cli import main
from seer_otel.local.pages import links
from seer_otel.local.pages.reading import hops
from seer_otel.local.pages.reading.highlight import HEAD, Highlighter
from seer_otel.local.pages.reading.traces import MAX_HOPS, Hop, Judged, Requirement
from seer_otel.local.schema import Labels, LoggedEvent, LoggedPassage
from seer_otel.local.storage.tables import State

from ..conftest import Serving
from .judged import TRACE, Script, judgement, serving
from .judged import Judged as Site

EVIL = "<script>alert(1)</script> \" onmouseover='x' & <b>bold</b> {{ 1234*5 }}"


def hop(
    number: int,
    ids: list[str | None],
    requirements: list[tuple[str, bool, tuple[int, ...]]] | None = None,
    *,
    gold: list[str] | None = None,
    error: str | None = None,
    ranks: list[int] | None = None,
    final: bool = False,
) -> Hop:
    """A retrieval of passages with these ids."""
    passages: list[str | LoggedPassage] = [
        LoggedPassage(f"text of {name}", name, rank=ranks[at] if ranks else None)
        for at, name in enumerate(ids)
    ]
    event = LoggedEvent("q", passages, ground_truth=None if gold is None else Labels(gold))
    judged = {}
    if requirements is not None:
        made = tuple(Requirement(*one) for one in requirements)
        cited = frozenset(position for one in made for position in one.citations)
        judged["task"] = Judged(None, None, None, None, None, 1.0, error, cited, made)
    return Hop(number, f"rec_{number}", "", "", State.JUDGED, event, final, judged)


def plain(page: str) -> str:
    """The text of a page, white space as one space."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving(tmp_path / "data", "https://ui.example/t/{trace_id}?x=1") as running:
        yield running


class TestHighlighting:
    def test_words_of_the_query_are_marked_in_any_form_and_case(self) -> None:
        """A word is marked where it has a stem in common with a word of the query that says something."""
        shown = Highlighter(["Who retires in the city?"])("RETIRED people who like cities.")
        assert shown.head == "<mark>RETIRED</mark> people who like <mark>cities</mark>."

    def test_what_stands_in_a_text_stays_text(self) -> None:
        """HTML in a passage is escaped, within marks, too."""
        shown = Highlighter(["script bold"])(EVIL)
        assert "<script" not in shown.head
        assert "&lt;<mark>script</mark>&gt;" in shown.head
        assert html.unescape(re.sub("</?mark>", "", shown.head)) == EVIL

    def test_a_long_text_is_shown_in_two_parts(self) -> None:
        """The beginning ends at a space, nothing is lost, and what the rest holds is counted."""
        text = "word " * 400 + "needle end"
        shown = Highlighter(["needle"])(text)
        assert len(shown.head) <= HEAD
        assert re.sub("</?mark>", "", shown.head + shown.rest) == text
        assert (shown.left, shown.found) == (len(text) - len(shown.head), 1)

    def test_a_text_a_little_too_long_is_shown_whole(self) -> None:
        """Nobody must open a few more words."""
        assert Highlighter([])("x" * (HEAD + 10)).rest == ""


class TestPassages:
    def test_the_order_is_that_of_ranks_where_each_passage_has_one(self) -> None:
        """Ranks decide; where one is missing, the order in which they came."""
        ranked = hop(1, ["a", "b", "c"], ranks=[3, 1, 2]).event.passages()
        assert hops.order(ranked) == [1, 2, 0]
        ranked[0].rank = None
        assert hops.order(ranked) == [0, 1, 2]

    def test_citations_follow_their_passage(self) -> None:
        """A citation is a position in the event, and is shown at the rank that this passage has."""
        one = hop(1, ["a", "b", "c"], [("first", True, (0,)), ("second", True, (0, 2))], ranks=[3, 1, 2])
        found = hops.shown(one, [one], Highlighter([]))
        assert [(each.passage.id, each.cited, each.cited_for) for each in found] == [
            ("b", False, ()),
            ("c", True, (2,)),
            ("a", True, (1, 2)),
        ]
        assert hops.ranks(one) == {1: 1, 2: 2, 0: 3}
        assert hops.bloat(one) == hops.Bloat(3, 2, 3, pytest.approx(1 / 3))

    def test_the_same_document_is_pointed_out(self) -> None:
        """Twice in one context, or in another hop: by id, and without an id by text."""
        first, second = hop(1, ["a", "a", None]), hop(2, ["a", None, "b"])
        found = hops.shown(first, [first, second], Highlighter([]))
        assert [(each.same_as, each.hops) for each in found] == [(None, (2,)), (1, (2,)), (None, (2,))]

    def test_gold_that_is_missing_names_the_hops_that_had_it(self) -> None:
        """A gold document that another hop retrieved was lost on the way; one that none has was not found."""
        first, second = hop(1, ["a", "b"], gold=["a"]), hop(2, ["c"], gold=["a", "c", "d", "d"])
        assert hops.missing(second, [first, second]) == [("a", (1,)), ("d", ())]
        assert hops.missing(hop(1, ["a"]), [hop(1, ["a"])]) == []

    def test_nothing_is_said_of_citations_where_nothing_was_evaluated(self) -> None:
        """An error is no judgement that nothing is cited."""
        broken = hop(1, ["a"], [], error="it broke")
        assert [each.cited for each in hops.shown(broken, [broken], Highlighter([]))] == [None]
        assert hops.bloat(broken) is None


class TestGrowth:
    def test_recall_grows_by_what_no_hop_before_had_met(self) -> None:
        """Requirements and gold documents are counted once, over all hops so far."""
        trace = [
            hop(1, ["a"], [("x", True, (0,)), ("y", False, ())], gold=["a", "b"]),
            hop(2, ["c"], [], error="it broke", gold=["a", "b"]),
            hop(3, ["b"], [("x", False, ()), ("y", True, (0,))], gold=["a", "b"]),
        ]
        grown = hops.growth(trace)
        assert [(one.met, one.requirements, one.found, one.gold) for one in grown] == [
            (1, 2, 1, 2),
            (1, 2, 1, 2),
            (2, 2, 2, 2),
        ]
        assert [one.new for one in grown] == [("x",), (), ("y",)]
        assert (grown[0].recall, grown[2].gold_recall) == (0.5, 1.0)

    def test_without_judgements_and_labels_there_is_nothing_to_grow(self) -> None:
        """0 of 0 is not available."""
        [grown] = hops.growth([hop(1, ["a"])])
        assert grown.recall is None
        assert grown.gold_recall is None


class TestLinks:
    def test_the_trace_id_stands_where_the_template_says(self) -> None:
        """And there is no link without a template."""
        assert links.link(links.check("http://h/t/{trace_id}/x"), "ab") == "http://h/t/ab/x"
        assert links.link(None, "ab") is None

    @pytest.mark.parametrize(
        "template",
        ["javascript:alert('{trace_id}')", "//h/{trace_id}", "https://h/t", "https:///{trace_id}", "https://{trace_id}/",
         "data:text/html,{trace_id}", "", "http://[::1/{trace_id}"],
    )  # fmt: skip
    def test_other_templates_are_refused(self, template: str) -> None:
        """Only http and https, a host that does not change, and a place for the id."""
        with pytest.raises(ValueError, match="it must"):
            links.check(template)


class TestView:
    def test_a_trace_shows_what_an_evaluator_found(self, site: Site) -> None:
        """Requirements with their passages, citations, scores, metadata, labels, the evaluator and a link outside."""
        site.put(
            "When was Paris founded, and by whom?",
            [
                {
                    "text": "Paris was founded by the Parisii.",
                    "id": "paris",
                    "score": 0.75,
                    "source": "wiki/Paris",
                },
                {"text": "Lyon is a city.", "id": "lyon", "metadata": {"lang": "en", "deep": {"a": [1]}}},
                "No id here.",
            ],
            judgement([("founded when", False, ()), ("by whom", True, (0,))], sufficiency=0.4),
            trace_id=TRACE,
            span_name="wiki.search",
            is_final_context=True,
            metadata={"env": "prod", "seer_otel.final": "explicit"},
            ground_truth={"gold_doc_ids": ["paris", "history"], "answer": "In the 3rd century BC."},
        )
        page = site.get(f"/traces/{TRACE}")
        said = plain(page)
        for words in (
            "missing founded when",
            "present by whom passage 1",
            "cited for requirement 2",
            "score 0.75",
            "wiki/Paris",
            "missing history",
            "1 of 2 gold documents are in this context",
            "In the 3rd century BC.",
            "k = 1 would have been enough",
            "marked by the application",
            "script 3",
            "as good as the test",
            "env prod",
            'deep {"a": [1]}',
            "Sufficiency 40%",
            "GT recall 50%",
            "Exact match yes",
        ):
            assert words in said, words
        assert "<mark>Paris</mark> was <mark>founded</mark>" in page
        assert f'href="https://ui.example/t/{TRACE}?x=1"' in page

    def test_hops_stand_in_order_of_time_with_the_final_one_open(self, site: Site) -> None:
        """Whatever order they came in; another hop is one link away."""
        first = judgement([("a", True, (0,)), ("b", False, ())])
        both = judgement([("a", True, (0,)), ("b", True, (1,))])
        passages = [{"text": "one", "id": "d1"}, {"text": "two", "id": "d2"}]
        site.put("Q", passages, both, minutes=1, trace_id=TRACE, span_name="last")
        site.put(
            "Q",
            passages[:1],
            first,
            judgement([("sub", False, ())]),
            minutes=2,
            trace_id=TRACE,
            span_name="first",
            subquery="who?",
        )
        said = plain(site.get(f"/traces/{TRACE}"))
        assert said.index("first, 09:28:00") < said.index("last, 09:29:00")
        assert "none is marked, so it is the last by time" in said
        assert "Hop 2: last" in said
        assert "1 of 2" in said
        assert "2 of 2" in said
        assert "also in hop 1" in said
        other = plain(site.get(f"/traces/{TRACE}?hop=1"))
        assert "Hop 1: first" in other
        assert "Against the subquery: who?" in other
        assert "not the final context; the trace's figures are hop 2 's" in other

    def test_what_users_wrote_is_text_wherever_it_stands(self, site: Site) -> None:
        """No field of an event can put an element, an attribute or a template into the page."""
        site.put(
            EVIL,
            [{"text": EVIL, "id": EVIL, "source": EVIL + "2", "metadata": {EVIL: EVIL, "n": {"x": EVIL}}}],
            judgement([(EVIL, False, ()), (EVIL, True, (0,))]),
            judgement([(EVIL, True, (0,))]),
            trace_id=TRACE,
            subquery=EVIL,
            span_name=EVIL,
            metadata={EVIL: EVIL, "seer_otel.partial": EVIL},
            ground_truth={"gold_doc_ids": [EVIL, EVIL + "!"], "answer": EVIL},
        )
        page = site.get(f"/traces/{TRACE}")
        assert "<script>alert" not in page
        assert "<b>" not in page
        assert "6170" not in page
        assert not re.search(r"<[^>]*onmouseover", page)
        assert not re.search(r"\sstyle=|<style|<script(?! src=)", page)

    def test_what_was_not_evaluated_says_so_and_shows_no_figure(self, site: Site) -> None:
        """Waiting, failed and sampled out are three things, and none of them is 0 %."""
        passages = [{"text": "some", "id": "a"}]
        waiting = site.put("Waiting", passages)
        broken = site.put("Broken", passages, "ValueError: no <idea>")
        sampled = site.put("Sampled", passages, sample_rate=0.0)
        assert "waits to be judged" in plain(site.get(f"/traces/{waiting}"))
        assert "Not evaluated: ValueError: no <idea>" in plain(site.get(f"/traces/{broken}"))
        assert "This trace was sampled out (at a rate of 0%)" in plain(site.get(f"/traces/{sampled}"))
        for name in (waiting, broken, sampled):
            said = plain(site.get(f"/traces/{name}"))
            assert "Recall" not in said
            assert "not cited" not in said

    def test_marks_are_said_in_words(self, site: Site) -> None:
        """A context that was cut says what was cut, and that it is in no average."""
        metadata = {"seer_otel.passages_cut": 7, "seer_otel.partial": "flush"}
        name = site.put("Q", ["text"], judgement([("a", True, (0,))]), metadata=metadata)
        said = plain(site.get(f"/traces/{name}"))
        assert "Passages left out, as at most 50 are sent: 7." in said
        assert "before the trace had ended. This trace is shown, and left out of averages." in said
        assert "in no average" in said

    def test_an_empty_context_is_shown_as_what_it_is(self, site: Site) -> None:
        """No passages: the retrieval found nothing."""
        name = site.put("Q", [], judgement([("a", False, ())]))
        said = plain(site.get(f"/traces/{name}"))
        assert "No passages: the context is empty." in said
        assert "Recall 0%" in said

    def test_another_evaluators_figures_are_one_link_away(self, site: Site) -> None:
        """Where the chosen one did not judge this trace, it says who did."""
        name = site.put("Q", ["text"], judgement([("a", True, (0,))]))
        site.put("Other", ["text"], judgement([("a", True, (0,))]), evaluator=Script("other"), minutes=0)
        page = site.get(f"/traces/{name}?evaluator=other/3")
        assert "other 3 did not judge this trace" in plain(page)
        assert "evaluator=script%2F3" in page

    def test_of_too_many_hops_the_final_one_is_still_there(self, site: Site) -> None:
        """What is shown is bounded, and says so."""
        for number in range(MAX_HOPS + 3):
            site.put("Q", ["text"], minutes=200 - number, trace_id=TRACE, span_name=f"hop-{number}")
        said = plain(site.get(f"/traces/{TRACE}"))
        assert f"This trace has {MAX_HOPS + 3} retrievals; the first {MAX_HOPS} are shown" in said
        assert f"Hop {MAX_HOPS}: hop-{MAX_HOPS + 2}" in said

    def test_a_hop_that_is_not_there_is_the_final_one(self, site: Site) -> None:
        """A bad number is no error."""
        name = site.put("Q", ["text"], judgement([("a", True, (0,))]))
        for number in ("0", "2", "-1", "x", "9" * 100, "<b>"):
            assert "final context" in site.get(f"/traces/{name}?hop={number}")

    def test_a_trace_that_is_not_there_is_404(self, site: Site) -> None:
        """Whatever its name."""
        for name in ("nothing", "'; drop table traces", "%00", "a" * 3000, "%EF%BF%BD"):
            assert site.fetch(f"/traces/{name}").status_code == 404


class TestDeletion:
    def test_a_trace_is_deleted_by_its_form(self, site: Site) -> None:
        """Afterwards it is nowhere, and the browser is at the list of queries."""
        name = site.put("Delete me", ["text"], judgement([("a", True, (0,))]))
        kept = site.put("Keep me", ["text"], judgement([("a", True, (0,))]))
        assert f'action="/traces/{name}/delete"' in site.get(f"/traces/{name}")
        response = site.post(f"/traces/{name}/delete")
        assert (response.status_code, response.headers["location"]) == (303, "/queries")
        site.get(f"/traces/{name}", status=404)
        assert "Keep me" in site.get(f"/traces/{kept}")

    def test_what_is_gone_cannot_be_deleted_again(self, site: Site) -> None:
        """It is 404, not a failure."""
        assert site.post(f"/traces/{TRACE}/delete").status_code == 404

    def test_other_sites_cannot_delete(self, site: Site) -> None:
        """A form of another site, or what says nothing about where it comes from, changes nothing."""
        name = site.put("Q", ["text"], judgement([("a", True, (0,))]))
        for headers in (
            {},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": site.url, "Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            assert site.post(f"/traces/{name}/delete", headers).status_code == 403
        site.get(f"/traces/{name}")

    def test_looking_deletes_nothing(self, site: Site) -> None:
        """A link, a prefetch or a crawler only reads."""
        name = site.put("Q", ["text"], judgement([("a", True, (0,))]))
        assert site.fetch(f"/traces/{name}/delete").status_code == 405
        site.get(f"/traces/{name}")


class TestServing:
    """The option of the command, and the page of what the command itself judged."""

    @pytest.mark.e2e
    def test_the_link_is_an_option_of_the_command(self, serving: Serving, tmp_path: Path) -> None:
        """What is sent to the server is judged, and its page links to the trace elsewhere."""
        server = serving(tmp_path / "data", "--trace-url", "https://ui.example/{trace_id}")
        body = {
            "task": "What is in Paris?",
            "context": ["The tower is in Paris."],
            "trace_id": TRACE,
            "sample_rate": 1,
        }
        httpx.post(f"{server.url}/v1/log", json=body).raise_for_status()
        deadline = time.monotonic() + 30
        while "judged by lexical" not in (page := httpx.get(f"{server.url}/traces/{TRACE}").text):
            assert time.monotonic() < deadline, page
            time.sleep(0.05)
        assert f'href="https://ui.example/{TRACE}"' in page
        assert "<mark>Paris</mark>" in page

    def test_a_link_that_is_none_is_refused_at_the_start(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """With the option's name and what it must be."""
        options = ["--data", str(tmp_path), "--port", "0", "--trace-url", "javascript:{trace_id}"]
        assert main(["serve", *options]) == 2
        assert "--trace-url: it must be a URL that begins with http" in capsys.readouterr().err
