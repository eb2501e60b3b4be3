"""Papers by words that are safe for any text, and the paper that a title names.

FTS5 reads its own query language; a pasted sentence is a syntax error in it, or asks for papers
that have all of its words. Here each word is quoted, all are joined by OR, and no character of the
text is ever an operator.

Source:
    https://www.sqlite.org/fts5.html#full_text_query_syntax
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from deepera_graph.literature.paper_keys import clean_text, hash_title, main_title, title_key
from deepera_graph.papers.library import ScopeCondition, keep_allowed, rank_words, read_papers
from deepera_graph.papers.paper import Paper
from deepera_graph.papers.results import TitleMatch
from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import STOP_WORDS

MOST_WORDS = 64  # of a query; the rarest count
QUESTION_WORDS: Mapping[str, Sequence[str]] = read_lists(__file__)
_STOP_WORDS = STOP_WORDS.difference(QUESTION_WORDS["in_terms"])
_ASKING = frozenset(QUESTION_WORDS["asking"])  # for papers; they count where there are no others
_WORD = re.compile(r"[\w\u0300-\u036f]+")  # as the tokenizer unicode61 sees them, or finer
_CONTRACTED = re.compile(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)


def split_words(text: str) -> list[str]:
    """Return the words of any text, each once, in order, stop words among them."""
    found = _WORD.findall(_CONTRACTED.sub(" ", clean_text(text)))
    kept = (word.replace("_", " ").split() for word in found)
    parts = (part for word in kept for part in word if any(map(str.isalnum, part)))
    distinct = {part.lower(): part for part in parts}
    return list(distinct.values())


def search_words(text: str) -> list[str]:
    """Return the words of a text that are searched for: those that are no stop words."""
    # Words such as "papers" count where there are no others. On the questions of LitSearch, Recall
    # at 100 is .751 so, and .719 with the stop words of the package alone.
    words = [word for word in split_words(text) if word.lower() not in _STOP_WORDS]
    return [word for word in words if word.lower() not in _ASKING] or words


def match_any(words: Iterable[str], *, column: str = "") -> str:
    """Return a query of FTS5 for what has any of the words, in one *column* or anywhere."""
    quoted = " OR ".join(f'"{word}"' for word in words)
    return f"{column} : ({quoted})" if column else quoted


def match_gated(rare: Iterable[str], words: Iterable[str]) -> str:
    """Return a query for what has any of the *rare* words; all *words* count for the rank."""
    return f"({match_any(rare)}) AND ({match_any(words)})"


LEAST_SIMILARITY = 0.8
MOST_EDITS = 3.0  # letters that may differ, as `_edits` counts them
_N_CANDIDATES = 100
_N_RAREST = 4  # words of a title that candidates are found by
_NUMBER = re.compile(r"\d+")


def match_title(
    db: sqlite3.Connection, title: str, limits: ScopeCondition, count: Callable[[str], int]
) -> TitleMatch:
    """Find the paper of a title within limits; *count* says how many papers have a word."""
    # A title without its subtitle is that of the one paper whose main title it is. Of titles that
    # differ in a few letters the nearest counts, if they have the same numbers: the tasks of two
    # years are two papers. Of papers with one title, that with an abstract counts, then the first
    # id.
    key = title_key(title)
    if not key:
        return TitleMatch("no_words")
    return (
        _match_exactly(db, title, key, limits)
        or _match_nearly(db, title, key, limits, count)
        or TitleMatch("none")
    )


def _match_exactly(
    db: sqlite3.Connection, title: str, key: str, limits: ScopeCondition
) -> TitleMatch | None:
    rows = db.execute("SELECT n FROM titles WHERE key = ? ORDER BY n", (hash_title(title),))
    papers = read_papers(db, keep_allowed(db, [n for (n,) in rows], limits))
    whole = [one for one in papers if title_key(one.title) == key]
    if whole:
        return TitleMatch("exact", min(whole, key=_rank_title), 1.0)
    main = [one for one in papers if title_key(main_title(one.title)) == key]
    if len({title_key(one.title) for one in main}) == 1:
        best = min(main, key=_rank_title)
        matcher = SequenceMatcher(None, key, title_key(best.title), autojunk=False)
        return TitleMatch("near", best, round(matcher.ratio(), 4))
    return None


def _rank_title(paper: Paper) -> tuple[bool, str]:
    return not paper.abstract, paper.id


def _match_nearly(
    db: sqlite3.Connection,
    title: str,
    key: str,
    limits: ScopeCondition,
    count: Callable[[str], int],
) -> TitleMatch | None:
    telling = [word for word in search_words(title) or split_words(title) if count(word)]
    rarest = sorted(telling, key=lambda word: (count(word), word))[:_N_RAREST]
    if not rarest:
        return None
    query = match_any(rarest, column="title")
    found = [n for _, n in rank_words(db, query, _N_CANDIDATES, limits)]
    compared = [(one, _compare(key, title_key(one.title))) for one in read_papers(db, found)]
    near = [(paper, similarity) for paper, similarity in compared if similarity]
    if not near:
        return None
    return TitleMatch("near", *min(near, key=lambda one: (-one[1], *_rank_title(one[0]))))


def _compare(key: str, other: str) -> float:
    """Return the similarity of two keys; 0 if they are of two papers."""
    if _NUMBER.findall(key) != _NUMBER.findall(other):
        return 0.0
    length = (len(key) + len(other)) / 2
    matcher = SequenceMatcher(None, key, other, autojunk=False)
    for bound in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio):
        ratio = bound()
        if ratio < LEAST_SIMILARITY or (1 - ratio) * length > MOST_EDITS:
            return 0.0
    return round(ratio, 4)
