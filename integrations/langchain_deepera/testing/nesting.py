"""Conformance tests: everything a compressor runs is part of the caller's trace."""

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.runnables import RunnableConfig, RunnableLambda

from langchain_deepera.testing.recorder import RunRecorder
from langchain_deepera.testing.subject import CompressorSubject


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
