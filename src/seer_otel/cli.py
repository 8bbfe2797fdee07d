"""The command line: `seer-otel`.

A command is one line in `COMMANDS`. Its module is imported only when the command runs, so that `--help` is fast
and works without extras.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seer_otel._version import __version__
from seer_otel.local import DEFAULT_FOLDER, KEY_VARIABLE


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: what is typed.
        help: one line that says what it does.
        options: adds its options to its parser.
        module: where its `run(arguments: argparse.Namespace) -> int` is; the result is the exit status.
        extra: the extra of this package that the module needs.
    """

    name: str
    help: str
    options: Callable[[argparse.ArgumentParser], None]
    module: str
    extra: str


def _serve_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=_port, default=8790, help="port, 0 for any free one (default: %(default)s)"
    )
    parser.add_argument(
        "--data", default=DEFAULT_FOLDER, metavar="DIR", help="folder for events (default: %(default)s)"
    )
    parser.add_argument(
        "--key",
        help=f"key that clients must send; better set {KEY_VARIABLE}, which other users of this machine cannot see "
        "(default: none; needed when the host is not loopback)",
    )
    parser.add_argument(
        "--evaluator", default="lexical", metavar="NAME", help="what judges retrievals (default: %(default)s)"
    )
    parser.add_argument(
        "--rejudge",
        action="store_true",
        help="have this evaluator judge what another one, or another version of it, has judged before, too",
    )
    parser.add_argument(
        "--keep-days",
        type=_days,
        metavar="N",
        help="delete traces whose last event is older; their figures stay in the trends (default: keep everything)",
    )
    parser.add_argument(
        "--trace-url",
        metavar="URL",
        help="where a trace is in your own tracing UI, for a link on its page: https://ui.example/t/{trace_id}",
    )


def _show_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        default=DEFAULT_FOLDER,
        metavar="DIR",
        help="folder of the events, as `seer-otel serve` prints it (default: %(default)s)",
    )
    parser.add_argument(
        "--limit",
        type=_count,
        default=10,
        metavar="N",
        help="traces to show, newest first (default: %(default)s)",
    )
    parser.add_argument(
        "--trace",
        default="",
        metavar="ID",
        help="only the trace whose id begins with ID, in full: all passages, gold documents, metadata, span ids",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each event")


def _delete_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trace", required=True, metavar="ID", help="the whole id, as `seer-otel show` prints it"
    )
    parser.add_argument(
        "--data",
        default=DEFAULT_FOLDER,
        metavar="DIR",
        help="folder of the events, as `seer-otel serve` prints it (default: %(default)s)",
    )


def _evaluate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="labelled retrievals, one JSON object a line"
    )
    parser.add_argument(
        "--evaluator", default="lexical", metavar="NAME", help="what judges them (default: %(default)s)"
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the report and each example there, too; an interrupted run goes on when started again",
    )


def _replay_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="DATASET", help="labelled retrievals, one JSON object a line")
    parser.add_argument(
        "--dataset",
        metavar="NAME",
        help="value of `dataset` in each event's metadata (default: the file's name)",
    )
    parser.add_argument("--endpoint", metavar="URL", help="where to send (default: SEER_INGESTION_URL)")


def _doctor_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--send", action="store_true", help="send one test event, and say what the backend answers"
    )
    parser.add_argument(
        "--app",
        metavar="MODULE[:ATTRIBUTE]",
        help="import this application, and look at the provider that it sets, or at ATTRIBUTE if it is one",
    )
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="look at the passages of recorded events, one JSON object a line, as `seer-otel show --json` prints them",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object, for scripts")


def _spool_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="what to do", dest="action", metavar="ACTION", required=True)
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument("--dir", help="the folder (default: SEER_OTEL_SPOOL_DIR)")

    def action(name: str, text: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=text, description=_sentence(text), parents=[folder])

    action("show", "say what is in it").add_argument("--json", action="store_true", help="one JSON object")
    drain = action("drain", "send what belongs to no running process, as the processor would")
    drain.add_argument(
        "--timeout",
        type=_count,
        default=60,
        metavar="SECONDS",
        help="when to stop (default: %(default)s)",
    )
    drain.add_argument(
        "--all", action="store_true", help="send what was meant for another URL to SEER_INGESTION_URL, too"
    )
    action("export", "write all events as JSON lines and change nothing").add_argument(
        "--out", metavar="FILE", help="where to (default: standard output)"
    )
    action("clear", "with --yes, delete what belongs to no running process").add_argument(
        "--yes", action="store_true", help="really do it; else only say how much it is"
    )


COMMANDS = (
    Command("serve", "run the local backend", _serve_options, "seer_otel.local.serve", "local"),
    Command("show", "show what the local backend received", _show_options, "seer_otel.local.show", "local"),
    Command(
        "delete",
        "delete a trace from the local backend",
        _delete_options,
        "seer_otel.local.delete_command",
        "local",
    ),
    Command(
        "evaluate",
        "measure retrievals and an evaluator against labels",
        _evaluate_options,
        "seer_otel.evaluation.evaluate_command",
        "local",
    ),
    Command(
        "replay",
        "send labelled retrievals to a backend",
        _replay_options,
        "seer_otel.evaluation.replay_command",
        "local",
    ),
    Command(
        "doctor",
        "say what would happen under these settings",
        _doctor_options,
        "seer_otel.doctor.command",
        "",
    ),
    Command("spool", "look after the events on disk", _spool_options, "seer_otel.spool_command", ""),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; 2 for wrong usage, as argparse has it."""
    parser = argparse.ArgumentParser(
        prog="seer-otel", description="Retrieval evaluation for traced applications."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        subparser = subparsers.add_parser(
            command.name, help=command.help, description=_sentence(command.help)
        )
        command.options(subparser)
        subparser.set_defaults(command=command)
    arguments = parser.parse_args(argv)
    if "command" not in arguments:
        parser.print_help(sys.stderr)
        return 2
    return _run(arguments.command, arguments)


def _run(command: Command, arguments: argparse.Namespace) -> int:
    try:
        module = importlib.import_module(command.module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "seer_otel":
            raise
        install = f"pip install 'seer-otel[{command.extra}]'"
        sys.stderr.write(f"seer-otel {command.name} needs {error.name}: {install}\n")
        return 2
    status: int = module.run(arguments)
    return status


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _port(text: str) -> int:
    return _between(text, 0, 65_535)


def _days(text: str) -> int:
    return _between(text, 1, 36_500)


def _count(text: str) -> int:
    return _between(text, 1, 1_000_000)


def _between(text: str, low: int, high: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low:,} to {high:,}")
    return number


if __name__ == "__main__":
    sys.exit(main())
