"""Snippets: the sentences of the documents found that answer, with their exact offsets.

A snippet is a sentence of an abstract, or of a title, word for word. It begins and ends in one
section; its end is the offset just past its last character, as in BioASQ's own files.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from deepera_graph.bioasq.phase_a.ordering import weigh_with
from deepera_graph.bioasq.questions import Snippet, document_url
from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained.backend import TrainedJudge, Weights
from deepera_graph.schema import Window
from deepera_graph.settings import check_at_least
from deepera_graph.text.words import split_sentences

MOST = 10  # that BioASQ takes for a question
TITLE, ABSTRACT = "title", "abstract"


class FoundDocument(NamedTuple):
    """A document that was found; title and abstract as they are indexed, maybe empty."""

    pmid: str
    title: str
    abstract: str

    def window(self) -> Window:
        """Return it as a judge sees it."""
        return {"text": self.abstract, "title": self.title, "section": ""}


class Piece(NamedTuple):
    """A sentence of a document, and how likely it is a snippet."""

    snippet: Snippet
    probability: float  # in [0, 1]


# How well each sentence of each window answers a question, log odds but for a scale; the sentences
# are those of `split_sentences`.
WeighSentences = Callable[[str, Sequence[Window]], Sequence[Sequence[float]]]


def weigh_locally(question: str, windows: Sequence[Window]) -> list[list[float]]:
    """Weigh sentences with the local judge that comes with the package."""
    return weigh_with(TrainedJudge(Weights()))(question, windows)


# A logistic regression, fitted on the 505 claims of SciFact train, which have 2 golden sentences
# each, by `python benchmarks/bioasq/phase_a.py`.
WEIGHT, START = 0.86, -1.5


def list_pieces(
    question: str,
    documents: Sequence[FoundDocument],
    *,
    weigh: WeighSentences = weigh_locally,
) -> list[Piece]:
    """Return every sentence of the abstracts, likeliest first, ties in the order of documents.

    A document without an abstract, which has nothing but its title, has the title.

    Args:
        question: What is asked.
        documents: Best first.
        weigh: Says how well sentences answer.

    Raises:
        ValueError: *weigh* gives another number of weights than there are sentences.
    """
    windows = [_window(one) for one in documents]
    weights = weigh(question, windows)
    pieces: list[Piece] = []
    for document, window, found in zip(documents, windows, weights, strict=True):
        section = ABSTRACT if document.abstract.strip() else TITLE
        for sentence, weight in zip(split_sentences(window["text"]), found, strict=True):
            snippet = Snippet(
                document=document_url(document.pmid),
                text=sentence.text,
                begin_section=section,
                begin=sentence.start,
                end_section=section,
                end=sentence.end,
            )
            pieces.append(Piece(snippet, _logistic(WEIGHT * weight + START)))
    return sorted(pieces, key=lambda one: -one.probability)


def choose_snippets(pieces: Iterable[Piece], *, n: int | None = None) -> list[Piece]:
    """Return the pieces to be given, likeliest first.

    Args:
        pieces: Likeliest first.
        n: How many, as far as there are so many, from 0 to 10. None gives as many as have the
            highest expected F1, at least one, so that precision is not given away where one or two
            sentences answer.

    Raises:
        SettingsError: *n* is out of range.

    Source:
        Lipton, Elkan and Naryanaswamy (2014), Optimal Thresholding of Classifiers to Maximize F1
        Measure, section 4; the expectation of the ratio is taken as the ratio of expectations:
        2 sum(p of those given) / (their number + sum(p of all)).
    """
    every = list(pieces)
    if n is not None:
        check_n_snippets(n)
        return every[:n]
    total, given, best, n_best = sum(one.probability for one in every), 0.0, 0.0, 0
    for number, one in enumerate(every[:MOST], start=1):
        given += one.probability
        expected = 2 * given / (number + total)
        if expected > best:
            best, n_best = expected, number
    return every[: max(1, n_best)]


def check_n_snippets(n: int) -> None:
    """Raise `SettingsError` unless BioASQ takes so many snippets."""
    check_at_least("n_snippets", n, 0)
    if n > MOST:
        raise SettingsError(f"n_snippets must be at most {MOST}, got {n}")


def _window(document: FoundDocument) -> Window:
    if document.abstract.strip():
        return document.window()
    return {"text": document.title, "title": "", "section": ""}


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, value))))
