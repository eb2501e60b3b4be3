"""Selecting by sentences, without a judge: by their vectors, or by their words alone.

What breaks a limit is out, with the sentence that shows it; of the others the sentence nearest to
the question is shown. No paper gets a score: their order is left to the searches.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.runnables import RunnableConfig
from numpy.typing import NDArray

from deepera_graph.judges.trained.backend import local_model
from deepera_graph.papers.agent.constraints import Limits
from deepera_graph.papers.agent.limits.exclusions import find_kinds, goes_by_words, says
from deepera_graph.papers.agent.state import PaperSeen, PaperVerdict, Selected, SelectTask
from deepera_graph.text.words import split_sentences, stems
from deepera_graph.usage import Usage

AGAINST = 0.40  # cosine of a sentence and an excluded phrase from which on the paper breaks it
DOUBTFUL, MOST_DOUBT = 0.25, 0.4  # below that cosine there is no doubt; what it takes at most
_DENIES = re.compile(
    r"\b(?:no|not|never|without|unlike|nor|neither|instead|rather than|free of|beyond|except"
    r"|avoid(?:s|ed|ing)?|cannot|lacks?)\b|n't\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:than|ahead of|above|below|versus|vs|compar\w*|outperform\w*|baselines?|stronger"
    r"|superior|inferior|difference)\b",
    re.IGNORECASE,
)
_READ_CHARS = 1200  # of title and abstract, where a whole paper is compared
Floats = NDArray[np.float32]


def select_by_vectors(task: SelectTask, config: RunnableConfig | None = None) -> Selected:
    """Mark by vectors of sentences: what is like an excluded phrase, and what answers best.

    A paper breaks an exclusion if a sentence that neither denies nor compares is as near to the
    excluded phrase as `AGAINST`, or names it. Scores are left to the searches.
    """
    limits = Limits.from_dict(task["limits"])
    split = [_sentences(one) for one in task["papers"]]
    vectors = _embed([limits.topic, *limits.exclude, *(text for each in split for text in each)])
    asked, excluded = vectors[0], vectors[1 : 1 + len(limits.exclude)]
    verdicts, place = [], 1 + len(limits.exclude)
    for one, sentences in zip(task["papers"], split, strict=True):
        own = vectors[place : place + len(sentences)]
        place += len(sentences)
        verdicts.append(
            _against(one, sentences, own @ excluded.T, limits)
            or _why(one, sentences, [float(each) for each in own @ asked], own @ excluded.T)
        )
    return Selected(papers=verdicts, usage=Usage())


def select_by_words(task: SelectTask, config: RunnableConfig | None = None) -> Selected:
    """Mark by words alone: what names an excluded thing in a sentence that does not deny it."""
    limits = Limits.from_dict(task["limits"])
    asked = set(stems(limits.topic))
    verdicts = []
    for one in task["papers"]:
        sentences = _sentences(one)
        none = np.zeros((len(sentences), len(limits.exclude)), dtype=np.float32)
        nearness = [len(asked & set(stems(text))) / (len(asked) or 1) for text in sentences]
        verdicts.append(_against(one, sentences, none, limits) or _why(one, sentences, nearness))
    return Selected(papers=verdicts, usage=Usage())


def breaks_by_facts(paper: Mapping[str, Any], limits: Limits) -> tuple[str, str]:
    """Return the limit that year, venue or kind of a paper breaks, and its words that say so.

    Both are empty if it breaks none. One that does not say what kind it is breaks no `not_types`;
    it breaks `types` if it has an abstract.
    """
    year, venue = paper.get("year"), str(paper.get("venue") or "").casefold()
    if year in limits.not_years:
        return f"not from {year}", ""
    if year and limits.year_from and year < limits.year_from:
        return f"from {limits.year_from} on", ""
    if year and limits.year_to and year > limits.year_to:
        return f"up to {limits.year_to}", ""
    if venue and venue in {one.casefold() for one in limits.not_venues}:
        return f"not at {paper['venue']}", ""
    return _breaks_by_kind(paper, limits)


def _breaks_by_kind(paper: Mapping[str, Any], limits: Limits) -> tuple[str, str]:
    if not limits.types and not limits.not_types:
        return "", ""
    kinds = find_kinds(paper["title"], paper["abstract"], str(paper.get("venue") or ""))
    for kind in limits.not_types:
        if kind in kinds:
            return f"no {kind}", kinds[kind]
    if limits.types and paper["abstract"] and kinds.keys().isdisjoint(limits.types):
        return f"only {' or '.join(limits.types)}", ""
    return "", ""


def nearness_to_topic(papers: Sequence[PaperSeen], asked: Sequence[str]) -> list[float]:
    """Return of each paper the cosine with the nearest of some texts, in [-1, 1]."""
    texts = [f"{one['title']}. {one['abstract']}"[:_READ_CHARS] for one in papers]
    vectors = _embed([*asked, *texts])
    return [float(one) for one in (vectors[len(asked) :] @ vectors[: len(asked)].T).max(axis=1)]


def own_words(paper: PaperSeen) -> str:
    """Return the sentences in which a paper says what it does itself; empty if there are none."""
    return " ".join(one for one in _sentences(paper) if _counts(one))


def _against(
    paper: PaperSeen, sentences: Sequence[str], nearness: Floats, limits: Limits
) -> PaperVerdict | None:
    """Return the verdict on a paper that breaks an exclusion, the nearest sentence as its quote."""
    worst: tuple[float, str, str] | None = None
    for number, text in enumerate(sentences):
        for column, phrase in enumerate(limits.exclude):
            named = says(text, phrase)
            found = float(named or 0.0)
            by_words = named is not None or goes_by_words(text, phrase, limits.topic)
            if not by_words and _counts(text):
                found = float(nearness[number, column])
            if found >= AGAINST and (worst is None or found > worst[0]):
                worst = (found, phrase, text)
    if worst is None:
        return None
    _, phrase, text = worst
    return PaperVerdict(
        id=paper["id"],
        verdict="out",
        reason=f"excluded: {phrase}",
        quote=text,
        against=phrase,
    )


def _why(
    paper: PaperSeen,
    sentences: Sequence[str],
    nearness: Sequence[float],
    to_excluded: Floats | None = None,
) -> PaperVerdict:
    best = max(range(len(sentences)), key=lambda place: (nearness[place], -place))
    said = "of the abstract" if best else "of the title"
    return PaperVerdict(
        id=paper["id"],
        reason=f"nearest to the question are these words {said}",
        quote=sentences[best],
        doubt=0.0 if to_excluded is None else _doubt(sentences, to_excluded),
    )


def _doubt(sentences: Sequence[str], nearness: Floats) -> float:
    """Return how much a paper below `AGAINST` may break an exclusion all the same."""
    counted = [row for text, row in zip(sentences, nearness, strict=True) if _counts(text)]
    worst = max((float(row.max()) for row in counted if row.size), default=0.0)
    share = (worst - DOUBTFUL) / (AGAINST - DOUBTFUL)
    return MOST_DOUBT * min(1.0, max(0.0, share))


def _counts(sentence: str) -> bool:
    """Whether a sentence says what a paper itself does: it neither denies nor compares."""
    return not _DENIES.search(sentence) and not _COMPARES.search(sentence)


def _sentences(paper: PaperSeen) -> list[str]:
    abstract = paper["abstract"]
    return [paper["title"], *(abstract[one.start : one.end] for one in split_sentences(abstract))]


def _embed(texts: Sequence[str]) -> Floats:
    """Return vectors of length 1, a row a text, of the local judge's encoder."""
    return np.asarray(local_model().embed(list(texts)), dtype=np.float32)
