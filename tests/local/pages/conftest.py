"""A store that tests fill, its page on loopback, and a browser."""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
import sqlalchemy as sa
import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from seer_otel.local.pages import routes
from seer_otel.local.serve import _listen
from seer_otel.local.storage.store import FILE_NAME, Store

from .filling import NOW, Filling, plausible

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@dataclass
class Site:
    """A store and its page, at NOW."""

    store: Store
    client: httpx.Client
    filling: Filling

    @property
    def engine(self) -> sa.Engine:
        return self.store.engine

    @property
    def url(self) -> str:
        return str(self.client.base_url).rstrip("/")

    def get(self, path: str, status: int = 200) -> str:
        """Return the page at `path`, which has this status."""
        response = self.client.get(path)
        assert response.status_code == status, response.text
        return response.text


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store with nothing in it."""
    folder = tmp_path_factory.mktemp("blank")
    Store(folder).close()
    return folder / FILE_NAME


class Server:
    """A server on loopback that answers with `app`, which may be changed: starting one takes a while."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.app: ASGIApp = Starlette()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


@contextmanager
def _serving() -> Iterator[Server]:
    with _listen("127.0.0.1", 0, None) as listener:
        served = Server(f"http://127.0.0.1:{listener.getsockname()[1]}")
        server = uvicorn.Server(uvicorn.Config(served, log_config=None, lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield served
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _site(folder: Path, blank: Path, server: Server) -> Iterator[Site]:
    # A copy: migrating takes longer than most of these tests.
    shutil.copy(blank, folder)
    with closing(Store(folder)) as store, httpx.Client(base_url=server.url, timeout=30) as client:
        app = Starlette(routes=routes(store, lambda: NOW))
        app.router.redirect_slashes = False
        server.app = app
        yield Site(store, client, Filling())


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with _serving() as running:
        yield running


@pytest.fixture
def site(tmp_path: Path, blank: Path, server: Server) -> Iterator[Site]:
    """The page of a store with nothing in it; `site.filling` puts something there."""
    with _site(tmp_path, blank, server) as running:
        yield running


@pytest.fixture(scope="session")
def full_site(tmp_path_factory: pytest.TempPathFactory, blank: Path) -> Iterator[Site]:
    """The page of a store with 2,000 plausible traces of two weeks; for tests that only look."""
    with _serving() as server, _site(tmp_path_factory.mktemp("full"), blank, server) as running:
        running.filling = plausible(running.store.engine, 2_000)
        yield running


@pytest.fixture(scope="module")
def started() -> Iterator[Callable[[str], Browser]]:
    """`started(path)` is that browser, started once for the tests of a file."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, ExitStack() as stack:

        @functools.cache
        def start(path: str) -> Browser:
            # Root may not use the sandbox, and CI often is root.
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            stack.callback(browser.close)
            return browser

        yield start


@pytest.fixture
def browser(require_binary: Callable[[str], str], started: Callable[[str], Browser]) -> Browser:
    """Debian's chromium."""
    return started(require_binary("chromium"))
