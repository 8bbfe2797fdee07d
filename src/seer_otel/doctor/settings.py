"""What the settings say: pure functions of an environment, and the settings that were read from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..config import Config, is_enabled, load, yes_or_no
from ..endpoint import KEY_PREFIX, SEER_URL, ConfigurationError, canonical_url, shown_url, usable_key
from .lines import Line, Mark, no, note, yes

_SWITCHES = ("SEER_OTEL_ENABLED", "OTEL_SDK_DISABLED")
_OTHERS_FAIL = "Correct it: a processor, `attach()` and zero-code refuse to start with it."


@dataclass(frozen=True, slots=True)
class Found:
    """What the settings come to, as far as they can be used.

    Attributes:
        lines: what there is to say about them.
        config: all settings but the URL and the key; the defaults where one cannot be used.
        endpoint: the final URL; None if there is none.
        api_key: the key for it.
        sends: whether URL and key can be used.
    """

    lines: list[Line]
    config: Config
    endpoint: str | None
    api_key: str | None
    sends: bool


def look(environment: Mapping[str, str]) -> Found:
    """Judge each setting by itself, where the processor would stop at the first one that cannot work."""
    config, others = _others(environment)
    endpoint, url = _url(environment)
    api_key, key = _key(environment, endpoint)
    lines = [_enabled(environment), others, key, url]
    return Found(lines, config, endpoint, api_key, url.mark is Mark.YES and key.mark is Mark.YES)


def _enabled(environment: Mapping[str, str]) -> Line:
    try:
        if is_enabled(environment):
            return yes("switched on", "neither SEER_OTEL_ENABLED nor OTEL_SDK_DISABLED switches it off")
    except ConfigurationError as error:
        return no("switched on", str(error), "Set SEER_OTEL_ENABLED to true or false, or unset it.")
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    name = "OTEL_SDK_DISABLED" if disabled else "SEER_OTEL_ENABLED"
    return no("switched on", f"{name}={environment[name].strip()} switches it off", f"Unset {name}.")


def _others(environment: Mapping[str, str]) -> tuple[Config, Line]:
    """All settings but the switch, the URL and the key."""
    apart = {"SEER_API_KEY", "SEER_INGESTION_URL", *_SWITCHES}
    rest = {name: value for name, value in environment.items() if name not in apart}
    here = {"endpoint": "http://127.0.0.1"}  # a place that needs no key
    try:
        config = load(here, rest)
    except ConfigurationError as error:
        return load(here, {}), no("settings", str(error), _OTHERS_FAIL)
    given = sorted(name for name in rest if name.startswith("SEER_") and rest[name].strip())
    return config, yes("settings", ", ".join(given) if given else "defaults")


def _url(environment: Mapping[str, str]) -> tuple[str | None, Line]:
    given = environment.get("SEER_INGESTION_URL", "").strip()
    try:
        allowed = yes_or_no(environment.get("SEER_OTEL_ALLOW_HTTP") or "no")
    except ValueError:
        allowed = False
    try:
        url = canonical_url(given or SEER_URL, "SEER_INGESTION_URL", allow_http=allowed)
    except ConfigurationError as error:
        return None, no("URL", str(error), f"Set SEER_INGESTION_URL to a URL such as {SEER_URL}.")
    meant = f", from {shown_url(given)}" if given and given != url else "" if given else ", the default"
    return url, yes("URL", shown_url(url) + meant)


def _key(environment: Mapping[str, str], endpoint: str | None) -> tuple[str | None, Line]:
    """Never shows the key."""
    key = environment.get("SEER_API_KEY", "").strip()
    prefix = f"{'begins' if key.startswith(KEY_PREFIX) else 'does not begin'} with {KEY_PREFIX}"
    size = "fewer than 16 characters" if len(key) < 16 else "16 characters or more"
    described = f"set, {prefix}, {size}"
    if endpoint is None:
        return None, note("key", f"{described if key else 'not set'}; there is no URL to judge it by")
    try:
        usable = usable_key(key or None, endpoint, "SEER_API_KEY")
    except ConfigurationError as error:
        if not key:
            return None, no("key", "not set", _sentence(str(error)))
        return None, no("key", described, _sentence(str(error)))
    if usable is None:
        return None, yes("key", "not set, and a backend on this machine needs none")
    return usable, yes("key", described)


def sampling(rate: float, environment: Mapping[str, str], sampler: str | None = None) -> list[Line]:
    """Return what share of the traces is sent.

    Args:
        rate: ours.
        environment: for the sampler that a provider would get.
        sampler: what the provider's own says of itself, where there is a provider.
    """
    labelled = "and each one with ground truth"
    if rate == 0:
        ours = no(
            "sampling", "rate 0: no trace is sent but those with ground truth", "Raise SEER_SAMPLE_RATE."
        )
    elif rate == 1:
        ours = yes("sampling", "rate 1: every trace is sent")
    else:
        more = "" if rate > 0.1 else "To try things out set SEER_SAMPLE_RATE=1.0."
        ours = yes("sampling", f"rate {rate:g}: {one_of(rate)} is sent, {labelled}", more)
    name, share, cure = _of_provider(sampler) if sampler is not None else _of_environment(environment)
    check = "head sampler"
    if share is None:
        return [ours, note(check, f"{name}; its share multiplies with ours")]
    if share == 0:
        return [ours, no(check, f"{name}: no trace is recorded", cure)]
    if share == 1:
        return [ours, yes(check, f"{name}: every trace is recorded")]
    both = f"records {share:g} of the traces first: {one_of(rate * share)} is sent in all"
    return [ours, note(check, f"{name} {both}")]


def _of_environment(environment: Mapping[str, str]) -> tuple[str, float | None, str]:
    """The sampler that a new provider gets: its name, its share, None if unknown, and how to set it."""
    variable = "OTEL_TRACES_SAMPLER"
    name = environment.get(variable, "").strip().lower()
    kind = name.removeprefix("parentbased_")
    share = {"": 1.0, "always_on": 1.0, "always_off": 0.0}.get(kind)
    if kind == "traceidratio":
        return (
            f"{variable}={name}",
            _share(environment.get("OTEL_TRACES_SAMPLER_ARG", "")),
            f"Raise {variable}_ARG.",
        )
    return f"{variable}={name}" if name else f"{variable} is not set", share, f"Set {variable}=always_on."


def _of_provider(sampler: str) -> tuple[str, float | None, str]:
    """The same of a provider's sampler, by what it says of itself."""
    root = sampler.removeprefix("ParentBased{root:").partition(",")[0]
    share = {"AlwaysOnSampler": 1.0, "AlwaysOffSampler": 0.0}.get(root)
    if root.startswith("TraceIdRatioBased{"):
        share = _share(root.removeprefix("TraceIdRatioBased{").rstrip("}"))
    return f"the provider's {root}", share, "Give the provider another sampler."


def _share(text: str) -> float:
    """A share, read as the SDK does: what is none is 1."""
    try:
        share = float(text)
    except ValueError:
        return 1.0
    return share if 0 <= share <= 1 else 1.0


def one_of(rate: float) -> str:
    """Return a share in words: one trace of how many."""
    if rate <= 0:
        return "no trace"
    if rate >= 1:
        return "every trace"
    if rate > 0.5:
        return f"{rate:.0%} of the traces"
    return f"1 trace of {1 / rate:,.3g}" if 1 / rate < 1000 else f"1 trace of {1 / rate:,.0f}"


def masking(environment: Mapping[str, str], scrub: str) -> list[Line]:
    """Return what `OPENINFERENCE_HIDE_*` and the scrubber keep from being sent."""
    hidden = {
        name.removeprefix("OPENINFERENCE_HIDE_"): name
        for name, value in environment.items()
        if name.startswith("OPENINFERENCE_HIDE_") and value.strip().lower() == "true"
    }
    everything = [hidden[name] for name in ("OUTPUTS", "RETRIEVAL_DOCUMENTS") if name in hidden]
    questions = [hidden[name] for name in ("INPUTS",) if name in hidden]
    if everything:
        line = no(
            "masking",
            f"{' and '.join(everything)} hides every document, so no retrieval with documents is sent",
            f"Unset {' and '.join(everything)} where the texts may be sent.",
        )
    elif questions:
        line = no(
            "masking",
            f"{questions[0]} hides every question, so only what using_task() names one for is sent",
            f"Unset {questions[0]} where questions may be sent, or use seer_otel.using_task().",
        )
    elif hidden:
        line = note("masking", ", ".join(sorted(hidden.values())))
    else:
        line = yes("masking", "no OPENINFERENCE_HIDE_* variable is in force")
    where = {
        "metadata": "what looks like a secret is replaced in metadata",
        "all": "what looks like a secret is replaced in metadata, questions and passages",
        "none": "what looks like a secret is sent as it is",
    }
    return [line, (note if scrub == "none" else yes)("scrubbing", f"SEER_OTEL_SCRUB {scrub}: {where[scrub]}")]


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
