"""Conformance tests for LangChain document compressors."""

import asyncio
import json
from collections.abc import Sequence
from copy import deepcopy
from inspect import signature

import pytest
from langchain_core.documents import Document

from langchain_deepera.testing.nesting import NestingTests
from langchain_deepera.testing.recorder import RunRecorder
from langchain_deepera.testing.subject import FAILURE_MARK

_STALE = -123.5


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
