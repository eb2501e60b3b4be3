"""A judge that gives the summary along with its score, in one call."""

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from deepera_graph import prompts
from deepera_graph.backends.llm import harmless, show
from deepera_graph.backends.llm.roles import LlmJudge, how, summary_of
from deepera_graph.backends.llm.structured import CutOffError, fill
from deepera_graph.backends.llm.verdicts import FilledFused, FilledVerdict
from deepera_graph.domains import Domain
from deepera_graph.errors import AnswerError, RoleError
from deepera_graph.roles import PassageTask
from deepera_graph.schema import Judgement
from deepera_graph.usage import Usage

PROMPTS = "deepera_graph.prompts.fused"


class FusedJudge(LlmJudge):
    """Scores one passage, and summarizes it if the score is high enough for a summary to count.

    Where a reply with a summary does not fit into the model's limit of tokens, the score alone is
    asked for: a summary must not cost a passage its score.
    """

    gives_summaries = True

    async def _play(self, task: PassageTask, config: RunnableConfig | None) -> Judgement:
        try:
            return await self._judged(task, config)
        except AnswerError as error:
            if "summary_from" not in task or not isinstance(error.__cause__, CutOffError):
                raise
            return await self._without_summary(task, config, error)

    async def _without_summary(
        self, task: PassageTask, config: RunnableConfig | None, error: AnswerError
    ) -> Judgement:
        bare = task.copy()
        del bare["summary_from"]
        try:
            judgement = await self._judged(bare, config)
        except RoleError as again:
            again.usage = error.usage + again.usage
            raise
        used = error.usage + (judgement.usage or Usage()) + Usage(reasked_calls=1)
        changes = {"usage": used, "repaired": True, "problem": str(error)}
        return judgement.model_copy(update=changes)

    async def _judged(self, task: PassageTask, config: RunnableConfig | None) -> Judgement:
        sentences = show.sentences_of(task)
        messages = messages_of(
            self._domain,
            PROMPTS,
            **show.passage_values(task, show.numbered(sentences)),
            summary=show.summary_wanted(task),
        )
        kind = FilledFused if "summary_from" in task else FilledVerdict
        filled = await fill(self._model, messages, kind, config)
        found, summary = filled.answer, ""
        if isinstance(found, FilledFused) and found.score >= task.get("summary_from", 0):
            summary = summary_of(found.summary)
        return Judgement(
            score=found.score,
            reason=harmless.one_line(found.reason),
            quote=show.quoted(task["text"], sentences, found.evidence),
            summary=summary,
            **how(filled),
        )


def messages_of(domain: Domain | None, package: str, /, **values: str) -> list[BaseMessage]:
    """Fill the templates of a judge, with the rules of the field for scores and for summaries."""
    filled = prompts.messages_of(package, "score", **values)
    if domain is None:
        return filled
    return domain.added_to("summarize", domain.added_to("score", filled))
