"""The static files. Each is served under a URL with its content's hash in it, so browsers may keep it for ever."""

from __future__ import annotations

import functools
import hashlib
import mimetypes
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

FOLDER = Path(__file__).parent / "static"
_KEPT = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}


@functools.cache
def _hashes() -> dict[str, str]:
    files = (path for path in sorted(FOLDER.rglob("*")) if path.suffix in {".css", ".js", ".svg"})
    return {
        path.relative_to(FOLDER).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        for path in files
    }


def url(name: str) -> str:
    """Return the URL of a file in `static/`; KeyError where there is none of that name."""
    return f"/static/{_hashes()[name]}/{name}"


def _file(request: Request) -> Response:
    name, digest = request.path_params["name"], request.path_params["digest"]
    # Only what was found at start: no path is made of what a client sends.
    if _hashes().get(name) != digest:
        raise HTTPException(404, "There is no such file; reload the page.")
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return FileResponse(FOLDER / name, media_type=media_type, headers=_KEPT)


def routes() -> list[Route]:
    """Return the route of the files."""
    return [Route("/static/{digest}/{name:path}", _file)]
