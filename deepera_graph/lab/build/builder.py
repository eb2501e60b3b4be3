"""The builder: documents in, data sets with and without distractors out; and what it will cost."""

import asyncio
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.budget import Budget, Limiter, Meter
from deepera_graph.chat import io_loop
from deepera_graph.errors import BudgetError, SettingsError
from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.lab.build import outputs
from deepera_graph.lab.build.corpus import Corpus, Document, read_corpus
from deepera_graph.lab.build.embeddings import CachedEmbeddings, LsaEmbeddings
from deepera_graph.lab.build.plan import (
    PACKAGE,
    BuilderModel,
    BuildPlan,
    DropRecord,
    describe_model,
    without_server,
)
from deepera_graph.lab.build.search import (
    ChunkSearch,
    MakeEmbeddings,
    StoreIndex,
    drop_unconnected,
    embed_chunks,
    open_embeddings,
)
from deepera_graph.lab.build.workers import Here, Workers
from deepera_graph.lab.build.writing.distractors import (
    GUIDANCE_STEP,
    N_SHOWN,
    VERIFY_STEP,
    WRITE_STEP,
    DistractorWriter,
)
from deepera_graph.lab.build.writing.questions import (
    DEFAULT,
    EXTRACT,
    Drafter,
    Drafts,
    GuidedGenerator,
    PassageGenerator,
    QAGenerator,
    check_generators,
    find_generators,
)
from deepera_graph.lab.rankers.llm import MAX_CONCURRENCY
from deepera_graph.retrieval.collections.passage_store import PassageStore
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.schema import Backend
from deepera_graph.stores.embeddings import name_embeddings
from deepera_graph.stores.judgements import JudgementCache, open_cache
from deepera_graph.usage import CHARS_PER_TOKEN, HasUsage, Usage

CALLS_AT_ONCE = MAX_CONCURRENCY
MAX_BATCH = 256
_MOST_FITTED = 50_000  # chunks that LSA is fitted to
_QUESTION, _NOTES, _PAIRS, _GUIDE, _CHECK = 150, 600, 400, 350, 150  # usual lengths in characters


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """How far a build is: questions so far and wanted, of all data sets, and answers so far."""

    n_questions: int = 0
    n_wanted: int = 0
    n_answers: int = 0


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build made: its folder, what ``manifest.json`` holds, and the calls of this run."""

    folder: Path
    manifest: dict[str, Any]
    n_sent: int  # the other answers had been kept
    n_failed: int  # another run tries them again


def build(
    documents: Iterable[Document],
    out: Path,
    *,
    model: "Backend | BaseChatModel | str",
    plan: BuildPlan | None = None,
    generators: Sequence[str] = DEFAULT,
    embeddings: Embeddings | MakeEmbeddings | None = None,
    calls_at_once: int = CALLS_AT_ONCE,
    budget: Budget | None = None,
    overwrite: bool = False,
    workers: Workers | None = None,
    qdrant_url: str | None = None,
    qdrant_key: str | None = None,
    on_progress: Callable[[BuildProgress], None] = lambda progress: None,
    **options: Any,
) -> BuildResult:
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
        calls_at_once: Most calls in flight, >= 1.
        budget: What this run may cost; when it is spent, another run goes on.
        overwrite: Whether results in the folder may be replaced; kept answers are used anyway.
        workers: Who cuts, embeds and compares the documents; this process if None. Those in other
            processes make embeddings themselves, as these may hold a key.
        qdrant_url: A Qdrant server that finds the pools; the chunks are put in a collection of
            their own there. Without one a question is compared with all of them.
        qdrant_key: The key of that server.
        on_progress: Told how far things are; called in another thread.
        options: Of a model given by name, see `llm_backend`.

    Raises:
        SettingsError: A setting is out of range, or results would be lost.
        DatasetError: There is nothing to make questions of, or no question could be made; the
            message says why. What was built there before stays.
        BudgetError: The budget is spent.
        BackendError: The model can be asked nothing.
        StoreError: The folder cannot be used.
    """
    if calls_at_once < 1:
        raise SettingsError(f"calls_at_once must be >= 1, got {calls_at_once}")
    outputs.check_folder(out, overwrite=overwrite)
    backend = model if isinstance(model, Backend) else llm_backend(model, **options)
    cache = open_cache(out / outputs.WORK)
    assert cache is not None  # a folder was named
    with cache, threadpool_limits(1):  # sums differ in their last digit with the threads at work
        job = _Build(
            backend,
            plan or BuildPlan(),
            cache,
            calls_at_once=calls_at_once,
            budget=budget,
            on_progress=on_progress,
            workers=workers or Here(),
            server=None if qdrant_url is None else (qdrant_url, qdrant_key),
        )
        return job.run(documents, out, generators, embeddings)


class _Build:
    """One run of the builder."""

    def __init__(
        self,
        backend: Backend,
        plan: BuildPlan,
        cache: JudgementCache,
        *,
        calls_at_once: int,
        budget: Budget | None,
        on_progress: Callable[[BuildProgress], None],
        workers: Workers,
        server: tuple[str, str | None] | None,
    ) -> None:
        self._workers, self._server = workers, server
        self._backend, self._plan, self._cache = backend, plan, cache
        self._on_progress, self._progress = on_progress, BuildProgress()
        self._model = BuilderModel(
            without_server(backend),
            cache=cache,
            limiter=Limiter(calls_at_once),
            meter=Meter(budget),
            on_answer=lambda: self._move(n_answers=self._progress.n_answers + 1),
        )

    def run(
        self,
        documents: Iterable[Document],
        out: Path,
        names: Sequence[str],
        given: Embeddings | MakeEmbeddings | None,
    ) -> BuildResult:
        """Build and write."""
        generators = find_generators(names, self._model, self._plan)
        self._check_embeddings(given)
        self._move(n_wanted=self._plan.n_questions * len(generators))
        drops: list[DropRecord] = []
        with ExitStack() as block:
            corpus = read_corpus(
                documents,
                self._plan.max_tokens,
                drops,
                path=out / outputs.WORK / outputs.CORPUS,
                workers=self._workers,
            )
            block.callback(corpus.close)
            corpus.check_not_empty()
            search, about = self._open_search(corpus, given, drops, out / outputs.WORK, block)
            datasets = self._draft_datasets(generators, corpus, search)
            drops += (drop for one in datasets.values() for drop in one.drops)
            manifest = outputs.build_manifest(
                self._plan,
                corpus,
                datasets,
                drops,
                usage=self._model.used,
                model=describe_model(self._backend),
                embeddings=about,
                generators=[one.describe() for one in generators],
                files=outputs.write_datasets(out, datasets, drops, self._plan),
            )
        outputs.write_manifest(out, manifest)
        return BuildResult(out, manifest, self._model.n_sent, self._model.n_failed.total())

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
        drops: list[DropRecord],
        work: Path,
        block: ExitStack,
    ) -> tuple[ChunkSearch, dict[str, Any]]:
        """Embed the chunks and leave out loners; return what searches, and about embeddings."""
        embeddings, about = self._find_embeddings(corpus, given)
        identity = f"{about} {self._plan.max_tokens}"
        vectors = embed_chunks(
            corpus,
            embeddings if given is None else given,
            identity=identity,
            folder=work,
            workers=self._workers,
        )
        drop_unconnected(corpus, vectors, self._plan, drops, folder=work, workers=self._workers)
        if self._server is None:
            return ChunkSearch(corpus, vectors, embeddings), about
        name = f"{corpus.fingerprint} {identity} {corpus.min_similarity} {self._plan.min_group}"
        url, key = self._server
        store = block.enter_context(open_build_store(name, embeddings, url=url, api_key=key))
        return ChunkSearch(corpus, vectors, embeddings, StoreIndex(vectors, corpus, store)), about

    def _draft_datasets(
        self, generators: Sequence[QAGenerator], corpus: Corpus, search: ChunkSearch
    ) -> dict[str, Drafts]:
        writer = DistractorWriter(self._model, search, self._plan)
        chosen = writer if "ssli" in self._plan.settings else None
        drafters = {
            one.name: Drafter(one, corpus, search, chosen, self._plan) for one in generators
        }
        datasets = {
            name: self._draft_dataset(name, drafter, corpus) for name, drafter in drafters.items()
        }
        outputs.check_any_question(datasets)
        return datasets

    def _draft_dataset(self, name: str, drafter: Drafter, corpus: Corpus) -> Drafts:
        places = array("q", np.flatnonzero(corpus.kept()).astype(np.int64).tobytes())
        Random(f"{self._plan.seed} documents {name}").shuffle(places)
        before = self._progress.n_questions
        return io_loop.run(
            draft_dataset(
                drafter,
                map(corpus.find_document, places),
                n=self._plan.n_questions,
                per_document=self._plan.per_document,
                on_drafts=lambda n_drafts: self._move(n_questions=before + n_drafts),
            )
        )

    def _find_embeddings(
        self, corpus: Corpus, given: Embeddings | MakeEmbeddings | None
    ) -> tuple[Embeddings, dict[str, Any]]:
        """Return what embeds, and what the manifest says of it."""
        if given is None:
            lsa = LsaEmbeddings(corpus.sample_texts(_MOST_FITTED))
            return lsa, lsa.describe()
        opened = open_embeddings(given)
        name = name_embeddings(opened)
        return CachedEmbeddings(opened, name, self._cache), {"name": name}

    def _move(self, **changes: Any) -> None:
        self._progress = replace(self._progress, **changes)
        self._on_progress(self._progress)


def open_build_store(name: str, embeddings: Embeddings, **place: Any) -> PassageStore:
    """Open the collection of a corpus; *name* tells it from other corpora and embeddings."""
    collection = f"deepera-build-{sha256(name.encode()).hexdigest()[:12]}"
    return open_store(collection, mode="dense", embeddings=embeddings, **place)


async def draft_dataset(
    drafter: Drafter,
    documents: Iterable[Document],
    *,
    n: int,
    per_document: int = 1,
    on_drafts: Callable[[int], None] = lambda n_drafts: None,
) -> Drafts:
    """Return the first *n* drafts that documents give; equal questions count once."""
    dataset = Drafts()
    rest = iter(documents)
    while missing := n - len(dataset.drafts):
        batch = list(islice(rest, min(-(-missing // per_document), MAX_BATCH)))
        if not batch:
            break
        n_drafts = len(dataset.drafts)

        def count(done: Drafts) -> None:
            nonlocal n_drafts
            n_drafts = min(n, n_drafts + len(done.drafts))
            on_drafts(n_drafts)

        for done in await _draft_batch(drafter, batch, count):
            dataset.add(done, n)
        on_drafts(len(dataset.drafts))
    return dataset


async def _draft_batch(
    drafter: Drafter, batch: Sequence[Document], on_done: Callable[[Drafts], None]
) -> list[Drafts]:
    """Draft at once; when the budget is spent, calls in flight finish, as they are paid for."""

    async def draft(document: Document) -> Drafts | BudgetError:
        try:
            done = await drafter.draft(document)
        except BudgetError as error:
            return error
        on_done(done)
        return done

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(draft(one)) for one in batch]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    found: list[Drafts] = []
    for task in tasks:
        result = task.result()
        if isinstance(result, BudgetError):
            raise result
        found.append(result)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildEstimate(HasUsage):
    """The calls of a build by step if every reply can be used at once, at 4 characters a token."""

    n_documents: int
    n_questions: int
    usage: dict[str, Usage]
    most_calls: int  # all attempts at every distractor; documents without a question come on top


def estimate_build(corpus: Corpus, plan: BuildPlan, generators: Sequence[str]) -> BuildEstimate:
    """Count the calls of a build of a corpus from which nothing was left out yet."""
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
    steps = (  # step, whether it is taken, calls, characters given and said in a call
        (lmqg, lmqg in generators, n_asked, chunk, _PAIRS),
        (EXTRACT, guided in generators, n_asked, whole, _NOTES),
        (guided, guided in generators, n_asked, chunk + _NOTES, _PAIRS),
        (GUIDANCE_STEP, n_written > 0, n_questions, shown, _GUIDE * plan.n_distractors),
        (WRITE_STEP, n_written > 0, n_written, shown + _GUIDE, chunk),
        (VERIFY_STEP, n_written > 0 and plan.verify, n_written, _QUESTION + chunk, _CHECK),
    )
    usage = {step: estimate_step(step, *numbers) for step, taken, *numbers in steps if taken}
    n_calls = sum(one.calls for one in usage.values())
    return BuildEstimate(
        n_documents=len(corpus.documents),
        n_questions=n_questions,
        usage=usage,
        most_calls=n_calls + n_written * (plan.attempts - 1) * (1 + plan.verify),
    )


def estimate_step(
    step: str, n_calls: int, n_given: int, n_said: int, *, package: str = PACKAGE
) -> Usage:
    """Return what the calls of a step take, by the characters given and said in each."""
    folder = files(package)
    template = sum(
        len(folder.joinpath(f"{step}.{role}.md").read_text(encoding="utf-8"))
        for role in ("system", "user")
    )
    return Usage(
        calls=n_calls,
        input_tokens=n_calls * -(-(template + n_given) // CHARS_PER_TOKEN),
        output_tokens=n_calls * -(-n_said // CHARS_PER_TOKEN),
    )
