"""SSLI generation: distractors are written, held against the gates, and written again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import get_args

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from deepera_graph.bench.build.corpus import ChunkSearch
from deepera_graph.bench.build.drafts import Distractor, Draft, Pair
from deepera_graph.bench.build.gates import Candidate, failed_gates, holds_answer, in_words
from deepera_graph.bench.build.model import (
    PACKAGE,
    Asker,
    DistractorType,
    FilledGuidance,
    FilledGuide,
    FilledPassage,
)
from deepera_graph.bench.build.plan import BuildPlan, Rejected
from deepera_graph.errors import AnswerError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.prompts import messages_of, text_of
from deepera_graph.text.words import words

N_SHOWN = 3
GUIDANCE_STEP = "guidance"


async def guides(
    asker: Asker,
    pair: Pair,
    shown: Sequence[str],
    *,
    types: Sequence[DistractorType],
    lengths: Sequence[int],
) -> list[FilledGuide]:
    """Return one guide for each of *types*.

    Source:
        DeepEra, section 6.2: type, thematic focus and what to leave out, from question, golden
        answer and the three nearest contexts.
    """
    block = "\n\n".join(
        f"[{number}] {show.plain(text)}" for number, text in enumerate(shown, start=1)
    )
    messages = messages_of(
        PACKAGE,
        GUIDANCE_STEP,
        n=str(len(types)),
        types=", ".join(types),
        question=show.one_line(pair.question),
        answer=show.one_line(pair.answer),
        lengths=", ".join(map(str, lengths)),
        passages=block,
        marker=show.marker(block),
    )
    filled = await asker.ask(GUIDANCE_STEP, messages, FilledGuidance)
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
    """Draw how many words each of *n* distractors should have, from natural passages."""
    typical = max(1.0, median(natural))
    fitting = [one for one in natural if least * typical <= one <= most * typical]
    chance = Random(f"{seed} lengths {question}")
    return [chance.choice(fitting) if fitting else round(typical) for _ in range(n)]


def phrases_to_avoid(guide: FilledGuide, pair: Pair, others: Sequence[str]) -> list[str]:
    """Return the answer and what the guide adds to it.

    Left out is what does not single out the answer: the question's own words, and what passages
    say that do not answer it.
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


WRITE_STEP = "distractor"
_FIFTH = 0.2  # what a writer may add to the length asked for, or leave out
_NO_TEXT = "unusable-reply"


@dataclass(frozen=True, slots=True)
class Nature:
    """What the natural passages of a pool are like."""

    lengths: tuple[int, ...]
    similarities: tuple[float, ...]
    shown: tuple[str, ...]
    samples: tuple[str, ...]


@dataclass(slots=True)
class _Written:
    distractors: list[Distractor] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


class DistractorWriter:
    """Writes the distractors of a question, one after the other.

    Source:
        DeepEra, section 6.2; the gates are ours.
    """

    def __init__(self, asker: Asker, search: ChunkSearch, plan: BuildPlan) -> None:
        self._asker, self._search, self._plan = asker, search, plan

    async def write(self, draft: Draft) -> tuple[list[Distractor], list[Rejected]]:
        """Return the distractors that passed the gates, and all tries that did not."""
        nature = _nature(draft)
        types = types_of(self._plan.n_distractors, self._plan.seed, draft.id)
        lengths = self._lengths(draft, nature)
        planned = await guides(self._asker, draft.pair, nature.shown, types=types, lengths=lengths)
        written = _Written()
        for slot, (guide, length) in enumerate(zip(planned, lengths, strict=True), start=1):
            await self._fill_slot(draft, slot, _as_long(guide, length), nature, written)
        return written.distractors, written.rejected

    def _lengths(self, draft: Draft, nature: Nature) -> list[int]:
        """Draw lengths that leave the writer a fifth before a gate rejects the passage."""
        gates, plan = self._plan.gates, self._plan
        return lengths_of(
            plan.n_distractors,
            plan.seed,
            draft.id,
            natural=nature.lengths,
            least=gates.min_length / (1 - _FIFTH),
            most=gates.max_length / (1 + _FIFTH),
        )

    async def _fill_slot(
        self, draft: Draft, slot: int, guide: FilledGuide, nature: Nature, written: _Written
    ) -> None:
        """Try until a text passes, or the attempts are used up."""
        messages = _messages(draft, guide, nature)
        for attempt in range(1, self._plan.attempts + 1):
            text, reasons = await self._try(draft, guide, nature, messages, written.distractors)
            if not reasons:
                written.distractors.append(Distractor(" ".join(text.split()), guide.type))
                return
            written.rejected.append(
                Rejected(question=draft.id, slot=slot, attempt=attempt, type=guide.type,
                         reasons=tuple(reasons), text=text)
            )  # fmt: skip
            if reasons[0].startswith(_NO_TEXT):
                return
            said = AIMessage(text or "(nothing)")
            messages = [*messages[:2], said, HumanMessage(_again(reasons))]

    async def _try(
        self,
        draft: Draft,
        guide: FilledGuide,
        nature: Nature,
        messages: Sequence[BaseMessage],
        others: Sequence[Distractor],
    ) -> tuple[str, list[str]]:
        """Return a text and the gates it failed."""
        try:
            filled = await self._asker.ask(WRITE_STEP, messages, FilledPassage)
        except AnswerError as error:
            return "", [f"{_NO_TEXT}: {error}"]
        text = show.plain(filled.text).strip()
        candidate = Candidate(
            text=text,
            gold_answer=draft.pair.answer,
            synonyms=phrases_to_avoid(guide, draft.pair, nature.samples)[1:],
            question_similarity=await self._search.similarity(draft.pair.question, text),
            natural_similarities=nature.similarities,
            natural_lengths=nature.lengths,
            others=[*(one.text for one in others), *nature.samples],
            golden=[draft.pair.golden.text],
            question=draft.pair.question,
        )
        return text, failed_gates(candidate, self._plan.gates)


def _nature(draft: Draft) -> Nature:
    nearest = [one.chunk for one in draft.pool[:N_SHOWN]]
    return Nature(
        lengths=tuple(len(one.chunk.text.split()) for one in draft.pool),
        similarities=tuple(one.score for one in draft.pool if one.score is not None),
        shown=tuple(one.text for one in nearest),
        samples=tuple(one.text for one in nearest if one != draft.pair.golden),
    )


def _messages(draft: Draft, guide: FilledGuide, nature: Nature) -> list[BaseMessage]:
    block = "\n\n".join(map(show.plain, nature.shown))
    return messages_of(
        PACKAGE,
        WRITE_STEP,
        question=show.one_line(draft.pair.question),
        type=guide.type,
        focus=show.one_line(guide.focus),
        avoid="; ".join(phrases_to_avoid(guide, draft.pair, nature.samples)),
        length=str(guide.length),
        samples=block,
        marker=show.marker(block),
    )


def _as_long(guide: FilledGuide, length: int) -> FilledGuide:
    """Return a guide with the length that was asked for, unless its own is near that."""
    near = abs(guide.length - length) <= _FIFTH * length
    return guide if near else guide.model_copy(update={"length": length})


def _again(reasons: Sequence[str]) -> str:
    return text_of(PACKAGE, "again", problems=in_words(reasons))
