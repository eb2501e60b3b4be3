"""SSLI guidance: what each distractor of a question is to be about."""

from collections.abc import Sequence
from random import Random
from statistics import median
from typing import get_args

from deepera_graph.backends.llm import show
from deepera_graph.bench.build.answer_words import holds_answer
from deepera_graph.bench.build.ask import Asker
from deepera_graph.bench.build.fillings import DistractorType, FilledGuidance, FilledGuide
from deepera_graph.bench.build.pairs import Pair
from deepera_graph.bench.build.prompts import PACKAGE
from deepera_graph.errors import AnswerError
from deepera_graph.prompts import messages_of
from deepera_graph.text.words import words

N_SHOWN = 3
STEP = "guidance"


async def guides(
    asker: Asker,
    pair: Pair,
    shown: Sequence[str],
    *,
    types: Sequence[DistractorType],
    lengths: Sequence[int],
) -> list[FilledGuide]:
    """Return one guide for each of *types*.

    A model may plan too few passages, or other types: then a plan serves more than once, or with
    the type that it has.

    Args:
        asker: The model.
        pair: Question and answer.
        shown: The passages nearest to the question, best first; shape (3,) or shorter.
        types: Types wanted, in order.
        lengths: Words each of them should have; shape of *types*.

    Raises:
        AnswerError: There is no guide.

    Source:
        DeepEra, section 6.2: type, thematic focus and what to leave out, from question, golden
        answer and the three nearest contexts.
    """
    block = "\n\n".join(
        f"[{number}] {show.plain(text)}" for number, text in enumerate(shown, start=1)
    )
    messages = messages_of(
        PACKAGE,
        STEP,
        n=str(len(types)),
        types=", ".join(types),
        question=show.one_line(pair.question),
        answer=show.one_line(pair.answer),
        lengths=", ".join(map(str, lengths)),
        passages=block,
        marker=show.marker(block),
    )
    filled = await asker.ask(STEP, messages, FilledGuidance)
    if not filled.guides:
        raise AnswerError("the guidance plans no passage")
    return _in_order(filled.guides, types)


def types_of(n: int, seed: int, question: str) -> list[DistractorType]:
    """Return the types of *n* distractors: each as often as the others, which first by chance."""
    known = list(get_args(DistractorType))
    Random(f"{seed} types {question}").shuffle(known)
    return [known[place % len(known)] for place in range(n)]


def lengths_of(
    n: int, seed: int, question: str, *, natural: Sequence[int], least: float, most: float
) -> list[int]:
    """Return how many words each of *n* distractors should have: as many as natural passages have.

    Were all as long as the median passage, their length alone would give them away.

    Args:
        n: How many.
        seed: Of the choice, together with *question*.
        question: Id of the question.
        natural: Words of each natural passage of the pool; not empty.
        least: Least length wanted, as a multiple of the median of *natural*.
        most: Most length wanted, likewise.
    """
    typical = max(1.0, median(natural))
    fitting = [one for one in natural if least * typical <= one <= most * typical]
    chance = Random(f"{seed} lengths {question}")
    return [chance.choice(fitting) if fitting else round(typical) for _ in range(n)]


def phrases_to_avoid(guide: FilledGuide, pair: Pair, others: Sequence[str]) -> list[str]:
    """Return the answer and what the guide adds to it.

    Left out is what does not single out the answer: the question's own words, and what passages
    say that do not answer it.

    Args:
        guide: Names phrases.
        pair: Question and answer.
        others: Passages near the question that are not golden.
    """
    asked = set(words(pair.question.casefold()))
    added = [
        show.one_line(phrase)
        for phrase in guide.avoid
        if not set(words(phrase.casefold())) <= asked
        and not any(holds_answer(text, phrase) for text in others)
    ]
    return list(dict.fromkeys([show.one_line(pair.answer), *added]))


def _in_order(planned: list[FilledGuide], types: Sequence[DistractorType]) -> list[FilledGuide]:
    """Return a guide for each type: of that type if there is one left, else any."""
    left = list(planned)
    chosen = []
    for wanted in types:
        left = left or list(planned)
        guide = next((one for one in left if one.type == wanted), left[0])
        left.remove(guide)
        chosen.append(guide)
    return chosen
