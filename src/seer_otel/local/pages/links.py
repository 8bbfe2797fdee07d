"""A link into the tracing UI of whoever runs this, by a template: `https://ui.example/t/{trace_id}`. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

PLACE = "{trace_id}"


def check(template: str) -> str:
    """Return `template`; ValueError where it is no http or https URL in which `{trace_id}` stands."""
    try:
        parts = urlsplit(template)
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not host or PLACE in parts.netloc:
        raise ValueError("it must be a URL that begins with http:// or https://")
    if PLACE not in template:
        raise ValueError("it must say where the trace id belongs: write {trace_id} there")
    return template


def link(template: str | None, trace_id: str) -> str | None:
    """Return the URL of a trace, whose id is hex digits; None without a template."""
    return None if template is None else template.replace(PLACE, trace_id)
