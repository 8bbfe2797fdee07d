"""What is installed: versions, instrumentors, and the entry points of zero-code."""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping
from importlib.metadata import PackageNotFoundError, distributions, entry_points, version

from ..zero_code import is_asked
from .lines import Line, no, note, yes

INSTRUMENTOR = "opentelemetry_instrumentor"
EXPORTER = "opentelemetry_traces_exporter"
PACKAGES = ("seer-otel", "opentelemetry-sdk", "opentelemetry-instrumentation", "httpx", "orjson")
_OTLP = "otlp_proto_grpc"
"""What `otlp`, the default under zero-code, stands for."""


def versions() -> list[Line]:
    """Return the versions that matter, and the instrumentors that make retrieval spans."""
    found = [f"Python {platform.python_version()}"]
    found += [f"{name} {_version(name)}" for name in PACKAGES if _version(name)]
    prefix = "openinference-instrumentation-"
    names = {str(each.metadata["Name"]): each.version for each in distributions() if each.metadata}
    makers = [
        f"{name.removeprefix(prefix)} {names[name]}" for name in sorted(names) if name.startswith(prefix)
    ]
    if makers:
        line = yes("instrumentors", f"OpenInference for {', '.join(makers)}")
    else:
        line = note(
            "instrumentors",
            "none of OpenInference's is installed: the application must make its retriever spans itself",
            "Install the one of your framework, such as openinference-instrumentation-langchain.",
        )
    return [note("versions", ", ".join(found)), line]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def installed_entry_points() -> dict[str, set[str]]:
    """Return the names of the entry points in the two groups where ours are."""
    return {group: {each.name for each in entry_points(group=group)} for group in (INSTRUMENTOR, EXPORTER)}


def zero_code(
    environment: Mapping[str, str], names: Mapping[str, Collection[str]], launcher: bool
) -> list[Line]:
    """Return what `opentelemetry-instrument` would do with us. Pure.

    Args:
        environment: the process's.
        names: the entry points that are installed, by group.
        launcher: whether `opentelemetry-instrument` is installed.
    """
    return [
        _asked(environment),
        _entry_points(names, launcher),
        _disabled(environment),
        _exporters(environment, names[EXPORTER]),
    ]


def _asked(environment: Mapping[str, str]) -> Line:
    if is_asked(environment):
        return yes("zero-code", "asked for: opentelemetry-instrument adds the processor")
    return note(
        "zero-code",
        "not asked for: opentelemetry-instrument adds nothing; attach() does not need it",
        "Set SEER_INGESTION_URL, or SEER_API_KEY to a key that begins with seer_.",
    )


def _entry_points(names: Mapping[str, Collection[str]], launcher: bool) -> Line:
    missing = [group for group in (INSTRUMENTOR, EXPORTER) if "seer" not in names[group]]
    if missing:
        return note(
            "entry points",
            f"{' and '.join(missing)} without seer: zero-code cannot find it",
            "Install the package, rather than its sources on PYTHONPATH: pip install 'seer-otel[zero-code]'.",
        )
    if not launcher:
        return note(
            "entry points",
            "installed; opentelemetry-instrument is not",
            "For zero-code: pip install 'seer-otel[zero-code]'.",
        )
    return yes("entry points", f"seer in {INSTRUMENTOR} and in {EXPORTER}")


def _disabled(environment: Mapping[str, str]) -> Line:
    check, name = "instrumentor", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
    disabled = [each.strip() for each in environment.get(name, "").split(",")]
    by = next((each for each in ("seer", "*") if each in disabled), None)
    if by is None:
        return yes(check, f"{name} does not name seer")
    return note(check, f"{name} has {by}: zero-code adds no processor", f"Take {by} out of it.")


def _exporters(environment: Mapping[str, str], installed: Collection[str]) -> Line:
    check, variable = "exporters", "OTEL_TRACES_EXPORTER"
    given = [name for each in environment.get(variable, "").split(",") if (name := each.strip())]
    names = given or ["otlp"]
    shown = f"{variable}={','.join(given)}" if given else f"{variable} is not set, which means otlp"
    wanted = [_OTLP if name == "otlp" else name for name in names if name != "none"]
    missing = [name for name in wanted if name not in installed]
    if missing and (given or is_asked(environment)):
        say = no if "seer" in missing else note
        return say(
            check,
            f"{shown}: {', '.join(missing)} is not installed, so zero-code sets up no tracing at all",
            f"Set {variable} to what is installed, such as otlp_proto_http, or to none.",
        )
    if "seer" in names:
        return note(
            check,
            f"{shown}: seer-otel also sits behind a batch processor, and is quiet where the processor is",
        )
    return yes(check, shown)
