"""The extractive summary: the passage's own one or two best sentences for the question."""

from collections.abc import Sequence

from deepera_graph.backends.local.measures import study
from deepera_graph.roles import PassageTask
from deepera_graph.schema import Summary
from deepera_graph.text.sentences import Sentence
from deepera_graph.usage import Usage

SECOND_SHARE = 0.7
LONGEST = 450


def summarize(task: PassageTask) -> Summary:
    """Return one or two sentences word for word, in the passage's order; empty for a blank text.

    The second sentence joins if it is at least 0.7 as strong (`SECOND_SHARE`) as the best and both
    together have at most 450 characters (`LONGEST`).
    """
    found = study(task)
    if found is None:
        return Summary(text="", usage=Usage())
    pairs = zip(found.evidence, found.readings, strict=True)
    ranked = sorted(pairs, key=lambda pair: -pair[0])
    chosen = [reading.sentence for _, reading in ranked[:2]]
    if len(ranked) > 1 and not _joins(ranked[1][0] / max(ranked[0][0], 1e-9), chosen):
        chosen = chosen[:1]
    chosen.sort(key=lambda sentence: sentence.start)
    return Summary(text=" ".join(sentence.text for sentence in chosen), usage=Usage())


def _joins(share: float, sentences: Sequence[Sentence]) -> bool:
    length = sum(len(sentence.text) for sentence in sentences)
    return share >= SECOND_SHARE and length <= LONGEST
