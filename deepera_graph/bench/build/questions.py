"""From a document to drafts: questions, their pools, their distractors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from deepera_graph.bench.build.corpus import Chunk, ChunkSearch, Corpus, Document, Found
from deepera_graph.bench.build.distractors import DistractorWriter
from deepera_graph.bench.build.drafts import (
    Distractor,
    Draft,
    NoPairsError,
    Pair,
    PairsFile,
    QAGenerator,
    folded,
    problem_of,
)
from deepera_graph.bench.build.gates import containment
from deepera_graph.bench.build.model import PACKAGE, Asker, FilledNotes, FilledPairs
from deepera_graph.bench.build.plan import BuildPlan, Golden, Loss, Setting
from deepera_graph.bench.data.instance import Context, Instance
from deepera_graph.errors import AnswerError, CallError, SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.prompts import messages_of

SPARE = 2  # pairs asked for beyond those needed, as some cannot be used


class PassageGenerator:
    """Asks for pairs from one chunk of a document, chosen at random.

    Source:
        Ushio, Alva-Manchego and Camacho-Collados (2023), An empirical comparison of LM-based
        question and answer generation methods: the form [(question, answer)] of a paragraph.
    """

    name = "lmqg"

    def __init__(self, asker: Asker, *, n: int = 1, seed: int = 0) -> None:
        self._asker, self._n, self._seed = asker, n + SPARE, seed

    def about(self) -> dict[str, str]:
        """Return its name."""
        return {"name": self.name}

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[Pair]:
        """Return pairs from one chunk."""
        chunk = Random(f"{self._seed} {self.name} {document.id}").choice(chunks)
        shown = show.plain(chunk.text)
        messages = messages_of(
            PACKAGE, "lmqg", n=str(self._n), passage=shown, marker=show.marker(shown)
        )
        filled = await self._asker.ask(self.name, messages, FilledPairs)
        return [Pair(one.question.strip(), one.answer.strip(), chunk) for one in filled.pairs]


EXTRACT = "extract"


class GuidedGenerator:
    """Takes notes on a document, and asks for pairs from the chunk that has its results.

    Source:
        DeepEra, section 6.2 and Fig. 10.
    """

    name = "guided"

    def __init__(self, asker: Asker, *, n: int = 1) -> None:
        self._asker, self._n = asker, n + SPARE

    def about(self) -> dict[str, str]:
        """Return its name."""
        return {"name": self.name}

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[Pair]:
        """Return pairs from one chunk."""
        notes = await self._notes(document)
        chunk = max(chunks, key=lambda one: containment(notes.results, one.text))
        source = show.plain(
            f"Notes on methods: {show.one_line(notes.methods)}\n"
            f"Notes on results: {show.one_line(notes.results)}\n"
            f"Notes on significance: {show.one_line(notes.significance)}\n\n"
            f"Passage:\n{chunk.text}"
        )
        messages = messages_of(
            PACKAGE, "guided", n=str(self._n), source=source, marker=show.marker(source)
        )
        filled = await self._asker.ask(self.name, messages, FilledPairs)
        return [Pair(one.question.strip(), one.answer.strip(), chunk) for one in filled.pairs]

    async def _notes(self, document: Document) -> FilledNotes:
        shown = f"Title: {show.one_line(document.title)}\n\n{show.plain(document.text)}"
        messages = messages_of(PACKAGE, "extract", document=shown, marker=show.marker(shown))
        notes = await self._asker.ask(EXTRACT, messages, FilledNotes)
        if not notes.results.strip():
            raise NoPairsError("no-results", "the notes hold no results")
        return notes


DEFAULT = ("lmqg", "guided")
FILE = "file:"


def find_generators(names: Sequence[str], asker: Asker, plan: BuildPlan) -> list[QAGenerator]:
    """Return the generators that names stand for: ``lmqg``, ``guided``, ``file:PATH``."""
    check_generators(names)
    return [_find(name, asker, plan) for name in names]


def check_generators(names: Sequence[str]) -> None:
    """Raise `SettingsError` if a name is unknown, or two data sets would have the same name."""
    titles = [_title(name) for name in names]
    if not titles or len(set(titles)) < len(titles):
        raise SettingsError(f"generators must be one or more, and differ, got {','.join(names)!r}")


def _title(name: str) -> str:
    if name in DEFAULT:
        return name
    if name.startswith(FILE) and name != FILE:
        return Path(name.removeprefix(FILE)).stem
    raise SettingsError(f"a generator is 'lmqg', 'guided' or 'file:PATH', got {name!r}")


def _find(name: str, asker: Asker, plan: BuildPlan) -> QAGenerator:
    if name == PassageGenerator.name:
        return PassageGenerator(asker, n=plan.per_document, seed=plan.seed)
    if name == GuidedGenerator.name:
        return GuidedGenerator(asker, n=plan.per_document)
    return PairsFile(Path(name.removeprefix(FILE)))


def with_golden(
    found: Sequence[Found], pair: Pair, *, n: int, golden: Golden
) -> tuple[tuple[Found, ...], bool]:
    """Return the pool, and whether retrieval found the golden chunk."""
    pool = tuple(found[:n])
    was_found = any(one.chunk == pair.golden for one in pool)
    if was_found or golden == "record":
        return pool, was_found
    return (*pool[: n - 1], Found(pair.golden, None, None)), False


def ambiguous(chunks: Iterable[Chunk], pair: Pair) -> frozenset[str]:
    """Return the other chunks of the golden document that have the answer's words."""
    wanted = folded(pair.answer)
    return frozenset(one.id for one in chunks if one != pair.golden and wanted in folded(one.text))


def instance_of(draft: Draft, setting: Setting, plan: BuildPlan) -> Instance:
    """Return the instance of a draft in one setting."""
    natural = [_context(one, draft) for one in draft.pool]
    contexts = natural if setting == "base" else _with_distractors(natural, draft, plan)
    golden = draft.pair.golden.id
    outside = {} if any(one.id == golden for one in contexts) else {golden: 1}
    return Instance(
        id=draft.id,
        dataset=draft.dataset,
        setting=setting,
        subject=draft.subject,
        question=draft.pair.question,
        gold_answer=draft.pair.answer,
        contexts=tuple(contexts),
        golden_outside=outside,
    )


def _with_distractors(natural: list[Context], draft: Draft, plan: BuildPlan) -> list[Context]:
    """Put distractors at random places, in the room of the last passages that are not golden."""
    room = max(0, len(natural) + len(draft.distractors) - plan.n_contexts)
    leaving = [one for one in reversed(natural) if not one.is_golden][:room]
    pool = [one for one in natural if one not in leaving]
    chance = Random(f"{plan.seed} places {draft.id}")
    n_places = len(pool) + len(draft.distractors)
    places = chance.sample(range(n_places), len(draft.distractors))
    for place, number in sorted(zip(places, range(len(places)), strict=True)):
        pool.insert(place, _written(draft, number, draft.distractors[number]))
    return pool


def _context(found: Found, draft: Draft) -> Context:
    chunk = found.chunk
    return Context(
        id=chunk.id,
        text=chunk.text,
        is_golden=chunk == draft.pair.golden,
        first_stage_rank=found.rank,
        first_stage_score=found.score,
    )


def _written(draft: Draft, number: int, distractor: Distractor) -> Context:
    return Context(
        id=f"{draft.id}~{number + 1}",
        text=distractor.text,
        is_distractor=True,
        distractor_type=distractor.type,
        parent_id=draft.pair.golden.id,
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one document: drafts that can be used, drafts that cannot, and why."""

    drafts: tuple[Draft, ...]
    unfinished: tuple[Draft, ...]
    losses: tuple[Loss, ...]


class Drafter:
    """Makes the drafts of one generator."""

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

    async def draft(self, document: Document) -> Outcome:
        """Return the drafts of a document; a failure that concerns it alone is a loss."""
        losses: list[Loss] = []
        drafts: list[Draft] = []
        for number, pair in enumerate(await self._usable(document, losses), start=1):
            try:
                drafts.append(await self._finish(document, number, pair))
            except (AnswerError, CallError) as error:
                losses.append(self._lost(document, _name(error), str(error)))
        done = [one for one in drafts if one.distractors or self._writer is None]
        unfinished = [one for one in drafts if one not in done]
        losses.extend(
            self._lost(document, "no-distractor-passed", one.pair.question) for one in unfinished
        )
        return Outcome(tuple(done), tuple(unfinished), tuple(losses))

    async def _usable(self, document: Document, losses: list[Loss]) -> Sequence[Pair]:
        """Return the first pairs that can be used, as many as a document may have."""
        try:
            pairs = await self._generator.pairs(document, self._corpus.chunks[document.id])
        except (AnswerError, CallError) as error:
            losses.append(self._lost(document, _name(error), str(error)))
            return []
        usable: list[Pair] = []
        for pair in pairs:
            problem = problem_of(pair)
            if problem:
                losses.append(self._lost(document, problem, f"{pair.question} | {pair.answer}"))
            else:
                usable.append(pair)
        if not pairs:
            losses.append(self._lost(document, "no-pair", ""))
        return usable[: self._plan.per_document]

    async def _finish(self, document: Document, number: int, pair: Pair) -> Draft:
        left_out = ambiguous(self._corpus.chunks[document.id], pair)
        found = await self._search.nearest(pair.question, self._plan.n_contexts + len(left_out))
        pool, was_found = with_golden(
            [one for one in found if one.chunk.id not in left_out],
            pair,
            n=self._plan.n_contexts,
            golden=self._plan.golden,
        )
        draft = Draft(
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

    def _lost(self, document: Document, reason: str, detail: str) -> Loss:
        return Loss(stage=self._generator.name, document=document.id, reason=reason, detail=detail)


def _name(error: AnswerError | CallError) -> str:
    if isinstance(error, NoPairsError):
        return error.reason
    return "unusable-reply" if isinstance(error, AnswerError) else "call-failed"
