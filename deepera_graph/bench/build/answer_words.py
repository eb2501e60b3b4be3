"""Whether a passage gives away an answer."""

import re

from deepera_graph.bench.build.overlap import shingles
from deepera_graph.text.sentences import split_sentences
from deepera_graph.text.words import STOP_WORDS, stem, words

_SHORT = 12
_COPIED = 0.5
_TOLD = 3
_VERDICT_WORDS = """
    yes no maybe true false unclear unknown none neither both never always sometimes likely unlikely
    possibly probably significant significantly significance increase increased decrease decreased
    reduced improved worsened higher lower better worse positive negative difference different
    effect change changed same equal similar
    """
_VERDICTS = frozenset(stem(word) for word in _VERDICT_WORDS.split())
_NUMBER_WORDS = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip
_PERCENT = re.compile(r"\s*%|\s+per\s?cent\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_ZEROS = re.compile(r"(\.\d*?)0+(?!\d)")


def holds_answer(text: str, answer: str, question: str = "") -> bool:
    """Return whether a text contains an answer.

    A short answer, up to 12 words, is found word by word, whatever the inflection, the case, the
    punctuation and the way its numbers are written. Of a longer one it is enough that the text has
    half of what one of its sentences says beyond the question; a paraphrase is not noticed.
    Verdicts such as *yes* or *significantly increased*, and answers of stop words only, are found
    in no text: any passage may have these words without answering. A bare number is found wherever
    it stands.

    Args:
        text: Where to look.
        answer: What to look for.
        question: What is asked; a sentence that takes up its words gives nothing away by them.
    """
    if all(word in STOP_WORDS or stem(word) in _VERDICTS for word in words(answer)):
        return False
    wanted = _keys(answer)
    if len(wanted) <= _SHORT:
        return _has_run(_keys(text), wanted)
    asked, found = shingles(question), shingles(text)
    told = [shingles(sentence.text) - asked for sentence in split_sentences(answer)]
    return any(len(one & found) >= _COPIED * len(one) for one in told if len(one) >= _TOLD)


def _keys(text: str) -> list[str]:
    text = _THOUSANDS.sub("", _PERCENT.sub(" percent", text.casefold()))
    return [_key(word) for word in words(text)]


def _key(word: str) -> str:
    if word[0].isdigit():
        return _ZEROS.sub(r"\1", word).rstrip(".")
    return _NUMBER_WORDS.get(word, stem(word))


def _has_run(keys: list[str], wanted: list[str]) -> bool:
    size = len(wanted)
    return any(keys[start : start + size] == wanted for start in range(len(keys) - size + 1))
