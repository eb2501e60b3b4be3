"""The builder: documents in, data sets with and without distractors out; and what it will cost."""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.calibration.instance import DatasetError
from deepera_graph.chat import sending
from deepera_graph.errors import SettingsError
from deepera_graph.jobs.cluster import Here, Workers
from deepera_graph.lab.asking import (
    ConstructionEstimate,
    Model,
    describe_model,
    estimate_steps,
    open_model,
)
from deepera_graph.lab.build.corpus import Corpus, Document, read_corpus
from deepera_graph.lab.build.datasets import DROPPED, DraftedSet, list_files
from deepera_graph.lab.build.search import (
    ChunkSearch,
    LsaEmbeddings,
    MakeEmbeddings,
    StoreIndex,
    drop_unconnected,
    embed_chunks,
    open_embeddings,
)
from deepera_graph.lab.build.writing.distractors import (
    GUIDANCE_STEP,
    N_SHOWN,
    PACKAGE,
    VERIFY_STEP,
    WRITE_STEP,
    DistractorWriter,
    Drafts,
)
from deepera_graph.lab.build.writing.questions import (
    DEFAULT,
    EXTRACT,
    Drafter,
    GuidedGenerator,
    PassageGenerator,
    QAGenerator,
    check_generators,
    find_generators,
)
from deepera_graph.lab.construction import (
    CALLS_AT_ONCE,
    Built,
    CachedEmbeddings,
    Construction,
    Progress,
    ReasonLog,
    RowSink,
    begin_manifest,
    plain_usage,
)
from deepera_graph.lab.settings import BuildPlan
from deepera_graph.retrieval.collections.passage_store import PassageStore
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.schema import Backend
from deepera_graph.settings.budget import Budget, ado_many
from deepera_graph.stores.embeddings import name_embeddings

MAX_BATCH = 256
CORPUS = "corpus.sqlite3"
_MOST_FITTED = 50_000  # chunks that LSA is fitted to
_QUESTION, _NOTES, _PAIRS, _GUIDE, _CHECK = 150, 600, 400, 350, 150  # usual lengths in characters


def build(
    documents: Iterable[Document],
    out: Path,
    *,
    model: Model,
    plan: BuildPlan | None = None,
    generators: Sequence[str] = DEFAULT,
    embeddings: Embeddings | MakeEmbeddings | None = None,
    calls_at_once: int = CALLS_AT_ONCE,
    budget: Budget | None = None,
    overwrite: bool = False,
    workers: Workers | None = None,
    qdrant_url: str | None = None,
    qdrant_key: str | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    **options: Any,
) -> Built:
    """Build data sets in a folder: questions, pools, distractors, and a manifest.

    Answers of the model are kept in the folder ``work`` within as they come. A build that was cut
    off goes on where it was; one that is run again asks for nothing and gives the same bytes.

    Args:
        documents: Read once.
        out: The folder; made if missing.
        model: Who writes: a chat model, its name, or an LLM backend.
        plan: What to make.
        generators: Data sets to make: ``lmqg``, ``guided``, or ``file:PATH`` with pairs made
            elsewhere.
        embeddings: Of the first stage and the gates, or a function that makes them; LSA over the
            corpus if None.
        workers: Who cuts, embeds and compares the documents; this process if None. Those in other
            processes make embeddings themselves, as these may hold a key.
        qdrant_url: A Qdrant server that finds the pools; the chunks are put in a collection of
            their own there. Without one a question is compared with all of them.
        qdrant_key: The key of that server.
        calls_at_once, budget, overwrite, on_progress: See `Construction`.
        options: Of a model given by name, see `llm_backend`.

    Raises:
        SettingsError: A setting is out of range, or results would be lost.
        DatasetError: There is nothing to make questions of, or no question could be made; the
            message says why. What was built there before stays.
        BudgetError: The budget is spent.
        BackendError: The model can be asked nothing.
        StoreError: The folder cannot be used.
    """
    construction = Construction(
        out,
        calls_at_once=calls_at_once,
        budget=budget,
        overwrite=overwrite,
        on_progress=on_progress,
    )
    backend = open_model(model, **options)
    with construction.open(), threadpool_limits(1):  # sums differ in the last digit with threads
        server = None if qdrant_url is None else (qdrant_url, qdrant_key)
        job = _LookAlikes(construction, backend, plan or BuildPlan(), workers or Here(), server)
        return job.run(documents, generators, embeddings)


class _LookAlikes:
    """The recipe: questions of documents, each with passages that look like its answer."""

    def __init__(
        self,
        construction: Construction,
        backend: Backend,
        plan: BuildPlan,
        workers: Workers,
        server: tuple[str, str | None] | None,
    ) -> None:
        self._shell, self._backend, self._plan = construction, backend, plan
        self._workers, self._server = workers, server
        self._model = construction.model(backend, on_answer=self._count_answer)

    def run(
        self,
        documents: Iterable[Document],
        names: Sequence[str],
        given: Embeddings | MakeEmbeddings | None,
    ) -> Built:
        """Build and write."""
        plan, generators = self._plan, find_generators(names, self._model, self._plan)
        self._check_embeddings(given)
        self._shell.move(n_wanted=plan.n_questions * len(generators))
        with ExitStack() as block:
            files = list_files([one.name for one in generators], plan)
            rows = block.enter_context(self._shell.write(*files))
            dropped = ReasonLog(rows[DROPPED])
            path = self._shell.work / CORPUS
            corpus = read_corpus(
                documents, plan.max_tokens, dropped, path=path, workers=self._workers
            )
            block.callback(corpus.close)
            corpus.check_not_empty()
            search, about = self._open_search(corpus, given, dropped, block)
            datasets = self._draft_datasets(generators, corpus, search, rows, dropped)
            made_of = {
                "generators": [one.describe() for one in generators],
                "model": describe_model(self._backend),
                "embeddings": about,
            }
            manifest = {
                **begin_manifest(plan.to_dict(), made_of, PACKAGE),
                "documents": corpus.describe(),
                "datasets": {one.name: one.describe() for one in datasets},
                "dropped": dropped.describe(),
                "answers": {
                    step: plain_usage(used) for step, used in sorted(self._model.used.items())
                },
            }
            return self._shell.finish(manifest, rows)

    def _count_answer(self) -> None:
        self._shell.move(n_counted=self._shell.progress.n_counted + 1)

    def _check_embeddings(self, given: Embeddings | MakeEmbeddings | None) -> None:
        if given is not None:
            open_embeddings(given)  # what is wrong with them is told before the corpus is read
        if self._workers.is_elsewhere and isinstance(given, Embeddings):
            raise SettingsError(
                f"workers cannot be sent embeddings, got {name_embeddings(given)}; give a function "
                "that makes them"
            )

    def _open_search(
        self,
        corpus: Corpus,
        given: Embeddings | MakeEmbeddings | None,
        dropped: RowSink,
        block: ExitStack,
    ) -> tuple[ChunkSearch, dict[str, Any]]:
        """Embed the chunks and leave out loners; return what searches, and about embeddings."""
        embeddings, about = self._find_embeddings(corpus, given)
        identity = f"{about} {self._plan.max_tokens}"
        where: dict[str, Any] = {"folder": self._shell.work, "workers": self._workers}
        made = embeddings if given is None else given
        vectors = embed_chunks(corpus, made, identity=identity, **where)
        drop_unconnected(corpus, vectors, self._plan, dropped, **where)
        if self._server is None:
            return ChunkSearch(corpus, vectors, embeddings), about
        name = f"{corpus.fingerprint} {identity} {corpus.min_similarity} {self._plan.min_group}"
        url, key = self._server
        store = block.enter_context(open_build_store(name, embeddings, url=url, api_key=key))
        return ChunkSearch(corpus, vectors, embeddings, StoreIndex(vectors, corpus, store)), about

    def _find_embeddings(
        self, corpus: Corpus, given: Embeddings | MakeEmbeddings | None
    ) -> tuple[Embeddings, dict[str, Any]]:
        if given is None:
            lsa = LsaEmbeddings(corpus.sample_texts(_MOST_FITTED))
            return lsa, lsa.describe()
        opened = open_embeddings(given)
        name = name_embeddings(opened)
        return CachedEmbeddings(opened, name, self._shell.cache), {"name": name}

    def _draft_datasets(
        self,
        generators: Sequence[QAGenerator],
        corpus: Corpus,
        search: ChunkSearch,
        rows: Mapping[str, RowSink],
        dropped: ReasonLog,
    ) -> list[DraftedSet]:
        """Make the data sets, one after the other; at least one of them has a question."""
        writer = DistractorWriter(self._model, search, self._plan)
        chosen = writer if "ssli" in self._plan.settings else None
        datasets = [DraftedSet(one.name, self._plan, rows, dropped) for one in generators]
        for generator, dataset in zip(generators, datasets, strict=True):
            drafter = Drafter(generator, corpus, search, chosen, self._plan)
            sending.run(self._draft(dataset, drafter, corpus))
        if not any(one.n_drafts for one in datasets):
            reasons = "; ".join(f"{one.name}: {one.explain_empty()}" for one in datasets)
            raise DatasetError(f"no question could be made: {reasons}")
        return datasets

    async def _draft(self, dataset: DraftedSet, drafter: Drafter, corpus: Corpus) -> None:
        """Draft questions of documents in a random order, until there are enough."""
        # When the budget is spent, calls in flight finish, as they are paid for.
        places = array("q", np.flatnonzero(corpus.kept()).astype(np.int64).tobytes())
        Random(f"{self._plan.seed} documents {dataset.name}").shuffle(places)
        rest, before = map(corpus.find_document, places), self._shell.progress.n_done
        while missing := self._plan.n_questions - dataset.n_drafts:
            batch = list(islice(rest, min(-(-missing // self._plan.per_document), MAX_BATCH)))
            if not batch:
                break

            async def draft(document: Document) -> Drafts:
                done = await drafter.draft(document)
                n_done = self._shell.progress.n_done + len(done.drafts)
                self._shell.move(n_done=min(before + self._plan.n_questions, n_done))
                return done

            for done in await ado_many(draft, batch, len(batch)):
                dataset.add(done)
            self._shell.move(n_done=before + dataset.n_drafts)


def open_build_store(name: str, embeddings: Embeddings, **place: Any) -> PassageStore:
    """Open the collection of a corpus; *name* tells it from other corpora and embeddings."""
    collection = f"deepera-build-{sha256(name.encode()).hexdigest()[:12]}"
    return open_store(collection, mode="dense", embeddings=embeddings, **place)


def estimate_build(
    corpus: Corpus, plan: BuildPlan, generators: Sequence[str]
) -> ConstructionEstimate:
    """Count the calls of a build of a corpus from which nothing was left out yet."""
    # Its `most_calls` are those of all attempts at every distractor; documents without a question
    # come on top.
    check_generators(generators)
    corpus.check_not_empty()
    chunk = round(fmean(len(one.text) for one in corpus))
    whole = round(fmean(len(one.text) for one in corpus.documents.values()))
    n = min(plan.n_questions, len(corpus.documents) * plan.per_document)
    n_asked = -(-n // plan.per_document)
    n_questions = n * len(generators)
    n_written = n_questions * plan.n_distractors if "ssli" in plan.settings else 0
    shown = _QUESTION + N_SHOWN * chunk
    lmqg, guided = PassageGenerator.name, GuidedGenerator.name
    of_guided = n_asked * (guided in generators)
    steps = (  # step, calls, characters given and said in a call
        (lmqg, n_asked * (lmqg in generators), chunk, _PAIRS),
        (EXTRACT, of_guided, whole, _NOTES),
        (guided, of_guided, chunk + _NOTES, _PAIRS),
        (GUIDANCE_STEP, n_questions * (n_written > 0), shown, _GUIDE * plan.n_distractors),
        (WRITE_STEP, n_written, shown + _GUIDE, chunk),
        (VERIFY_STEP, n_written * plan.verify, _QUESTION + chunk, _CHECK),
    )
    usage = estimate_steps(steps, PACKAGE)
    n_calls = sum(one.calls for one in usage.values())
    counts = {
        "documents": len(corpus.documents),
        "questions": n_questions,
        "most_calls": n_calls + n_written * (plan.attempts - 1) * (1 + plan.verify),
    }
    return ConstructionEstimate(counts=counts, usage=usage)
