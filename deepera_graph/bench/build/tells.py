"""Marks by which a text gives away that it was written to order; found without any context."""

import re
from collections.abc import Callable

from deepera_graph.text.sentences import split_sentences

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
    r"(?:^|\n)\W*(?:question|query|user|assistant|system|instructions?|guidance|task|type|focus"
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
    r"```|(?:^|\n)\s*#{1,6}\s|\*\*[^*\n]+\*\*|(?:^|\n)\s*[*•]\s+\S|^\s*[\[{]\s*[\"{]|</?(?:p|b|br|div)>"
)
_END = re.compile(r"[.!?…。][\"'”’)\]]*$")


def _found(pattern: "re.Pattern[str]") -> Callable[[str], bool]:
    return lambda text: pattern.search(text) is not None


def _is_cut_off(text: str) -> bool:
    return bool(text.strip()) and _END.search(text.strip()) is None


def _repeats_itself(text: str) -> bool:
    sentences = [" ".join(one.text.casefold().split()) for one in split_sentences(text)]
    return len(set(sentences)) < len(sentences)


TELLS: dict[str, Callable[[str], bool]] = {
    "label": _found(_LABEL),
    "chatter": _found(_CHATTER),
    "refusal": _found(_REFUSAL),
    "says-it-is-false": _found(_SAYS_FALSE),
    "names-the-task": _found(_NAMES_TASK),
    "prompt-echo": _found(_ECHO),
    "placeholder": _found(_PLACEHOLDER),
    "markup": _found(_MARKUP),
    "cut-off": _is_cut_off,
    "repeats-itself": _repeats_itself,
}
