"""The builder: documents in, instances with and without distractors out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.bench.build import outputs
from deepera_graph.bench.build.corpus import (
    ChunkSearch,
    Corpus,
    Document,
    KeptEmbeddings,
    LsaEmbeddings,
    check_not_empty,
    connected_corpus,
    lsa_about,
    read_corpus,
)
from deepera_graph.bench.build.distractors import N_SHOWN, DistractorWriter
from deepera_graph.bench.build.drafts import QAGenerator
from deepera_graph.bench.build.model import PACKAGE, Asker, backend_of, model_record, without_server
from deepera_graph.bench.build.outputs import (
    Collected,
    build_manifest,
    check_not_in_vain,
    collect,
    shuffled,
)
from deepera_graph.bench.build.plan import BuildPlan, Loss
from deepera_graph.bench.build.questions import (
    DEFAULT,
    EXTRACT,
    Drafter,
    GuidedGenerator,
    PassageGenerator,
    check_generators,
    find_generators,
)
from deepera_graph.bench.rankers.llm import MAX_CONCURRENCY
from deepera_graph.budget import Budget, Meter
from deepera_graph.cache.store import JudgementCache, open_cache
from deepera_graph.chat import io_loop
from deepera_graph.errors import SettingsError
from deepera_graph.judges.llm.roles import CHARS_PER_TOKEN
from deepera_graph.retrieval.collection import name_embeddings
from deepera_graph.schema import Backend
from deepera_graph.usage import Usage

CALLS_AT_ONCE = MAX_CONCURRENCY


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is.

    Attributes:
        n_questions: Questions so far, of all data sets.
        n_wanted: Questions wanted, of all data sets.
        n_answers: Answers of the model so far.
    """

    n_questions: int = 0
    n_wanted: int = 0
    n_answers: int = 0


@dataclass(frozen=True, slots=True)
class Built:
    """What a build made.

    Attributes:
        folder: Where it is.
        manifest: What ``manifest.json`` holds.
        n_sent: Calls made now; the other answers had been kept.
        n_failed: Calls that failed; another run tries them again.
    """

    folder: Path
    manifest: dict[str, Any]
    n_sent: int
    n_failed: int


def build(
    documents: Iterable[Document],
    out: Path,
    *,
    model: "Backend | BaseChatModel | str",
    plan: BuildPlan | None = None,
    generators: Sequence[str] = DEFAULT,
    embeddings: Embeddings | None = None,
    calls_at_once: int = CALLS_AT_ONCE,
    budget: Budget | None = None,
    overwrite: bool = False,
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
        embeddings: Of the first stage and the gates; LSA over the corpus if None.
        calls_at_once: Most calls in flight, >= 1.
        budget: What this run may cost; when it is spent, another run goes on.
        overwrite: Whether results in the folder may be replaced; kept answers are used anyway.
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
    outputs.check(out, overwrite=overwrite)
    backend = backend_of(model, **options)
    cache = open_cache(out / outputs.WORK)
    assert cache is not None  # a folder was named
    with cache, threadpool_limits(1):  # sums differ in their last digit with the threads at work
        job = _Job(
            backend,
            plan or BuildPlan(),
            cache,
            calls_at_once=calls_at_once,
            budget=budget,
            on_progress=on_progress,
        )
        return job.run(documents, out, generators, embeddings)


class _Job:
    """One run of the builder."""

    def __init__(
        self,
        backend: Backend,
        plan: BuildPlan,
        cache: JudgementCache,
        *,
        calls_at_once: int,
        budget: Budget | None,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._backend, self._plan, self._cache = backend, plan, cache
        self._on_progress, self._at = on_progress, Progress()
        self._losses: list[Loss] = []
        self._asker = Asker(
            without_server(backend),
            cache=cache,
            at_once=calls_at_once,
            meter=Meter(budget),
            on_answer=lambda: self._move(n_answers=self._at.n_answers + 1),
        )

    def run(
        self,
        documents: Iterable[Document],
        out: Path,
        names: Sequence[str],
        given: Embeddings | None,
    ) -> Built:
        """Build, write, and tell what was made."""
        makers = find_generators(names, self._asker, self._plan)
        self._move(n_wanted=self._plan.n_questions * len(makers))
        whole = read_corpus(documents, self._plan.max_tokens, self._losses)
        check_not_empty(whole)
        embeddings, about = self._embeddings(whole, given)
        corpus = connected_corpus(whole, embeddings, self._plan, self._losses)
        search = ChunkSearch(corpus, embeddings)
        try:
            collected = {one.name: self._collect(one, corpus, search) for one in makers}
        finally:
            search.close()
        check_not_in_vain(collected)
        losses = [*self._losses, *(loss for one in collected.values() for loss in one.losses)]
        manifest = build_manifest(
            self._plan,
            corpus,
            collected,
            losses,
            usage=self._asker.usage,
            model=model_record(self._backend),
            embeddings=about,
            generators=[one.about() for one in makers],
            files=outputs.write_datasets(out, collected, losses, self._plan),
        )
        outputs.write_manifest(out, manifest)
        return Built(out, manifest, self._asker.n_sent, self._asker.n_failed.total())

    def _collect(self, generator: QAGenerator, corpus: Corpus, search: ChunkSearch) -> Collected:
        wants_distractors = "ssli" in self._plan.settings
        writer = DistractorWriter(self._asker, search, self._plan) if wants_distractors else None
        before = self._at.n_questions
        return io_loop.run(
            collect(
                Drafter(generator, corpus, search, writer, self._plan),
                shuffled(list(corpus.documents.values()), self._plan.seed, generator.name),
                n=self._plan.n_questions,
                per_document=self._plan.per_document,
                on_drafts=lambda n_drafts: self._move(n_questions=before + n_drafts),
            )
        )

    def _embeddings(
        self, corpus: Corpus, given: Embeddings | None
    ) -> tuple[Embeddings, dict[str, Any]]:
        """Return what embeds, and what the manifest says of it."""
        if given is None:
            return LsaEmbeddings([chunk.text for chunk in corpus]), lsa_about()
        name = name_embeddings(given)
        return KeptEmbeddings(given, name, self._cache), {"name": name}

    def _move(self, **changes: Any) -> None:
        self._at = replace(self._at, **changes)
        self._on_progress(self._at)


_QUESTION = 150  # characters of a question
_NOTES = 600  # characters of notes on methods, results, significance
_PAIRS = 400  # characters of the pairs of one document
_GUIDE = 350  # characters of one guide


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildEstimate:
    """The calls of a build in which every reply can be used at once.

    Attributes:
        n_documents: Documents with a text, >= 0.
        n_questions: Questions of all data sets, >= 0.
        usage: Calls and tokens of each step; a token is taken for 4 characters.
        most_calls: Calls if every distractor takes all its attempts. Documents that give no
            question come on top.
    """

    n_documents: int
    n_questions: int
    usage: dict[str, Usage]
    most_calls: int

    @property
    def total(self) -> Usage:
        """All steps together."""
        return sum(self.usage.values(), Usage())


def estimate(corpus: Corpus, plan: BuildPlan, generators: Sequence[str]) -> BuildEstimate:
    """Count the calls of a build.

    Args:
        corpus: Documents before any is left out; not empty.
        plan: What to make.
        generators: As `build` takes them.

    Raises:
        SettingsError: A generator is unknown.
        DatasetError: There is no document.
    """
    check_generators(generators)
    check_not_empty(corpus)
    chunk = round(fmean(len(one.text) for one in corpus))
    whole = round(fmean(len(one.text) for one in corpus.documents.values()))
    n = min(plan.n_questions, len(corpus.documents) * plan.per_document)
    n_asked = -(-n // plan.per_document)
    usage: dict[str, Usage] = {}
    if PassageGenerator.name in generators:
        usage["lmqg"] = _usage("lmqg", n_asked, chunk, _PAIRS)
    if GuidedGenerator.name in generators:
        usage[EXTRACT] = _usage("extract", n_asked, whole, _NOTES)
        usage["guided"] = _usage("guided", n_asked, chunk + _NOTES, _PAIRS)
    n_questions = n * len(generators)
    n_written = 0
    if "ssli" in plan.settings:
        n_written = n_questions * plan.n_distractors
        shown = _QUESTION + N_SHOWN * chunk
        usage["guidance"] = _usage("guidance", n_questions, shown, _GUIDE * plan.n_distractors)
        usage["distractor"] = _usage("distractor", n_written, shown + _GUIDE, chunk)
    n_calls = sum(one.calls for one in usage.values())
    return BuildEstimate(
        n_documents=len(corpus.documents),
        n_questions=n_questions,
        usage=usage,
        most_calls=n_calls + n_written * (plan.attempts - 1),
    )


def _usage(prompt: str, n_calls: int, n_given: int, n_said: int) -> Usage:
    """Calls and tokens of a step; lengths in characters a call."""
    folder = files(PACKAGE)
    template = sum(
        len(folder.joinpath(f"{prompt}.{role}.md").read_text(encoding="utf-8"))
        for role in ("system", "user")
    )
    return Usage(
        calls=n_calls,
        input_tokens=n_calls * -(-(template + n_given) // CHARS_PER_TOKEN),
        output_tokens=n_calls * -(-n_said // CHARS_PER_TOKEN),
    )
