"""SSLI generation: distractors are written, held against the gates, and written again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from statistics import median
from typing import Literal, get_args

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.chat.parsing import ReplyModel
from deepera_graph.errors import AnswerError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.lab.asking import StepModel
from deepera_graph.lab.build.corpus import Chunk, DropRecord
from deepera_graph.lab.build.search import ChunkSearch, PoolChunk
from deepera_graph.lab.build.writing.answers import contains_answer
from deepera_graph.lab.build.writing.faults import MOST_TEXTS, ProseModel
from deepera_graph.lab.build.writing.gates import CandidateDistractor, explain, failed_gates
from deepera_graph.lab.settings import BuildPlan
from deepera_graph.prompts import messages_of, text_of
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.schema import Direction
from deepera_graph.text.questions import asks_yes_or_no
from deepera_graph.text.words import words

PACKAGE = "deepera_graph.lab.build.prompts"
VERIFY_STEP = "verify"
DistractorType = Literal["misleading", "background", "irrelevant"]
Relation = Literal["agrees", "partly", "differs", "silent"]
_NO: tuple[Direction, ...] = ("contradicts", "no_difference")
_TOLD: dict[str, tuple[Direction, ...]] = {
    "yes": ("supports",),
    "true": ("supports",),
    "no": _NO,
    "false": _NO,
}
_CLEAR: tuple[Direction, ...] = ("supports", "contradicts", "no_difference", "mixed")


# The model is shown the names and docstrings of the classes of replies.


class FilledGuide(ReplyModel):
    """The plan of one passage."""

    type: DistractorType = Field(description="What kind of passage it is.")
    focus: str = Field(description="What it is about, in one sentence.")
    avoid: list[str] = Field(description="Phrases that must not occur in it.")
    length: int = Field(description="How many words it should have.")


class FilledGuidance(ReplyModel):
    """The plans of all passages for a question."""

    guides: list[FilledGuide] = Field(description="One plan a passage, in the order asked for.")


class FilledPassage(ReplyModel):
    """A written passage."""

    text: str = Field(description="The passage and nothing else.")


class FilledCheck(ReplyModel):
    """How a passage stands to an answer."""

    quote: str = Field(description="The sentence that decides; empty if there is none.")
    relation: Relation = Field(description="How the passage stands to the correct answer.")


class EvidenceCheck:
    """Asks the local judge, which is loaded once it is needed."""

    @cached_property
    def _judge(self) -> EvidenceReranker:
        return EvidenceReranker("local", threshold=0.0, content="passage", top_n=2)

    async def entails(
        self, text: str, *, question: str, answer: str, golden: str, max_evidence: float
    ) -> bool:
        """Tell whether a passage is evidence for the answer of a question of yes or no."""
        # It is if its score is *max_evidence*, in [0, 1], or more, and its direction is none other
        # than the answer's: that of yes or no, else that of the golden passage. Other questions are
        # not judged, as a direction says nothing there.
        if max_evidence >= 1 or not asks_yes_or_no(question):
            return False
        result = await self._judge.arerank(question, [text, golden])
        own, gold = sorted(result.passages, key=lambda one: one.id)
        if own.score is None or own.score < max_evidence:
            return False
        told = _TOLD.get(" ".join(words(answer)), (gold.direction,))
        return own.direction not in _CLEAR or own.direction in told or told[0] not in _CLEAR


async def verify(model: StepModel, text: str, *, question: str, answer: str) -> bool:
    """Tell whether the chat model finds nothing of the answer in a passage."""
    # Raises `AnswerError` if its reply cannot be used; `CallError` if it cannot be asked.
    messages = messages_of(
        PACKAGE,
        VERIFY_STEP,
        question=show.one_line(question),
        answer=show.one_line(answer),
        passage=show.plain(text),
        marker=show.marker(text),
    )
    found = await model.ask(VERIFY_STEP, messages, FilledCheck)
    return found.relation in ("differs", "silent")


N_SHOWN = 3
GUIDANCE_STEP, WRITE_STEP = "guidance", "distractor"
_TOLERANCE = 0.2  # what a writer may add to the length asked for, or leave out
_NO_TEXT = "unusable-reply"
_NO_CHECK = "unusable-check"


@dataclass(frozen=True, slots=True)
class QAPair:
    """A question, its answer, and the chunk that answers it."""

    question: str
    answer: str
    golden: Chunk


@dataclass(frozen=True, slots=True)
class Distractor:
    """A passage that passed the gates."""

    text: str
    type: DistractorType


class RejectedDistractor(BaseModel):
    """A distractor that did not pass the gates."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = Field(description="Id of the question.")
    slot: int = Field(ge=1, description="Which of its distractors.")
    attempt: int = Field(ge=1, description="Which try at it.")
    type: str = Field(description="What kind it was meant to be.")
    reasons: tuple[str, ...] = Field(description="Gates it failed, or why there is no text.")
    text: str = Field(default="", description="What was written.")


@dataclass(frozen=True, slots=True)
class InstanceDraft:
    """All that the instances of one question are made of."""

    id: str
    dataset: str
    subject: str
    pair: QAPair
    pool: tuple[PoolChunk, ...]  # best first; with the golden chunk unless that is only recorded
    n_left_out: int  # chunks left out of the pool as ambiguous
    was_found: bool  # whether retrieval found the golden chunk
    distractors: tuple[Distractor, ...] = ()
    rejected: tuple[RejectedDistractor, ...] = ()


@dataclass(slots=True)
class Drafts:
    """The drafts of a document, in order, and what was lost on the way."""

    drafts: list[InstanceDraft] = field(default_factory=list)
    rejected: list[RejectedDistractor] = field(default_factory=list)
    drops: list[DropRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PoolProfile:
    """What the natural passages of a pool are like."""

    lengths: tuple[int, ...]  # words
    similarities: tuple[float, ...]  # cosines with the question, where retrieval found the passage
    shown: tuple[str, ...]  # the nearest ones, best first
    samples: tuple[str, ...]  # those that are not golden: not to be copied

    @classmethod
    def of(cls, draft: InstanceDraft) -> "PoolProfile":
        """Describe the pool of a draft."""
        nearest = [one.chunk for one in draft.pool[:N_SHOWN]]
        return cls(
            lengths=tuple(len(one.chunk.text.split()) for one in draft.pool),
            similarities=tuple(one.score for one in draft.pool if one.score is not None),
            shown=tuple(one.text for one in nearest),
            samples=tuple(one.text for one in nearest if one != draft.pair.golden),
        )


# Source: DeepEra, section 6.2: type, thematic focus and what to leave out, from question, golden
# answer and the three nearest contexts; the gates are ours.
class DistractorWriter:
    """Writes the distractors of a question, one after the other."""

    def __init__(self, model: StepModel, search: ChunkSearch, plan: BuildPlan) -> None:
        self._model, self._search, self._plan = model, search, plan
        self._prose = ProseModel.fit(search.sample_texts(MOST_TEXTS))
        self._evidence = EvidenceCheck()

    async def write(
        self, draft: InstanceDraft
    ) -> tuple[list[Distractor], list[RejectedDistractor]]:
        """Return the distractors that passed the gates, and all tries that did not."""
        profile, plan = PoolProfile.of(draft), self._plan
        types = draw_types(plan.n_distractors, plan.seed, draft.id)
        lengths = draw_lengths(  # they leave the writer his tolerance before a gate rejects
            plan.n_distractors,
            plan.seed,
            draft.id,
            natural=profile.lengths,
            least=plan.gates.min_length / (1 - _TOLERANCE),
            most=plan.gates.max_length / (1 + _TOLERANCE),
        )
        guides = await self._ask_guides(draft.pair, profile, types, lengths)
        passed: list[Distractor] = []
        rejected: list[RejectedDistractor] = []
        for slot, (guide, length) in enumerate(zip(guides, lengths, strict=True), start=1):
            near = abs(guide.length - length) <= _TOLERANCE * length
            sized = guide if near else guide.model_copy(update={"length": length})
            await self._fill_slot(
                draft, slot, sized, profile=profile, passed=passed, rejected=rejected
            )
        return passed, rejected

    async def _ask_guides(
        self,
        pair: QAPair,
        profile: PoolProfile,
        types: Sequence[DistractorType],
        lengths: Sequence[int],
    ) -> list[FilledGuide]:
        """Return one guide for each of *types*; a plan may serve twice, or with its own type."""
        numbered = enumerate(profile.shown, start=1)
        block = "\n\n".join(f"[{number}] {show.plain(text)}" for number, text in numbered)
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
        filled = await self._model.ask(GUIDANCE_STEP, messages, FilledGuidance)
        if not filled.guides:
            raise AnswerError("the guidance plans no passage")
        left: list[FilledGuide] = []
        chosen = []
        for wanted in types:
            left = left or list(filled.guides)
            guide = next((one for one in left if one.type == wanted), left[0])
            left.remove(guide)
            chosen.append(guide)
        return chosen

    async def _fill_slot(
        self,
        draft: InstanceDraft,
        slot: int,
        guide: FilledGuide,
        *,
        profile: PoolProfile,
        passed: list[Distractor],
        rejected: list[RejectedDistractor],
    ) -> None:
        """Try until a text passes, or the attempts are used up."""
        avoid = phrases_to_avoid(guide, draft.pair, profile.samples)
        messages = _ask_for_passage(draft.pair, guide, profile, avoid)
        for attempt in range(1, self._plan.attempts + 1):
            text, reasons = await self._try(draft.pair, messages, profile, avoid, passed)
            if not reasons:
                passed.append(Distractor(" ".join(text.split()), guide.type))
                return
            rejected.append(
                RejectedDistractor(
                    question=draft.id,
                    slot=slot,
                    attempt=attempt,
                    type=guide.type,
                    reasons=tuple(reasons),
                    text=text,
                )
            )
            if reasons[0].startswith((_NO_TEXT, _NO_CHECK)):
                return
            problems = text_of(PACKAGE, "again", problems=explain(reasons))
            messages = [*messages[:2], AIMessage(text or "(nothing)"), HumanMessage(problems)]

    async def _try(
        self,
        pair: QAPair,
        messages: Sequence[BaseMessage],
        profile: PoolProfile,
        avoid: Sequence[str],
        passed: Sequence[Distractor],
    ) -> tuple[str, list[str]]:
        try:
            filled = await self._model.ask(WRITE_STEP, messages, FilledPassage)
        except AnswerError as error:
            return "", [f"{_NO_TEXT}: {error}"]
        text = show.plain(filled.text).strip()
        candidate = CandidateDistractor(
            text=text,
            gold_answer=pair.answer,
            synonyms=avoid[1:],
            question_similarity=await self._search.measure_similarity(pair.question, text),
            natural_similarities=profile.similarities,
            natural_lengths=profile.lengths,
            others=[*(one.text for one in passed), *profile.samples],
            golden=[pair.golden.text],
            question=pair.question,
            word_order=self._prose.measure_order(text),
        )
        return text, (
            failed_gates(candidate, self._plan.gates) or await self._check_meaning(candidate)
        )

    async def _check_meaning(self, candidate: CandidateDistractor) -> list[str]:
        """Return the gates failed by those who read for meaning, the cheap one first."""
        pair = {"question": candidate.question, "answer": candidate.gold_answer}
        if await self._evidence.entails(
            candidate.text,
            golden=candidate.golden[0],
            max_evidence=self._plan.gates.max_evidence,
            **pair,
        ):
            return ["entails-answer"]
        if not self._plan.verify:
            return []
        try:
            is_sound = await verify(self._model, candidate.text, **pair)
        except AnswerError as error:
            return [f"{_NO_CHECK}: {error}"]
        return [] if is_sound else ["agrees-with-answer"]


def draw_types(n: int, seed: int, question: str) -> list[DistractorType]:
    """Draw the types of *n* distractors: each as often as the others, which first by chance."""
    known = list(get_args(DistractorType))
    Random(f"{seed} types {question}").shuffle(known)
    return [known[place % len(known)] for place in range(n)]


def draw_lengths(
    n: int, seed: int, question: str, *, natural: Sequence[int], least: float, most: float
) -> list[int]:
    """Draw how many words each of *n* distractors should have, from natural passages."""
    # Were all as long as the median passage, their length alone would give them away. *least* and
    # *most* are multiples of that median.
    typical = max(1.0, median(natural))
    fitting = [one for one in natural if least * typical <= one <= most * typical]
    rng = Random(f"{seed} lengths {question}")
    return [rng.choice(fitting) if fitting else round(typical) for _ in range(n)]


def phrases_to_avoid(guide: FilledGuide, pair: QAPair, others: Sequence[str]) -> list[str]:
    """Return the answer, and what the guide adds that singles it out."""
    asked = set(words(pair.question.casefold()))
    added = [
        show.one_line(phrase)
        for phrase in guide.avoid
        if not set(words(phrase.casefold())) <= asked
        and not any(contains_answer(text, phrase) for text in others)
    ]
    return list(dict.fromkeys([show.one_line(pair.answer), *added]))


def _ask_for_passage(
    pair: QAPair, guide: FilledGuide, profile: PoolProfile, avoid: Sequence[str]
) -> list[BaseMessage]:
    block = "\n\n".join(map(show.plain, profile.shown))
    return messages_of(
        PACKAGE,
        WRITE_STEP,
        question=show.one_line(pair.question),
        type=guide.type,
        focus=show.one_line(guide.focus),
        avoid="; ".join(avoid),
        length=str(guide.length),
        samples=block,
        marker=show.marker(block),
    )
