"""The judge of a cascade: asks the careful one for what was picked, and for nothing else."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.backends.counting import counting_judge
from deepera_graph.backends.joint_survey import with_own_notes
from deepera_graph.backends.pick import PICKED, SCORE
from deepera_graph.roles import PassageTask, gives_summaries
from deepera_graph.schema import Judgement
from deepera_graph.usage import Usage

LOCAL, LLM = "local", "llm"  # whose notes
COUNTED = "counted"
MOST_UNREAD = 0.1  # the highest score without the careful judge


class CascadeJudge(Runnable[PassageTask, Judgement]):
    """Asks the careful judge for what the survey picked; see `cascade_judge` and `Picker`.

    Of the notes in its task, those of ``local`` say whether the passage was picked; the careful
    judge gets those of ``llm``. Where costs are counted, all is kept: *unread_summary* then stands
    for the summary that no run would ask for, as what was not read is not kept.
    """

    def __init__(
        self,
        local: Runnable[PassageTask, Judgement],
        llm: Runnable[PassageTask, Judgement],
        keep: int,
        *,
        unread_summary: str = "",
    ) -> None:
        self._local, self._llm, self._keep = local, llm, keep
        self._unread_summary = unread_summary
        self.gives_summaries = gives_summaries(llm)

    def counting(self) -> "CascadeJudge":
        """Return this judge as it costs, asking nothing."""
        local, llm = counting_judge(self._local), counting_judge(self._llm)
        return CascadeJudge(local, llm, self._keep, unread_summary=COUNTED)

    def takes_place(self, task: PassageTask) -> bool:
        """Whether a passage may cost the careful judge a call; all may if the survey failed."""
        return survey_of(task).get(PICKED) != 0

    def invoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Judge one passage."""
        found = survey_of(input)
        if not found:
            return _alone(self._local.invoke(_without_notes(input), config))
        if found[PICKED]:
            return self._llm.invoke(with_own_notes(LLM, input), config)
        return self._unread(found[SCORE])

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Judge one passage in the running loop."""
        found = survey_of(input)
        if not found:
            return _alone(await self._local.ainvoke(_without_notes(input), config))
        if found[PICKED]:
            return await self._llm.ainvoke(with_own_notes(LLM, input), config)
        return self._unread(found[SCORE])

    def _unread(self, score: float) -> Judgement:
        return Judgement(
            score=round(MOST_UNREAD * score, 6),
            reason=(
                f"not among the best {self._keep} of the local judge ({score:.2f}): the language "
                "model did not read it"
            ),
            summary=self._unread_summary,
            usage=Usage(),
        )


def survey_of(task: PassageTask) -> Mapping[str, float]:
    """Return what the survey says of a passage; nothing if it failed."""
    return with_own_notes(LOCAL, task).get("notes", {})


def _alone(answer: object) -> Judgement:
    judgement = Judgement.model_validate(answer, from_attributes=True)
    reason = f"judged by the local judge alone, as its survey failed: {judgement.reason}"
    return judgement.model_copy(update={"reason": reason})


def _without_notes(task: PassageTask) -> PassageTask:
    bare = task.copy()
    bare.pop("notes", None)
    return bare
