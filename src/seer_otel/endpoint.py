"""Where events may be sent, and with which key. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

SEER_URL = "https://api.seersearch.com/v1/log"
KEY_PREFIX = "seer_"
"""How a key of Seer's begins; other products use the same variable."""


class ConfigurationError(ValueError):
    """A setting that cannot work; the text names it and says what to do."""


def shown(value: object) -> str:
    """Return a setting's value as an error shows it: no key that was given to the wrong one, and nothing at length."""
    if isinstance(value, str) and KEY_PREFIX in value:
        return "what looks like a key"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def shown_url(url: str) -> str:
    """Return a URL as a log shows it: without its query, which may hold a token."""
    parts = urlsplit(url)
    return urlunsplit((*parts[:3], "...", "")) if parts.query else url


def canonical_url(url: object, name: str = "endpoint", *, allow_http: bool = False) -> str:
    """Return the complete URL of the log endpoint that `url` means; see `SEER_INGESTION_URL`.

    Args:
        url: the URL as it was given.
        name: what it is called in an error.
        allow_http: whether plain HTTP may leave this machine.

    Raises:
        ConfigurationError: it is no URL that a key may be sent to.
    """
    if not isinstance(url, str):
        raise ConfigurationError(f"{name} must be a URL, not {shown(url)}")
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError(f"{name} must be a URL such as {SEER_URL}") from None
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\s\x00-\x1f\x7f]", url.strip()):
        raise ConfigurationError(f"{name} must be a complete http or https URL such as {SEER_URL}")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"{name} must not hold a user or a password; the key goes into SEER_API_KEY")
    if parts.scheme == "http" and not (allow_http or is_loopback(host)):
        raise ConfigurationError(
            f"{name} must be https, as {host} is not this machine and the key would be readable on the way. Set"
            " SEER_OTEL_ALLOW_HTTP=true if every network in between is yours"
        )
    path = {"": "/v1/log", "/": "/v1/log", "/v1": "/v1/log"}.get(parts.path, parts.path)
    if path.endswith("/log/"):
        path = path[:-1]
    elif path.endswith("/"):
        path += "log" if path.endswith("/v1/") else "v1/log"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def usable_key(key: object, endpoint: str, name: str = "api_key") -> str | None:
    """Return the key for `endpoint`, trimmed; None where none is needed, which is on this machine.

    Raises:
        ConfigurationError: it is missing, is no key, or is not Seer's.
    """
    host = urlsplit(endpoint).hostname
    if key is not None and not isinstance(key, str):
        raise ConfigurationError(f"{name} must be text")
    key = key.strip() if key is not None else None
    if not key:
        if is_loopback(host):
            return None
        raise ConfigurationError(
            f"SEER_API_KEY (or api_key=) is needed to send to {host}. Without an account, run `seer-otel serve` and"
            " set SEER_INGESTION_URL=http://127.0.0.1:8790/v1/log"
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigurationError(
            f"{name} holds characters that no key has; it may have been pasted with others"
        )
    if name == "SEER_API_KEY" and host == urlsplit(SEER_URL).hostname and not key.startswith(KEY_PREFIX):
        raise ConfigurationError(
            f"SEER_API_KEY does not begin with {KEY_PREFIX!r}, so it may belong to another product that uses the"
            " same variable, and it is not sent. Pass api_key= if it is Seer's."
        )
    return key


def is_loopback(host: str | None) -> bool:
    """Return whether `host` is this machine, by name or by address."""
    if host is None:
        return False
    return host in ("localhost", "::1") or (host.startswith("127.") and host.replace(".", "").isdigit())
