"""The view of labels against the evaluator: figures, disagreements, files in and out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.evaluation.statistics import Interval, Sums
from seer_otel.local.pages import importing
from seer_otel.local.pages.reading import disagreements, exporting
from seer_otel.local.pages.reading.disagreements import Cited, disagree
from seer_otel.local.pages.reading.labelled import corrected, reading
from seer_otel.local.schema import LoggedPassage

from .judged import Judged as Site
from .judged import judgement, serving
from .test_trace import EVIL, plain

CONTEXT = [
    {"text": "text of a", "id": "a"},
    {"text": "text of b", "id": "b"},
    {"text": "text of c", "id": "c"},
]
LINE = {
    "task": "What is ML?",
    "context": [{"text": "ML is AI...", "id": "doc1"}],
    "ground_truth": {"gold_doc_ids": ["doc1"]},
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving(tmp_path / "data") as running:
        yield running


def put(site: Site, gold: list[str], *cited: int, task: str = "Q", dataset: str = "", **more: object) -> str:
    """A labelled event with the documents a, b and c."""
    metadata = {"dataset": dataset} if dataset else {}
    truth = {"gold_doc_ids": gold}
    judged = judgement([("a", bool(cited), tuple(cited))])
    return site.put(task, CONTEXT, judged, ground_truth=truth, **{"metadata": metadata, **more})  # type: ignore[arg-type]


def paste(site: Site, lines: str) -> httpx.Response:
    """Send the form with pasted lines, and with the empty file that browsers send along."""
    parts = (
        'Content-Disposition: form-data; name="file"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n',
        'Content-Disposition: form-data; name="dataset"\r\n\r\n',
        f'Content-Disposition: form-data; name="lines"\r\n\r\n{lines}',
    )
    body = "".join(f"--limit\r\n{part}\r\n" for part in parts) + "--limit--\r\n"
    headers = {"Origin": site.url, "Content-Type": "multipart/form-data; boundary=limit"}
    return site.post("/accuracy/import", headers, content=body.encode())


class TestDisagreeing:
    def test_documents_disagree_and_not_passages(self) -> None:
        """A document of which one passage is cited is cited, and each document is named once."""
        passages = [
            LoggedPassage("1", "a"),
            LoggedPassage("2", "a"),
            LoggedPassage("3", "b"),
            LoggedPassage("4", "b"),
        ]
        assert disagree(passages, ["a"], [1]) == ((), ())
        assert disagree(passages, ["a"], [2, 3]) == ((Cited(3, "b", "3"),), (Cited(1, "a", "1"),))

    def test_gold_that_was_not_retrieved_is_no_disagreement(self) -> None:
        """The evaluator cannot cite what is not there."""
        assert disagree([LoggedPassage("1", "a")], ["a", "z"], [0]) == ((), ())

    def test_passages_without_an_id_are_documents_of_their_own(self) -> None:
        """Each that is cited is one too many, as no label can name it."""
        found, missed = disagree(
            [LoggedPassage("1"), LoggedPassage("2"), LoggedPassage("3", "")], ["a"], [0, 1, 2]
        )
        assert [one.rank for one in found] == [1, 2, 3]
        assert missed == ()


class TestReading:
    @pytest.mark.parametrize(
        ("share", "words"),
        [(1.0, "high"), (0.901, "high"), (0.9, "moderate"), (0.7, "moderate"), (0.699, "low"), (0.0, "low")],
    )
    def test_the_guide_has_three_parts(self, share: float, words: str) -> None:
        """Over 90 %, 70 to 90 %, under 70 %."""
        assert reading(share) == words


class TestCorrecting:
    def test_a_mean_is_moved_by_the_error_that_labels_show(self) -> None:
        """By hand: .8 without labels, labels .1 below the estimate; the variances add up."""
        without = Sums.of([0.7, 0.9] * 50)
        errors = Sums.of([-0.2, 0.0] * 10)
        found = corrected("recall", without, errors)
        assert found is not None
        assert (found.estimate, found.error, found.mean) == pytest.approx((0.8, -0.1, 0.7))
        half = 1.96 * (0.01 * 100 / 99 / 100 + 0.01 * 20 / 19 / 20) ** 0.5
        assert (found.interval.low, found.interval.high) == pytest.approx((0.7 - half, 0.7 + half))

    def test_too_little_is_not_corrected(self) -> None:
        """Under ten on either side there is no corrected mean."""
        ten, nine = Sums.of([0.5] * 10), Sums.of([0.5] * 9)
        assert corrected("recall", nine, ten) is None
        assert corrected("recall", ten, nine) is None

    def test_an_interval_stays_a_share(self) -> None:
        """It is cut at 0 and 1."""
        found = corrected("recall", Sums.of([1.0, 0.9] * 5), Sums.of([0.2, -0.2] * 5))
        assert found is not None
        assert found.interval.high == 1.0
        assert isinstance(found.interval, Interval)


class TestExporting:
    @pytest.mark.parametrize(
        "cell",
        [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            " =1",
            "|cmd",
            "%x",
            "\r=1",
            "\n=1",
            "\uff1d1",
            "\N{NO-BREAK SPACE}=1",
        ],
    )
    def test_no_cell_is_a_formula(self, cell: str) -> None:
        """What a spreadsheet could run begins with an apostrophe."""
        assert exporting.harmless(cell) == "'" + cell

    @pytest.mark.parametrize("cell", ["", "plain", "1=1", "a-b", "'quoted"])
    def test_other_cells_stay_as_they_are(self, cell: str) -> None:
        """Nothing is added where nothing could run."""
        assert exporting.harmless(cell) == cell

    @given(st.text(st.characters(exclude_categories=("Cs",)), max_size=40), st.text(max_size=5))
    def test_any_text_comes_back(self, text: str, name: str) -> None:
        """Whatever stands in it, a line of CSV is read again as what was written, and JSON is one line."""
        name = name.encode("utf-8", "replace").decode()
        one = disagreements.Disagreement("t", text, "", "", None, 0.5, None, (Cited(1, name, text),), ())
        head, row = csv.reader(io.StringIO("".join(exporting.comma_separated([one], "e")), newline=""))
        assert tuple(head) == exporting.COLUMNS
        assert (row[1], row[7]) == (exporting.harmless(text), exporting.harmless(text))
        [line] = exporting.json_lines([one], "e")
        assert line.count("\n") == 1
        assert json.loads(line)["task"] == text


class TestView:
    def test_the_seeds_two_scenarios_stand_on_the_page(self, site: Site) -> None:
        """Perfect match, and one false positive: GT recall 100 %, and the means of the evaluator's figures."""
        for name, cited in (("first", (0, 1)), ("second", (0, 2))):
            put(site, ["a", "b"], *cited, task=name, dataset=name)
        said = plain(site.get("/accuracy"))
        assert "GT recall 100.0%" in said
        assert "GT precision 66.7%" in said
        assert "Evaluator precision 75.0%" in said
        assert "Evaluator recall 75.0%" in said
        assert "Exact match 50.0%" in said
        assert "gold documents in the context" in said
        assert "Too few labels to say" in said

    def test_disagreements_are_listed_the_worst_first_with_links(self, site: Site) -> None:
        """What is cited but not gold, what is gold but not cited; what agrees is not there."""
        put(site, ["a"], 0, task="no quarrel")
        half = put(site, ["a", "b"], 0, task="half")
        worst = put(site, ["a"], 1, 2, task="worst")
        page = site.get("/accuracy")
        said = plain(page)
        assert "no quarrel" not in said
        assert said.index("worst") < said.index("half")
        assert f"/traces/{half}" in page
        assert f"/traces/{worst}" in page
        assert "1 to 2 of 2" in said
        only = plain(site.get("/accuracy?kind=cited"))
        assert "worst" in only
        assert "half" not in only

    def test_there_are_pages_of_disagreements(self, site: Site) -> None:
        """Each shows the next ones."""
        for number in range(disagreements.PER_PAGE + 1):
            put(site, ["a"], 1, task=f"Question {number:02}", minutes=number)
        first, second = plain(site.get("/accuracy")), plain(site.get("/accuracy?page=2"))
        assert "Question 24" in first
        assert "Question 25" not in first
        assert "Question 25" in second
        assert (
            f"{disagreements.PER_PAGE + 1} to {disagreements.PER_PAGE + 1} of {disagreements.PER_PAGE + 1}"
            in second
        )

    def test_intervals_come_with_enough_labels(self, site: Site) -> None:
        """Under ten none; then the t interval, and Wilson's for exact match; the guide says where one is."""
        for _ in range(12):
            put(site, ["a"], 0)
        said = plain(site.get("/accuracy"))
        # Wilson, 12 of 12.
        assert "Exact match 100.0% 95% interval 75.8\N{EN DASH}100.0%" in said
        assert "F1 is 100.0%" in said
        assert "over 90%" in said

    def test_datasets_have_figures_of_their_own(self, site: Site) -> None:
        """By the metadata key `dataset`; a link chooses one."""
        put(site, ["a"], 0, dataset="good")
        put(site, ["a"], 1, dataset="bad set")
        page = site.get("/accuracy")
        assert "meta.dataset=bad+set" in page
        said = plain(site.get("/accuracy?meta.dataset=bad+set"))
        assert "Exact match 0.0%" in said

    def test_incomplete_ones_are_in_no_average(self, site: Site) -> None:
        """They are counted, and listed with their mark."""
        put(site, ["a"], 0)
        put(site, ["a"], 1, task="cut", metadata={"seer_otel.texts_cut": 1})
        said = plain(site.get("/accuracy"))
        assert "Exact match 100.0%" in said
        assert "1 incomplete, in no average" in said
        assert "cut in no average" in said

    def test_nothing_not_available_counts_as_zero(self, site: Site) -> None:
        """No gold in context: no recall; citing nothing there is right."""
        put(site, ["z"], task="none there")
        said = plain(site.get("/accuracy"))
        assert "Evaluator recall \N{EN DASH} n 0" in said
        assert "Exact match 100.0%" in said
        assert "Evaluator precision 100.0%" in said

    def test_labels_correct_the_mean_of_the_others(self, site: Site) -> None:
        """Ten with and ten without labels are enough; the page says when it holds."""
        for number in range(10):
            put(site, ["a"], 0, task=f"labelled {number}")
            site.put(f"other {number}", CONTEXT, judgement([("a", True, (0,)), ("b", number % 2 == 0, (1,))]))
        said = plain(site.get("/accuracy"))
        assert "Prediction-powered" in said
        assert "Recall 75.0% ±0.0 75.0%" in said

    def test_an_empty_store_says_how_to_begin(self, site: Site) -> None:
        """And offers the form."""
        page = site.get("/accuracy")
        assert "No labelled trace was evaluated in this period" in plain(page)
        assert 'enctype="multipart/form-data"' in page

    def test_what_users_wrote_is_text(self, site: Site) -> None:
        """Questions, ids, passages and names of datasets."""
        context = [{"text": EVIL, "id": EVIL}, {"text": EVIL, "id": "x"}]
        judged, truth = judgement([("a", True, (0,))]), {"gold_doc_ids": ["x"]}
        site.put(EVIL, context, judged, ground_truth=truth, metadata={"dataset": EVIL})
        page = site.get("/accuracy")
        assert "<script>alert" not in page
        assert "<b>" not in page

    def test_a_page_that_cannot_be_meant_is_refused(self, site: Site) -> None:
        """With a page that says so, not with a failure."""
        for page in ("0", "-1", "x", "1001", "9" * 50, "1.5", "\N{ARABIC-INDIC DIGIT THREE}"):
            assert "page is a number" in site.get(f"/accuracy?page={page}", status=400)

    def test_other_bad_parameters_choose_nothing(self, site: Site) -> None:
        """They are as if absent."""
        put(site, ["a"], 1)
        for query in ("kind=x", "imported=x", "imported=-1", "imported=" + "9" * 150, "page=999"):
            assert "Exact match 0.0%" in plain(site.get(f"/accuracy?{query}"))


class TestFiles:
    def test_disagreements_are_exported_as_json_lines(self, site: Site) -> None:
        """One line a trace, with what was cited and what was gold, and who judged."""
        name = put(site, ["a", "b"], 0, 2, task="=HYPERLINK()", dataset="set")
        response = site.fetch("/accuracy/disagreements.jsonl")
        assert response.headers["content-disposition"] == 'attachment; filename="disagreements.jsonl"'
        [line] = response.text.splitlines()
        found = json.loads(line)
        assert (found["trace"], found["task"], found["dataset"]) == (name, "=HYPERLINK()", "set")
        assert found["evaluator"] == "script/3"
        assert found["cited_not_gold"] == [{"rank": 3, "id": "c", "text": "text of c"}]
        assert found["gold_not_cited"] == [{"rank": 2, "id": "b", "text": "text of b"}]
        assert (found["evaluator_precision"], found["evaluator_recall"]) == (0.5, 0.5)

    def test_disagreements_are_exported_as_csv(self, site: Site) -> None:
        """One line a document; no cell is a formula."""
        put(site, ["a", "b"], 0, 2, task="=HYPERLINK()")
        response = site.fetch("/accuracy/disagreements.csv?kind=cited")
        assert response.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(response.text, newline="")))
        assert [(row["kind"], row["document"], row["rank"]) for row in rows] == [
            ("cited, not gold", "c", "3"),
            ("gold, not cited", "b", "2"),
        ]
        assert {row["task"] for row in rows} == {"'=HYPERLINK()"}

    def test_exports_of_nothing_are_files_without_rows(self, site: Site) -> None:
        """An empty store is no failure."""
        site.store_all()
        assert site.fetch("/accuracy/disagreements.jsonl").text == ""
        assert len(site.fetch("/accuracy/disagreements.csv").text.splitlines()) == 1

    def test_a_labelled_file_becomes_events(self, site: Site) -> None:
        """Each line is an event with labels, under the file's name, kept whatever the rate."""
        other = {**LINE, "task": "Who?", "trace_id": "0" * 32, "sample_rate": 0, "created_at": "2001-01-01"}
        lines = json.dumps(LINE) + "\r\n\n" + json.dumps(other)
        response = site.post(
            "/accuracy/import", files={"file": ("my set.jsonl", b"\xef\xbb\xbf" + lines.encode())}
        )
        assert (response.status_code, response.headers["location"]) == (
            303,
            "/accuracy?imported=2&meta.dataset=my+set",
        )
        assert "2 labelled questions are stored" in plain(site.get(response.headers["location"]))
        stored = [record for trace in site.store.traces(10) for record in trace]
        assert {record.event().task for record in stored} == {"What is ML?", "Who?"}
        for record in stored:
            event = record.event()
            assert event.metadata == {"dataset": "my set"}
            assert event.sample_rate == 1.0
            assert event.ground_truth is not None
            assert event.trace_id is None

    def test_the_same_file_twice_is_stored_once(self, site: Site) -> None:
        """A second click changes nothing; another dataset's name makes other events."""
        for _ in range(2):
            site.post("/accuracy/import", files={"file": ("a.jsonl", json.dumps(LINE))})
        assert len(list(site.store.traces(10))) == 1
        site.post("/accuracy/import", files={"file": ("a.jsonl", json.dumps(LINE))}, data={"dataset": "b"})
        assert len(list(site.store.traces(10))) == 2

    def test_lines_can_be_pasted(self, site: Site) -> None:
        """An empty file field, as browsers send it, does not hide them."""
        response = paste(site, json.dumps(LINE))
        assert response.headers["location"] == "/accuracy?imported=1"

    def test_errors_name_line_and_field_and_nothing_is_stored(self, site: Site) -> None:
        """Whatever is wrong; what was pasted is still there to be put right, as text."""
        lines = "\n".join(
            [
                json.dumps(LINE),
                json.dumps({**LINE, "context": [{"text": "x" * 4001}]}),
                "",
                '{"task": "</textarea><script>alert(1)</script>',
                json.dumps({"task": "no labels", "context": []}),
                json.dumps({**LINE, "ground_truth": {"gold_doc_ids": "doc1"}}),
                "[" * 100_000,
            ]
        )
        response = paste(site, lines)
        assert response.status_code == 422
        said = plain(response.text)
        assert "Nothing was imported. 5 lines are not what is expected" in said
        for words in ("2, context[0].text", "4:", "5, ground_truth", "6, ground_truth.gold_doc_ids"):
            assert f"Line {words}" in said
        assert "Line 7: it is nested more than" in said
        assert "<script>alert" not in response.text
        assert list(site.store.traces(10)) == []

    def test_many_errors_are_cut(self, site: Site) -> None:
        """The first ones are enough to see what is wrong."""
        response = site.post("/accuracy/import", files={"file": ("a", b"x\n" * 1_000)})
        assert f"and {1_000 - importing.MAX_PROBLEMS} more" in plain(response.text)

    def test_what_is_no_such_file_is_refused(self, site: Site) -> None:
        """Empty, too large, or not text."""
        large = b"x" * (importing.MAX_BYTES + 1)
        for content, status in ((b"", 422), (b"\n\n", 422), (large, 413), (b"\xff\xfe\x00", 422)):
            response = site.post("/accuracy/import", files={"file": ("a.jsonl", content)})
            assert response.status_code == status
            assert "Nothing was imported" in response.text

    def test_too_many_lines_are_refused(self, site: Site) -> None:
        """Whatever their length."""
        line = json.dumps({"task": "q", "context": [], "ground_truth": {"gold_doc_ids": []}}) + "\n"
        response = site.post("/accuracy/import", files={"file": ("a", line * (importing.MAX_LINES + 1))})
        assert response.status_code == 413
        assert list(site.store.traces(1)) == []

    def test_a_broken_form_is_no_failure(self, site: Site) -> None:
        """Cut, without a boundary, or something else altogether."""
        form, nameless = "multipart/form-data", b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--\r\n"
        for content_type, body, status in (
            ("application/json", b"{}", 415),
            (form, b"--x", 400),
            (f"{form}; boundary=x", b"--x\r\nbroken", 422),
            (f"{form}; boundary=x", b"nonsense", 400),
            (f"{form}; boundary=x", nameless, 400),
        ):
            headers = {"Origin": site.url, "Content-Type": content_type}
            assert site.post("/accuracy/import", headers, content=body).status_code == status

    def test_other_sites_cannot_import(self, site: Site) -> None:
        """A form of another site stores nothing."""
        for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            response = site.post("/accuracy/import", headers, files={"file": ("a", json.dumps(LINE))})
            assert response.status_code == 403
        assert list(site.store.traces(10)) == []
