from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from seer_otel.local.pages import assets
from seer_otel.local.pages.site import Pages

from .filling import NOW

if TYPE_CHECKING:
    from .conftest import Site

VIEWS = ["/", "/queries", "/?since=x"]


@pytest.mark.parametrize("path", VIEWS)
def test_headers(full_site: Site, path: str) -> None:
    """Each page, an error page too, forbids scripts and styles of its own, frames, guessing types and being kept."""
    headers = full_site.client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", VIEWS)
def test_nothing_inline_and_nothing_from_outside(full_site: Site, path: str) -> None:
    """No page holds a script, a style or a handler, and all that it loads comes from its own server."""
    page = full_site.get(path, 400 if "since" in path else 200)
    assert re.findall(r"<script(?![^>]* src=)|<style| style=| on\w+=", page) == []
    loaded = re.findall(r'<(?:script|link|img)[^>]* (?:src|href)="([^"]*)"', page)
    assert len(loaded) >= 6
    assert all(address.startswith("/static/") for address in loaded)


def test_static_files_are_kept_for_ever(full_site: Site) -> None:
    """A file's URL holds its content's hash and may be kept; under another hash there is nothing."""
    address = assets.url("site.css")
    response = full_site.client.get(address)
    assert response.headers["content-type"].startswith("text/css")
    assert "immutable" in response.headers["cache-control"]
    digest = address.split("/")[2]
    for wrong in (
        address.replace(digest, "0" * 12),
        f"/static/{digest}/../site.py",
        f"/static/{digest}/%2e%2e/site.py",
    ):
        assert full_site.client.get(wrong).status_code == 404


def test_vendored_files_are_what_the_list_says() -> None:
    """`VENDORED.md` names the versions of the files beside it, whose licences are there."""
    folder = assets.FOLDER / "vendor"
    said = (folder / "VENDORED.md").read_text(encoding="utf-8")
    [uplot] = re.findall(r"uPlot \(v([\d.]+)\)", (folder / "uPlot.iife.min.js").read_text(encoding="utf-8"))
    [htmx] = re.findall(r'version:"([\d.]+)"', (folder / "htmx.min.js").read_text(encoding="utf-8"))
    assert f"| {uplot} | MIT" in said
    assert f"| {htmx} | 0BSD" in said
    assert "MIT" in (folder / "uPlot.LICENSE").read_text(encoding="utf-8")
    assert "Zero-Clause BSD" in (folder / "htmx.LICENSE").read_text(encoding="utf-8")


@pytest.fixture
def guarded(full_site: Site) -> Any:
    """A client of an application with one route that writes and one that fails."""

    def write(_: Request) -> Response:
        return PlainTextResponse("written")

    async def fail(_: Request) -> Response:
        raise HTTPException(404, "<b>There is none.</b>")

    pages = Pages(full_site.store, lambda: NOW)
    routes = [pages.guarded(Route("/write", write, methods=["POST"])), pages.guarded(Route("/fail", fail))]
    transport = httpx.ASGITransport(Starlette(routes=routes))

    async def ask(method: str, path: str, **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://page.test") as client:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.request(method, path, headers=names)

    return ask


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({"Origin": "http://page.test"}, 200),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site", "Origin": "http://page.test"}, 403),
        ({"Sec_Fetch_Site": "none"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://page.test.evil.test"}, 403),
        ({}, 403),
    ],
)
def test_only_the_page_itself_writes(guarded: Any, headers: dict[str, str], status: int) -> None:
    """A POST is done for a page of this server only: not for another site's, and not where nothing says whose it is."""
    import asyncio

    assert asyncio.run(guarded("POST", "/write", **headers)).status_code == status


def test_an_error_is_a_page(guarded: Any) -> None:
    """A view's HTTPException is a page with its status, the headers, and its message as text."""
    import asyncio

    response = asyncio.run(guarded("GET", "/fail"))
    assert response.status_code == 404
    assert "&lt;b&gt;There is none." in response.text
    assert "content-security-policy" in response.headers


def test_reading_does_not_write(full_site: Site) -> None:
    """Looking at every view leaves each table as it was."""

    def counts() -> list[int]:
        with full_site.engine.connect() as connection:
            names = sa.inspect(connection).get_table_names()
            return [
                connection.execute(sa.text(f'SELECT count(*) FROM "{name}"')).scalar_one() for name in names
            ]

    before = counts()
    for path in VIEWS:
        full_site.client.get(path)
    assert counts() == before
