"""The first two views as people use them, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from .conftest import Site

pytestmark = pytest.mark.e2e

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
VIEWS = [
    "/",
    "/?index=docs-v1&meta.model=small",
    "/?since=2026-11-30&until=2026-12-01",
    "/queries",
    "/queries?q=refund",
]


@contextmanager
def opened(browser: Browser, site: Site, path: str, **options: Any) -> Iterator[Page]:
    """A page that is loaded; nothing failed in it and nothing was asked of another server when it is closed."""
    page = browser.new_page(base_url=site.url, **options)
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(path)
        yield page
        assert said == []
        assert [url for url in asked if not url.startswith(f"{site.url}/")] == []
    finally:
        page.close()


def chart(page: Page) -> dict[str, float]:
    """Where the first chart is, once it can be seen."""
    place = page.locator(".u-over").first
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    return dict(box)


@pytest.mark.parametrize("path", VIEWS)
@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, PHONE], ids=["light", "dark", "phone"])
def test_axe_finds_nothing_serious(
    browser: Browser, full_site: Site, path: str, options: dict[str, Any]
) -> None:
    """Light, dark and on a phone; and no page is wider than the screen."""
    from axe_playwright_python.sync_playwright import Axe

    with opened(browser, full_site, path, **options) as page:
        found = Axe().run(page).response["violations"]
        serious = [
            f"{one['id']}: {one['nodes'][0]['html']}"
            for one in found
            if one["impact"] in {"serious", "critical"}
        ]
        assert serious == []
        wide, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= shown


def test_the_first_event_page(browser: Browser, site: Site) -> None:
    """Axe finds nothing serious in it either."""
    from axe_playwright_python.sync_playwright import Axe

    with opened(browser, site, "/") as page:
        assert [one["id"] for one in Axe().run(page).response["violations"] if one["impact"] != "minor"] == []


def test_dragging_zooms(browser: Browser, full_site: Site) -> None:
    """A drag over a chart sets the period in the URL, and keeps what else is chosen; one link leads back."""
    with opened(browser, full_site, "/?env=prod") as page:
        box = chart(page)
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=4)
        with page.expect_navigation():
            page.mouse.up()
        assert "env=prod" in page.url
        assert "since=2026-11-2" in page.url
        page.get_by_role("link", name="back to the last 7 days").click()
        page.wait_for_url("**/?env=prod")


def test_a_point_leads_to_its_queries(browser: Browser, full_site: Site) -> None:
    """A click on a chart opens the queries of that bucket."""
    with opened(browser, full_site, "/?env=prod") as page:
        box = chart(page)
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
        assert "n " in page.locator("[data-readout]").first.inner_text()
        with page.expect_navigation():
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 40)
        assert "/queries?env=prod&since=2026-11-2" in page.url
        assert page.locator("td.question").count() > 0


def test_filters_keep_the_address_short(browser: Browser, full_site: Site) -> None:
    """Applying a filter puts it, and nothing else, into the URL; charts are drawn anew, and "back" leads back."""
    with opened(browser, full_site, "/") as page:
        page.locator("select[name=index]").select_option("docs-v1")
        page.get_by_text("Metadata", exact=True).click()
        page.locator("select[name=meta_key]").select_option("model")
        page.locator("input[name=meta_value]").fill("small")
        page.get_by_role("button", name="Apply").click()
        page.get_by_text("model = small").wait_for()
        page.wait_for_url("**/?index=docs-v1&meta.model=small")
        page.locator(".u-over").nth(5).wait_for()
        page.get_by_role("link", name="Queries").click()
        page.wait_for_url("**/queries?index=docs-v1&meta.model=small")
        page.go_back()
        page.get_by_role("heading", name="Overview").wait_for()
        assert page.locator("select[name=index]").input_value() == "docs-v1"
        page.locator(".u-over").first.wait_for()


def test_without_scripts(browser: Browser, full_site: Site) -> None:
    """Charts are drawings with words, tables hold their figures, and forms and links do the rest."""
    with opened(browser, full_site, "/", java_script_enabled=False) as page:
        assert page.get_by_role("img", name="Recall: from").first.is_visible()
        assert not page.get_by_text("Drag to zoom").is_visible()
        page.locator("select[name=feature_flag]").select_option("hybrid-on")
        page.get_by_role("button", name="Apply").click()
        assert "feature_flag=hybrid-on" in page.url
        page.get_by_text("As a table").first.click()
        page.locator("details a").first.click()
        assert "/queries?feature_flag=hybrid-on&since=" in page.url
        page.goto("/queries")
        page.get_by_label("Search questions").fill("refund")
        page.get_by_role("button", name="Search").click()
        assert page.locator("td.question").first.is_visible()
        assert "refund" in page.locator("td.question").first.inner_text()


def test_by_keyboard(browser: Browser, full_site: Site) -> None:
    """The first stop skips to the content; a search is a word and Enter; a row is opened with Enter."""
    with opened(browser, full_site, "/queries") as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        page.get_by_label("Search questions").focus()
        page.keyboard.type("invoices")
        page.keyboard.press("Enter")
        page.wait_for_url("**/queries?q=invoices")
        page.locator("td.question a").first.focus()
        with page.expect_response(lambda response: "/traces/" in response.url) as answer:
            page.keyboard.press("Enter")
        assert answer.value.status == 200


def test_hostile_texts_run_nothing(browser: Browser, site: Site) -> None:
    """Questions and segments that hold scripts and handlers are shown as they are."""
    from datetime import timedelta

    from .filling import NOW

    hostile = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
    for other in "ab":
        site.filling.trace(
            f"{hostile} {other}",
            NOW - timedelta(hours=1),
            {"recall": 0.5},
            segment=(hostile, other, hostile, ""),
        )
    site.filling.write(site.engine)
    for path in ("/", "/queries"):
        with opened(browser, site, path) as page:
            assert page.title() in {"Overview · Seer", "Queries · Seer"}
            assert page.locator("img").count() == 0
            assert page.get_by_text("onerror").count() > 0 or path == "/"
