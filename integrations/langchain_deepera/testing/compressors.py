"""Conformance tests for LangChain document compressors, and a recorder of what ran."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from inspect import signature
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, CallbackManager
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableConfig, RunnableLambda

FAILURE_MARK = "THE MODEL FAILS ON THIS DOCUMENT"
_STALE = -123.5


class RunRecorder(BaseCallbackHandler):
    """Notes every run, its parent and what it was given; and how many were calls of a model."""

    def __init__(self) -> None:
        self.names: dict[UUID, str] = {}
        self.parents: dict[UUID, UUID | None] = {}
        self.inputs: list[str] = []
        self.n_model_calls = 0

    def on_chain_start(self, serialized: Any, inputs: Any, **about: Any) -> None:
        """Note a chain."""
        self._note(serialized, inputs, about)

    def on_retriever_start(self, serialized: Any, query: str, **about: Any) -> None:
        """Note a retriever."""
        self._note(serialized, query, about)

    def on_tool_start(self, serialized: Any, input_str: str, **about: Any) -> None:
        """Note a tool."""
        self._note(serialized, input_str, about)

    def on_llm_start(self, serialized: Any, prompts: list[str], **about: Any) -> None:
        """Note a call of a completion model."""
        self.n_model_calls += 1
        self._note(serialized, prompts, about)

    def on_chat_model_start(self, serialized: Any, messages: Any, **about: Any) -> None:
        """Note a call of a chat model."""
        self.n_model_calls += 1
        texts = [str(message.content) for batch in messages for message in batch]
        self._note(serialized, "\n".join(texts), about)

    def runs_named(self, name: str) -> list[UUID]:
        """Return the runs of a name."""
        return [run for run, its_name in self.names.items() if its_name == name]

    def path(self, run: UUID) -> list[str]:
        """Return the names from a run up to its root; an orphan's path ends with ``?``."""
        path = [self.names.get(run, "?")]
        parent = self.parents.get(run)
        return path if parent is None else path + self.path(parent)

    def _note(self, serialized: Any, given: Any, about: dict[str, Any]) -> None:
        run = about["run_id"]
        self.names[run] = about.get("name") or (serialized or {}).get("name") or "unnamed"
        self.parents[run] = about.get("parent_run_id")
        self.inputs.append(str(given))


class CompressorSubject(ABC):
    """Says what is tested; `CompressorTests` says how.

    Attributes:
        sets_score: Whether documents come back with `relevance_score`, best first.
        makes_runs: Whether it runs something that callbacks can see.
    """

    sets_score = True
    makes_runs = True

    @property
    @abstractmethod
    def compressor(self) -> BaseDocumentCompressor:
        """The compressor to test; it gives equal answers to equal questions."""

    @property
    def failing_compressor(self) -> BaseDocumentCompressor | None:
        """One whose model fails on a document that holds `FAILURE_MARK`; None skips that test."""
        return None

    @property
    def query(self) -> str:
        """The query of most tests."""
        return "Does regular tea drinking lower fasting glucose in adults?"

    @property
    def documents(self) -> list[Document]:
        """At least three documents with ids and metadata; the compressor keeps one or more."""
        return [
            Document(
                id="background",
                page_content="Tea is drunk in many countries. Its effects on health are debated.",
                metadata={"source": "a.txt", "page": 1, "nested": {"tags": ["tea"]}},
            ),
            Document(
                id="finding",
                page_content=(
                    "In a randomized trial of 212 adults, regular tea drinking significantly "
                    "lowered fasting glucose by 0.4 mmol/L compared with water "
                    "(95% CI 0.2 to 0.6, p < 0.001)."
                ),
                metadata={"source": "b.txt", "page": 2, "nested": {"tags": ["tea", "glucose"]}},
            ),
            Document(
                id="other",
                page_content="Kelp forests recovered after sea otters returned to the coast.",
                metadata={"source": "c.txt", "page": 3, "nested": {"tags": []}},
            ),
        ]

    def compress(
        self, documents: Sequence[Document], query: str | None = None
    ) -> Sequence[Document]:
        """Run the compressor under test."""
        return self.compressor.compress_documents(documents, query or self.query)

    def best(self) -> Document:
        """The input document that comes back first."""
        [best, *_] = self.compress(self.documents)
        return next(document for document in self.documents if document.id == best.id)


class NestingTests(CompressorSubject):
    """What a compressor does with the callbacks it is given."""

    def test_runs_nest_under_the_caller(self) -> None:
        """Everything it runs descends from the run whose callbacks it is given."""
        self._check_nesting(self._traced(RunRecorder()))

    def test_runs_nest_under_the_caller_in_async(self) -> None:
        """The same, in a running loop."""
        self._check_nesting(asyncio.run(self._atraced(RunRecorder())))

    def test_runs_nest_under_the_caller_inside_a_chain(self) -> None:
        """Callbacks handed over count for more than the chain around the call."""
        recorder = RunRecorder()

        def step(_: object, config: RunnableConfig) -> None:
            self._traced(recorder, config["callbacks"])

        RunnableLambda(step, name="chain").invoke(None, {"callbacks": [recorder]})
        self._check_nesting(recorder, "chain")

    def test_runs_nest_under_the_caller_inside_a_chain_in_async(self) -> None:
        """The same, in a running loop."""
        recorder = RunRecorder()

        async def step(_: object, config: RunnableConfig) -> None:
            await self._atraced(recorder, config["callbacks"])

        chain = RunnableLambda(step, name="chain")
        asyncio.run(chain.ainvoke(None, {"callbacks": [recorder]}))
        self._check_nesting(recorder, "chain")

    def test_the_query_reaches_the_model_word_for_word(self) -> None:
        """The query is neither cut nor rewritten on its way."""
        if not self.makes_runs:
            pytest.skip("makes no runs")
        recorder = self._traced(RunRecorder())
        assert any(self.query in text for text in recorder.inputs[1:])

    def _traced(self, recorder: RunRecorder, callbacks: Any = None) -> RunRecorder:
        """Call the compressor the way a retriever does, under a run named ``caller``."""
        manager = CallbackManager.configure(callbacks or [recorder])
        run = manager.on_retriever_start({}, self.query, name="caller")
        kept = self.compressor.compress_documents(
            self.documents, self.query, callbacks=run.get_child()
        )
        run.on_retriever_end(list(kept))
        return recorder

    async def _atraced(self, recorder: RunRecorder, callbacks: Any = None) -> RunRecorder:
        manager = AsyncCallbackManager.configure(callbacks or [recorder])
        run = await manager.on_retriever_start({}, self.query, name="caller")
        kept = await self.compressor.acompress_documents(
            self.documents, self.query, callbacks=run.get_child()
        )
        await run.on_retriever_end(list(kept))
        return recorder

    def _check_nesting(self, recorder: RunRecorder, *above: str) -> None:
        own = [run for run, name in recorder.names.items() if name not in {"caller", *above}]
        assert bool(own) == self.makes_runs
        for run in own:
            path = recorder.path(run)
            assert path[-len(above) - 1 :] == ["caller", *above], path


class CompressorTests(NestingTests):
    """What every document compressor should do; subclass it and say what `compressor` is."""

    def test_nothing_in_gives_nothing_out_without_a_call(self) -> None:
        """An empty list comes back, sync and async, and no model is called."""
        recorder = RunRecorder()
        assert list(self.compressor.compress_documents([], self.query, [recorder])) == []
        given = self.compressor.acompress_documents([], self.query, [recorder])
        assert list(asyncio.run(given)) == []
        assert recorder.n_model_calls == 0

    def test_something_is_kept(self) -> None:
        """The other tests mean something: the compressor keeps one of `documents` or more."""
        kept = self.compress(self.documents)
        assert kept
        assert all(isinstance(document, Document) for document in kept)

    def test_ids_are_kept(self) -> None:
        """What comes back has an id of what went in, each once."""
        given = [document.id for document in self.documents]
        kept = [document.id for document in self.compress(self.documents)]
        assert set(kept) <= set(given)
        assert len(set(kept)) == len(kept)

    def test_a_document_without_id_stays_without(self) -> None:
        """No id is made up."""
        documents = [document.model_copy(update={"id": None}) for document in self.documents]
        assert {document.id for document in self.compress(documents)} == {None}

    def test_metadata_is_kept(self) -> None:
        """Every key that went in comes back with its value."""
        given = {document.id: document.metadata for document in self.documents}
        for document in self.compress(self.documents):
            for key, value in given[document.id].items():
                assert document.metadata[key] == value

    def test_a_stale_score_is_overwritten(self) -> None:
        """A `relevance_score` left by an earlier step does not survive."""
        if not self.sets_score:
            pytest.skip("sets no score")
        documents = self.documents
        for document in documents:
            document.metadata["relevance_score"] = _STALE
        assert all(score != _STALE for score in _scores(self.compress(documents)))

    def test_inputs_are_unchanged(self) -> None:
        """Neither the call nor a change to what comes back reaches what went in."""
        documents = self.documents
        before = deepcopy(documents)
        kept = self.compress(documents)
        assert documents == before
        for document in kept:
            document.metadata["nested"]["tags"].append("changed later")
            document.metadata["new"] = True
        assert documents == before

    def test_documents_come_best_first(self) -> None:
        """Scores do not rise from one document to the next."""
        if not self.sets_score:
            pytest.skip("sets no score")
        scores = _scores(self.compress(self.documents))
        assert scores == sorted(scores, reverse=True)

    def test_equal_documents_all_come_back_in_their_order(self) -> None:
        """Documents with the same text are neither merged nor shuffled."""
        best = self.best()
        twins = [best.model_copy(update={"id": f"twin {n}"}) for n in range(3)]
        kept = [document.id for document in self.compress(twins)]
        assert kept == ["twin 0", "twin 1", "twin 2"]

    def test_the_same_again_gives_the_same(self) -> None:
        """Two calls agree, also in order."""
        assert list(self.compress(self.documents)) == list(self.compress(self.documents))

    def test_async_equals_sync(self) -> None:
        """`acompress_documents` gives what `compress_documents` gives."""
        given = self.compressor.acompress_documents(self.documents, self.query)
        assert list(asyncio.run(given)) == list(self.compress(self.documents))

    def test_async_works_twice_in_a_running_loop(self) -> None:
        """Calls at the same time, in one loop, do not disturb each other."""
        compressor = self.compressor

        async def both() -> list[Sequence[Document]]:
            calls = [compressor.acompress_documents(self.documents, self.query) for _ in range(2)]
            return await asyncio.gather(*calls)

        first, second = asyncio.run(both())
        assert list(first) == list(second) == list(self.compress(self.documents))

    def test_sync_works_in_a_running_loop(self) -> None:
        """A notebook has a loop running; `compress_documents` must not start another."""

        async def in_a_loop() -> Sequence[Document]:
            return self.compress(self.documents)

        assert list(asyncio.run(in_a_loop())) == list(self.compress(self.documents))

    def test_metadata_is_json(self) -> None:
        """Metadata survives JSON, so that it can be stored."""
        for document in self.compress(self.documents):
            assert json.loads(json.dumps(document.metadata)) == document.metadata

    def test_unicode_survives(self) -> None:
        """Ids, metadata and texts in any script pass through."""
        best = self.best()
        odd = best.model_copy(
            update={
                "id": "naïve/β–細胞",
                "page_content": f"{best.page_content} (Überprüft: 細胞, β-carotene 🍵.)",
                "metadata": {**best.metadata, "titre": "Étude « β » 🍵"},
            }
        )
        [kept] = self.compress([odd])
        assert (kept.id, kept.metadata["titre"]) == ("naïve/β–細胞", "Étude « β » 🍵")

    def test_braces_and_percent_signs_are_only_text(self) -> None:
        """A query or text that looks like a template is not treated as one."""
        best = self.best()
        odd = best.model_copy(
            update={"page_content": f"{best.page_content} Set {{x}} = {{{{y}}}} at 100% and $z."}
        )
        assert len(self.compress([odd], f"{self.query} In {{x}}, at 100% of $z?")) == 1

    def test_it_fits_a_pipeline(self) -> None:
        """`DocumentCompressorPipeline` hands callbacks on only by the name ``callbacks``."""
        for method in (self.compressor.compress_documents, self.compressor.acompress_documents):
            assert list(signature(method).parameters)[:3] == ["documents", "query", "callbacks"]

    def test_one_failing_document_does_not_sink_the_others(self) -> None:
        """The others come back as if the failing one had not been there."""
        compressor = self.failing_compressor
        if compressor is None:
            pytest.skip("no failing compressor given")
        best = self.best()
        failing = best.model_copy(update={"id": "failing", "page_content": FAILURE_MARK})
        documents = [failing, *self.documents]
        expected = [document.id for document in self.compress(self.documents)]
        kept = compressor.compress_documents(documents, self.query)
        assert [document.id for document in kept] == expected
        akept = asyncio.run(compressor.acompress_documents(documents, self.query))
        assert [document.id for document in akept] == expected


def _scores(documents: Sequence[Document]) -> list[float]:
    return [document.metadata["relevance_score"] for document in documents]
