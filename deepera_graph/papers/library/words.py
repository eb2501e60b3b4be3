"""Queries by words that are safe for any text: each word is quoted, and all are joined by OR.

FTS5 reads its own query language; a pasted sentence is a syntax error in it, or asks for papers
that have all of its words. Here no character of the text is ever an operator.

Source:
    https://www.sqlite.org/fts5.html#full_text_query_syntax
"""

import re
from collections.abc import Iterable

from deepera_graph.literature.paper_keys import clean_text
from deepera_graph.text.words import STOP_WORDS

MOST_WORDS = 64  # of a query; the rarest count
# Stop words that stand in terms: "few-shot", "out-of-domain", "one-class", "top-down".
_IN_TERMS_TEXT = "down few more most off once one other others out over own per up"
_IN_TERMS = frozenset(_IN_TERMS_TEXT.split())
_STOP_WORDS = STOP_WORDS - _IN_TERMS
# Words that ask for papers and do not say on what; they count where there are no others. "uses" is
# one as the stop words have "use", "used" and "using" and its stem would find all of these.
_ASKING_TEXT = """
    article articles find literature looking me paper papers please provide recommend research
    researches studies study uses work works
    """
_ASKING = frozenset(_ASKING_TEXT.split())
_WORD = re.compile(r"[\w\u0300-\u036f]+")  # as the tokenizer unicode61 sees them, or finer
_CONTRACTED = re.compile(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)


def split_words(text: str) -> list[str]:
    """Return the words of any text, each once, in order, stop words among them."""
    found = _WORD.findall(_CONTRACTED.sub(" ", clean_text(text)))
    kept = (word.replace("_", " ").split() for word in found)
    distinct = {part.lower(): part for parts in kept for part in parts if _has_letter(part)}
    return list(distinct.values())


def search_words(text: str) -> list[str]:
    """Return the words of a text that are searched for: those that are no stop words.

    Words such as "papers" count where there are no others. On the questions of LitSearch, Recall at
    100 is .751 so, and .719 with the stop words of the package alone.
    """
    words = [word for word in split_words(text) if word.lower() not in _STOP_WORDS]
    return [word for word in words if word.lower() not in _ASKING] or words


def match_any(words: Iterable[str], *, column: str = "") -> str:
    """Return a query of FTS5 for what has any of the words, in one *column* or anywhere."""
    quoted = " OR ".join(f'"{word}"' for word in words)
    return f"{column} : ({quoted})" if column else quoted


def match_gated(rare: Iterable[str], words: Iterable[str]) -> str:
    """Return a query for what has any of the *rare* words; all *words* count for the rank."""
    return f"({match_any(rare)}) AND ({match_any(words)})"


def _has_letter(word: str) -> bool:
    return any(letter.isalnum() for letter in word)
