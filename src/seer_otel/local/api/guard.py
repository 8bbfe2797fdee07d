"""Who may use what the backend serves beside the ingest: pages, and deletion."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import secrets
from collections.abc import Collection

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from seer_otel.local.api.answers import Refusal


class Guard:
    """Middleware: with a key it is asked for; without one the name that was asked for must be this machine's.

    Without a key only this machine reaches the backend. But a page of a stranger, open in a browser on this machine,
    could be given a name that suddenly means this machine, and would then read all that is here.

    Args:
        key: the key, also good as a password with any user name, as browsers ask for one.
        free: paths that are left alone.
    """

    def __init__(self, app: ASGIApp, key: str | None, free: Collection[str]) -> None:
        self._app = app
        self._key = key
        self._free = free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] != "http" or scope["path"] in self._free:
            await self._app(scope, receive, send)
            return
        if self._key is None:
            if not _is_local(HTTPConnection(scope).url.hostname or ""):
                message = (
                    "Without a key this backend answers to names of its own machine only, such as localhost."
                )
                await Refusal(403, "forbidden_host", message)(scope, receive, send)
                return
        elif not bears(dict(scope["headers"]).get(b"authorization", b""), self._key):
            message = "This backend wants its key, as bearer or as the password of any user."
            challenge = {"WWW-Authenticate": 'Basic realm="seer-otel", charset="UTF-8"'}
            await Refusal(401, "unauthorized", message, headers=challenge)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def bears(authorization: bytes, key: str) -> bool:
    """Return whether the header of that name has the key, as bearer or as a password."""
    scheme, _, given = authorization.partition(b" ")
    said = given.strip()
    if scheme.lower() == b"basic":
        try:
            _, _, said = base64.b64decode(said, validate=True).partition(b":")
        except binascii.Error:
            return False
    elif scheme.lower() != b"bearer":
        return False
    return secrets.compare_digest(said, key.encode())


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
