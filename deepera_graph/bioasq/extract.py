"""Typed answers put together from the snippets by rules and small linear models, without a key.

Nothing is understood here: yes or no follows the wording of the findings, names are phrases of the
right form that the snippets repeat, and an ideal answer is the question restated with its answer
and the sentence that adds most. Whoever shows such an answer says that it was extracted.
"""

from collections.abc import Sequence

from deepera_graph.bioasq.replies import MOST_CANDIDATES, MOST_WORDS
from deepera_graph.bioasq.restate import restate
from deepera_graph.bioasq.roles import AnswerTask, ExactAnswered, IdealAnswered
from deepera_graph.bioasq.sentences import rank
from deepera_graph.bioasq.terms import find_terms, synonyms_in
from deepera_graph.bioasq.yes_no import probability_of_yes
from deepera_graph.text.questions import asks_yes_or_no

YES = 0.5  # probability from which yes is said
_OF_BEST = 0.75  # of the score of the best term, from which a term is in a list
_OF_BEST_ALIKE = 0.5  # the same for one that is told as the best one is
_MOST_LISTED = 10
_SENTENCES = {"factoid": 2, "list": 3, "summary": 2}  # of an ideal answer


def extract_exact(task: AnswerTask) -> ExactAnswered:
    """Return yes or no, up to five candidates, or a list; without names if none was found."""
    if task["type"] == "yesno":
        return ExactAnswered(names=[_say(task)])
    terms = find_terms(task["question"], task["snippets"])
    if task["type"] == "factoid":
        return ExactAnswered(names=[one.text for one in terms[:MOST_CANDIDATES]])
    best = terms[0].score if terms else 0.0
    listed = [
        one.text
        for one in terms
        if one.score >= best * (_OF_BEST_ALIKE if one.is_alike else _OF_BEST)
    ]
    return ExactAnswered(names=_without_synonyms(listed[:_MOST_LISTED], task["snippets"]))


def _without_synonyms(names: Sequence[str], snippets: Sequence[str]) -> list[str]:
    """Leave out a short form whose long form is named too: a synonym counts as a false answer."""
    long_of = synonyms_in(snippets)
    lower = {one.lower() for one in names}
    return [one for one in names if long_of.get(one, "").lower() not in lower or one not in long_of]


def extract_ideal(task: AnswerTask) -> IdealAnswered:
    """Return the question restated with its answer, and the sentences that say most to it."""
    asks = task["type"] == "yesno" or (
        task["type"] == "summary" and asks_yes_or_no(task["question"])
    )
    if not asks:
        return IdealAnswered(text=" ".join(_choose_sentences(task, _SENTENCES[task["type"]])))
    said = task["exact"] or [_say(task)]
    claim = restate(task["question"], "yes" if said[0] == "yes" else "no")
    return IdealAnswered(text=" ".join([claim, *_choose_sentences(task, 1)]))


def _say(task: AnswerTask) -> str:
    return "yes" if probability_of_yes(task["question"], task["snippets"]) >= YES else "no"


def _choose_sentences(task: AnswerTask, most: int) -> list[str]:
    """Return the best sentences in their order; those that name an exact answer go first."""
    ranked = rank(task["question"], task["snippets"])
    names = [one.lower() for one in task["exact"] or () if task["type"] != "yesno"]
    naming = [one for one in ranked if any(name in one[2].lower() for name in names)]
    rest = [one for one in ranked if one not in naming]
    chosen: list[tuple[int, str]] = []
    n_words = 0
    for _, place, text in [*naming, *rest][:most]:
        n_words += len(text.split())
        if chosen and n_words > MOST_WORDS:
            break
        chosen.append((place, text))
    return [text for _, text in sorted(chosen)] or list(task["snippets"][:1])
