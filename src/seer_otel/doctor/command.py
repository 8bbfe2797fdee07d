"""`seer-otel doctor`: gather what there is to see, and say it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from opentelemetry import trace

from . import installed, network, passages, provider, settings, spool
from .lines import Line, as_json, as_text, in_the_way, no, note


def run(arguments: argparse.Namespace) -> int:
    """Print the answers; return 0 if nothing stands in the way, 1 if something does, 2 for wrong usage."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a pipe may be in an encoding of few characters
    lengths = None
    if arguments.events:
        try:
            with Path(arguments.events).expanduser().open(encoding="utf-8", errors="replace") as file:
                lengths = passages.count(file)
        except OSError as error:
            sys.stderr.write(f"seer-otel doctor: cannot read {arguments.events}: {error.strerror or error}\n")
            return 2
    lines = examine(os.environ, app=arguments.app, send=arguments.send)
    if lengths is not None:
        lines += passages.lines(lengths)
    else:
        lines.append(note("passages", "not looked at; --events FILE.jsonl looks at recorded events"))
    lines += installed.versions()
    width = shutil.get_terminal_size((100, 24)).columns
    sys.stdout.write(as_json(lines) if arguments.json else as_text(lines, width))
    return 1 if in_the_way(lines) else 0


def examine(environment: Mapping[str, str], *, app: str | None, send: bool) -> list[Line]:
    """Return what would happen, in the order in which an event comes about and leaves.

    Args:
        environment: the process's.
        app: `module[:attribute]` whose provider is looked at; None for the one that is set.
        send: whether to send a test event.
    """
    found = settings.look(environment)
    config = found.config
    lines = [*found.lines, *network.lines(found.endpoint, config.timeout), _test_event(found, send)]
    names = installed.installed_entry_points()
    launcher = importlib.util.find_spec("opentelemetry.instrumentation") is not None
    lines += installed.zero_code(environment, names, launcher)
    said, at = _provider(app)
    lines += said
    lines += provider.limits(at, environment, config.raise_attribute_limit)
    sampler = provider.sampler_of(at) if at is not None else None
    lines += settings.sampling(config.sample_rate, environment, sampler)
    lines += settings.masking(environment, config.scrub)
    lines += spool.look(config.spool_dir, found.endpoint)
    return lines


def _test_event(found: settings.Found, send: bool) -> Line:
    if not send:
        return note("test event", "not tried; --send tries it")
    if found.endpoint is None or not found.sends:
        return note("test event", "not tried: there is no URL, or no key for it")
    return network.send(found.endpoint, found.api_key, found.config.timeout)


def _provider(app: str | None) -> tuple[list[Line], object | None]:
    """What there is to say of the provider, and the provider, where there is one to look at."""
    if app is None:
        at: object = trace.get_tracer_provider()
        if not provider.is_set(at):
            hint = "not looked at: no application runs here; --app MODULE imports one"
            return [note("provider", hint)], None
    else:
        try:
            at = provider.load(app)
        except provider.AppError as error:
            return [no("provider", str(error), "Correct --app, or the application.")], None
    return provider.look(at), at if provider.is_set(at) else None
