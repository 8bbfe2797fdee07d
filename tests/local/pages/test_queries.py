from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from seer_otel.local.storage.tables import State

from .filling import NOW

if TYPE_CHECKING:
    from .conftest import Site

HOUR = timedelta(hours=1)
HOSTILE = "<script>alert(1)</script>\"'&"


def questions(page: str) -> list[str]:
    """The questions of the list, in order."""
    found = re.findall(r'<td class="question"><a[^>]*>(.*?)</a>', page, re.DOTALL)
    return [html.unescape(text) for text in found]


def cells(page: str, question: str) -> list[str]:
    """The texts of a question's row, without the question."""
    row = next(row for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL) if f">{question}<" in row)
    return [
        " ".join(re.sub("<[^>]*>", " ", cell).split()) for cell in re.findall("<td.*?</td>", row, re.DOTALL)
    ][1:]


@pytest.fixture
def five(site: Site) -> Site:
    """Five traces of the last hours."""
    trace = site.filling.trace
    figures = {"recall": 0.5, "precision": 0.2, "f1": 0.3, "sufficiency": 0.4}
    trace("middling cat", NOW - HOUR, figures, present=1, cited=2)
    trace(
        "good cats",
        NOW - 2 * HOUR,
        figures | {"recall": 1.0, "sufficiency": 0.9, "gt_recall": 1.0},
        passages=3,
    )
    trace("not looked at", NOW - 3 * HOUR, state=State.FAILED)
    trace("nothing found", NOW - 4 * HOUR, {"recall": 0.0}, passages=0, cited=0, present=0)
    trace("half seen", NOW - 5 * HOUR, figures | {"sufficiency": 0.1}, left_out="seer_otel.passages_cut")
    trace("nobody asked for this", NOW - HOUR, state=State.SAMPLED_OUT)
    site.filling.write(site.engine)
    return site


def test_the_worst_first(five: Site) -> None:
    """By sufficiency, or recall where there is none; what was not evaluated comes last, what is not kept never."""
    assert questions(five.get("/queries")) == [
        "nothing found", "half seen", "middling cat", "good cats", "not looked at",
    ]  # fmt: skip


def test_a_row(five: Site) -> None:
    """Time, requirements present, passages cited, figures, labels and marks; a dash for what is not available."""
    page = five.get("/queries")
    dash = "\N{EN DASH}"
    assert cells(page, "middling cat") == [
        "1 Dec 2026, 08:30",
        "1 of 2",
        "2 of 10",
        "50%",
        "20%",
        "40%",
        dash,
        "",
    ]
    assert cells(page, "good cats")[-2:] == ["100%", "labelled"]
    assert cells(page, "nothing found")[1:4] == ["0 of 2", "0 of 0", "0%"]
    assert cells(page, "nothing found")[-1] == "empty context"
    assert cells(page, "not looked at")[1:] == [
        dash,
        f"{dash} of 10",
        dash,
        dash,
        dash,
        dash,
        "not evaluated",
    ]
    assert cells(page, "half seen")[-1] == "passages cut"


def test_labels_have_a_column_where_there_are_any(site: Site) -> None:
    """Without a label there is no column for them."""
    site.filling.trace("question", NOW - HOUR, {"recall": 1.0})
    site.filling.write(site.engine)
    assert "GT recall" not in site.get("/queries")


@pytest.mark.parametrize(
    ("sort", "first", "last"),
    [
        ("-when", "middling cat", "half seen"),
        ("when", "half seen", "middling cat"),
        ("-recall", "good cats", "not looked at"),
        ("passages", "nothing found", "half seen"),
        ("-gt_recall", "good cats", "half seen"),
    ],
)
def test_sorting(five: Site, sort: str, first: str, last: str) -> None:
    """By any column, up and down; what has no value comes last both ways."""
    page = five.get(f"/queries?sort={sort}")
    assert (questions(page)[0], questions(page)[-1]) == (first, last)
    assert f'aria-sort="{"descending" if sort.startswith("-") else "ascending"}"' in page


@pytest.mark.parametrize(
    ("flag", "found"),
    [
        ("missing", {"nothing found", "half seen", "middling cat"}),
        ("empty", {"nothing found"}),
        ("incomplete", {"half seen"}),
        ("failed", {"not looked at"}),
        ("labelled", {"good cats"}),
    ],
)
def test_marks(five: Site, flag: str, found: set[str]) -> None:
    """The list can be narrowed to what bears a mark."""
    assert set(questions(five.get(f"/queries?flag={flag}"))) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cat", {"middling cat", "good cats"}),
        ("middling CAT", {"middling cat"}),
        ("cats", {"good cats"}),
        ("dog", set()),
        ('"cats', {"good cats"}),
        ("cats OR nothing", set()),
        ("NEAR(cat)", set()),
        ("task:cats", set()),
        ("*", set()),
        ("' OR 1=1 --", set()),
    ],
)
def test_searching(five: Site, text: str, found: set[str]) -> None:
    """All words must be there, the last one as a beginning; nothing in them is an operator."""
    assert set(questions(five.client.get("/queries", params={"q": text}).text)) == found


def test_nothing_found(five: Site) -> None:
    """It says what was looked for, and leads back."""
    page = five.get("/queries?q=dog&flag=empty&env=prod")
    assert "No query with these words and this mark in this period with these filters." in page
    assert 'href="/queries?env=prod"' in page


def test_pages(site: Site) -> None:
    """Fifty rows a page, in one order over all pages; links keep search, mark, order and filters."""
    for number in range(120):
        site.filling.trace(f"question {number:03}", NOW - HOUR, {"recall": number / 200})
    site.filling.write(site.engine)
    pages = [site.get(f"/queries?q=question&sort=recall&page={number}") for number in (1, 2, 3)]
    assert [question for page in pages for question in questions(page)] == [
        f"question {at:03}" for at in range(120)
    ]
    assert "51 to 100 of 120" in pages[1]
    assert re.findall(
        r'rel="(\w+)" href="([^"]*)"', html.unescape(pages[1]).replace('href="/static', "")
    ) == [
        ("prev", "/queries?q=question&sort=recall"),
        ("next", "/queries?q=question&sort=recall&page=3"),
    ]
    assert 'rel="next"' not in pages[2]
    assert questions(site.get("/queries?page=4")) == []


@pytest.mark.parametrize("page", ["0", "-1", "x", "201", "99999999999999999999", "٣"])
def test_bad_pages(five: Site, page: str) -> None:
    """A page that cannot be is a 400 page."""
    assert "This address cannot be meant" in five.client.get("/queries", params={"page": page}).text


def test_odd_parameters(five: Site) -> None:
    """An unknown order or mark is none."""
    assert len(questions(five.get("/queries?sort=id%3B--&flag=x"))) == 5
    five.get("/queries?q=" + "x" * 300, 400)


def test_user_text_is_escaped(site: Site) -> None:
    """A question, a mark and a search are text, whatever they hold; the row leads to the trace."""
    number = site.filling.trace(HOSTILE, NOW - HOUR, {"recall": 1.0}, left_out="<script>alert(2)")
    site.filling.write(site.engine)
    response = site.client.get("/queries", params={"q": "script", "sort": HOSTILE, "flag": HOSTILE})
    assert "<script>alert" not in response.text
    assert questions(response.text) == [HOSTILE]
    assert f'href="/traces/{number:032x}?' in response.text
    assert "<script>alert" not in site.client.get("/queries", params={"q": HOSTILE}).text


def test_a_blank_question_can_be_followed(site: Site) -> None:
    """The link has a text even then."""
    site.filling.trace(" ", NOW - HOUR, {"recall": 1.0})
    site.filling.write(site.engine)
    assert questions(site.get("/queries")) == ["(blank)"]


def test_filters(full_site: Site) -> None:
    """The filters of the bar narrow the list, and stand in each link to a trace."""
    page = full_site.get("/queries?index=docs-v1&meta.model=small")
    assert len(questions(page)) == 50
    assert re.search(r'href="/traces/[0-9a-f]{32}\?index=docs-v1&amp;meta.model=small"', page)
    assert questions(full_site.get("/queries?index=docs-v1&meta.index=docs-v2")) == []
