"""A small data set to try the benchmark on: the invented abstracts of the demonstration."""

from collections.abc import Iterator, Sequence

from langchain_core.documents import Document

from deepera_graph.bench.data.instance import Context, Dataset, DatasetError, Instance
from deepera_graph.bench.rankers.lexical import CorpusBM25, Hit
from deepera_graph.demo import DemoQuestion, read_corpus, read_questions

N_CANDIDATES = 30
SETTINGS = ("base", "ssli")
NAMES = tuple(f"sample-{kind}{setting}" for kind in ("", "hard-") for setting in SETTINGS)


def sample(setting: str = "ssli", *, hard: bool = False) -> Dataset:
    """Return ten questions over 62 invented abstracts, 30 candidates each, found by BM25."""
    if setting not in SETTINGS:
        raise DatasetError(f"setting must be one of {', '.join(SETTINGS)}, got {setting!r}")
    name = f"sample-{'hard-' if hard else ''}{setting}"
    return Dataset(name, lambda: _instances(name, setting, hard=hard), first_stage="BM25")


def named_sample(name: str) -> Dataset:
    """Return a sample by one of its `NAMES`, e.g. ``sample-hard-ssli``."""
    return sample(name.rpartition("-")[2], hard="-hard-" in name)


def _instances(name: str, setting: str, *, hard: bool) -> Iterator[Instance]:
    documents = {document.id or "": document for document in read_corpus(hard=hard)}
    index = CorpusBM25({id: _shown(document) for id, document in documents.items()})
    for question in read_questions(hard=hard):
        found = index.search(question.question, len(documents))
        chosen = _chosen(found, question, with_look_alikes=setting == "ssli")
        yield Instance(
            id=question.id,
            dataset=name,
            setting=setting,
            subject=question.science,
            question=question.question,
            contexts=tuple(
                _context(documents[one.id], rank, one.score, question)
                for rank, one in enumerate(chosen, start=1)
            ),
        )


def _chosen(found: Sequence[Hit], question: DemoQuestion, *, with_look_alikes: bool) -> list[Hit]:
    """Keep every labelled passage, and fill up with the best others; in order of their scores."""
    labelled = {*question.golden, *question.look_alikes}
    fit = [one for one in found if with_look_alikes or one.id not in question.look_alikes]
    needed = {one.id for one in fit if one.id in labelled}
    others = [one.id for one in fit if one.id not in labelled]
    taken = {*needed, *others[: N_CANDIDATES - len(needed)]}
    return [one for one in fit if one.id in taken]


def _context(document: Document, rank: int, score: float, question: DemoQuestion) -> Context:
    kind = question.look_alikes.get(document.id or "")
    return Context(
        id=document.id or "",
        text=document.page_content,
        title=document.metadata["title"],
        is_golden=document.id in question.golden,
        is_distractor=kind is not None,
        distractor_type=kind,
        parent_id=question.golden[0] if kind else None,
        first_stage_rank=rank,
        first_stage_score=score,
    )


def _shown(document: Document) -> str:
    return f"{document.metadata['title']} {document.page_content}"
