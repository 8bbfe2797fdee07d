"""Fit the default evaluator, and write its model, the fixture of its tests and its accuracy report.

python scripts/fit_evaluator.py ../shared/eval            # writes them; `make fit` does this
python scripts/fit_evaluator.py ../shared/eval --check    # exit status 1 where they differ

The folder holds the labelled sets as JSON lines. Their texts are share-alike and go into nothing that is written:
the model holds split points and weights, the fixture numbers, the report shares.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

# Sums over several threads differ in their last digits.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_threads] = "1"
ROOT = Path(__file__).parent.parent
# The package as it stands here, so that the model is written where it is read.
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "src")]

from fit import contexts, report, training  # noqa: E402
from fit.contexts import ANSWERABLE, FOLDS, SETS, Labelled  # noqa: E402

from seer_otel.evaluation.evaluators.corpus import Corpus  # noqa: E402
from seer_otel.evaluation.evaluators.features import Context  # noqa: E402
from seer_otel.evaluation.evaluators.lexical import MODEL, Lexical  # noqa: E402

VERSION = "1"
FIXTURE = ROOT / "tests" / "evaluation" / "evaluators" / "lexical_rows.json"
PAGE = ROOT / "docs" / "evaluators.md"
BEGIN, END = "<!-- written by scripts/fit_evaluator.py -->", "<!-- end -->"
ABOUT = {"accuracy": "not yet measured", "name": "lexical", "version": VERSION}


class Data:
    """All labelled contexts; `whole` is what trees are fitted on, `thin` what evidence was taken out of."""

    def __init__(self, folder: Path) -> None:
        self.base: list[Labelled] = []
        self.whole: list[Labelled] = []
        self.thin: list[Labelled] = []
        self.corpora: dict[str, Corpus] = {}
        for name in SETS:
            base = contexts.load(folder, name)
            corpus = self.corpora[name] = contexts.corpus_of(base)
            self.base += base
            self.thin += [each.seen_with(corpus) for each in contexts.thinned(base)]
            if name in ANSWERABLE:
                self.whole += [each.seen_with(corpus, Corpus()) for each in base]
                long = contexts.lengthened(base)
                joined = contexts.corpus_of(long)
                self.whole += [each.seen_with(joined) for each in long]
            if name == "hotpot":
                self.whole += [each.seen_with(corpus) for each in contexts.widened(base)]

    def fitted(self, keep: Callable[[Labelled], bool]) -> Lexical:
        whole, thin = ([each for each in side if keep(each)] for side in (self.whole, self.thin))
        return Lexical(training.fitted(whole, thin, ABOUT))


DATA: Data


def fold(number: int) -> tuple[list[report.Judged], ...]:
    """Fit without a fold and judge it: as it is, in a fresh store, with evidence taken out, as long documents."""
    model = DATA.fitted(lambda each: each.fold != number)
    base = [each for each in DATA.base if each.fold == number]
    thin = [each for each in DATA.thin if each.fold == number]
    variants = [each for each in DATA.whole if each.fold == number and each.kind != "base"]
    known = DATA.corpora
    return tuple(
        report.judge(model, examples, corpora)
        for examples, corpora in ((base, known), (base, {}), (thin, known), (variants, known))
    )


def without(name: str) -> list[report.Judged]:
    """Fit without a set and judge it."""
    left = {name, "squad_unanswerable"} if name == "squad" else {name}
    model = DATA.fitted(lambda each: each.name not in left)
    return report.judge(model, [each for each in DATA.base if each.name == name], DATA.corpora)


def final() -> tuple[training.Model, dict[str, object]]:
    """The model fitted on everything, and rows with what scikit-learn makes of them."""
    sample = [each for each in DATA.whole if each.kind == "base"][::151]
    rows = [row for each in sample for row in each.contexts[0].first()[:2]]
    trees = training.boosted(DATA.whole, Context.first)
    fixture = {"chances": trees.predict_proba(rows)[:, 1].tolist(), "rows": rows}
    return training.fitted(DATA.whole, DATA.thin, ABOUT), fixture


def page(
    folds: list[report.Judged],
    fresh: list[report.Judged],
    thin: list[report.Judged],
    variants: list[report.Judged],
    left: dict[str, list[report.Judged]],
) -> str:
    """The part of the page that is written by this program."""

    def of(kind: str, name: str) -> str:
        return report.f1_of([each for each in variants if each.labelled.kind == kind], name)

    macro = report.macro(folds)
    lines = [
        BEGIN,
        "",
        f"Model `lexical` {VERSION}. Five folds; an article, or questions that share a gold passage, are in one fold.",
        "",
        report.accuracy_table(folds),
        "",
        f"In a fresh store, which knows only the passages at hand: macro F1 {report.shown(report.macro(fresh))}.",
        "",
        "| F1 | " + " | ".join(ANSWERABLE) + " |",
        "| --- |" + " --- |" * len(ANSWERABLE),
        "| as above | " + " | ".join(report.f1_of(folds, name) for name in ANSWERABLE) + " |",
        "| fitted without this set | "
        + " | ".join(report.f1_of(left[name], name) for name in ANSWERABLE)
        + " |",
        "| documents of some 2,800 characters, made by joining | "
        + " | ".join(of("long", name) for name in ANSWERABLE)
        + " |",
        f"| contexts of 20 passages, made by adding like ones | {of('wide', 'hotpot')} | - | - |",
        "",
        "| nothing is cited | share |",
        "| --- | --- |",
        f"| squad_unanswerable, as it is | {report.share(report.abstained(folds, 'squad_unanswerable'))} |",
    ]
    for name in ANSWERABLE:
        gone = [each for each in thin if each.labelled.kind == "none"]
        lines.append(f"| {name}, all evidence taken out | {report.share(report.abstained(gone, name))} |")
        lines.append(
            f"| {name}, as it is (each is a mistake) | {report.share(report.abstained(folds, name))} |"
        )
    lines += [
        "",
        "How often a context with all evidence is ranked above one where evidence was taken out (AUC; .5 is chance):",
        "",
        report.sufficiency_table(thin),
        "",
        report.calibration_table(thin),
        "",
        END,
    ]
    ABOUT["accuracy"] = (
        f"cites with F1 {report.share(macro.mean)} on HotpotQA, SQuAD and Natural Questions, cross-validated; "
        "lower on long or technical documents"
    )
    return "\n".join(lines)


def main() -> None:
    global DATA  # noqa: PLW0603 - what the processes share by being forked
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    DATA = Data(asked.folder)
    print(
        f"{len(DATA.whole)} contexts, {len(DATA.thin)} with passages taken out", file=sys.stderr, flush=True
    )
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        model = pool.submit(final)
        folds = [pool.submit(fold, number) for number in range(FOLDS)]
        left = {name: pool.submit(without, name) for name in ANSWERABLE}
        parts = [list(chain(*part)) for part in zip(*[each.result() for each in folds], strict=True)]
        text = page(*parts, {name: each.result() for name, each in left.items()})
        kept, fixture = model.result()
    kept["accuracy"] = ABOUT["accuracy"]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    written = {
        MODEL: dumped(kept),
        FIXTURE: dumped(fixture),
        PAGE: before + text + rest.split(END, 1)[1],
    }
    different = [path for path, new in written.items() if not path.exists() or path.read_text("utf-8") != new]
    if asked.check:
        sys.exit(f"not as it is fitted: {', '.join(map(str, different))}" if different else 0)
    for path in different:
        path.write_text(written[path], encoding="utf-8")
    print(text)


def dumped(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    main()
