"""How closely a document follows a question, token by token: what orders documents in a search.

Whether a passage gives evidence says little about which of several that do is the one looked for;
how many words of the question it has, and in how much the same sense, says more.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.trained.features import pairwise_dot
from deepera_graph.judges.trained.reading.encoder import Encoded
from deepera_graph.text.words import split_sentences

_N_SENTENCES = 2  # best sentences that count


class Alignment(NamedTuple):
    """Means over the question's tokens of the cosine of the nearest token, each in [-1, 1].

    Source:
        Khattab and Zaharia (2020), ColBERT, section 3.3 (late interaction, MaxSim); there a sum
        over the tokens of a query, here their mean, so that questions of any length compare.
    """

    passage: float  # the nearest of title and text
    sentences: float  # the same within one sentence, the mean of the two best
    title: float  # the nearest of the title; 0 without one


def align_passage(
    question: Encoded, text: str, body: Encoded, title: Encoded | None = None
) -> Alignment:
    """Align a text that is not blank, encoded as *body*, and its title with a question."""
    asked = _tokens(question)
    in_text = pairwise_dot(asked, _tokens(body))
    named = None if title is None else pairwise_dot(asked, _tokens(title)).max(axis=1)
    nearest = in_text.max(axis=1)
    return Alignment(
        passage=float((nearest if named is None else np.maximum(nearest, named)).mean()),
        sentences=_align_sentences(asked, text, body),
        title=0.0 if named is None else float(named.mean()),
    )


def _align_sentences(asked: NDArray[np.float32], text: str, body: Encoded) -> float:
    spans = body.find_parts(tuple((one.start, one.end) for one in split_sentences(text))).spans
    whole = pairwise_dot(asked, body.units)
    found = sorted((float(whole[:, span].max(axis=1).mean()) for span in spans), reverse=True)
    return float(np.mean(found[:_N_SENTENCES]))


def _tokens(encoded: Encoded) -> NDArray[np.float32]:
    """Return the tokens' vectors of length 1, without the marks unless there is nothing else."""
    return encoded.units[1:-1] if len(encoded.units) > 2 else encoded.units
