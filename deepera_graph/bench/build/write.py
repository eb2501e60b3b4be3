"""SSLI generation: distractors are written, held against the gates, and written again."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from deepera_graph.backends.llm import show
from deepera_graph.bench.build.ask import Asker
from deepera_graph.bench.build.draft import Distractor, Draft
from deepera_graph.bench.build.fillings import FilledGuide, FilledPassage
from deepera_graph.bench.build.gates import Candidate, failed_gates
from deepera_graph.bench.build.guidance import (
    N_SHOWN,
    guides,
    lengths_of,
    phrases_to_avoid,
    types_of,
)
from deepera_graph.bench.build.losses import Rejected
from deepera_graph.bench.build.plan import BuildPlan
from deepera_graph.bench.build.prompts import PACKAGE
from deepera_graph.bench.build.reasons import in_words
from deepera_graph.bench.build.search import ChunkSearch
from deepera_graph.errors import AnswerError
from deepera_graph.prompts import messages_of, text_of

STEP = "distractor"
_FIFTH = 0.2  # what a writer may add to the length asked for, or leave out
_NO_TEXT = "unusable-reply"


@dataclass(frozen=True, slots=True)
class Nature:
    """What the natural passages of a pool are like.

    Attributes:
        lengths: Words of each.
        similarities: Cosine of each with the question, those that retrieval missed left out.
        shown: Texts of the nearest ones, best first.
        samples: Those shown that are not golden; a distractor must not copy them.
    """

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

    Args:
        asker: The model.
        search: Measures similarity.
        plan: How many, how often, and the gates.

    Source:
        DeepEra, section 6.2; the gates are ours.
    """

    def __init__(self, asker: Asker, search: ChunkSearch, plan: BuildPlan) -> None:
        self._asker, self._search, self._plan = asker, search, plan

    async def write(self, draft: Draft) -> tuple[list[Distractor], list[Rejected]]:
        """Return the distractors that passed the gates, and all tries that did not.

        Raises:
            AnswerError: There is no guidance.
            CallError: A call failed.
        """
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
            filled = await self._asker.ask(STEP, messages, FilledPassage)
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
        STEP,
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
