"""Names a question gives to particular things: people, places, genes, objects, species."""

import re

from deepera_graph.text.words import STOP_WORDS, words

_TOKEN = re.compile(r"[^\W_]+(?:[-‐‑+][^\W_]+)*")
_LARGEST_SHARE = 0.5


def find_names(question: str) -> list[str]:
    """Return the names as lower-case words: tokens with digit and capital, and capitalised words.

    A capital counts only within a sentence, and not at all in a question in title case.
    """
    tokens = list(_TOKEN.finditer(question))
    plain = [token for token in tokens if token.group().lower() not in STOP_WORDS]
    capitalised = [token for token in plain if token.group()[0].isupper()]
    titled = [token for token in capitalised if not _is_code(token.group())]
    in_title_case = len(titled) > _LARGEST_SHARE * len(plain)
    names: list[str] = []
    for token in plain:
        if _is_code(token.group()) or (
            not in_title_case and token in capitalised and _is_within(question, token.start())
        ):
            names.extend(words(token.group()))
    return names


def _is_code(token: str) -> bool:
    return any(c.isdigit() for c in token) and any(c.isupper() for c in token)


def _is_within(question: str, start: int) -> bool:
    before = question[:start].rstrip(" \"'“‘(")
    return bool(before) and before[-1] not in ".:?!"
