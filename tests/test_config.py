"""The settings: where they come from, what is refused, and how it is said."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel import ConfigurationError, InMemoryTransport, SeerSpanExporter, SeerSpanProcessor
from seer_otel.config import Config, load, settings_table
from seer_otel.endpoint import SEER_URL, canonical_url, shown_url

KEY = "seer_canary_0123"
HERE = {"endpoint": "http://127.0.0.1:8790"}

VARIABLES = {each.name: each.metadata["env"] for each in fields(Config) if each.metadata.get("env")}


def words(text: str) -> set[str]:
    return {word.strip(".,:;()=") for word in text.split()}


# --- Where they come from ---


def test_defaults() -> None:
    """With nothing but a key the settings are those that the documentation names."""
    config = load({"api_key": KEY}, {})
    assert (config.endpoint, config.sample_rate, config.nested, config.enabled) == (
        SEER_URL,
        0.1,
        "outermost",
        True,
    )
    assert (config.timeout, config.max_queue_size, config.max_trace_age) == (5.0, 131_072, 300.0)


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("SEER_API_KEY", f"  {KEY}\n", "api_key", KEY),
        ("SEER_INGESTION_URL", "http://localhost:1/", "endpoint", "http://localhost:1/v1/log"),
        ("SEER_SAMPLE_RATE", " 0.25 ", "sample_rate", 0.25),
        ("SEER_SAMPLE_RATE", "0", "sample_rate", 0.0),
        ("SEER_OTEL_NESTED", "all", "nested", "all"),
        ("SEER_OTEL_FINAL_CONTEXT", "last", "final_context", "last"),
        ("SEER_OTEL_METADATA_KEYS", "a, b,,c ", "metadata_keys", ("a", "b", "c")),
        ("SEER_OTEL_PASSAGE_METADATA_KEYS", "a", "passage_metadata_keys", ("a",)),
        ("SEER_OTEL_ID_KEYS", "doc_id", "id_keys", ("doc_id",)),
        ("SEER_OTEL_SCRUB", "all", "scrub", "all"),
        ("SEER_OTEL_ALLOW_HTTP", "yes", "allow_http", True),
        ("SEER_OTEL_SPOOL_DIR", "/var/spool/seer", "spool_dir", "/var/spool/seer"),
        ("SEER_OTEL_SPOOL_MAX_BYTES", "1000000", "spool_max_bytes", 1_000_000),
        ("SEER_OTEL_SPOOL_MAX_AGE", "3600", "spool_max_age", 3600.0),
        ("SEER_OTEL_SYNCHRONOUS", "true", "synchronous", True),
        ("SEER_OTEL_TIMEOUT", "2.5", "timeout", 2.5),
        ("SEER_OTEL_MAX_QUEUE_SIZE", "100", "max_queue_size", 100),
        ("SEER_OTEL_MAX_TRACE_AGE", "60", "max_trace_age", 60.0),
        ("SEER_OTEL_RAISE_ATTRIBUTE_LIMIT", "10000", "raise_attribute_limit", 10_000),
    ],
)
def test_from_the_environment(variable: str, text: str, name: str, value: object) -> None:
    """Each variable sets its setting, white space around it does not matter, and blank means unset."""
    here = {"SEER_INGESTION_URL": "http://127.0.0.1/", "SEER_API_KEY": KEY}
    assert getattr(load({}, {**here, variable: text}), name) == value
    assert load({}, {**here, "SEER_OTEL_X": "ignored"}) == load({}, here)
    if variable not in here:
        assert load({}, {**here, variable: " "}) == load({}, here)


def test_each_setting_with_a_variable_is_tried() -> None:
    """The test above knows every variable that there is, and so does the table of the documentation."""
    tried = {each[0] for each in test_from_the_environment.pytestmark[0].args[1]} | {"SEER_OTEL_ENABLED"}  # type: ignore[attr-defined]
    assert tried == set(VARIABLES.values()) == {row[0] for row in settings_table()}


def test_an_argument_beats_its_variable() -> None:
    """What is passed counts even where the variable's value is not usable; None is not passed."""
    environment = {"SEER_SAMPLE_RATE": "nonsense", "SEER_API_KEY": "seer_environment"}
    config = load({"sample_rate": 0.5, "api_key": KEY}, environment)
    assert (config.sample_rate, config.api_key) == (0.5, KEY)
    assert load({"api_key": None, "sample_rate": 1}, environment).api_key == "seer_environment"


def test_a_text_is_read_as_its_variable() -> None:
    """An argument that is a text, as declarative files pass them, means what the variable's text would."""
    texts = {"sample_rate": "0.5", "timeout": "2", "max_queue_size": "7", "metadata_keys": "a, b"}
    values = {"sample_rate": 0.5, "timeout": 2.0, "max_queue_size": 7, "metadata_keys": ("a", "b")}
    assert load({**texts, **HERE}, {}) == load({**values, **HERE}, {})


def test_an_unknown_setting() -> None:
    """A setting that does not exist is a TypeError that lists those that do."""
    with pytest.raises(TypeError, match=r"no setting 'sampel_rate'.*sample_rate"):
        load({"sampel_rate": 1.0, **HERE}, {})


def test_lists_become_tuples() -> None:
    """A list of names, or any other iterable of them, is the same setting as a tuple."""
    for name in ("metadata_keys", "passage_metadata_keys", "id_keys"):
        for value in (["a", "b"], ("a", "b"), iter(["a", "b"])):
            assert getattr(load({name: value, **HERE}, {}), name) == ("a", "b")


# --- What is refused ---

NO_NUMBER = ["x", "1,5", "0x1", "None", "true", "1 2"]
NO_AMOUNT = ["0", "-1", "nan", "inf", *NO_NUMBER]
NO_COUNT = ["0", "-1", "1.5", "1e3", "9" * 5000, *NO_NUMBER]
NO_URL = ["localhost:8790", "ftp://localhost/", "http://", "https:///v1/log", "http://localhost:port/"]
NO_URL += ["http://localhost:99999/", "http://[::1/", "http://local host/", "https://example.com/\x00"]
NOT_SAFE = [
    "http://example.com/v1/log",
    "http://0.0.0.0:80/",
    "https://user:pass@example.com/",
    "https://u@example.com/",
]
BAD_TEXTS = {
    "SEER_SAMPLE_RATE": ["-0.1", "1.01", "nan", "inf", "10%", *NO_NUMBER],
    "SEER_OTEL_TIMEOUT": NO_AMOUNT,
    "SEER_OTEL_MAX_TRACE_AGE": NO_AMOUNT,
    "SEER_OTEL_MAX_QUEUE_SIZE": NO_COUNT,
    "SEER_OTEL_RAISE_ATTRIBUTE_LIMIT": NO_COUNT,
    "SEER_OTEL_SPOOL_MAX_BYTES": NO_COUNT,
    "SEER_OTEL_SPOOL_MAX_AGE": NO_AMOUNT,
    "SEER_OTEL_SCRUB": ["some"],
    "SEER_OTEL_ALLOW_HTTP": ["maybe"],
    "SEER_OTEL_SYNCHRONOUS": ["2"],
    "SEER_OTEL_NESTED": ["innermost"],
    "SEER_OTEL_FINAL_CONTEXT": ["first"],
    "SEER_OTEL_ENABLED": ["maybe", "2"],
    "SEER_INGESTION_URL": NO_URL + NOT_SAFE,
    "SEER_API_KEY": ["seer two", "seer_\u2019", "seer_a\nb"],
}
BAD_TEXT = [(variable, text) for variable, texts in BAD_TEXTS.items() for text in texts]


@pytest.mark.parametrize(
    ("variable", "text"), BAD_TEXT, ids=[f"{name}={text[:20]!r}" for name, text in BAD_TEXT]
)
def test_a_bad_variable(variable: str, text: str) -> None:
    """A value in the environment that cannot work is refused with the name of its variable."""
    environment = {"SEER_INGESTION_URL": "http://127.0.0.1:8790/v1/log", variable: text}
    with pytest.raises(ConfigurationError) as raised:
        load({}, environment)
    assert variable in words(str(raised.value))
    assert len(str(raised.value)) < 10_000


NO_SECONDS: list[Any] = [0, -1.0, math.nan, math.inf, True, "five", "0", [5]]
NO_NUMBER_OF: list[Any] = [0, -1, 1.5, math.inf, True, "five", "1.5", "0"]
NO_NAMES: list[Any] = [5, [1], [None], b"ab", True]
NO_FUNCTION: list[Any] = [True, "redact", 1, []]
BAD: dict[str, list[Any]] = {
    "sample_rate": [-0.1, 1.1, math.nan, math.inf, True, "half", "1.5", [1]],
    "timeout": NO_SECONDS,
    "max_trace_age": NO_SECONDS,
    "max_queue_size": NO_NUMBER_OF,
    "raise_attribute_limit": NO_NUMBER_OF,
    "spool_max_bytes": NO_NUMBER_OF,
    "spool_max_age": NO_SECONDS,
    "spool_dir": [5, True, b"/tmp", ["/tmp"]],
    "scrub": ["", "All", 1, True],
    "allow_http": [1, "maybe"],
    "synchronous": [0, "maybe"],
    "http_client": [True, "client", object()],
    "nested": ["", "Last", 1, ["all"], True],
    "final_context": ["", "Last", 1, ["last"], True],
    "metadata_keys": NO_NAMES,
    "passage_metadata_keys": NO_NAMES,
    "id_keys": NO_NAMES,
    "redact": NO_FUNCTION,
    "filter": NO_FUNCTION,
    "transport": [True, "http://localhost", object(), InMemoryTransport.send],
    "endpoint": [5, b"http://localhost", "", " ", "localhost", "http://example.com", True],
    "api_key": [5, b"seer_key", True, "seer key", "seer_\x7f", "\u00e9"],
}
BAD_VALUES = [(name, value) for name, values in BAD.items() for value in values]


@pytest.mark.parametrize(
    ("name", "value"), BAD_VALUES, ids=[f"{name}={value!r}"[:40] for name, value in BAD_VALUES]
)
def test_a_bad_argument(name: str, value: Any) -> None:
    """An argument that cannot work is refused by both doors with its name."""
    settings = {**HERE, name: value}
    for door in (SeerSpanProcessor, SeerSpanExporter):
        with pytest.raises(ConfigurationError) as raised:
            door(**settings)
        assert name in words(str(raised.value))


def test_each_setting_is_refused_something() -> None:
    """The tests above know a bad value of every setting, and of every variable that is not free text."""
    assert {name for name, _ in BAD_VALUES} == {each.name for each in fields(Config)} - {"enabled", "hiding"}
    free = {"SEER_OTEL_METADATA_KEYS", "SEER_OTEL_PASSAGE_METADATA_KEYS", "SEER_OTEL_ID_KEYS"}
    free |= {"SEER_OTEL_SPOOL_DIR"}
    assert {variable for variable, _ in BAD_TEXT} == set(VARIABLES.values()) - free


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(st.one_of(st.text(), st.integers())),
    st.dictionaries(st.text(), st.integers()),
    st.just(object()),
    st.just(len),
)


@given(
    settings=st.dictionaries(
        st.sampled_from(sorted({each.name for each in fields(Config)} - {"enabled", "hiding"})), ANYTHING
    )
)
def test_anything(settings: dict[str, Any]) -> None:
    """Whatever is passed, the answer is settings that can work or a ConfigurationError that names a setting."""
    try:
        config = load(settings, {})
    except ConfigurationError as error:
        names = {each.name for each in fields(Config)} | set(VARIABLES.values())
        assert words(str(error)) & names  # noqa: PT017
        return
    assert 0 <= config.sample_rate <= 1
    assert 0 < config.timeout < math.inf
    assert isinstance(config.max_queue_size, int)
    assert config.transport is not None or config.endpoint.startswith(("https://", "http://"))
    assert all(isinstance(each, str) for each in (*config.metadata_keys, *config.id_keys))


# --- The address ---


@pytest.mark.parametrize(
    ("given_", "sent_to"),
    [
        ("https://seer.example.com", "https://seer.example.com/v1/log"),
        ("https://seer.example.com/", "https://seer.example.com/v1/log"),
        ("https://seer.example.com/v1", "https://seer.example.com/v1/log"),
        ("https://seer.example.com/v1/", "https://seer.example.com/v1/log"),
        ("https://seer.example.com/v1/log", "https://seer.example.com/v1/log"),
        ("https://seer.example.com/v1/log/", "https://seer.example.com/v1/log"),
        ("https://seer.example.com/seer/", "https://seer.example.com/seer/v1/log"),
        ("https://seer.example.com/seer/v1/", "https://seer.example.com/seer/v1/log"),
        ("https://seer.example.com/collect", "https://seer.example.com/collect"),
        ("https://seer.example.com/v1/log?tenant=a", "https://seer.example.com/v1/log?tenant=a"),
        ("https://seer.example.com:8443/#top", "https://seer.example.com:8443/v1/log"),
        (" https://seer.example.com \n", "https://seer.example.com/v1/log"),
        ("http://localhost:8790", "http://localhost:8790/v1/log"),
        ("http://[::1]:8790", "http://[::1]:8790/v1/log"),
        ("http://127.0.0.1", "http://127.0.0.1/v1/log"),
    ],
)
def test_canonical_url(given_: str, sent_to: str) -> None:
    """An address may leave out what is the same everywhere; the complete one stays as it is."""
    assert canonical_url(given_) == sent_to
    assert canonical_url(sent_to) == sent_to


@given(url=st.one_of(st.text(), st.from_regex(r"https?://[\x20-\x7e]{0,40}", fullmatch=True)))
def test_any_url(url: str) -> None:
    """Any text is refused, or becomes an https address or one of this machine, which stays what it is."""
    try:
        canonical = canonical_url(url)
    except ConfigurationError:
        return
    assert (
        canonical.startswith(("https://", "http://localhost", "http://127.", "http://[::1]"))
        or "://LOCALHOST" in canonical.upper()
    )
    assert canonical_url(canonical) == canonical


def test_plain_http_if_it_is_allowed() -> None:
    """Plain HTTP to another machine is refused with the setting that allows it, and works where that is set."""
    settings = {"endpoint": "http://seer.internal:8790", "api_key": KEY}
    with pytest.raises(ConfigurationError, match="SEER_OTEL_ALLOW_HTTP=true"):
        load(settings, {})
    allowed = load(settings, {"SEER_OTEL_ALLOW_HTTP": "true"})
    assert allowed.endpoint == "http://seer.internal:8790/v1/log"


# --- The key ---


def test_no_key_for_another_machine() -> None:
    """Without a key nothing is sent elsewhere: set-up fails, and says what to set and what needs none."""
    for settings in ({}, {"api_key": ""}, {"api_key": " "}, {"endpoint": "https://seer.example.com"}):
        with pytest.raises(
            ConfigurationError, match=r"SEER_API_KEY \(or api_key=\) is needed.*seer-otel serve"
        ):
            load(settings, {})
    assert load(HERE, {}).api_key is None
    assert load({**HERE, "api_key": " "}, {}).api_key is None


def test_a_key_of_another_product() -> None:
    """A key from the environment without our prefix is never sent to Seer's host; elsewhere, or passed, it is."""
    environment = {"SEER_API_KEY": "other-canary"}
    with pytest.raises(ConfigurationError, match="SEER_API_KEY") as raised:
        load({}, environment)
    assert "canary" not in str(raised.value)
    assert load({"endpoint": "https://seer.example.com"}, environment).api_key == "other-canary"
    assert load({"api_key": "other-canary"}, {}).api_key == "other-canary"


NOT_IN_A_KEY = [
    "\r",
    "\n",
    "\r\n",
    "\0",
    "\x1b",
    "\t",
    "\x07",
    "\x7f",
    " ",
    "\x85",
    "\xa0",
    "\xad",
    "\u200b",
    "\u2028",
]
NOT_IN_A_KEY += ["\u202e", "\u2060", "\ufeff", "\U000e0041", "\ud800", "\u2019", "\u0430"]


@pytest.mark.parametrize("character", NOT_IN_A_KEY, ids=ascii)
def test_a_character_that_no_key_has(character: str) -> None:
    """A key with a control or format character, or another that no key has, inside is refused, and not quoted."""
    key = f"{KEY}{character}{KEY}"
    for settings, environment in (({"api_key": key}, {}), ({}, {"SEER_API_KEY": key})):
        with pytest.raises(ConfigurationError, match="characters that no key has") as raised:
            load({**HERE, **settings}, environment)
        assert ("SEER_API_KEY" if environment else "api_key") in words(str(raised.value))
        assert "canary" not in f"{raised.value!r} {raised.value.__context__!r}"
        assert character == " " or character not in str(raised.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": KEY},
        {"api_key": KEY, "sample_rate": 7},
        {"api_key": KEY + " x"},
        {"api_key": KEY, "endpoint": "ftp://x"},
    ],
)
def test_the_key_is_not_shown(settings: dict[str, Any]) -> None:
    """Neither the settings nor an error about them shows the key."""
    try:
        shown = repr(load(settings, {}))
    except ConfigurationError as error:
        shown = f"{error!r} {error.__cause__!r}"
    assert "canary" not in shown


@pytest.mark.parametrize("name", sorted({name for name, _ in BAD_VALUES} - {"api_key", "spool_dir"}))
def test_a_key_in_the_wrong_place_is_not_shown(name: str) -> None:
    """A key that was given to another setting, as an argument or by its variable, is not in the error either."""
    variable = VARIABLES.get(name)
    for settings, environment in (({name: KEY}, {}), ({}, {variable: KEY} if variable else {})):
        said = ""
        try:
            load({**HERE, **settings}, environment)
        except ConfigurationError as error:
            said = f"{error} {error.__cause__!r}"
        assert "canary" not in said


def test_a_long_value_is_not_shown_whole() -> None:
    """An error stays readable where a setting got a whole text."""
    with pytest.raises(ConfigurationError) as raised:
        load({**HERE, "sample_rate": "x" * 10_000}, {})
    assert len(str(raised.value)) < 500


def test_a_query_is_not_shown() -> None:
    """A URL may hold a token; logs and commands show it without."""
    assert shown_url("https://seer.example/v1/log?token=canary") == "https://seer.example/v1/log?..."
    assert shown_url(SEER_URL) == SEER_URL


# --- Inert ---


@pytest.mark.parametrize(
    "environment",
    [
        {"SEER_OTEL_ENABLED": "false"},
        {"SEER_OTEL_ENABLED": " OFF "},
        {"SEER_OTEL_ENABLED": "0"},
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_SDK_DISABLED": " True "},
        {"OTEL_SDK_DISABLED": "true", "SEER_OTEL_ENABLED": "true"},
    ],
)
def test_switched_off(environment: dict[str, str]) -> None:
    """Switched off, nothing is looked at: not a missing key, not a value that cannot work."""
    config = load({"sample_rate": 7, "endpoint": 5}, {**environment, "SEER_OTEL_TIMEOUT": "x"})
    assert config.enabled is False


@pytest.mark.parametrize(
    "environment", [{"OTEL_SDK_DISABLED": "1"}, {"SEER_OTEL_ENABLED": "yes"}, {"SEER_OTEL_ENABLED": ""}]
)
def test_not_switched_off(environment: dict[str, str]) -> None:
    """Only the words that mean so switch anything off."""
    assert load(HERE, environment).enabled is True
