"""`seer-otel evaluate`: the report that it prints and writes, and how it goes on after an interruption."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from seer_otel import cli
from seer_otel.evaluation import evaluators
from seer_otel.evaluation.accuracy import FIGURES
from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.judging import Judgement, Requirement

WORDS = ["river", "castle", "engine", "violin", "harbor", "planet", "garden", "winter", "copper", "island"]


def data(path: Path, examples: int, *, gold: bool = True, seed: int = 0) -> Path:
    """A file of questions, each answered by one of five passages."""
    generator = random.Random(seed)
    with path.open("w") as file:
        for number in range(examples):
            chosen = generator.sample(WORDS, 5)
            context = [
                {"text": f"The {word} {number} was built in {1800 + place}.", "id": f"{word}-{number}"}
                for place, word in enumerate(chosen)
            ]
            labels = [f"{chosen[0]}-{number}"] if gold else []
            generator.shuffle(context)
            line = {"task": f"When was the {chosen[0]} {number} built?", "context": context}
            file.write(json.dumps(line | {"ground_truth": {"gold_doc_ids": labels}}) + "\n")
    return path


def evaluate(*arguments: str | Path) -> int:
    return cli.main(["evaluate", *map(str, arguments)])


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-m", "seer_otel.cli", "evaluate", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough examples to be interrupted in the middle."""
    return data(tmp_path_factory.mktemp("many") / "many.jsonl", 1_000)


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the evaluator with its accuracy, has a row for each file and one for all, and says how to read it."""
    first, second = data(tmp_path / "first.jsonl", 40), data(tmp_path / "second.jsonl", 50, seed=1)
    assert evaluate(first, second) == 0
    text = capsys.readouterr().out
    evaluator = evaluators.evaluator()
    assert text.startswith(
        f"Evaluator {evaluator.name} {evaluator.version}\nMeasured: {evaluator.accuracy}\n"
    )
    for title in ("How well the evaluator cites", "ground truth", "in front", "without labels"):
        table = text[text.index(title) :].split("\n\n")[0].splitlines()
        assert [line.split()[:2] for line in table[2:]] == [
            ["first", "40"],
            ["second", "50"],
            ["overall", "90"],
        ]
    assert "\nEvaluator F1 " in text
    assert "nDCG@10" in text
    assert " nDCG " not in text  # without ranks and scores there is none
    assert "\x1b" not in text


def test_the_json(tmp_path: Path) -> None:
    """It has the evaluator, the figures of all files and of each, and every example in the order of the input."""
    first, second = data(tmp_path / "first.jsonl", 12), data(tmp_path / "second.jsonl", 15, seed=1)
    target = tmp_path / "report.json"
    assert evaluate(second, first, "--json", target) == 0
    report = json.loads(target.read_bytes())
    evaluator = evaluators.evaluator()
    assert report["evaluator"] == {
        "name": evaluator.name,
        "version": evaluator.version,
        "accuracy": evaluator.accuracy,
    }
    assert list(report["metrics"]) == ["overall", "files"]
    assert list(report["metrics"]["files"]) == [str(second), str(first)]
    assert report["metrics"]["overall"]["evaluator_f1"]["n"] == report["metrics"]["overall"]["examples"] == 27
    assert set(report["metrics"]["overall"]["gt_precision"]) == {"mean", "low", "high", "n"}
    lines = [json.loads(line) for file in (second, first) for line in file.read_text().splitlines()]
    assert [each["task"] for each in report["examples"]] == [line["task"] for line in lines]
    places = [(str(file), line) for file, n in ((second, 15), (first, 12)) for line in range(1, n + 1)]
    assert [(each["file"], each["line"]) for each in report["examples"]] == places
    for each, line in zip(report["examples"], lines, strict=True):
        assert set(FIGURES) <= set(each)
        assert each["cited_ids"] == [line["context"][place]["id"] for place in each["cited_positions"]]
        assert each["requirements"]
    assert list(tmp_path.glob("report*")) == [target]


@pytest.mark.e2e
def test_on_a_terminal(tmp_path: Path) -> None:
    """A bar shows how far it is, and is gone when the report comes."""
    file = data(tmp_path / "a.jsonl", 300)
    program = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    command = [sys.executable, "-c", program, sys.executable, "-m", "seer_otel.cli", "evaluate", str(file)]
    ended = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False)
    assert ended.returncode == 0
    before, after = ended.stdout.split("Measured: ")
    assert re.search(r"Evaluating .*/300", before)
    assert "How well the evaluator cites" in after
    assert "Evaluating" not in after


def test_too_few_to_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under ten labels there is a figure, and no verdict."""
    assert evaluate(data(tmp_path / "few.jsonl", 5)) == 0
    said = capsys.readouterr().out
    assert "too few labels to say more (n 5)" in said
    assert "High" not in said


def test_how_to_read_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Few labels, and an interval that reaches into another reading, are said."""
    assert evaluate(data(tmp_path / "few.jsonl", 12)) == 0
    assert "12 examples say little; label 50 to 100 to begin with." in capsys.readouterr().out
    file = data(tmp_path / "a.jsonl", 40)
    lines = file.read_text().splitlines()
    for number in range(0, 40, 4):  # a quarter of the labels is wrong
        line = json.loads(lines[number])
        gold = line["ground_truth"]["gold_doc_ids"]
        line["ground_truth"]["gold_doc_ids"] = [
            next(each["id"] for each in line["context"] if each["id"] not in gold)
        ]
        lines[number] = json.dumps(line)
    file.write_text("\n".join(lines))
    assert evaluate(file) == 0
    assert "Its interval reaches into another reading (" in " ".join(capsys.readouterr().out.split())


def test_files_without_gold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file whose labels name no document has its row, and the reader learns that it is not in the overall."""
    assert evaluate(data(tmp_path / "a.jsonl", 20), data(tmp_path / "none.jsonl", 20, gold=False)) == 0
    assert "without none, where no label names a document" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["no.jsonl"], 1, "[Errno 2] No such file or directory: 'no.jsonl'"),
        (["empty.jsonl"], 1, "empty.jsonl, line 1: the file holds no example"),
        (["bad.jsonl"], 1, "bad.jsonl, line 2: task: expected text, not null, or nothing"),
        (["good.jsonl", "--evaluator", "x"], 2, "there is no evaluator 'x'; there are: lexical"),
        (
            ["good.jsonl", "--json", "no/a.json"],
            1,
            "[Errno 2] No such file or directory: 'no/a.json.partial'",
        ),
    ],
)
def test_what_cannot_be(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    said: str,
) -> None:
    """Files and settings that cannot be used are named, and nothing is printed or written."""
    monkeypatch.chdir(tmp_path)
    line = data(Path("good.jsonl"), 1).read_text()
    Path("bad.jsonl").write_text(f"{line}{{}}\n")
    Path("empty.jsonl").write_text("\n\n")
    assert evaluate(*arguments) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"seer-otel evaluate: {said}")
    assert len(list(Path().iterdir())) == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("command", [["evaluate"], ["replay", "--endpoint", "http://127.0.0.1:1"]])
def test_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    """A pipe, which could be read only once, is refused before it is opened."""
    os.mkfifo(tmp_path / "pipe")
    assert cli.main([*command, str(tmp_path / "pipe")]) == 1
    assert "must be a file and no pipe" in capsys.readouterr().err


def test_a_target_that_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the report cannot be put is said before anything is evaluated, and nothing is left beside it."""
    target = tmp_path / "inner" / "folder"
    target.mkdir(parents=True)
    assert evaluate(data(tmp_path / "a.jsonl", 1), "--json", target) == 2
    assert f"--json {target} is there already, and is no file" in capsys.readouterr().err
    assert list(target.parent.iterdir()) == [target]


def test_a_link_as_target(tmp_path: Path) -> None:
    """The report takes the place of the file that a link leads to, and the link stays."""
    (tmp_path / "link").symlink_to(tmp_path / "report.json")
    assert evaluate(data(tmp_path / "a.jsonl", 1), "--json", tmp_path / "link") == 0
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "report.json").read_text())["metrics"]


class Failing:
    """An evaluator that fails at questions that hold a word."""

    name, version, accuracy = "failing", "1", "none"

    def __init__(self, word: str) -> None:
        self.word = word

    def judge(self, query: str, passages: Sequence[str], corpus: Corpus) -> Judgement:
        if self.word in query:
            raise TimeoutError("too slow")
        return Judgement((Requirement("this", True, (0,)),), (0,))


@pytest.mark.parametrize(("word", "status"), [("river", 0), ("When", 1)])
def test_an_evaluator_that_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    word: str,
    status: int,
) -> None:
    """What was not evaluated is counted and in no average, which is a failure only where it is everything."""
    monkeypatch.setattr(evaluators, "evaluator", lambda name: Failing(word))
    target, file = tmp_path / "report.json", data(tmp_path / "a.jsonl", 60)
    failed = sum(word in json.loads(line)["task"] for line in file.read_text().splitlines())
    assert failed
    assert evaluate(file, "--json", target) == status
    out, err = capsys.readouterr()
    assert f"Not evaluated: {failed} of 60; in no average." in out
    assert "a.jsonl, line " in err
    assert "could not be evaluated: TimeoutError: too slow" in err
    report = json.loads(target.read_bytes())
    assert report["metrics"]["overall"]["not_evaluated"] == failed
    assert sum(each["error"] == "TimeoutError: too slow" for each in report["examples"]) == failed
    if not status:
        assert report["metrics"]["overall"]["precision"]["n"] == 60 - failed


def test_no_example_twice(tmp_path: Path) -> None:
    """A file that is named twice is evaluated once."""
    file, target = data(tmp_path / "a.jsonl", 12), tmp_path / "report.json"
    assert evaluate(file, file, "--json", target) == 0
    assert len(json.loads(target.read_bytes())["examples"]) == 12


def interrupt(many: Path, target: Path, number: int) -> tuple[int, str]:
    """Send a signal to a run once it has kept some results; return its exit status and what it said."""
    partial = target.with_name(f"{target.name}.partial")
    with start(many, "--json", target) as process:
        deadline = time.monotonic() + 50
        while not partial.exists() or partial.stat().st_size < 20_000:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert partial.exists()
    assert not target.exists()
    return process.returncode, err


@pytest.mark.e2e
def test_it_goes_on_after_a_kill(many: Path, tmp_path: Path) -> None:
    """After `kill -9` the same command judges only what is left, and the report is that of an undisturbed run."""
    whole, target = tmp_path / "whole.json", tmp_path / "report.json"
    assert evaluate(many, "--json", whole) == 0
    assert interrupt(many, target, signal.SIGKILL)[0] == -signal.SIGKILL
    # A trace in the kept results shows whether they are used.
    partial = tmp_path / "report.json.partial"
    partial.write_bytes(partial.read_bytes().replace(b'"task": "When', b'"task": "KEPT When', 5))
    assert evaluate(many, "--json", target) == 0
    expected, found = (json.loads(path.read_bytes()) for path in (whole, target))
    tasks = [each["task"] for each in found["examples"]]
    assert [task.startswith("KEPT") for task in tasks[:6]] == [True] * 5 + [False]
    for each in found["examples"]:
        each["task"] = each["task"].removeprefix("KEPT ")
    assert found == expected
    assert not partial.exists()


@pytest.mark.e2e
def test_ctrl_c(many: Path, tmp_path: Path) -> None:
    """Ctrl-C ends it at once, with status 130 and a word on how to go on."""
    status, err = interrupt(many, tmp_path / "report.json", signal.SIGINT)
    assert (status, err) == (130, "seer-otel evaluate: interrupted; the same command goes on from there\n")


class Interrupting:
    """An evaluator during whose fifth call somebody presses Ctrl-C."""

    name, version, accuracy = "interrupting", "1", "none"

    def __init__(self) -> None:
        self.calls = 0

    def judge(self, query: str, passages: Sequence[str], corpus: Corpus) -> Judgement:
        self.calls += 1
        if self.calls == 5:
            raise KeyboardInterrupt
        return Judgement((Requirement("this", True, (0,)),), (0,))


@pytest.mark.parametrize("change", ["nothing", "text", "file", "version"])
def test_what_was_kept_is_used_for_the_same_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Results are used again where files, their texts and the evaluator's version are the same, and else not."""
    judge = Interrupting()
    monkeypatch.setattr(evaluators, "evaluator", lambda name: judge)
    file, target = data(tmp_path / "a.jsonl", 12), tmp_path / "report.json"
    assert evaluate(file, "--json", target) == 130
    if change == "text":
        file.write_text(file.read_text().replace("1804", "1805"))
    elif change == "file":
        file = file.rename(tmp_path / "b.jsonl")
    elif change == "version":
        judge.version = "2"
    judge.calls = 10
    assert evaluate(file, "--json", target) == 0
    assert judge.calls - 10 == (12 - 4 if change == "nothing" else 12)
    assert len(json.loads(target.read_bytes())["examples"]) == 12
    assert list(tmp_path.glob("report*")) == [target]


@pytest.mark.e2e
def test_without_the_extra(tmp_path: Path) -> None:
    """Without `rich` the answer is the pip line; all other packages of the extra are not needed."""
    program = (
        "import sys; sys.modules.update(dict.fromkeys({missing!r})); from seer_otel import cli; "
        f"sys.exit(cli.main(['evaluate', {str(data(tmp_path / 'a.jsonl', 3))!r}]))"
    )

    def without(*missing: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-c", program.format(missing=missing)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    ended = without("rich")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("seer-otel evaluate needs rich")
    assert ended.stderr.endswith(": pip install 'seer-otel[local]'\n")
    ended = without("starlette", "uvicorn", "msgspec", "sqlalchemy", "jinja2", "numpy", "scipy")
    assert (ended.returncode, ended.stderr) == (0, "")
