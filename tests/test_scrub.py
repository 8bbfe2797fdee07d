"""What counts as a secret, what does not, and where it is looked for."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seer_otel.event import Event, GroundTruth, Passage, clamp, encode
from seer_otel.scrub import SCRUBBED, scrub, scrub_text
from seer_otel.strict import MAX_DEPTH

from .hostile import Fails, Lies

# Written in two halves, lest a scanner of this repository takes them for real.
SECRETS = {
    "AWS": "AKIA" + "QYLPMN5HFIQR7XYA",
    "AWS, for a while": "ASIA" + "QYLPMN5HFIQR7XYA",
    "GitHub": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "GitHub, fine-grained": "github_pat_" + "11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789",
    "GitLab": "glpat-" + "zyx_W9v8U7t6S5r4Q3p2",
    "Slack": "xoxb-" + "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
    "Slack, app": "xapp-" + "1-A012BCDEFGH-1234567890123-abcdef",
    "Stripe": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "Stripe, restricted": "rk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "OpenAI": "sk-" + "abcdefGHIJ1234567890klmnopQRSTUV",
    "OpenAI, project": "sk-proj-" + "Ab_Cd-Ef12Gh34Ij56Kl78Mn90",
    "Anthropic": "sk-ant-api03-" + "Ab_Cd-Ef12Gh34Ij56Kl78Mn90",
    "Google": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "Google, OAuth": "ya29." + "a0AfH6SMBx1y2z3-Ab_Cd",
    "Hugging Face": "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
    "npm": "npm_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2",
    "PyPI": "pypi-" + "AgEIcHlwaS5vcmcCJGI3YzQ1NjQ3LTU2",
    "SendGrid": "SG." + "aBcDeFgHiJkLmNoPqRsTuV." + "wXyZ0123456789aBcDeFgHiJkLmNoPqRsTuVwXyZ012",
    "Twilio": "SK" + "0123456789abcdef0123456789abcdef",
    "JWT": "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "Seer": "seer_" + "live_Zk3Jq8Tn2",
    "Seer, otherwise": "seer_" + "canary_key_0123456789",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
    "MIIE\nabc=\n-----END RSA PRIVATE KEY-----",
    "PGP": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n" + "lQOY\n-----END PGP PRIVATE KEY BLOCK-----",
}
"""What is a secret by its form, wherever it stands."""

ASSIGNED = {
    "password=": ("password=", "hunter2", ""),
    "in an environment": ("export DB_PASSWORD=", "c0rrect-horse", "\nexport A=1"),
    "in a query": ("https://example.com/a?page=1&api_key=", "abcdef", "&sort=asc"),
    "a signature": ("https://x.blob.core.windows.net/c?sv=2024&sig=", "a%2Fb%3D", "&se=1"),
    "in YAML": ("user: me\npassword: ", "hunter2!", "\nhost: h"),
    "in JSON": ('{"clientSecret": "', "abcdef", '", "page": 3}'),
    "in JSON in JSON": ('{\\"api_key\\": \\"', "abcdef", '\\"}'),
    "in JSON that was cut": ('{"api_key": "', "abcdef", ""),
    "in code": ("client(token = '", "abcdef", "')"),
    "in Ruby": ("{ :secret => '", "abcdef", "' }"),
    "in Go": ("apiKey := `", "abcdef", "`"),
    "with spaces": ("password = ", "hunter2", " # mine"),
    "Azure Storage": (
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=",
        "ab/c+d==",
        ";EndpointSuffix=e",
    ),
    "Authorization": ("Authorization: Bearer ", "abcdefgh", "\nAccept: */*"),
    "Authorization: Basic": ("authorization: basic ", "dXNlcjpwYXNz", ""),
    "Authorization, quoted": ("-H 'Authorization: Bearer ", "abcdefgh", "'"),
    "Bearer": ("it sends Bearer ", "abc/def+0123456789==", " to it"),
    "Basic": ("it sends Basic ", "QWxhZGRpbjpvcGVuc2VzYW1l/abc==", " to it"),
    "URL": ("postgres://", "app:p4ss", "@db:5432/x"),
    "URL without a user": ("redis://", ":p4ss", "@cache"),
    "PEM that was cut": ("a\n", "-----BEGIN PRIVATE KEY-----\n" + f"{'MIIE' * 16}\n" * 3 + "MIIE", ""),
}
"""What is a secret by what stands around it: that stays."""

HARMLESS = [
    "To reset your password: go to settings.",
    "Password: choose one of 8-12 characters",
    "The secret: love what you do. A token: a unit of text.",
    "Authentication: Bearer authentication is a scheme; basic understanding suffices",
    "max_tokens=4096, token_count=17, next_token=abcdef, tokenizer=bert-base-uncased, primary_key=abcd1234",
    "password=${DB_PASSWORD} password=$DB_PASSWORD api_key={key} token=<your token> secret=***** token=None",
    "token = next(tokens); api_key=os.environ['OPENAI_API_KEY']; password == other1x; token != abcdef1",
    "Get an API key: https://example.com/keys/1a",
    "std::token::value1 sep=token::a1b2c3",
    "https://example.com:8080/a@b?c=d ssh://git@github.com/a/b git@github.com:a/b.git mail me@example.com: 10:30",
    "550e8400-e29b-41d4-a716-446655440000",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "SGVsbG8gd29ybGQhIEhlbGxvIHdvcmxkIQ==",
    "chunk_AKIAQYLPMN5HFIQR7XYAB_1 xghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "state-of-the-art task-based-learning-for-everyone sk-learn-compatible-estimators",
    "seer_otel.sampled_by seer_otel_final_context_of_trace_1 seer_retrieval_evaluation",
    "A file that begins with -----BEGIN PRIVATE KEY----- is not to be sent. -----BEGIN CERTIFICATE-----\nMIIE",
    "eyJhbGciOiJIUzI1NiJ9 is the head of a token, hf_transfer a library, npm_config_registry_url a variable",
    "0123456789012345678901234567890",
    "ein Schlüssel ist kein Geheimnis \U0001f511 \ud800",
    "",
]

SECRET_NAMES = [
    "password",
    "passwd",
    "db_password",
    "userPassword",
    "PASSWORD_2",
    "pwd",
    "passphrase",
    "DB_PASS",
]
SECRET_NAMES += [
    "secret",
    "clientSecret",
    "client-secret",
    "secret_value",
    "secrets",
    "token",
    "access_token",
    "APIToken",
]
SECRET_NAMES += [
    "api_key",
    "apikey",
    "apiKey",
    "APIKey",
    "X-Api-Key",
    "openai.api_key",
    "access_key",
    "private_key",
]
SECRET_NAMES += [
    "AWS_SECRET_ACCESS_KEY",
    "AccountKey",
    "credential",
    "credentials",
    "authorization",
    "cookie",
]
SECRET_NAMES += [
    "Authorization-Header",
    "Set-Cookie",
    "connection_string",
    "connectionString",
    "refresh_tokens",
    "jwt",
]
OTHER_NAMES = [
    "token_count",
    "tokens",
    "max_tokens",
    "key",
    "primary_key",
    "foreignKey",
    "tokenizer",
    "secretary",
]
OTHER_NAMES += [
    "source",
    "page",
    "id",
    "page_token",
    "nextToken",
    "author",
    "keys",
    "monkey",
    "cookie_consent",
    "pass",
]
OTHER_NAMES += ["password_policy", "total_tokens", "subtoken", "design", "", "é", "seer_otel.final"]


def event(**fields: Any) -> Event:
    return replace(Event("a question", (Passage("a text"),)), **fields)


# --- What is one ---


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_forms(secret: str) -> None:
    """A key of a known form goes wherever it stands in a text, and nothing else of the text does."""
    for before, after in [("", ""), ("It is ", "."), ("(", ")"), ('{"a":"', '"}'), ("é\n", "\n")]:
        assert scrub_text(before + secret + after) == before + SCRUBBED + after


@pytest.mark.parametrize(("before", "secret", "after"), ASSIGNED.values(), ids=ASSIGNED)
def test_assigned(before: str, secret: str, after: str) -> None:
    """Where a name or a URL says that a secret follows, that goes, and the rest stays."""
    assert scrub_text(before + secret + after) == before + SCRUBBED + after


def test_within_a_word() -> None:
    """A key that stands behind an underscore is one, but not in the middle of letters: ids have all kinds of those."""
    assert scrub_text("key_" + SECRETS["GitHub"]) == "key_" + SCRUBBED
    assert scrub_text("key" + SECRETS["GitHub"]) == "key" + SECRETS["GitHub"]


def test_several() -> None:
    """Each secret of a text goes."""
    text = " and ".join(SECRETS.values()) + " password=hunter2 password=hunter3"
    assert (
        scrub_text(text)
        == " and ".join([SCRUBBED] * len(SECRETS)) + f" password={SCRUBBED} password={SCRUBBED}"
    )


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless(text: str) -> None:
    """Prose about secrets, variables and placeholders, numbers, hashes and ids stay."""
    assert scrub_text(text) == text


@pytest.mark.parametrize("name", SECRET_NAMES)
@pytest.mark.parametrize("value", ["a", "abcdefgh", 1234, 1.5, ["a"], {"a": "b"}])
def test_names(name: str, value: Any) -> None:
    """In metadata whatever bears the name of a secret goes, and counts as one value."""
    scrubbed, count = scrub(event(metadata={name: value, "page": 3}), everywhere=False)
    assert (scrubbed.metadata, count) == ({name: SCRUBBED, "page": 3}, 1)


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_other_names(name: str) -> None:
    """Names that only resemble one tell nothing, and a switch, or nothing at all, is no secret."""
    before = event(metadata={name: "abcdefgh"})
    assert scrub(before, everywhere=True)[0] is before
    before = event(metadata={"token": None, "password": True, "secret": "", "cookies": [], "credentials": {}})
    assert scrub(before, everywhere=True)[0] is before


# --- Where it is looked for ---


def test_in_metadata() -> None:
    """By default the metadata of the event and of the passages is scrubbed, and sources; texts and ids are not."""
    text = "password=hunter2"
    before = Event(
        text,
        (
            Passage(text, text, text, 0.5, {"source": text, "page": 3}),
            Passage("other", metadata={"a": [{"b": text}]}),
        ),
        {"env": text, "n": 1},
        subquery=text,
        ground_truth=GroundTruth((text,), text),
        span_name="retriever",
    )
    after, count = scrub(before, everywhere=False)
    done = f"password={SCRUBBED}"
    context = (
        Passage(text, text, done, 0.5, {"source": done, "page": 3}),
        Passage("other", metadata={"a": [{"b": done}]}),
    )
    assert after == replace(before, context=context, metadata={"env": done, "n": 1})
    assert count == 4

    everywhere, count = scrub(before, everywhere=True)
    context = (replace(context[0], text=done), context[1])
    truth = GroundTruth((text,), done)
    assert everywhere == replace(after, task=done, subquery=done, context=context, ground_truth=truth)
    assert count == 8


def test_clean() -> None:
    """An event without a secret comes back as it is, without ground truth too."""
    for before in (event(), event(ground_truth=GroundTruth(("a",))), event(metadata={"a": {"b": ["c"]}})):
        for everywhere in (True, False):
            assert scrub(before, everywhere) == (before, 0)
            assert scrub(before, everywhere)[0] is before


def test_in_keys() -> None:
    """A key of metadata may be a secret itself."""
    scrubbed, count = scrub(
        event(metadata={SECRETS["AWS"]: 1, "a" * 65 + SECRETS["GitHub"][:0]: 2}), everywhere=False
    )
    assert scrubbed.metadata == {SCRUBBED: 1, "a" * 65: 2}
    assert count == 1


def test_many_keys() -> None:
    """Keys that are never the same twice change nothing, and are not remembered without end."""
    from seer_otel import scrub as module

    before = event(metadata={f"key {i}": i for i in range(3_000)})
    assert scrub(before, everywhere=False)[0] is before
    assert len(module._harmless) <= 1024


class Text(str):
    """A text with methods of its own."""

    __slots__ = ()

    def encode(self, *args: Any) -> bytes:
        raise RuntimeError


def test_values_of_other_types() -> None:
    """What would become text on its way is scrubbed as text: bytes, tuples, mappings, objects."""
    for value in (
        SECRETS["AWS"].encode(),
        (SECRETS["AWS"],),
        {1: SECRETS["AWS"]},
        Text(SECRETS["AWS"]),
        {SECRETS["AWS"]},
    ):
        scrubbed, count = scrub(event(metadata={"a": value}), everywhere=False)
        assert count == 1
        assert SECRETS["AWS"] not in encode(clamp(scrubbed).event).decode()
    for value in (Fails(), Lies(), float("nan"), 10**400, None):
        before = event(metadata={"a": value}, task=5)
        assert scrub(before, everywhere=True)[0] is before
    before = event(metadata=Lies())
    assert scrub(before, everywhere=True)[0] is before


# --- Properties ---

SECRET = st.sampled_from([*SECRETS.values(), *("".join(parts) for parts in ASSIGNED.values())])
PIECES = st.sampled_from(
    [
        *"=:'\" \n\\@[(.-_${",
        "://",
        "password",
        "token",
        "api_key",
        "Bearer ",
        "sk-",
        "eyJ",
        "seer_",
        "a1B2" * 8,
        "-----BEGIN ",
        "PRIVATE KEY-----",
        "-----END ",
        SCRUBBED,
    ]
)
TEXT = st.lists(st.text(max_size=8) | PIECES | SECRET, max_size=12).map("".join)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT | st.sampled_from(SECRET_NAMES), inner, max_size=4)
    ),
    max_leaves=15,
)
METADATA = st.dictionaries(TEXT | st.sampled_from(SECRET_NAMES), DATA, max_size=4)


def texts(data: Any) -> list[str]:
    if isinstance(data, dict):
        return [each for pair in data.items() for item in pair for each in texts(item)]
    if isinstance(data, list):
        return [each for item in data for each in texts(item)]
    return [data] if isinstance(data, str) else []


@given(TEXT)
def test_a_text_scrubbed_twice(text: str) -> None:
    """Scrubbing what is scrubbed changes nothing more."""
    once = scrub_text(text)
    assert scrub_text(once) == once


@given(METADATA, METADATA, TEXT)
def test_an_event_scrubbed_twice(one: dict[str, Any], other: dict[str, Any], text: str) -> None:
    """Nothing raises, whatever stands in metadata; what is scrubbed stays as it is and counts nothing."""
    once, _ = scrub(
        event(task=text, metadata=one, context=(Passage(text, "id", text, None, other),)), everywhere=True
    )
    twice, count = scrub(once, everywhere=True)
    assert twice is once
    assert count == 0


@given(
    st.text(st.characters(exclude_characters="=:@")).filter(
        lambda text: max(map(len, text.split()), default=0) < 16
    )
)
def test_no_candidate(text: str) -> None:
    """A text without a separator and without a long word is returned as it is."""
    assert scrub_text(text) == text


OTHER_DATA = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=15,
)


@given(
    st.sampled_from(sorted(SECRETS)), OTHER_DATA, st.lists(st.sampled_from([0, 1]), max_size=MAX_DEPTH - 1)
)
def test_a_planted_secret(kind: str, around: Any, path: list[int]) -> None:
    """A secret in metadata is in no byte that is sent, however deep it lies and whatever lies beside it."""
    secret = SECRETS[kind]
    value: Any = f"it is {secret}."
    for step in path:
        value = [around, value] if step else {"a": around, "b": value}
    before = event(metadata={"x": value}, context=(Passage("a text", metadata={"y": value}),))
    scrubbed, count = scrub(before, everywhere=False)
    assert count >= 2
    assert not [each for each in texts(json.loads(encode(scrubbed))) if secret in each]
