"""One trace, changes and accuracy as people use them, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from .judged import TRACE, judgement, serving
from .judged import Judged as Site
from .test_browser import PHONE, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.e2e

VIEWS = [
    f"/traces/{TRACE}",
    f"/traces/{TRACE}?hop=1",
    "/changes",
    "/changes?index=docs-v1",
    "/changes?env=nowhere",
    "/accuracy",
    "/accuracy?env=nowhere",
]
HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
LONG = "A_word_without_any_place_to_break_it_" * 8


def fill(site: Site, hostile: str = "") -> None:
    """A trace of two hops, and two variants over labelled and other questions."""
    context = [
        {
            "text": f"{hostile}About cats. " + "Cats sleep. " * 100,
            "id": f"{hostile}cats",
            "score": 0.9,
            "source": LONG,
        },
        {
            "text": f"Dogs{hostile} bark.",
            "id": LONG,
            "metadata": {f"{hostile}key": {"deep": hostile or LONG}},
        },
        {"text": "Birds."},
    ]
    both = judgement([(f"{hostile}cats", True, (0,)), ("dogs", False, ())], [0, 1], 0.7)
    labels = {
        "ground_truth": {"gold_doc_ids": [f"{hostile}cats", "not there"], "answer": f"{hostile}They sleep."}
    }
    common: dict[str, Any] = {
        "trace_id": TRACE,
        "metadata": {"env": "prod", f"{hostile}k": hostile or LONG},
        **labels,
    }
    task = f"{hostile}What do cats do?"
    site.put(
        task,
        context[:2],
        both,
        both,
        minutes=9,
        subquery=f"{hostile}cats?",
        span_name=f"{hostile}find",
        **common,
    )
    site.put(task, context, both, minutes=8, is_final_context=True, **common)
    for number in range(24):
        for flag, minutes in ((f"{hostile}old", 3000), (f"{hostile}new", 60)):
            found = judgement([("a", True, (0,)), ("b", flag.endswith("new") and number % 3 > 0, (1,))])
            metadata = {
                "feature_flag": flag,
                "index": f"docs-v{number % 2}{hostile}",
                "dataset": f"{hostile}set",
            }
            more = {"ground_truth": {"gold_doc_ids": [LONG]}} if number % 2 else {}
            site.put(
                f"{hostile}Question {number}?",
                context,
                found,
                minutes=minutes + number,
                metadata=metadata,
                **more,
            )
    site.store_all()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("views"), "https://ui.example/{trace_id}") as running:
        fill(running)
        yield running


@pytest.mark.parametrize("path", VIEWS)
@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, PHONE], ids=["light", "dark", "phone"])
def test_axe_finds_nothing_serious(browser: Browser, site: Site, path: str, options: dict[str, Any]) -> None:
    """Light, dark and on a phone, with all that can be opened open; and no page is wider than the screen."""
    from axe_playwright_python.sync_playwright import Axe

    with opened(browser, site, path, **options) as page:
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        found = Axe().run(page).response["violations"]
        serious = [
            f"{one['id']}: {one['nodes'][0]['html']}"
            for one in found
            if one["impact"] in {"serious", "critical"}
        ]
        assert serious == []
        wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= shown


@pytest.mark.parametrize("scripts", [True, False])
def test_a_trace_is_read_and_deleted(browser: Browser, site: Site, scripts: bool) -> None:
    """Hops and citations are links, deletion is a form behind a second click; with and without scripts."""
    name = site.put("Delete me", ["text"], judgement([("a", True, (0,))]))
    site.store_all()
    with opened(browser, site, f"/traces/{TRACE}", java_script_enabled=scripts) as page:
        page.get_by_role("link", name="cats?").click()
        page.wait_for_url("**hop=1*")
        assert page.get_by_role("heading", name="Hop 1: find").is_visible()
        page.get_by_role("link", name="1", exact=True).first.click()
        page.wait_for_url("**#p1")
        page.goto(f"/traces/{name}")
        assert not page.get_by_role("button", name="Delete for good").is_visible()
        page.get_by_text("Delete this trace").click()
        page.get_by_role("button", name="Delete for good").click()
        page.wait_for_url("**/queries")
        assert page.get_by_text("Delete me").count() == 0
    assert site.client.get(f"/traces/{name}").status_code == 404


@pytest.mark.parametrize("scripts", [True, False])
def test_variants_are_chosen(browser: Browser, site: Site, scripts: bool) -> None:
    """By a form whose address says what is compared; a question leads to its trace."""
    with opened(browser, site, "/changes", java_script_enabled=scripts) as page:
        assert page.get_by_role("heading", name="Recall is").inner_text().endswith("better with new")
        page.locator("select[name=base]").select_option("new")
        page.locator("select[name=test]").select_option("old")
        page.get_by_role("button", name="Compare").click()
        page.wait_for_url("**base=new&test=old*")
        assert page.get_by_role("heading", name="Recall is").inner_text().endswith("worse with old")
        page.locator("td.question + td a").first.click()
        page.wait_for_url("**/traces/*")


def test_a_labelled_file_is_imported_and_exported(browser: Browser, site: Site, tmp_path: Any) -> None:
    """A wrong line is named, and right ones are taken; disagreements come as a file."""
    good = json.dumps(
        {"task": "q", "context": [{"text": "t", "id": "d"}], "ground_truth": {"gold_doc_ids": ["d"]}}
    )
    file = tmp_path / "animals.jsonl"
    file.write_text(good, encoding="utf-8")
    with opened(browser, site, "/accuracy") as page:
        page.locator("input[type=file]").set_input_files(file)
        page.get_by_role("button", name="Import").click()
        page.wait_for_url("**imported=1&meta.dataset=animals")
        assert page.get_by_role("status").inner_text().startswith("1 labelled questions are stored")
        page.goto("/accuracy")
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        assert download.value.suggested_filename == "disagreements.csv"
    page = browser.new_page(base_url=site.url)
    page.goto("/accuracy")
    page.get_by_text("Or paste the lines").click()
    page.locator("textarea").fill('{"task": 1}')
    page.get_by_role("button", name="Import").click()
    assert "Line 1" in page.get_by_role("alert").inner_text()
    assert page.locator("textarea").input_value() == '{"task": 1}'
    page.close()


def test_hostile_texts_run_nothing(browser: Browser, tmp_path: Any) -> None:
    """What users wrote is shown as it is, in each field."""
    with serving(tmp_path / "data") as site:
        fill(site, HOSTILE)
        for path in (*VIEWS[:3], "/accuracy"):
            with opened(browser, site, path) as page:
                assert page.title().endswith("Seer")
                assert page.locator("img").count() == 0
                assert page.get_by_text("onerror").count() > 0
