from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from seer_otel import cli
from seer_otel.local.schema import parse
from seer_otel.local.show import JUDGED_LEGEND, LEGEND, printable
from seer_otel.local.storage.store import Store

from .histories import judge_all

FIRST, SECOND = "a" * 32, "b" * 32
LOST = "Attributes that the span lost, so documents may be missing: 7. Raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT."
PARTIAL = (
    "Only a part of this trace was seen, so no final context was inferred from it: "
    "the trace was still open after SEER_OTEL_MAX_TRACE_AGE seconds."
)
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def add(folder: Path, task: str = "Who made it?", context: Any = (), **fields: Any) -> None:
    """Store one event."""
    body = json.dumps({"task": task, "context": list(context)} | fields)
    with closing(Store(folder)) as store:
        store.add(parse(body.encode()), body)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with one trace of two hops, the later of which came first."""
    labels = {"gold_doc_ids": ["d1", "d9"]}
    passages = [{"text": f"text {number}", "id": f"d{number}"} for number in range(5)]
    add(
        tmp_path,
        "What did the director win?",
        passages[:1],
        trace_id=FIRST,
        span_name="hop_2",
        is_final_context=True,
        ground_truth=labels,
        created_at="2026-01-02T03:04:06.5Z",
        metadata={"seer_otel.partial": "max_trace_age", "seer_otel.attributes_dropped": 7},
    )
    add(
        tmp_path,
        "What did the director win?",
        passages,
        trace_id=FIRST,
        span_name="hop_1",
        subquery="Who directed it?",
        ground_truth=labels,
        created_at="2026-01-02T03:04:05Z",
        metadata={"seer_otel.passages_cut": 12, "seer_otel.texts_cut": 1, "seer_otel.metadata_cut": 0},
    )
    return tmp_path


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide enough that nothing is wrapped, unless a test says otherwise."""
    monkeypatch.setenv("COLUMNS", "1000")


def show(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> str:
    """Return what `show` prints, which succeeds."""
    assert cli.main(["show", "--data", str(folder), *options]) == 0
    return capsys.readouterr().out


def test_a_trace(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace is its question once and its hops in time order, with passages, labels, marks and the final context."""
    assert show(capsys, folder).splitlines() == [
        f"Trace {FIRST}  2 retrievals  2026-01-02 03:04:05 UTC",
        "  Question: What did the director win?",
        "   1  hop_1  03:04:05.000  5 passages",
        "      Asked: Who directed it?",
        "      - d0: text 0",
        "      - d1: text 1",
        "      - d2: text 2",
        "      and 2 more",
        "      GT recall 50%, GT precision 20%",
        "      Note: Passages left out, as at most 50 are sent: 12.",
        "      Note: Texts cut at 4,000 characters: 1.",
        "   2  hop_2  03:04:06.500  1 passage  << final context",
        "      - d0: text 0",
        "      GT recall 0%, GT precision 0%",
        f"      Note: {LOST}",
        f"      Note: {PARTIAL}",
        "",
        LEGEND,
    ]


def test_a_trace_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --trace all passages, the gold documents, the metadata and the origin of each event are there."""
    passages: list[Any] = [{"text": f"text {n}", "id": f"d{n}", "score": n / 3} for n in range(4)]
    passages += ["word " * 100, {"text": "last", "id": "d9"}]
    add(
        tmp_path,
        "question " * 100,
        passages,
        trace_id=FIRST,
        span_id="1" * 16,
        parent_span_id="2" * 16,
        ground_truth={"gold_doc_ids": ["d1", "d9", "d8", "d8"], "answer": "yes"},
        created_at="2026-01-02T03:04:05Z",
        metadata={"user": "u1", "nested": {"a": [1]}},
    )
    with closing(Store(tmp_path)) as store:
        [[record]] = store.traces(1)
    lines = show(capsys, tmp_path, "--trace", "aa").splitlines()
    assert lines[1] == f"  Question: {('question ' * 100).strip()}"
    assert lines[3:] == [
        "      Span: 1111111111111111, parent 2222222222222222",
        "      Retrieved at: 2026-01-02T03:04:05.000000Z",
        f"      Received at:  {record.received_at} as {record.record_id}",
        "       1  d0 (score 0): text 0",
        "       2  d1 (score 0.3333) [gold]: text 1",
        "       3  d2 (score 0.6667): text 2",
        "       4  d3 (score 1): text 3",
        f"       5  no id: {('word ' * 100)[:199]}\N{HORIZONTAL ELLIPSIS}",
        "       6  d9 [gold]: last",
        "      Gold documents: 2 of 3 retrieved",
        "      Missing: d8",
        "      Right answer: yes",
        "      GT recall 67%, GT precision 33%",
        "      State: not judged yet; a running `seer-otel serve` does so",
        "      Metadata:",
        "        user: u1",
        '        nested: {"a": [1]}',
        "",
        LEGEND,
    ]


@pytest.mark.parametrize(
    "why",
    ["flush", "max_trace_age", "max_traces", "max_trace_spans", "max_bytes", "queue_full", "sampled_late"],
)
def test_why_a_trace_is_partial(why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each reason that our client gives is told in words; one that it does not know yet is shown as it is."""
    add(tmp_path, metadata={"seer_otel.partial": why})
    assert re.search(r"Note: Only a part .* inferred from it: [a-z]+ [\w ,]+\.\n", show(capsys, tmp_path))
    add(tmp_path, metadata={"seer_otel.partial": "new_one"})
    assert "inferred from it: new_one." in show(capsys, tmp_path)


def test_a_trace_without_a_final_mark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no hop is marked, the last by time is shown as final, and other questions stand at their hops."""
    add(tmp_path, "second?", trace_id=FIRST, created_at="2026-01-01T00:00:02Z")
    add(
        tmp_path,
        "first?",
        trace_id=FIRST,
        created_at="2026-01-01T00:00:01Z",
        ground_truth={"gold_doc_ids": ["a"]},
    )
    assert show(capsys, tmp_path).splitlines()[1:] == [
        "  Question: second?",
        "   1  retrieval  00:00:01.000  no passages",
        "      Question: first?",
        "      GT recall 0%, GT precision not available",
        "   2  retrieval  00:00:02.000  no passages  << final context (last by time)",
        "",
        LEGEND,
    ]


def test_which_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The newest trace comes first, --limit counts traces, --trace picks by the beginning of an id."""
    add(tmp_path, "one?", trace_id=FIRST)
    add(tmp_path, "two?", trace_id=SECOND)
    add(tmp_path, "three?")
    assert re.findall(r"Question: (\w+)", show(capsys, tmp_path)) == ["three", "two", "one"]
    assert re.findall(r"Question: (\w+)", show(capsys, tmp_path, "--limit", "2")) == ["three", "two"]
    assert re.findall(r"Question: (\w+)", show(capsys, tmp_path, "--trace", "AAAA")) == ["one"]
    assert cli.main(["show", "--data", str(tmp_path), "--trace", "c\x1b[2J"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "c\\x1b[2J" in err


@pytest.mark.parametrize("made", [True, False])
def test_an_empty_store(made: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing has arrived, it says where it looked and how to begin; JSON stays empty; no folder is made."""
    folder = tmp_path / "data"
    if made:
        Store(folder).close()
    text = show(capsys, folder)
    first = "Nothing has arrived in" if made else "No backend has stored anything in"
    assert text.startswith(f"{first} {folder} yet.\n")
    assert "`seer-otel show --data FOLDER`" in text
    assert f"`seer-otel serve --data {folder}`" in text
    assert show(capsys, folder, "--json") == ""
    assert cli.main(["show", "--data", str(folder), "--trace", "aa"]) == 1
    out, err = capsys.readouterr()
    assert (out, str(folder) in err, "--data FOLDER" in err) == ("", True, True)
    assert folder.exists() == made


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json each event is one line of ASCII that holds the whole event and its scores."""
    add(folder, "\u00fc \x9b \u2028", unknown={"kept": True})
    text = show(capsys, folder, "--json")
    assert text.isascii()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["event"].get("span_name") for line in lines] == [None, "hop_1", "hop_2"]
    assert lines[0]["event"] == {"task": "\u00fc \x9b \u2028", "context": [], "unknown": {"kept": True}}
    assert lines[1].keys() == {
        "record_id", "received_at", "created_at", "gt_recall", "gt_precision", "gt_f1", "is_final", "state", "judged",
        "event",
    }  # fmt: skip
    assert [line["is_final"] for line in lines] == [True, False, True]
    assert {line["state"] for line in lines} <= {"pending", "sampled_out"}
    assert [line["gt_recall"] for line in lines] == [None, 0.5, 0.0]


HOSTILE = "\x1b[2J\x1b]0;title\x07 [bold]b[/bold] [/] :smile: \u202eback \x9b31m a\r\nb\tc \x7f"


def test_hostile_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters of an event show as escapes, and markup shows as it is, wherever the event has text."""
    add(
        tmp_path,
        HOSTILE,
        [{"text": HOSTILE, "id": HOSTILE}],
        span_name=HOSTILE,
        subquery=HOSTILE,
        metadata={"seer_otel.partial": HOSTILE, "seer_otel.texts_cut": [HOSTILE]},
    )
    text = show(capsys, tmp_path)
    assert not {character for character in text if unicodedata.category(character) in ("Cc", "Cf")} - {"\n"}
    assert (
        r"Question: \x1b[2J\x1b]0;title\x07 [bold]b[/bold] [/] :smile: \u202eback \x9b31m a b c \x7f" in text
    )
    assert len(text.splitlines()) == 7


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("options", [(), ("--trace", "rec_")])
@pytest.mark.parametrize("width", [80, 120])
def test_the_width(
    width: int,
    options: tuple[str, ...],
    terminal: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No line is wider than the terminal, whatever the script, and long texts end in an ellipsis."""
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(width))
    scripts = [
        "word " * 700,
        "x" * 3_000,
        "\u65e5\u672c\u8a9e\u3067\u3059\u3002" * 300,
        "\u0928\u092e\u0938\u094d " * 300,
    ]
    for text in scripts:
        add(tmp_path, text, [{"text": text, "id": text}, text], subquery=text, span_name=text)
    lines = show(capsys, tmp_path, *options).splitlines()
    assert any(STYLE.search(line) for line in lines) == terminal
    plain = [STYLE.sub("", line) for line in lines]
    assert max(map(cell_len, plain)) <= width
    assert sum("\N{HORIZONTAL ELLIPSIS}" in line for line in plain) >= (2 if options else 4) * len(scripts)
    assert not any(line != line.rstrip() for line in plain)


@given(st.text())
def test_printable(text: str) -> None:
    """Whatever comes, what is printed has no line breaks, no control characters and no change of direction."""
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    bad = {
        character for character in shown if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
    assert bad <= {"\u200c", "\u200d"}
    assert printable(shown) == shown


def test_an_emoji_of_several_parts_stays_whole() -> None:
    """Joiners are kept, as emoji are made with them."""
    assert printable("\U0001f469\u200d\U0001f680") == "\U0001f469\u200d\U0001f680"


def test_a_store_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is no database is one line and status 1."""
    (tmp_path / "events.db").write_text("not a database, but long enough to look like one")
    assert cli.main(["show", "--data", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


def run(folder: Path, *options: str, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-W", "error", "-m", "seer_otel.cli", "show", "--data", str(folder), *options]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | environment
    )


@pytest.mark.e2e
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_that_leaves(options: tuple[str, ...], tmp_path: Path) -> None:
    """When the reader of a pipe has seen enough, as `head` has, nothing is complained about."""
    with closing(Store(tmp_path)) as store:
        body = json.dumps({"task": "question " * 30, "context": ["a" * 1_000] * 10})
        for _ in range(300):
            store.add(parse(body.encode()), body)
    with run(tmp_path, "--limit", "300", *options) as shown:
        assert shown.stdout is not None
        assert shown.stderr is not None
        shown.stdout.readline()
        shown.stdout.close()
        assert shown.stderr.read() == b""


@pytest.mark.e2e
def test_a_pipe_of_few_characters(tmp_path: Path) -> None:
    """In an encoding that lacks the characters of an event they show as escapes."""
    add(tmp_path, "\u65e5\u672c", ["a" * 200])
    with run(tmp_path, PYTHONIOENCODING="ascii") as shown:
        out, err = shown.communicate()
    assert b"Question: \\u65e5\\u672c" in out
    assert (shown.returncode, err) == (0, b"")


def test_what_was_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the evaluator says stands with each event, with what is missing, or why there is nothing."""
    whole = {"trace_id": FIRST, "sample_rate": 1.0}
    add(tmp_path, "what is it", ["what", "no"], subquery="what", created_at="2026-01-01T00:00:01Z", **whole)
    add(tmp_path, "raise", created_at="2026-01-01T00:00:02Z", **whole)
    with closing(Store(tmp_path)) as store:
        judge_all(store)
    lines = show(capsys, tmp_path).splitlines()
    assert lines[6:12] == [
        "      - no",
        "      Judged: recall 33%, precision 50%",
        "      Not found: is",
        "      Not found: it",
        "      Judged by what was asked: recall 100%, precision 50%",
        "   2  retrieval  00:00:02.000  no passages  << final context (last by time)",
    ]
    assert lines[12] == "      Judged: not evaluated: ValueError: asked to"
    assert lines[-1] == JUDGED_LEGEND.format("stand-in 1")
    first, second = (json.loads(line)["judged"] for line in show(capsys, tmp_path, "--json").splitlines())
    assert first["task"] == {
        "evaluator": "stand-in 1",
        "recall": pytest.approx(1 / 3),
        "precision": 0.5,
        "f1": pytest.approx(0.4),
        "ndcg": None,
        "sufficiency": 0.0,
        "missing": ["is", "it"],
    }
    assert (first["subquery"]["recall"], first["subquery"]["missing"]) == (1.0, [])
    assert (second["task"]["recall"], second["task"]["error"]) == (None, "ValueError: asked to")


@pytest.mark.parametrize(("rate", "words"), [(0.0, "sampled out"), (1.0, "not judged yet")])
def test_what_was_not_judged(
    rate: float, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In full, an event without a judgement says why."""
    add(tmp_path, trace_id=FIRST, sample_rate=rate)
    [line] = [line for line in show(capsys, tmp_path, "--trace", "aa").splitlines() if "State: " in line]
    assert words in line
