"""Terms that a faithful summary may only take from its passage: numbers, units and names."""

import re

_TOKEN = re.compile(r"[%‰°]|[^\W_]+(?:[.,:/-][^\W_]+)*")
_PART = re.compile(r"[^\W_]+(?:[.,:][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?:^|[.!?;:])[\s\"'(\[“]*$")
_LONGEST_UNIT = 4
_NOT_UNITS = frozenset("a an and as at but by for from had in is of on or per than to vs was were".split())


def missing_terms(summary: str, passage: str) -> list[str]:
    """List the terms of a summary that do not occur in the passage, in order, each once.

    A term is a token with a digit or a capital (a plain word that opens a sentence is none), or a
    short token right after a number, its unit. Tokens match whole: ``5`` is not found in ``15``.
    A compound such as ``IL-6-positive`` may also be put together from parts of the passage.

    Source:
        Entity and number retention, failure signature FA-4 of the DeepEra study.
    """
    known = set(_TOKEN.findall(passage)) | set(_PART.findall(passage))
    missing: dict[str, None] = {}
    after_number = False
    for match in _TOKEN.finditer(summary):
        token = match.group()
        is_unit = after_number and len(token) <= _LONGEST_UNIT and token not in _NOT_UNITS
        after_number = token[0].isdigit()
        if (is_unit or _is_name(summary, match)) and not _occurs(token, known):
            missing[token] = None
    return list(missing)


def _is_name(text: str, match: "re.Match[str]") -> bool:
    token = match.group()
    if any(letter.isdigit() for letter in token):
        return True
    if token.isalpha() and token.istitle():
        return not _SENTENCE_END.search(text[: match.start()])
    return token != token.lower()


def _occurs(token: str, known: set[str]) -> bool:
    return token in known or all(part in known for part in _PART.findall(token) or [token])
