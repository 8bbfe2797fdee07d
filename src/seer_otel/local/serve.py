"""`seer-otel serve`: run the local backend."""

from __future__ import annotations

import argparse
import contextlib
import errno
import ipaddress
import os
import shlex
import signal
import socket
import sys
from functools import partial
from pathlib import Path

import uvicorn
from sqlalchemy.exc import SQLAlchemyError

from seer_otel.evaluation.evaluators import evaluator
from seer_otel.local import KEY_VARIABLE
from seer_otel.local.api.app import create_app
from seer_otel.local.judging.judge import Judge, ask_again
from seer_otel.local.pages.links import check
from seer_otel.local.storage.migrations import NewerSchemaError
from seer_otel.local.storage.retention import Upkeep
from seer_otel.local.storage.store import Store

GRACE = 5
"""Seconds that requests under way have when the server stops."""


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM; return the exit status: 1 for what the system refuses, 2 for a bad setting."""
    key = (arguments.key or os.environ.get(KEY_VARIABLE, "")).strip() or None
    folder = Path(arguments.data).expanduser()
    make = partial(evaluator, arguments.evaluator)
    try:
        _check(key)
        trace_url = _trace_url(arguments.trace_url)
        make()
        listener = _listen(arguments.host, arguments.port, key)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return _failed(f"port {arguments.port} of {arguments.host} is in use; choose another with --port")
        return _failed(f"cannot listen on {arguments.host} port {arguments.port}: {error.strerror or error}")
    except ValueError as error:
        return _failed(str(error), status=2)
    with listener:
        try:
            store = Store(folder)
        except (OSError, SQLAlchemyError, NewerSchemaError) as error:
            return _failed(f"cannot store events in {folder}: {getattr(error, 'orig', error)}")
        with contextlib.ExitStack() as running:
            running.callback(store.close)
            judge, upkeep = Judge(store, make), Upkeep(store, arguments.keep_days)
            for each in (judge, upkeep):
                running.callback(each.stop)
                each.start()
            if arguments.rejudge:
                ask_again(store, judge.evaluator_id)
            _announce(listener, arguments.host, store, key)
            return _serve(listener, store, key, trace_url)


def _check(key: str | None) -> None:
    try:
        (key or "").encode()
    except UnicodeEncodeError:  # what no client could send; the text of the error would hold it
        raise ValueError(f"the key (--key, {KEY_VARIABLE}) is no text in the terminal's encoding") from None


def _trace_url(template: str | None) -> str | None:
    try:
        return template and check(template)
    except ValueError as error:
        raise ValueError(f"--trace-url: {error}") from None


def _listen(host: str, port: int, key: str | None) -> socket.socket:
    """Return a listening socket. Raises ValueError for a host that needs a key and OSError."""
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    if key is None and not ipaddress.ip_address(address[0]).is_loopback:
        raise ValueError(
            f"--host {host} can be reached from other machines, so a key is needed: set {KEY_VARIABLE} or --key"
        )
    # With its protocol named, as `socket.create_server` does not: asyncio sets TCP_NODELAY on such sockets only,
    # and without it each answer on a kept connection waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except BaseException:
        listener.close()
        raise
    return listener


def _announce(listener: socket.socket, host: str, store: Store, key: str | None) -> None:
    address, port = listener.getsockname()[:2]
    # A wildcard address is no place to send to; from this machine, loopback is.
    ip = ipaddress.ip_address(address)
    name = host if not ip.is_unspecified else "127.0.0.1" if ip.version == 4 else "::1"
    url = f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
    path = store.path.resolve()
    # Absolute, as whoever looks may stand in another folder.
    show = f"seer-otel show --data {shlex.quote(str(path.parent))}"
    lines = [
        f"Listening on {url}" + (f" (all addresses, port {port})" if ip.is_unspecified else ""),
        f"Storing in {path}",
        "",
        "Point an application at it:",
        f"  export SEER_INGESTION_URL={url}/v1/log",
        "  export SEER_SAMPLE_RATE=1.0",
    ]
    if key is not None:
        lines.append("  and set SEER_API_KEY to the key of this backend")
    lines += ["", f"See what arrived: {url}/", f"  or, in a terminal: {show}", "Stop: Ctrl-C"]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _serve(listener: socket.socket, store: Store, key: str | None, trace_url: str | None) -> int:
    config = uvicorn.Config(
        create_app(store, key, trace_url=trace_url),
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=GRACE,
    )
    # uvicorn shuts down in order, and then raises the signal again for whoever handled it before: to be stopped
    # is how this command ends, so SIGTERM shall end it as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def _failed(message: str, status: int = 1) -> int:
    sys.stderr.write(f"seer-otel serve: {message}\n")
    return status
