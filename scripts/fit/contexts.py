"""The labelled contexts that the evaluator is fitted on, and variants of them. Deterministic.

The labelled sets know contexts of ten passages of some 600 characters, with one or two to be cited. Others do not: so
long documents are made by joining passages, wide contexts by adding the likest passages of other questions, and
contexts without evidence by taking it out.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from seer_otel.evaluation.datasets import Example, read
from seer_otel.evaluation.evaluators.corpus import Corpus
from seer_otel.evaluation.evaluators.features import Context
from seer_otel.evaluation.evaluators.passage import Passage
from seer_otel.evaluation.evaluators.question import question

SETS = ("hotpot", "squad", "nq", "squad_unanswerable")
ANSWERABLE = SETS[:3]
FOLDS = 5
LONG = 2_800
WIDE = 20

parsed = lru_cache(maxsize=None)(Passage)


@dataclass
class Labelled:
    """One question with its passages, of which some are gold.

    `group` is what must not stand on both sides of a split: an article, or questions that share a gold passage.
    `kind` is `base`, `long` or `wide`; of contexts without some passages it is `full` (gold left in), `one` (one gold
    passage taken out), `none` (all of them) or `unanswerable` (there never was one).
    """

    name: str
    example: Example
    group: str
    ids: list[str]
    texts: list[str]
    kind: str = "base"
    contexts: list[Context] = field(default_factory=list)

    @property
    def gold(self) -> set[str]:
        return set(self.example.gold_ids or ())

    @property
    def labels(self) -> list[bool]:
        return [name in self.gold for name in self.ids]

    @property
    def fold(self) -> int:
        return int(hashlib.sha256(self.group.encode()).hexdigest(), 16) % FOLDS

    def chance(self, purpose: str) -> random.Random:
        return random.Random(f"{purpose} {self.name} {self.example.line}")

    def seen_with(self, *corpora: Corpus) -> Labelled:
        """Itself, with its context as it looks beside each of these corpora."""
        asked, passages = question(self.example.task), [parsed(text) for text in self.texts]
        return replace(self, contexts=[Context(asked, passages, corpus) for corpus in corpora])


def load(folder: Path, name: str) -> list[Labelled]:
    """The examples of one set, grouped."""
    examples = list(read(str(folder / f"{name}.jsonl")))
    group = _groups(examples)
    return [
        Labelled(name, example, group[number], [str(each.id) for each in example.passages], example.texts)
        for number, example in enumerate(examples)
    ]


def _groups(examples: Sequence[Example]) -> list[str]:
    parent: dict[str, str] = {}

    def root(one: str) -> str:
        while parent.setdefault(one, one) != one:
            one = parent[one]
        return one

    keys = []
    for example in examples:
        names = sorted(example.gold_ids or ()) or [str(example.metadata["looks_like"])]
        # SQuAD's ids name the article: `sq:Kenya#4`, `s2:Kenya#4`.
        own = [name.partition(":")[2].partition("#")[0] if "#" in name else name for name in names]
        for other in own[1:]:
            parent[root(other)] = root(own[0])
        keys.append(own[0])
    return [root(key) for key in keys]


def pool(examples: Iterable[Labelled]) -> dict[str, str]:
    """All passages by id, in the order of the ids."""
    found: dict[str, str] = {}
    for each in examples:
        for name, text in zip(each.ids, each.texts, strict=True):
            found.setdefault(name, text)
    return dict(sorted(found.items()))


def corpus_of(examples: Iterable[Labelled]) -> Corpus:
    """What a store knows that holds all these passages."""
    corpus = Corpus()
    for text in pool(examples).values():
        corpus.add(parsed(text).line)
    return corpus


def lengthened(examples: Sequence[Labelled]) -> list[Labelled]:
    """Each passage joined with others, its neighbours in the article where it has some, to about LONG characters."""
    texts = pool(examples)
    names, articles = list(texts), defaultdict(list)
    for name in names:
        articles[name.partition("#")[0]].append(name)
    found = []
    for each in examples:
        chance, taken, joined = each.chance("long"), {*each.ids, *each.gold}, []
        for name, text in zip(each.ids, each.texts, strict=True):
            near = [other for other in articles[name.partition("#")[0]] if other not in taken]
            chance.shuffle(near)
            heading, line_break, body = text.partition("\n") if "#" not in name else ("", "", text)
            parts, wanted = [body or heading], LONG * chance.uniform(0.4, 1.6)
            while sum(map(len, parts)) < wanted:
                other = near.pop() if near else chance.choice(names)
                if other not in taken:
                    parts.append(texts[other].partition("\n")[2] or texts[other])
            chance.shuffle(parts)
            joined.append("\n".join([heading, *parts] if line_break else parts))
        found.append(replace(each, texts=joined, kind="long"))
    return found


def widened(examples: Sequence[Labelled]) -> list[Labelled]:
    """Each context with the passages that are likest to its question and its gold, up to WIDE."""
    texts = pool(examples)
    holding: dict[str, list[str]] = defaultdict(list)
    for name, text in texts.items():
        for stem in sorted(parsed(text).known):
            holding[stem].append(name)
    found = []
    for each in examples:
        chance, taken = each.chance("wide"), {*each.ids, *each.gold}
        telling = set(question(each.example.task).terms)
        for name, text in zip(each.ids, each.texts, strict=True):
            if name in each.gold:
                telling |= parsed(text).names
        likeness: dict[str, float] = defaultdict(float)
        for stem in sorted(telling):
            if len(holding[stem]) < 400:
                for name in holding[stem]:
                    likeness[name] += (1 + len(holding[stem])) ** -0.5
        likest = [
            name for name in sorted(likeness, key=lambda name: (-likeness[name], name)) if name not in taken
        ]
        likest = likest[: WIDE * 3 // 2]
        chance.shuffle(likest)
        both = list(zip(each.ids, each.texts, strict=True))
        both += [(name, texts[name]) for name in likest[: max(WIDE - len(both), 0)]]
        chance.shuffle(both)
        ids, passages = map(list, zip(*both, strict=True))
        found.append(replace(each, ids=ids, texts=passages, kind="wide"))
    return found


def thinned(examples: Sequence[Labelled]) -> list[Labelled]:
    """Each context with as many passages taken out as it has gold ones, so that its size gives nothing away."""
    found = []
    for each in examples:
        chance, labels = each.chance("thin"), each.labels
        gold = [place for place, label in enumerate(labels) if label]
        other = [place for place, label in enumerate(labels) if not label]
        if not each.gold:
            out = {"unanswerable": {chance.choice(other)}}
        elif len(gold) < len(each.gold) or len(other) <= len(gold) + 1:
            continue
        else:
            out = {"full": set(chance.sample(other, len(gold))), "none": set(gold)}
            if len(gold) > 1:
                out["one"] = {chance.choice(gold), *chance.sample(other, len(gold) - 1)}
        for kind, places in out.items():
            left = [place for place in range(len(labels)) if place not in places]
            ids, texts = [each.ids[place] for place in left], [each.texts[place] for place in left]
            found.append(replace(each, ids=ids, texts=texts, kind=kind))
    return found
