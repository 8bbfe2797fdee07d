"""Secrets that nobody meant to send: keys, tokens and passwords, in metadata and in texts. Pure.

They are known by their form, or by the name in front of them. A form has to be unmistakable, since a passage that is
scrubbed without need is evaluated wrongly; in metadata a name is enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from .event import MAX_QUESTION, MAX_TEXT, Event
from .strict import MAX_DEPTH, plain

SCRUBBED = "[scrubbed]"
"""What stands in place of a secret."""

# --- Names ---

_NAMES = re.compile(
    r"(?:password|passwd|passphrase|passcode|pwd)s?(?:_hash)?$"
    r"|(?:secret|credential|cookie|jwt)s?$|authorization$"
    r"|(?:^|_)(?:db|user)_?pass$|(?:^|_)sig$"
    r"|(?:api|access|private|secret|account|subscription|signing|encryption|master|shared|auth|ssh)_?keys?$"
    r"|connection_?string$|shared_?access_?signature$"
    # A model's tokens and a page's are no secrets.
    r"|(?<!next_)(?<!page_)(?<!sync_)(?<!continuation_)(?<!pad_)(?<!eos_)(?<!bos_)(?<!unk_)(?<!sep_)(?<!cls_)"
    r"(?<!mask_)(?<!stop_)(?<!start_)(?<!end_)(?<!first_)(?<!last_)(?<!per_)(?<!special_)(?<!max_)(?<!sub)token$"
    r"|(?:access|api|auth|refresh|bearer)_?tokens$"
)
_WORD_STARTS = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_NAME = 64
"""Characters at the end of a name that are looked at: what it is stands there."""


def _is_secret_name(name: str) -> bool:
    """Whether what bears this name is a secret: `db_password`, `clientSecret`, `X-Api-Key`, not `token_count`."""
    return _ends_secret(name[-_MAX_NAME:])


@lru_cache(maxsize=4096)
def _ends_secret(name: str) -> bool:
    words = _WORD_STARTS.sub("_", name)
    words = re.sub("[^A-Za-z0-9]+", "_", words).lower().rstrip("0123456789").strip("_")
    words = words.removesuffix("_value").removesuffix("_header")
    return bool(_NAMES.search(words))


# --- Forms ---

_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])"  # AWS
    r"|gh[oprsu]_[A-Za-z0-9]{30,}|github_pat_\w{30,}"
    r"|gl(?:pat|dt|rt|ptt|cbt)-[\w-]{16,}"  # GitLab
    r"|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}"  # Slack
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{16,}"  # Stripe
    r"|sk-(?:proj|svcacct|admin|ant-[a-z]+[0-9]*|or-v1|lf)-[\w-]{16,}"  # OpenAI, Anthropic and others that followed
    r"|sk-(?=[A-Za-z]{0,30}[0-9])[A-Za-z0-9]{20,}"
    r"|AIza[\w-]{30,}|ya29\.[\w-]{16,}|GOCSPX-[\w-]{16,}"  # Google
    r"|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{30,}|pypi-AgE[\w-]{16,}"
    r"|SG\.[\w-]{16,64}\.[\w-]{16,}"  # SendGrid
    r"|SK[0-9a-f]{32}(?![A-Za-z0-9])"  # Twilio
    r"|eyJ(?<![\w-]eyJ)[\w-]{13,}\.[\w-]{4,}\.[\w-]*"  # JWT
    r"|seer_(?:live|test)_[\w-]{8,}|seer_(?!otel)(?=[A-Za-z_-]{0,40}[0-9])[\w-]{16,}"
    r")",
    re.ASCII,
)
_RUN = b"a" * 16
"""Each of these holds so many characters in a row that `_IN_A_RUN` maps to `a`; prose hardly ever does."""
_IN_A_RUN = bytes(
    ord("a") if chr(code).isalnum() or chr(code) in "_-." else ord(" ") for code in range(128)
) + bytes(128)

_BEARER = re.compile(r"(earer {1,4})(?=[\w.~+/-]{0,64}[0-9])[\w.~+/-]{16,}=*", re.ASCII)
_BASIC = re.compile(r"(asic {1,4})(?=[A-Za-z0-9+/]{0,64}[0-9=])[A-Za-z0-9+/]{12,}=*")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]*(?:-(?!----)[^-]*)*-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    # One that a limit cut.
    r"|(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{32,})+(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]+$)?)"
)
_USER_INFO = re.compile(r"(://)[^\s/?#@:\"'<>\[\]]*:[^\s/?#\"'<>\[\]]+(?=@)")

# Two, as a pattern that begins with one certain character is found fastest.
_EQUALS = re.compile(r"=(?<![=!<>]=)(?![:=])>?")
_COLON = re.compile(r":(?<!::)(?![:=])")
_NAME_ENDS: tuple[str, ...] = (
    "password",
    "passwd",
    "phrase",
    "passcode",
    "pwd",
    "db_pass",
    "dbpass",
    "secret",
    "jwt",
)
_NAME_ENDS += ("token", "key", "credential", "credentials", "authorization", "signature", "sig")
# What stands for a value without being one: a variable, a placeholder, a call, a mark.
_NO_VALUE = (
    r"(?!\$?\{|(?-i:\$[A-Z_]+\b)|[<\[]|\*\*\*|%[(s]|[a-z]{2,10}://|\w[\w.]{0,64}[(\[]"
    r"|(?:none|null|true|false|undefined)\b)"
)
_UNQUOTED = r"[^\s\"'`,;&<>(){}\[\]\\]"
_TIGHT_VALUE = re.compile(rf"(){_NO_VALUE}{_UNQUOTED}{{4,}}", re.IGNORECASE)
_SCHEME = r"(?:bearer|basic|token)[ \t]{1,4}"
_VALUE = re.compile(
    rf"([ \t]{{0,4}}\\?[\"'`](?:{_SCHEME})?){_NO_VALUE}[^\s\"'`\\]{{4,}}(?=\\?[\"'`]|$)"
    rf"|([ \t]{{0,4}}{_SCHEME}){_NO_VALUE}{_UNQUOTED}{{6,}}(?=\\?[\"'`]|\r?$)"
    # Without quotes it has to look like one: "password: go to settings" does not.
    rf"|([ \t]{{0,4}}(?:{_SCHEME})?){_NO_VALUE}"
    rf"(?={_UNQUOTED}{{0,48}}[0-9!@#$%^*+~])(?={_UNQUOTED}{{0,48}}[A-Za-z]){_UNQUOTED}{{6,}}",
    re.IGNORECASE | re.MULTILINE,
)


def scrub_text(text: str) -> str:
    """Return `text` with what looks like a secret replaced; the time grows with the length of the text only."""
    if "-----BEGIN" in text:
        text = _PRIVATE_KEY.sub(SCRUBBED, text)
    if "@" in text:
        text = _USER_INFO.sub(rf"\1{SCRUBBED}", text)
    if "earer " in text:
        text = _BEARER.sub(rf"\1{SCRUBBED}", text)
    if "asic " in text:
        text = _BASIC.sub(rf"\1{SCRUBBED}", text)
    if "=" in text:
        text = _without_assigned(text, _EQUALS)
    if ":" in text:
        text = _without_assigned(text, _COLON)
    return _without_keys(text)


def _without_assigned(text: str, separator: re.Pattern[str]) -> str:
    """`text` without the values in `password=...`, `"api_key": "..."` and the like."""
    parts, done = [], 0
    for found in separator.finditer(text):
        at = found.start()
        name = text[max(done, at - _MAX_NAME // 2) : at].rstrip(" \t\"'`\\:")
        if not name.lower().endswith(_NAME_ENDS) or not _is_secret_name(" ".join(name.split()[-2:])):
            continue
        is_tight = found[0] == "=" and text[at + 1 : at + 2] not in ("", " ", "\t", '"', "'", "`", "\\")
        value = (_TIGHT_VALUE if is_tight else _VALUE).match(text, found.end())
        if value is not None:
            parts += [text[done : value.end(value.lastindex or 0)], SCRUBBED]
            done = value.end()
    return "".join(parts) + text[done:] if parts else text


def _without_keys(text: str) -> str:
    """`text` without keys of a known form, which are looked for only where a word is long enough to be one."""
    runs = text.encode("ascii", "replace").translate(_IN_A_RUN)
    parts, done = [], 0
    at = runs.find(_RUN)
    while at >= 0:
        end = runs.find(b" ", at)
        end = len(text) if end < 0 else end
        for found in _KEY.finditer(text, at, end):
            parts += [text[done : found.start()], SCRUBBED]
            done = found.end()
        at = runs.find(_RUN, end)
    return "".join(parts) + text[done:] if parts else text


# --- Events ---


def scrub(event: Event, everywhere: bool) -> tuple[Event, int]:
    """Return `event` with what looks like a secret replaced, and how many values were changed; ids never are.

    It is the same object if nothing was.

    Args:
        event: as it is to be sent, within the limits; it stays there.
        everywhere: whether questions, passages and the answer are looked at, beside metadata and sources.
    """
    if _is_clean(event, everywhere):
        return event, 0
    scrubber = _Scrubber()
    text: Callable[[Any], Any] = scrubber.text if everywhere else lambda unseen: unseen
    context = tuple(
        replace(
            passage,
            text=_within(text(passage.text), passage.text, MAX_TEXT),
            source=scrubber.text(passage.source),
            metadata=scrubber.metadata(passage.metadata),
        )
        for passage in event.context
    )
    truth = event.ground_truth
    scrubbed = replace(
        event,
        task=_within(text(event.task), event.task, MAX_QUESTION),
        subquery=_within(text(event.subquery), event.subquery, MAX_QUESTION),
        context=context,
        metadata=scrubber.metadata(event.metadata),
        ground_truth=replace(truth, answer=_within(text(truth.answer), truth.answer, MAX_QUESTION))
        if truth is not None
        else None,
    )
    return (scrubbed, scrubber.count) if scrubber.count else (event, 0)


def _within(scrubbed: Any, text: Any, limit: int) -> Any:
    """What was scrubbed may be longer than what stood there; no longer than it may be."""
    return scrubbed[: max(len(text), limit)] if isinstance(scrubbed, str) else scrubbed


_SCALARS = frozenset({str, int, float, bool, type(None)})
_harmless: set[str] = set()
"""Keys of metadata that name no secret and hold none. Events have the same few keys again and again."""


def _is_clean(event: Event, everywhere: bool) -> bool:
    """Whether nothing needs a closer look. All texts are looked through at once: each alone takes ten times as long."""
    level: list[Any] = [event.metadata]
    values: list[Any] = []
    for passage in event.context:
        level.append(passage.metadata)
        values.append(passage.source)
        if everywhere:
            values.append(passage.text)
    if everywhere:
        truth = event.ground_truth
        values += (event.task, event.subquery, truth.answer if truth is not None else None)
    texts: list[str] = []
    for _ in range(MAX_DEPTH):
        keys: list[Any] = []
        for each in level:
            if type(each) is dict:
                keys += each
                values += each.values()
            elif type(each) is list:
                values += each
            else:
                return False
        if not (_harmless.issuperset(keys) or _are_harmless(keys)):
            return False
        texts += [value for value in values if type(value) is str]
        level = (
            [] if _SCALARS.issuperset(map(type, values)) else [v for v in values if type(v) not in _SCALARS]
        )
        if not level:
            break
        values = []
    joined = "\n".join(texts)
    return not level and scrub_text(joined) == joined


def _are_harmless(keys: list[Any]) -> bool:
    for key in keys:
        if type(key) is not str or len(key) > _MAX_NAME or _is_secret_name(key) or scrub_text(key) != key:
            return False
        if len(_harmless) < 1024:
            _harmless.add(key)
    return True


class _Scrubber:
    """Replaces secrets, and counts the values that it changed."""

    def __init__(self) -> None:
        self.count = 0

    def text(self, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        text = str.__str__(text)  # a subclass may have methods of its own
        scrubbed = scrub_text(text)
        self.count += scrubbed != text
        return scrubbed

    def metadata(self, metadata: Any) -> Any:
        before = self.count
        scrubbed = self._value(plain(metadata))
        return scrubbed if self.count > before else metadata

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.text(key): self._named(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return self.text(value)

    def _named(self, key: str, value: Any) -> Any:
        """The value of a key. A switch is no secret, whatever its name."""
        if not _is_secret_name(key) or isinstance(value, bool) or value in (None, "", SCRUBBED, [], {}):
            return self._value(value)
        self.count += 1
        return SCRUBBED
