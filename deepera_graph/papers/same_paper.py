"""When two records are of one paper: a preprint and its article, or one paper in two services."""

from difflib import SequenceMatcher

from deepera_graph.literature.citation import family_key
from deepera_graph.literature.paper_keys import main_title, title_key
from deepera_graph.literature.same_study import MOST_YEARS
from deepera_graph.papers.paper import Paper

_ALIKE = 0.8  # similarity of titles, below which an id in common is somebody's mistake


def have_like_titles(one: Paper, other: Paper) -> bool:
    """Tell whether an id in common is to be believed."""
    keys = title_key(one.title), title_key(other.title)
    mains = title_key(main_title(one.title)), title_key(main_title(other.title))
    if keys[0] == keys[1] or mains[0] == mains[1] or mains[0] == keys[1] or keys[0] == mains[1]:
        return True
    return SequenceMatcher(None, *keys, autojunk=False).ratio() >= _ALIKE


def may_be_same(one: Paper, other: Paper) -> bool:
    """Tell whether two records with one title may be of one paper: a preprint is a year older."""
    if title_key(one.title) != title_key(other.title):
        return False
    if one.year and other.year and abs(one.year - other.year) > MOST_YEARS:
        return False
    names = [{family_key([name]) for name in paper.authors} for paper in (one, other)]
    return not (names[0] and names[1]) or not names[0].isdisjoint(names[1])
