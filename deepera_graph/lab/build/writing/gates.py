"""Gates that a written distractor must pass: answer, similarity, length, copies, artefacts."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deepera_graph.lab.build.writing.answers import containment, contains_answer, resemblance
from deepera_graph.lab.build.writing.faults import WORDS
from deepera_graph.lab.settings import Gates
from deepera_graph.text.words import split_sentences

EXPLANATIONS: Mapping[str, str] = WORDS["explanations"]
_KINDS = (
    "deceptive|misleading|perplexing|irrelevant|background|speculative|distract(?:or|ing)"
    "|incorrect|false|fake|wrong|counterfactual|noise"
)
_THING = "passage|context|text|paragraph|distractor|abstract|answer|response|output|snippet|draft"
_LABEL = re.compile(
    rf"^\W*(?:(?:{_KINDS})(?:[\s_-]+(?:{_THING}|outcome|scope|information))?|(?:{_THING}))"
    r"(?:\s*(?:no\.?|\#)?\s*\(?(?:\d+|[A-Z])\)?)?\W{0,3}(?::|\s[-–—]\s|\*\*)",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"^\W*(?:sure|certainly|of course|absolutely|okay|ok|great|understood)\b\s*[,!.:–—-]"
    r"|^\W*(?:here(?:'s|’s| is| are)|below is|the following is)\b[^.\n]{0,80}:"
    r"|\b(?:let me know if|hope this helps|feel free to|would you like me to)\b"
    r"|\bI(?: have|'ve|’ve)? (?:wrote|written|generated|created|crafted|made sure)\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\bas an? (?:AI|(?:large )?language model|assistant)\b"
    r"|\bI(?:'m|’m| am) (?:sorry|unable to|not able to|an AI)\b"
    r"|\bI (?:cannot|can't|can’t|won't|will not) (?:help|assist|provide|write|generate|create"
    r"|comply|fulfil|produce|answer)",
    re.IGNORECASE,
)
_SAYS_FALSE = re.compile(
    r"\b(?:passage|paragraph|text|statement|claim|information|context|abstract|description)s?"
    r"(?: above| below| here)? (?:is|are|was|were|contains?)(?: \w+){0,2} "
    r"(?:incorrect|false|fictional|fictitious|fabricated|misleading|invented|deceptive"
    r"|inaccurate|untrue|irrelevant|hypothetical)\b"
    r"|\b(?:does|do|did|would) not (?:directly |actually )?(?:answer|address)"
    r" (?:the|this|your) question"
    r"|\b(?:contradicts?|inconsistent with|unrelated to|avoids?|differs? from)"
    r" the (?:correct|gold(?:en)?|true|real|right) (?:answer|passage|context)",
    re.IGNORECASE,
)
_NAMES_TASK = re.compile(
    r"\bdistractors?\b|\blook-?alikes?\b|\bgold(?:en)? (?:answer|passage|context|standard answer)"
    r"|\b(?:the|this|these|above|given|provided|retrieved|original) "
    r"(?:passage|context|excerpt|snippet)s?\s+"
    r"(?:above|below|is|are|was|were|has|have|states?|stated|describes?|described|says?|mentions?"
    r"|mentioned|discuss(?:es)?|provides?|explains?|focuses|reports?|does|do)\b"
    r"|\b(?:according to|based on|in|from|unlike) (?:the|this) (?:passage|excerpt|snippet"
    r"|(?:given|provided|retrieved) context)\b",
    re.IGNORECASE,
)
_ECHO = re.compile(
    r"(?:^|\n)[^\w\n]*(?:question|query|user|assistant|system|instructions?|guidance|task|type|focus"
    r"|thematic focus|distractor type|gold(?:en)? answer|correct answer|explanation|note"
    r"|reason(?:ing)?|rationale)\W{0,3}:"
    r"|\byou are (?:a|an|the) [a-z ]{3,40}(?:assistant|writer|expert|generator)\b"
    r"|\b(?:write|generate|create|produce) (?:a|an|one|two|three|four|\d+)"
    r" (?:\w+ ){0,3}(?:passage|paragraph|distractor|context)s?\b"
    r"|<\|?/?(?:im_start|im_end|system|user|assistant|think|eot_id|s)\b[^>\n]{0,12}>",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"\[(?:X+|Y|Z|N|name|number|insert[^\]]{0,40}|[^\]]{0,30}\bhere|TODO|TBD|placeholder"
    r"|[a-z]+ (?:name|value|number))\]"
    r"|\{\{?\s*[a-z_]+\s*\}?\}|<(?:insert|name|number|value)[^>]{0,30}>"
    r"|\blorem ipsum\b|\bXX+\s?%|\$\{?[a-z_]{3,}\}?|_{4,}",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"```|(?:^|\n)[^\S\n]*(?:#{1,6}\s|[*•]\s+\S)|\*\*[^*\n]+\*\*|^\s*[\[{]\s*[\"{]"
    r"|</?(?:p|b|br|div)>"
)
_END = re.compile(r"[.!?…。][\"'”’)\]]*$")


def explain(reasons: Sequence[str]) -> str:
    """Return what is wrong with a passage, by the names of the gates it failed."""
    return "; ".join(EXPLANATIONS.get(name, name.replace("-", " ")) for name in reasons)


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.search(text) is not None


def _is_cut_off(text: str) -> bool:
    return bool(text.strip()) and _END.search(text.strip()) is None


def _repeats_itself(text: str) -> bool:
    sentences = [" ".join(one.text.casefold().split()) for one in split_sentences(text)]
    return len(set(sentences)) < len(sentences)


ARTEFACT_PATTERNS: dict[str, Callable[[str], bool]] = {
    "label": _matches(_LABEL),
    "chatter": _matches(_CHATTER),
    "refusal": _matches(_REFUSAL),
    "says-it-is-false": _matches(_SAYS_FALSE),
    "names-the-task": _matches(_NAMES_TASK),
    "prompt-echo": _matches(_ECHO),
    "placeholder": _matches(_PLACEHOLDER),
    "markup": _matches(_MARKUP),
    "cut-off": _is_cut_off,
    "repeats-itself": _repeats_itself,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateDistractor:
    """A written distractor, with what it is held against; similarities are on any one scale."""

    text: str
    gold_answer: str  # may be long, or blank if there is none
    synonyms: Sequence[str] = ()
    question_similarity: float = 0.0
    natural_similarities: Sequence[float] = ()
    natural_lengths: Sequence[int] = ()  # words, as `str.split` counts them
    others: Sequence[str] = ()  # distractors already accepted for the question
    golden: Sequence[str] = ()
    question: str = ""  # blank: not judged whether it is repeated
    word_order: float | None = None  # see `ProseModel.measure_order`; None: not judged


_Gate = Callable[[CandidateDistractor, Gates], bool]


def failed_gates(candidate: CandidateDistractor, gates: Gates | None = None) -> list[str]:
    """Return the names of the gates that reject it, in the order of `GATES`; empty if it passes."""
    limits = gates or Gates()
    return [name for name, rejects in GATES.items() if rejects(candidate, limits)]


def _answers(candidate: CandidateDistractor, gates: Gates) -> bool:
    answers = (candidate.gold_answer, *candidate.synonyms)
    return any(contains_answer(candidate.text, answer, candidate.question) for answer in answers)


def _is_far(candidate: CandidateDistractor, gates: Gates) -> bool:
    natural = candidate.natural_similarities
    if not len(natural):
        return False
    return candidate.question_similarity < float(np.percentile(natural, gates.min_percentile))


def _relative_length(candidate: CandidateDistractor) -> float:
    """Words as a multiple of the median natural context; the middle of the limits without any."""
    if not len(candidate.natural_lengths):
        return 1.0
    return len(candidate.text.split()) / max(1.0, float(np.median(candidate.natural_lengths)))


def _repeats_question(candidate: CandidateDistractor, gates: Gates) -> bool:
    question = " ".join(candidate.question.casefold().split()).rstrip("?. ")
    return bool(question) and question in " ".join(candidate.text.casefold().split())


def _has_artefact(matches: Callable[[str], bool]) -> _Gate:
    return lambda candidate, gates: matches(candidate.text)


GATES: dict[str, _Gate] = {
    "blank": lambda candidate, gates: not candidate.text.strip(),
    "contains-answer": _answers,
    "far-from-question": _is_far,
    "too-short": lambda candidate, gates: _relative_length(candidate) < gates.min_length,
    "too-long": lambda candidate, gates: _relative_length(candidate) > gates.max_length,
    "duplicate": lambda candidate, gates: any(
        resemblance(candidate.text, other) >= gates.max_likeness for other in candidate.others
    ),
    "copies-golden": lambda candidate, gates: any(
        containment(candidate.text, one) >= gates.max_copied for one in candidate.golden
    ),
    "repeats-question": _repeats_question,
    "no-prose": lambda candidate, gates: (
        candidate.word_order is not None and candidate.word_order < gates.min_word_order
    ),
    **{name: _has_artefact(matches) for name, matches in ARTEFACT_PATTERNS.items()},
}
