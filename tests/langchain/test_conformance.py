"""Our compressors pass the conformance suite, and the suite catches what it is there to catch."""

import asyncio
import contextlib

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableLambda

from deepera_graph import EvidenceReranker
from deepera_graph.testing import ScriptedChat
from langchain_deepera import DeepEraCompressor
from langchain_deepera.testing import FAILURE_MARK, CompressorTests
from support.scripted import TEA_SCORES, Script

pytestmark = pytest.mark.full

FAILING_SCORES = {**TEA_SCORES, FAILURE_MARK: RuntimeError("the model is out of tea")}


class TestScripted(CompressorTests):
    @property
    def compressor(self):
        backend = Script(TEA_SCORES).backend()
        return DeepEraCompressor(reranker=EvidenceReranker(backend, threshold=0.4))

    @property
    def failing_compressor(self):
        backend = Script(FAILING_SCORES).backend()
        return DeepEraCompressor(reranker=EvidenceReranker(backend, threshold=0.4))


class TestScriptedPassagesInOrder(TestScripted):
    @property
    def compressor(self):
        backend = Script(TEA_SCORES).backend()
        return DeepEraCompressor(reranker=EvidenceReranker(backend, content="passage"))

    @property
    def failing_compressor(self):
        return None


class TestChatModel(CompressorTests):
    @property
    def compressor(self):
        return DeepEraCompressor.from_llm(ScriptedChat(scores=TEA_SCORES), threshold=0.4)

    @property
    def failing_compressor(self):
        return DeepEraCompressor.from_llm(ScriptedChat(scores=FAILING_SCORES), threshold=0.4)


class TestLocal(CompressorTests):
    @property
    def compressor(self):
        return DeepEraCompressor.local()


class Longest(BaseDocumentCompressor):
    """Keeps every document, longest first; each subclass below has one defect."""

    def score(self, document):
        return float(len(document.page_content))

    def compress_documents(self, documents, query, callbacks=None):
        scorer = RunnableLambda(lambda given: self.score(given["document"]))
        config = {"callbacks": callbacks}
        scores = [scorer.invoke({"query": query, "document": one}, config) for one in documents]
        pairs = sorted(zip(scores, documents, strict=True), key=lambda pair: -pair[0])
        return [self.copy_of(document, score) for score, document in pairs]

    def copy_of(self, document, score):
        copy = document.model_copy(deep=True)
        copy.metadata["relevance_score"] = score
        return copy


class TestAnyCompressor(CompressorTests):
    compressor = Longest()


class Untouched(BaseDocumentCompressor):
    """Has no scores and runs nothing."""

    def compress_documents(self, documents, query, callbacks=None):
        return [document.model_copy(deep=True) for document in documents]


class TestACompressorWithoutScores(CompressorTests):
    compressor = Untouched()
    sets_score = False
    makes_runs = False


class DropsIds(Longest):
    def copy_of(self, document, score):
        return super().copy_of(document, score).model_copy(update={"id": None})


class MakesUpIds(Longest):
    def copy_of(self, document, score):
        copy = super().copy_of(document, score)
        return copy.model_copy(update={"id": document.id or "new"})


class DropsMetadata(Longest):
    def copy_of(self, document, score):
        return Document(id=document.id, page_content="", metadata={"relevance_score": score})


class KeepsStaleScore(Longest):
    def copy_of(self, document, score):
        return super().copy_of(document, document.metadata.get("relevance_score", score))


class WritesIntoInputs(Longest):
    def copy_of(self, document, score):
        document.metadata["relevance_score"] = score
        return document


class SharesNestedMetadata(Longest):
    def copy_of(self, document, score):
        metadata = {**document.metadata, "relevance_score": score}
        return document.model_copy(update={"metadata": metadata})


class WorstFirst(Longest):
    def compress_documents(self, documents, query, callbacks=None):
        return super().compress_documents(documents, query, callbacks)[::-1]


class MergesEqualTexts(Longest):
    def compress_documents(self, documents, query, callbacks=None):
        unique = {one.page_content: one for one in documents}
        return super().compress_documents(list(unique.values()), query, callbacks)


class ForgetsCallbacks(Longest):
    def compress_documents(self, documents, query, callbacks=None):
        return super().compress_documents(documents, query, None)


class RenamesCallbacks(Longest):
    def compress_documents(self, documents, query, handlers=None):
        return super().compress_documents(documents, query, handlers)


class OtherAnswerInAsync(Longest):
    async def acompress_documents(self, documents, query, callbacks=None):
        return self.compress_documents(documents, query, callbacks)[:1]


class OneAtATime(Longest):
    busy: bool = False

    async def acompress_documents(self, documents, query, callbacks=None):
        assert not self.busy
        self.busy = True
        await asyncio.sleep(0)
        self.busy = False
        return self.compress_documents(documents, query, callbacks)


class WantsNoLoop(Longest):
    """Fails where `asyncio.run` would."""

    def compress_documents(self, documents, query, callbacks=None):
        with contextlib.suppress(RuntimeError):
            raise AssertionError(f"there is a loop: {asyncio.get_running_loop()}")
        return super().compress_documents(documents, query, callbacks)


class NotJson(Longest):
    def copy_of(self, document, score):
        copy = super().copy_of(document, score)
        copy.metadata["span"] = (0, 1)
        return copy


class FormatsTheText(Longest):
    def score(self, document):
        return float(len(document.page_content.format()))


class CutsTheQuery(Longest):
    def compress_documents(self, documents, query, callbacks=None):
        return super().compress_documents(documents, query[:20], callbacks)


class AlwaysAnswers(Longest):
    def compress_documents(self, documents, query, callbacks=None):
        given = super().compress_documents(documents, query, callbacks)
        return given or [Document(page_content="nothing found")]


class OneFailureSinksAll(Longest):
    def score(self, document):
        if document.page_content == FAILURE_MARK:
            raise RuntimeError("out of tea")
        return super().score(document)


def suite_for(kind):
    class Suite(CompressorTests):
        compressor = kind()
        failing_compressor = kind()

    return Suite()


ISOLATION = "test_one_failing_document_does_not_sink_the_others"


@pytest.mark.parametrize(
    ("defect", "test"),
    [
        (DropsIds, "test_ids_are_kept"),
        (MakesUpIds, "test_a_document_without_id_stays_without"),
        (DropsMetadata, "test_metadata_is_kept"),
        (KeepsStaleScore, "test_a_stale_score_is_overwritten"),
        (WritesIntoInputs, "test_inputs_are_unchanged"),
        (SharesNestedMetadata, "test_inputs_are_unchanged"),
        (WorstFirst, "test_documents_come_best_first"),
        (MergesEqualTexts, "test_equal_documents_all_come_back_in_their_order"),
        (ForgetsCallbacks, "test_runs_nest_under_the_caller"),
        (ForgetsCallbacks, "test_runs_nest_under_the_caller_inside_a_chain"),
        (RenamesCallbacks, "test_it_fits_a_pipeline"),
        (OtherAnswerInAsync, "test_async_equals_sync"),
        (OneAtATime, "test_async_works_twice_in_a_running_loop"),
        (WantsNoLoop, "test_sync_works_in_a_running_loop"),
        (NotJson, "test_metadata_is_json"),
        (FormatsTheText, "test_braces_and_percent_signs_are_only_text"),
        (CutsTheQuery, "test_the_query_reaches_the_model_word_for_word"),
        (AlwaysAnswers, "test_nothing_in_gives_nothing_out_without_a_call"),
        (OneFailureSinksAll, ISOLATION),
    ],
)
def test_the_suite_catches(defect, test):
    if test != ISOLATION:
        getattr(suite_for(Longest), test)()
    with pytest.raises((AssertionError, RuntimeError, KeyError, TypeError)):
        getattr(suite_for(defect), test)()
