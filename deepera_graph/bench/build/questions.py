"""From a document to drafts: questions, their pools, their distractors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deepera_graph.bench.build.corpus import Corpus
from deepera_graph.bench.build.document import Document
from deepera_graph.bench.build.draft import Draft
from deepera_graph.bench.build.losses import Loss
from deepera_graph.bench.build.pairs import NoPairsError, Pair, QAGenerator, problem_of
from deepera_graph.bench.build.plan import BuildPlan
from deepera_graph.bench.build.pools import ambiguous, with_golden
from deepera_graph.bench.build.search import ChunkSearch
from deepera_graph.bench.build.write import DistractorWriter
from deepera_graph.errors import AnswerError, CallError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one document: drafts that can be used, drafts that cannot, and why."""

    drafts: tuple[Draft, ...]
    unfinished: tuple[Draft, ...]
    losses: tuple[Loss, ...]


class Drafter:
    """Makes the drafts of one generator.

    Args:
        generator: Makes the questions.
        corpus: Where documents and their chunks are.
        search: The first stage.
        writer: Writes distractors; None makes none.
        plan: How many of what.
    """

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
        """Return the drafts of a document; a failure that concerns it alone is a loss.

        Raises:
            BackendError: The model can be asked nothing.
        """
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
