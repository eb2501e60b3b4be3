"""From a document to drafts: questions with their answers, their pools, their distractors."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.calibration.instance import read_rows
from deepera_graph.chat.parsing import ReplyModel
from deepera_graph.errors import AnswerError, CallError, SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.lab.asking import StepModel
from deepera_graph.lab.build.corpus import Chunk, Corpus, Document, DropRecord
from deepera_graph.lab.build.search import ChunkSearch, PoolChunk
from deepera_graph.lab.build.writing.answers import containment, contains_answer
from deepera_graph.lab.build.writing.distractors import (
    PACKAGE,
    DistractorWriter,
    Drafts,
    InstanceDraft,
    QAPair,
)
from deepera_graph.lab.settings import BuildPlan, Golden
from deepera_graph.prompts import messages_of

EXTRACT = "extract"
DEFAULT = ("lmqg", "guided")
FILE = "file:"
SPARE = 2  # pairs asked for beyond those needed, as some cannot be used
MAX_ANSWER_WORDS = 30
MIN_QUESTION_WORDS = 3
_WORD = re.compile(r"[^\W\d_]{2,}")
_POINTS_AT_SOURCE = re.compile(
    r"\b(?:this|these|the present|the current|the above|our)\s+"
    r"(?:paper|stud(?:y|ies)|passage|article|abstract|document|text|work|research|experiments?"
    r"|trial|findings?|results?)\b"
    r"|\bthe (?:passage|authors?|abstract|text|document|notes)\b",
    re.IGNORECASE,
)


class FilledNotes(ReplyModel):
    """Notes on a document."""

    methods: str = Field(description="How the work was done; empty if the document is silent.")
    results: str = Field(description="What was found; empty if the document is silent.")
    significance: str = Field(description="What it means; empty if the document is silent.")


class FilledPair(ReplyModel):
    """A question and its answer."""

    question: str = Field(description="A question that stands on its own.")
    answer: str = Field(description="A short span of the passage, character by character.")


class FilledPairs(ReplyModel):
    """Questions with their answers."""

    pairs: list[FilledPair] = Field(description="The pairs, the best one first.")


class NoPairsError(AnswerError):
    """A document gives no questions; `reason` is a short, stable name."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class QAGenerator(Protocol):
    """Makes questions from one document; `name` names the data set."""

    name: str

    def describe(self) -> dict[str, str]:
        """Return what the manifest says of it."""
        ...

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[QAPair]:
        """Return questions on a document, the best first; none if it gives none."""
        ...


class _Generator:
    """Asks a model for pairs, with a few to spare."""

    name: str

    def __init__(self, model: StepModel, plan: BuildPlan) -> None:
        self._model, self._plan = model, plan

    def describe(self) -> dict[str, str]:
        """Return its name."""
        return {"name": self.name}

    async def _ask(self, chunk: Chunk, **shown: str) -> list[QAPair]:
        """Ask for pairs from a chunk; *shown* is what the prompt shows, by its placeholder."""
        (text,) = shown.values()
        n = str(self._plan.per_document + SPARE)
        messages = messages_of(PACKAGE, self.name, n=n, marker=show.marker(text), **shown)
        filled = await self._model.ask(self.name, messages, FilledPairs)
        return [QAPair(one.question.strip(), one.answer.strip(), chunk) for one in filled.pairs]


# Source: Ushio, Alva-Manchego and Camacho-Collados (2023), An empirical comparison of LM-based
# question and answer generation methods: the form [(question, answer)] of a paragraph.
class PassageGenerator(_Generator):
    """Asks for pairs from one chunk of a document, chosen at random."""

    name = "lmqg"

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[QAPair]:
        """Return pairs from one chunk."""
        chunk = Random(f"{self._plan.seed} {self.name} {document.id}").choice(chunks)
        return await self._ask(chunk, passage=show.plain(chunk.text))


# Source: DeepEra, section 6.2 and Fig. 10.
class GuidedGenerator(_Generator):
    """Takes notes on a document, and asks for pairs from the chunk that has its results."""

    name = "guided"

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[QAPair]:
        """Return pairs from one chunk."""
        notes = await self._take_notes(document)
        chunk = max(chunks, key=lambda one: containment(notes.results, one.text))
        source = show.plain(
            f"Notes on methods: {show.one_line(notes.methods)}\n"
            f"Notes on results: {show.one_line(notes.results)}\n"
            f"Notes on significance: {show.one_line(notes.significance)}\n\n"
            f"Passage:\n{chunk.text}"
        )
        return await self._ask(chunk, source=source)

    async def _take_notes(self, document: Document) -> FilledNotes:
        shown = f"Title: {show.one_line(document.title)}\n\n{show.plain(document.text)}"
        messages = messages_of(PACKAGE, EXTRACT, document=shown, marker=show.marker(shown))
        notes = await self._model.ask(EXTRACT, messages, FilledNotes)
        if not notes.results.strip():
            raise NoPairsError("no-results", "the notes hold no results")
        return notes


class _PairsRow(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    document: str = Field(min_length=1)
    pairs: list[tuple[str, str]]


class PairsFile:
    """Pairs from JSON lines ``{"document": id, "pairs": [[question, answer], ...]}``."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self._pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for row in read_rows(path, _PairsRow):
            self._pairs[row.document].extend(row.pairs)
        self._digest = sha256(path.read_bytes()).hexdigest()

    def describe(self) -> dict[str, str]:
        """Return its name and the hash of the file."""
        return {"name": self.name, "sha256": self._digest}

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[QAPair]:
        """Return the pairs of a document, each with the first chunk that holds its answer."""
        return [
            QAPair(
                question.strip(),
                answer.strip(),
                next((one for one in chunks if fold(answer) in fold(one.text)), chunks[0]),
            )
            for question, answer in self._pairs.get(document.id, [])
        ]


def check_generators(names: Sequence[str]) -> None:
    """Raise `SettingsError` if a name is unknown, or two data sets would have the same name."""
    for name in names:
        if name not in DEFAULT and (not name.startswith(FILE) or name == FILE):
            raise SettingsError(f"a generator is 'lmqg', 'guided' or 'file:PATH', got {name!r}")
    titles = {
        Path(name.removeprefix(FILE)).stem if name.startswith(FILE) else name for name in names
    }
    if not titles or len(titles) < len(names):
        raise SettingsError(f"generators must be one or more, and differ, got {','.join(names)!r}")


def find_generators(names: Sequence[str], model: StepModel, plan: BuildPlan) -> list[QAGenerator]:
    """Return the generators that names stand for: ``lmqg``, ``guided``, ``file:PATH``."""
    check_generators(names)
    known = {one.name: one for one in (PassageGenerator, GuidedGenerator)}
    return [
        known[name](model, plan) if name in known else PairsFile(Path(name.removeprefix(FILE)))
        for name in names
    ]


def find_problem(pair: QAPair) -> str:
    """Return why a pair cannot be used, as a short, stable name; empty if it can."""
    return next((name for name, applies in PROBLEMS.items() if applies(pair)), "")


def fold(text: str) -> str:
    """Return a text to compare: its case, its spaces and a full stop at its end do not count."""
    return " ".join(text.casefold().split()).rstrip(". ")


PROBLEMS: dict[str, Callable[[QAPair], bool]] = {
    "blank-pair": lambda pair: not pair.question.strip() or not pair.answer.strip(),
    "not-a-question": lambda pair: len(_WORD.findall(pair.question)) < MIN_QUESTION_WORDS,
    "answer-not-in-passage": lambda pair: fold(pair.answer) not in fold(pair.golden.text),
    "long-answer": lambda pair: len(pair.answer.split()) > MAX_ANSWER_WORDS,
    "question-holds-answer": lambda pair: contains_answer(pair.question, pair.answer),
    "question-points-at-source": lambda pair: bool(_POINTS_AT_SOURCE.search(pair.question)),
}


def insert_golden(
    found: Sequence[PoolChunk], pair: QAPair, *, n: int, golden: Golden
) -> tuple[tuple[PoolChunk, ...], bool]:
    """Return a pool of *n*, and whether retrieval found the golden chunk by itself."""
    pool = tuple(found[:n])
    was_found = any(one.chunk == pair.golden for one in pool)
    if was_found or golden == "record":
        return pool, was_found
    return (*pool[: n - 1], PoolChunk(pair.golden, None, None)), False


def find_ambiguous(chunks: Iterable[Chunk], pair: QAPair) -> frozenset[str]:
    """Return other chunks of the golden document with the answer's words; they go in no pool."""
    wanted = fold(pair.answer)
    return frozenset(one.id for one in chunks if one != pair.golden and wanted in fold(one.text))


class Drafter:
    """Makes the drafts of one generator; without a writer they have no distractors."""

    def __init__(
        self,
        generator: QAGenerator,
        corpus: Corpus,
        search: ChunkSearch,
        writer: DistractorWriter | None,
        plan: BuildPlan,
    ) -> None:
        self._generator, self._corpus, self._search = generator, corpus, search
        self._writer, self._plan = writer, plan

    async def draft(self, document: Document) -> Drafts:
        """Return the drafts of a document; a failure that concerns it alone is a drop."""
        found = Drafts()
        unfinished: list[InstanceDraft] = []
        for number, pair in enumerate(await self._usable_pairs(document, found.drops), start=1):
            try:
                draft = await self._finish(document, number, pair)
            except (AnswerError, CallError) as error:
                found.drops.append(self._drop(document, _name(error), str(error)))
                continue
            is_done = draft.distractors or self._writer is None
            (found.drafts if is_done else unfinished).append(draft)
        for draft in (*found.drafts, *unfinished):
            found.rejected += draft.rejected
        for draft in unfinished:
            found.drops.append(self._drop(document, "no-distractor-passed", draft.pair.question))
        return found

    async def _usable_pairs(self, document: Document, drops: list[DropRecord]) -> list[QAPair]:
        """Return the first pairs that can be used, as many as a document may have."""
        try:
            pairs = await self._generator.pairs(document, self._corpus.chunks_of(document.id))
        except (AnswerError, CallError) as error:
            drops.append(self._drop(document, _name(error), str(error)))
            return []
        if not pairs:
            drops.append(self._drop(document, "no-pair", ""))
        usable: list[QAPair] = []
        for pair in pairs:
            problem = find_problem(pair)
            if problem:
                drops.append(self._drop(document, problem, f"{pair.question} | {pair.answer}"))
            else:
                usable.append(pair)
        return usable[: self._plan.per_document]

    async def _finish(self, document: Document, number: int, pair: QAPair) -> InstanceDraft:
        left_out = find_ambiguous(self._corpus.chunks_of(document.id), pair)
        n = self._plan.n_contexts
        found = await self._search.find_nearest(pair.question, n + len(left_out))
        clear = [one for one in found if one.chunk.id not in left_out]
        pool, was_found = insert_golden(clear, pair, n=n, golden=self._plan.golden)
        draft = InstanceDraft(
            id=f"{self._generator.name}-{document.id}-{number}",
            dataset=self._generator.name,
            subject=document.subject,
            pair=pair,
            pool=pool,
            n_left_out=len(left_out),
            was_found=was_found,
        )
        if self._writer is None:
            return draft
        distractors, rejected = await self._writer.write(draft)
        return replace(draft, distractors=tuple(distractors), rejected=tuple(rejected))

    def _drop(self, document: Document, reason: str, detail: str) -> DropRecord:
        stage = self._generator.name
        return DropRecord(stage=stage, document=document.id, reason=reason, detail=detail)


def _name(error: AnswerError | CallError) -> str:
    if isinstance(error, NoPairsError):
        return error.reason
    return "unusable-reply" if isinstance(error, AnswerError) else "call-failed"
