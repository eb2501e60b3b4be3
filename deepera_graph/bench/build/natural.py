"""Questions with natural look-alikes: the other sections of the document that holds the answer."""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from deepera_graph.bench.bm25 import BM25Index
from deepera_graph.bench.build.document import Document
from deepera_graph.bench.build.sections import SectionQuestion, Sections
from deepera_graph.bench.instance import Context, Instance
from deepera_graph.bench.vectors import cosines, unit_rows
from deepera_graph.errors import SettingsError

N_CANDIDATES = 30
UNLABELLED = "unlabelled"
Scores = NDArray[np.float64]


def natural_instances(
    documents: Iterable[Document],
    questions: Iterable[SectionQuestion],
    *,
    n_candidates: int = N_CANDIDATES,
    embeddings: Embeddings | None = None,
    dataset: str = "",
    left_out: MutableMapping[str, str] | None = None,
) -> Iterator[Instance]:
    """Yield one instance a question, in order, without asking any model.

    All sections of the document are candidates, the best ones if it has more than *n_candidates*;
    golden ones come first, and those without a place are named in `golden_outside`. Sections that
    nearly repeat a golden one are left out, as nobody judged whether they answer. The other
    candidates are the best sections of other documents.

    Args:
        documents: Those without sections count as one section. Held in memory.
        questions: What to ask.
        n_candidates: Size of a pool, >= 2; fewer where the corpus has no more.
        embeddings: First stage, by cosine; BM25 over all sections when None.
        dataset: Put into every instance.
        left_out: Is given the id of each question that cannot be used, and why.

    Raises:
        SettingsError: *n_candidates* is below 2.
        DatasetError: An id comes twice, a question names what is not there, or there is no text.
    """
    if n_candidates < 2:
        raise SettingsError(f"n_candidates must be >= 2, got {n_candidates}")
    sections = Sections(documents)
    score = _first_stage([one.text for one in sections.passages], embeddings)
    for question in questions:
        reason = sections.unfit(question)
        if not reason:
            scores = score(question.question)
            contexts, outside = _pool(sections, question, scores, n_candidates)
            yield Instance(
                id=question.id,
                dataset=dataset,
                setting="natural",
                subject=question.subject,
                question=question.question,
                gold_answer=question.gold_answer,
                decision=question.decision,
                contexts=contexts,
                golden_outside=outside,
            )
        elif left_out is not None:
            left_out[question.id] = reason


def _first_stage(texts: Sequence[str], embeddings: Embeddings | None) -> Callable[[str], Scores]:
    """Return what scores all sections for a question; shape (n_sections,)."""
    if embeddings is None:
        return BM25Index(texts).scores
    units = unit_rows(embeddings.embed_documents(list(texts)))
    return lambda question: cosines(units, embeddings.embed_query(question))


def _pool(
    sections: Sections, question: SectionQuestion, scores: Scores, n_candidates: int
) -> tuple[tuple[Context, ...], dict[str, int]]:
    """Return the candidates in first-stage order, and the golden ones without a place."""
    golden = _best(scores, sections.golden(question))
    kept = golden[: n_candidates - 1]
    lookalikes = _best(scores, sections.lookalikes(question))[: n_candidates - len(kept)]
    room = n_candidates - len(kept) - len(lookalikes)
    parent = sections.passages[kept[0]].id
    contexts: list[Context] = []
    for index in _best(scores, [*kept, *lookalikes, *_fillers(sections, question, scores, room)]):
        passage = sections.passages[index]
        kind = passage.section.strip().lower() or UNLABELLED
        contexts.append(
            Context(
                id=passage.id,
                text=passage.text,
                title=passage.title,
                is_golden=index in kept,
                is_distractor=index in lookalikes,
                distractor_type=kind if index in lookalikes else None,
                parent_id=parent if index in lookalikes else None,
                first_stage_rank=len(contexts) + 1,
                first_stage_score=float(scores[index]),
            )
        )
    outside = {sections.passages[index].id: 1 for index in golden[n_candidates - 1 :]}
    return tuple(contexts), outside


def _fillers(sections: Sections, question: SectionQuestion, scores: Scores, n: int) -> list[int]:
    """Return the best sections of other documents whose texts are new."""
    seen = {sections.passages[index].text for index in sections.own(question.document)}
    found: list[int] = []
    for index in np.argsort(-scores, kind="stable"):
        if len(found) >= n:
            break
        passage = sections.passages[index]
        if passage.document != question.document and passage.text not in seen:
            seen.add(passage.text)
            found.append(int(index))
    return found


def _best(scores: Scores, indices: Sequence[int]) -> list[int]:
    return sorted(indices, key=lambda index: (-scores[index], index))
