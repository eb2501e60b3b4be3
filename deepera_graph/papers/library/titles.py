"""The paper that a title names: exact but for case, marks and TeX, or nearly so."""

import re
import sqlite3
from collections.abc import Callable
from difflib import SequenceMatcher

from deepera_graph.literature.paper_keys import main_title, title_key
from deepera_graph.papers.library.store import ScopeCondition, keep_allowed, rank_words, read_papers
from deepera_graph.papers.library.words import match_any, search_words, split_words
from deepera_graph.papers.library.writing import hash_title
from deepera_graph.papers.results import TitleMatch

LEAST_SIMILARITY = 0.8
MOST_EDITS = 3.0  # letters that may differ, as `_edits` counts them
_N_CANDIDATES = 100
_N_RAREST = 4  # words of a title that candidates are found by
_LEAST_MAIN_WORDS = 2  # of a title without its subtitle, or a name that nothing else bears
_NUMBER = re.compile(r"\d+")


def match_title(
    db: sqlite3.Connection,
    title: str,
    limits: ScopeCondition,
    count: Callable[[str], int],
) -> TitleMatch:
    """Find the paper of a title within limits; *count* says how many papers have a word.

    A title without its subtitle is that of the one paper whose main title it is. Of titles that
    differ in a few letters the nearest counts, if they have the same numbers: the tasks of two
    years are two papers. Of papers with one title, that with an abstract counts, then the first id.
    """
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
        best = min(whole, key=lambda one: (not one.abstract, one.id))
        return TitleMatch("exact", best, 1.0)
    main = [one for one in papers if title_key(main_title(one.title)) == key]
    if len({title_key(one.title) for one in main}) == 1:
        best = min(main, key=lambda one: (not one.abstract, one.id))
        return TitleMatch("near", best, _similarity(key, title_key(best.title)))
    return None


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
    best: tuple[float, bool, str] | None = None
    match: TitleMatch | None = None
    for paper in read_papers(db, found):
        other = title_key(paper.title)
        similarity = _compare(key, other)
        if not similarity:
            continue
        order = (-similarity, not paper.abstract, paper.id)
        if best is None or order < best:
            best, match = order, TitleMatch("near", paper, similarity)
    return match


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


def _similarity(key: str, other: str) -> float:
    return round(SequenceMatcher(None, key, other, autojunk=False).ratio(), 4)
