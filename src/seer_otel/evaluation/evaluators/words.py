"""Texts as stems and sentences. English; other languages are split into words, and stemmed little. Pure.

Everything here takes time linear in the length of a text, whatever its script.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Scripts that are written without spaces: each sign is a word of its own.
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# A longer word is no word, but what was encoded; it is taken in pieces.
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]{{1,48}}")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_SENTENCE_END = re.compile("[.!?;]\\s+|\\n+|[\u3002\uff01\uff1f]")
# Bringing signs into order takes time with the square of a stretch of combining ones. No word is so long.
_PIECES = re.compile(r"\s+|\S{1,1000}")
_LONG = 4000
# Tables, code and lists have no sentences; a longer stretch counts as several.
_LONGEST_SENTENCE = 60
_PIECE = 30


def listed(words: str) -> frozenset[str]:
    """The words of a list, which is easier to read as one text."""
    return frozenset(words.split())


STOP = listed(
    """a about above after again all also although am an and another any are as at be became because become been before
    being below between both but by can cannot could d did do does doing don done during each either else ever every few
    for from further get give given go got had has have having he her here hers herself him himself his how i if in
    into is it its itself just least let ll made make many may me might more most much must my name named neither no nor
    not of off on once one only onto or other others ought our ours out over own please re s same shall she should
    since so some such t tell than that the their theirs them themselves then there these they thing things this those
    through thus to too toward towards under until up upon us ve very was we were what whatever when where whereas
    whether which while who whom whose why will with within without would yet you your yours"""
)
"""Words that say nothing about what a text is about."""


def folded(text: str) -> str:
    """The text without accents and with compatible signs made one, so that `Beyoncé` is `Beyonce`."""
    if text.isascii():
        return text
    if len(text) > _LONG:
        return "".join([_folded(piece) for piece in _PIECES.findall(text)])
    return _folded(text)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def words(text: str) -> list[str]:
    """The words of a text, as they are written."""
    return _WORD.findall(folded(text))


def stems(text: str) -> list[str]:
    """The words of a text, stemmed, in order; what `Corpus.add` wants of a passage."""
    return list(map(stem, words(text)))


def sentences(text: str) -> list[list[str]]:
    """The words of each sentence, as they are written; a stretch without sentences is cut into pieces."""
    found = []
    for part in _SENTENCE_END.split(folded(text)):
        said = _WORD.findall(part)
        if len(said) <= _LONGEST_SENTENCE:
            if said:
                found.append(said)
        else:
            found += [said[start : start + _PIECE] for start in range(0, len(said), _PIECE)]
    return found


_IRREGULAR = {
    form: plain
    for plain, forms in {
        "bear": "bore born borne birth births", "begin": "began begun", "bite": "bit bitten", "blow": "blew blown",
        "break": "broke broken", "bring": "brought", "build": "built", "buy": "bought", "catch": "caught",
        "child": "children", "choose": "chose chosen", "come": "came", "deal": "dealt", "die": "died dies dying death "
        "deaths dead", "draw": "drew drawn", "drink": "drank drunk", "drive": "drove driven", "eat": "ate eaten",
        "fall": "fell fallen", "feed": "fed", "fight": "fought", "fly": "flew flown", "foot": "feet",
        "freeze": "froze frozen", "grow": "grew grown", "hear": "heard", "hide": "hid hidden", "hold": "held",
        "keep": "kept", "know": "knew known", "lead": "led", "leave": "left", "life": "lives", "live": "lived living",
        "lose": "lost loss losses", "man": "men", "marry": "married marriage marriages", "mean": "meant", "meet": "met",
        "pay": "paid", "person": "people persons", "ride": "rode ridden", "ring": "rang rung", "rise": "rose risen",
        "run": "ran", "say": "said", "see": "saw seen", "seek": "sought", "sell": "sold", "send": "sent",
        "shoot": "shot", "sing": "sang sung song songs singer singers", "sink": "sank sunk", "sit": "sat",
        "speak": "spoke spoken", "spend": "spent", "stand": "stood", "steal": "stole stolen", "strike": "struck",
        "swim": "swam swum", "take": "took taken", "teach": "taught", "tell": "told", "think": "thought",
        "throw": "threw thrown", "understand": "understood", "wear": "wore worn", "win": "won winner winners",
        "woman": "women", "write": "wrote written writer writers",
    }.items()
    for form in forms.split()
}  # fmt: skip
_VOWEL = re.compile("[aeiouy]")
_MEASURE = re.compile("[aeiouy]+[^aeiouy]+")
_STEPS = (
    ("ational", "ate"), ("ization", "ize"), ("fulness", "ful"), ("ousness", "ous"), ("iveness", "ive"),
    ("tional", "tion"), ("biliti", "ble"), ("entli", "ent"), ("ation", "ate"), ("alism", "al"), ("aliti", "al"),
    ("iviti", "ive"), ("ousli", "ous"), ("izer", "ize"), ("ator", "ate"), ("alli", "al"), ("enci", "ence"),
    ("anci", "ance"), ("abli", "able"), ("eli", "e"), ("logi", "log"), ("li", ""),
)  # fmt: skip
_ENDINGS = (
    "ement", "ance", "ence", "able", "ible", "ment", "icate", "ative", "alize", "ical", "ness", "ant", "ent", "ism",
    "ate", "iti", "ous", "ive", "ize", "ful", "ion", "al", "er", "or", "ic",
)  # fmt: skip


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of one word: lower case, without the endings of English inflection and derivation.

    In the manner of M. F. Porter, "An algorithm for suffix stripping" (1980), but not his algorithm to the letter.
    """
    word = word.lower()
    word = _IRREGULAR.get(word, word)
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _inflected(word)
    if word.endswith("y") and _VOWEL.search(word, 0, len(word) - 1):
        word = word[:-1] + "i"
    for ending, instead in _STEPS:
        if word.endswith(ending):
            if _measure(word[: -len(ending)]) > 0:
                word = word[: -len(ending)] + instead
            break
    for ending in _ENDINGS:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            if _measure(rest) > 1 and (ending != "ion" or rest[-1] in "st"):
                word = rest
            break
    if word.endswith("e") and (
        _measure(word[:-1]) > 1 or (_measure(word[:-1]) == 1 and not _short(word[:-1]))
    ):
        word = word[:-1]
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _inflected(word: str) -> str:
    """Plural, past and progressive forms to the plain one."""
    if word.endswith("sses"):
        word = word[:-2]
    elif word.endswith("ies"):
        word = word[:-3] + ("ie" if len(word) == 4 else "i")
    elif word.endswith("s") and word[-2] not in "su" and _VOWEL.search(word, 0, len(word) - 2):
        word = word[:-1]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) > 1 and _VOWEL.search(rest):
            if rest.endswith(("at", "bl", "iz")):
                return rest + "e"
            if rest[-1] == rest[-2] and rest[-1] not in "lsz":
                return rest[:-1]
            return rest + "e" if _measure(rest) == 1 and _short(rest) else rest
    return word


def _measure(part: str) -> int:
    """How many times a vowel is followed by a consonant, more or less the number of syllables."""
    return len(_MEASURE.findall(part))


def _short(part: str) -> bool:
    """Whether it ends consonant, vowel, consonant, as in `hop`."""
    return len(part) > 2 and part[-1] not in "aeiouywx" and part[-2] in "aeiouy" and part[-3] not in "aeiouy"
