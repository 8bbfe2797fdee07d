"""The settings: one frozen object, each with its environment variable beside it, checked once at set-up."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from . import checks
from .assembly import Rules
from .assembly.metadata import DEFAULT_KEYS
from .delivery.transport import Transport
from .endpoint import SEER_URL, ConfigurationError, canonical_url, shown, usable_key
from .event import Event
from .privacy import Hiding

if TYPE_CHECKING:
    import httpx


def _setting(
    default: Any, env: str | None, meaning: str, read: Callable[[str], Any] = str, hide: bool = False
) -> Any:
    return field(default=default, repr=not hide, metadata={"env": env, "help": meaning, "read": read})


def yes_or_no(text: str) -> bool:
    """Read a boolean as people write it in an environment."""
    answer = {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }
    try:
        return answer[text.strip().lower()]
    except KeyError:
        raise ValueError(f"must be true or false, not {shown(text)}") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every setting. An argument beats its environment variable, which beats the default."""

    enabled: bool = _setting(
        True, "SEER_OTEL_ENABLED", "`false` switches seer-otel off, whatever else is set.", yes_or_no
    )
    api_key: str | None = _setting(
        None, "SEER_API_KEY", "Bearer key; surrounding white space is trimmed.", hide=True
    )
    endpoint: str = _setting(
        SEER_URL,
        "SEER_INGESTION_URL",
        "The complete URL. An empty path or `/` gets `/v1/log`, `/v1` gets `/log`, a trailing slash after a prefix"
        " gets `v1/log`.",
    )
    sample_rate: float = _setting(0.1, "SEER_SAMPLE_RATE", "Share of traces kept, 0 to 1.", float)
    nested: str = _setting(
        "outermost",
        "SEER_OTEL_NESTED",
        "`all` also sends retrievals inside a retrieval that found other documents; never as the final context.",
    )
    final_context: str = _setting(
        "last",
        "SEER_OTEL_FINAL_CONTEXT",
        "How the final context is inferred; `last` is the one way there is.",
    )
    redact: Callable[[Event], Event | None] | None = _setting(  # noqa: RUF009
        None,
        None,
        "Called with each event before it is sent; what it returns is sent, and nothing if it fails.",
    )
    filter: Callable[[Event], bool] | None = _setting(  # noqa: RUF009
        None,
        None,
        "Called with each event before the final context is chosen; a false answer drops the event.",
    )
    transport: Transport | None = _setting(  # noqa: RUF009
        None, None, "Takes the events instead of HTTP, such as `InMemoryTransport` in tests."
    )
    metadata_keys: tuple[str, ...] = _setting(
        DEFAULT_KEYS,
        "SEER_OTEL_METADATA_KEYS",
        "Metadata keys of spans that are sent, comma separated. `user_id` and `session_id` are sent only if named.",
        _names,
    )
    passage_metadata_keys: tuple[str, ...] | None = _setting(
        None,
        "SEER_OTEL_PASSAGE_METADATA_KEYS",
        "Metadata keys of passages that are sent; all if unset.",
        _names,
    )
    id_keys: tuple[str, ...] = _setting(
        (), "SEER_OTEL_ID_KEYS", "Metadata keys of a document that hold its id where it has no other.", _names
    )
    scrub: str = _setting(
        "metadata",
        "SEER_OTEL_SCRUB",
        "Where what looks like a secret (keys, tokens, passwords) is replaced: `metadata`, `all` for questions and"
        " passages too, or `none`.",
    )
    allow_http: bool = _setting(
        False,
        "SEER_OTEL_ALLOW_HTTP",
        "`true` lets events and key travel over plain HTTP to another machine.",
        yes_or_no,
    )
    http_client: httpx.Client | None = _setting(  # noqa: RUF009
        None,
        None,
        "Your own `httpx.Client`, for proxies, certificates or headers of your own; it is not closed.",
    )
    spool_dir: str | None = _setting(
        None,
        "SEER_OTEL_SPOOL_DIR",
        "Folder on a local disk where events are kept until the backend has taken them, through outages and crashes.",
    )
    spool_max_bytes: int = _setting(
        256 * 1024 * 1024, "SEER_OTEL_SPOOL_MAX_BYTES", "Bytes that the spool may take on disk.", int
    )
    spool_max_age: float = _setting(
        7 * 86_400.0, "SEER_OTEL_SPOOL_MAX_AGE", "Seconds for which an event is kept in the spool.", float
    )
    synchronous: bool = _setting(
        False,
        "SEER_OTEL_SYNCHRONOUS",
        "`true` sends on the application's thread when a trace ends, and starts no thread: for functions that are"
        " frozen between calls.",
        yes_or_no,
    )
    timeout: float = _setting(5.0, "SEER_OTEL_TIMEOUT", "Seconds for a request.", float)
    max_queue_size: int = _setting(
        131_072,
        "SEER_OTEL_MAX_QUEUE_SIZE",
        "Starts and ends of spans that wait to be taken, to the next 64.",
        int,
    )
    max_trace_age: float = _setting(
        300.0, "SEER_OTEL_MAX_TRACE_AGE", "Seconds after which an open trace is sent as partial.", float
    )
    raise_attribute_limit: int | None = _setting(
        None,
        "SEER_OTEL_RAISE_ATTRIBUTE_LIMIT",
        "Zero-code only: attributes a span may have, instead of the SDK's 128.",
        int,
    )
    hiding: Hiding = field(default_factory=Hiding, repr=False)

    @property
    def rules(self) -> Rules:
        """The settings that the assembly obeys."""
        return Rules(
            nested=self.nested,
            metadata_keys=self.metadata_keys,
            passage_metadata_keys=self.passage_metadata_keys,
            id_keys=self.id_keys,
            hiding=self.hiding,
        )


def load(settings: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Config:
    """Return the settings, or raise.

    Args:
        settings: what the caller gave; None means not given.
        environment: the process's, unless a test says otherwise.

    Raises:
        ConfigurationError: a value cannot be used; the text names the argument and the variable.
        TypeError: there is no such setting.
    """
    environment = os.environ if environment is None else environment
    known = {each.name: each for each in fields(Config) if "env" in each.metadata and each.name != "enabled"}
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise TypeError(f"seer-otel has no setting {unknown[0]!r}; it has {', '.join(sorted(known))}")
    if not is_enabled(environment):
        return Config(enabled=False)
    values: dict[str, Any] = {}
    given: dict[str, str] = {}
    for name, each in known.items():
        variable = each.metadata["env"]
        given[name] = name
        value = settings.get(name)
        if value is None and variable and environment.get(variable, "").strip():
            given[name], value = variable, environment[variable].strip()
        if isinstance(value, str):
            # Also where it is an argument: a declarative file fills in variables as text.
            try:
                value = each.metadata["read"](value)
            except ValueError:
                wanted = "true or false" if each.metadata["read"] is yes_or_no else "a number"
                raise ConfigurationError(f"{given[name]} must be {wanted}, not {shown(value)}") from None
        if value is not None:
            values[name] = value
    return _checked(Config(**values, hiding=Hiding.from_environment(environment)), given)


def is_enabled(environment: Mapping[str, str]) -> bool:
    """Return whether this process may do anything at all: `SEER_OTEL_ENABLED`, and OpenTelemetry's own switch.

    Raises:
        ConfigurationError: `SEER_OTEL_ENABLED` is neither yes nor no.
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    answer = environment.get("SEER_OTEL_ENABLED", "")
    try:
        return yes_or_no(answer) if answer.strip() else True
    except ValueError as error:
        raise ConfigurationError(f"SEER_OTEL_ENABLED {error}") from None


def _checked(config: Config, given: Mapping[str, str]) -> Config:
    """`config` with its lists, paths, URL and key made canonical, if everything in it can work."""
    values = {
        each.name: checks.CHECKS[each.name](getattr(config, each.name), given[each.name])
        for each in fields(config)
        if each.name in checks.CHECKS
    }
    if config.transport is None:
        endpoint = canonical_url(config.endpoint, given["endpoint"], allow_http=config.allow_http)
        values |= {"endpoint": endpoint, "api_key": usable_key(config.api_key, endpoint, given["api_key"])}
    return replace(config, **values)


def settings_table() -> list[tuple[str, str, str, str]]:
    """Return (variable, argument, meaning, default) of every setting with a variable, for the README's table."""
    rows = []
    for each in fields(Config):
        if each.metadata.get("env"):
            default = each.default if each.default is not MISSING else None
            if isinstance(default, tuple):
                default = ",".join(default)
            shown = {None: "none", True: "true", False: "false", "": "none"}.get(default, str(default))
            argument = "" if each.name == "enabled" else each.name
            rows.append((each.metadata["env"], argument, each.metadata["help"], shown))
    return rows
