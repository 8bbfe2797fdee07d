"""The settings: one frozen object, each with its environment variable beside it, checked once at set-up."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from .assembly import Rules
from .assembly.metadata import DEFAULT_KEYS
from .delivery.transport import Transport, is_loopback
from .event import Event
from .privacy import Hiding

SEER_URL = "https://api.seersearch.com/v1/log"
KEY_PREFIX = "seer_"
"""How a key of Seer's begins; other products use the same variable."""


class ConfigurationError(ValueError):
    """A setting that cannot work; the text names it and says what to do."""


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
        raise ValueError(f"must be true or false, not {text!r}") from None


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
    timeout: float = _setting(5.0, "SEER_OTEL_TIMEOUT", "Seconds for a request.", float)
    max_queue_size: int = _setting(
        131_072, "SEER_OTEL_MAX_QUEUE_SIZE", "Starts and ends of spans that wait to be taken.", int
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
                raise ConfigurationError(f"{given[name]} must be a number, not {value!r}") from None
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
    """`config` with its URL and key made canonical, if everything in it can work."""
    if isinstance(config.sample_rate, bool) or not isinstance(config.sample_rate, (int, float)):
        raise ConfigurationError(
            f"{given['sample_rate']} must be a number from 0 to 1, not {config.sample_rate!r}"
        )
    if not 0 <= config.sample_rate <= 1:
        raise ConfigurationError(f"{given['sample_rate']} must be from 0 to 1, not {config.sample_rate!r}")
    for name, allowed in (("nested", ("outermost", "all")), ("final_context", ("last",))):
        if getattr(config, name) not in allowed:
            raise ConfigurationError(
                f"{given[name]} must be {' or '.join(allowed)}, not {getattr(config, name)!r}"
            )
    for name in ("timeout", "max_queue_size", "max_trace_age", "raise_attribute_limit"):
        value = getattr(config, name)
        whole = name in ("max_queue_size", "raise_attribute_limit")
        number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value < math.inf):
            raise ConfigurationError(
                f"{given[name]} must be a {'whole ' * whole}number above 0, not {value!r}"
            )
    values = {each.name: getattr(config, each.name) for each in fields(config)}
    for name in ("metadata_keys", "passage_metadata_keys", "id_keys"):
        value = values[name]
        if value is not None:
            if isinstance(value, str) or not isinstance(value, Iterable):
                raise ConfigurationError(f"{given[name]} must be a list of names, not {value!r}")
            values[name] = tuple(value)
            if not all(isinstance(each, str) for each in values[name]):
                raise ConfigurationError(f"{given[name]} must be a list of names, not {value!r}")
    for name in ("redact", "filter"):
        if getattr(config, name) is not None and not callable(getattr(config, name)):
            raise ConfigurationError(f"{name} must be a function, not {getattr(config, name)!r}")
    if config.transport is not None:
        if not callable(getattr(config.transport, "send", None)):
            raise ConfigurationError(
                f"transport must have a method send(body, idempotency_key), not {config.transport!r}"
            )
    else:
        values["endpoint"] = canonical_url(config.endpoint, given["endpoint"])
        values["api_key"] = _usable_key(config.api_key, values["endpoint"], given)
    return Config(**values)


def canonical_url(url: object, name: str = "endpoint") -> str:
    """Return the complete URL of the log endpoint that `url` means; see `SEER_INGESTION_URL`.

    Raises:
        ConfigurationError: it is no URL that a key may be sent to.
    """
    if not isinstance(url, str):
        raise ConfigurationError(f"{name} must be a URL, not {url!r}")
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError(f"{name} must be a URL such as {SEER_URL}") from None
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\s\x00-\x1f\x7f]", url.strip()):
        raise ConfigurationError(f"{name} must be a complete http or https URL such as {SEER_URL}")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"{name} must not hold a user or a password; the key goes into SEER_API_KEY")
    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigurationError(
            f"{name} must be https, as {host} is not this machine and the key would be readable"
        )
    path = {"": "/v1/log", "/": "/v1/log", "/v1": "/v1/log"}.get(parts.path, parts.path)
    if path.endswith("/log/"):
        path = path[:-1]
    elif path.endswith("/"):
        path += "log" if path.endswith("/v1/") else "v1/log"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _usable_key(key: object, endpoint: str, given: Mapping[str, str]) -> str | None:
    name, host = given["api_key"], urlsplit(endpoint).hostname
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


def settings_table() -> list[tuple[str, str, str, str]]:
    """Return (variable, argument, meaning, default) of every setting with a variable, for the README's table."""
    rows = []
    for each in fields(Config):
        if each.metadata.get("env"):
            default = each.default if each.default is not MISSING else None
            if isinstance(default, tuple):
                default = ",".join(default)
            shown = {None: "none", True: "true", "": "none"}.get(default, str(default))
            argument = "" if each.name == "enabled" else each.name
            rows.append((each.metadata["env"], argument, each.metadata["help"], shown))
    return rows
