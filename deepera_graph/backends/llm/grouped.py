"""A judge of several passages in one call; what that leaves open is asked one by one."""

from collections.abc import Sequence
from typing import Self

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.backends.llm import harmless, show
from deepera_graph.backends.llm.counting import CountingModel
from deepera_graph.backends.llm.fused import FusedJudge, messages_of
from deepera_graph.backends.llm.group_reply import read_verdicts
from deepera_graph.backends.llm.model import ChatModel
from deepera_graph.backends.llm.pace import Limits
from deepera_graph.backends.llm.patience import Patience
from deepera_graph.backends.llm.roles import LoopRole, summary_of
from deepera_graph.backends.llm.structured import fill
from deepera_graph.backends.llm.verdicts import (
    FilledFusedGroup,
    FilledFusedMember,
    FilledGroup,
    FilledMember,
)
from deepera_graph.domains import Domain
from deepera_graph.errors import AnswerError, BudgetError, CallError, RoleError
from deepera_graph.roles import GroupTask, PassageTask
from deepera_graph.schema import GroupJudgement, Judgement, Unjudged
from deepera_graph.text.sentences import Sentence
from deepera_graph.usage import Usage

PROMPTS = "deepera_graph.prompts.grouped"
MOST_LOST = 2
_Found = Judgement | str


class GroupedJudge(FusedJudge):
    """Scores, and summarizes, up to *group_size* passages of a question in one call.

    Alone, a passage is judged as by `FusedJudge`.
    """

    def __init__(self, model: ChatModel, domain: Domain | None, group_size: int) -> None:
        super().__init__(model, domain)
        self.group_size = group_size

    def counting(self) -> Self:
        """Return this role on a model that counts its prompts and is never asked."""
        model = ChatModel(CountingModel(), Patience(), Limits())
        return type(self)(model, self._domain, self.group_size)

    def of_groups(self) -> Runnable[GroupTask, GroupJudgement]:
        """Return the role that judges a group."""
        return LlmGroups(self)

    async def together(
        self, tasks: Sequence[PassageTask], config: RunnableConfig | None
    ) -> tuple[list[_Found], Usage]:
        """Judge passages in one call; return judgements, or what is wrong, and the cost of all.

        Raises:
            RoleError: There is no reply, or none that can be used; see `fill`.
        """
        fused = "summary_from" in tasks[0]
        kind: type[FilledGroup] = FilledFusedGroup if fused else FilledGroup
        member: type[FilledMember] = FilledFusedMember if fused else FilledMember
        split = list(map(show.sentences_of, tasks))
        messages = messages_of(
            self._domain,
            PROMPTS,
            **show.group_values(tasks, list(map(show.numbered, split))),
            summary=show.summary_wanted(tasks[0]),
        )
        filled = await fill(self._model, messages, kind, config)
        shown = "\n".join(message.text for message in messages)
        said = read_verdicts(filled.answer.verdicts, len(tasks), member, shown)
        how = {"usage": Usage(), "repaired": filled.repaired, "problem": filled.problem}
        found = [
            one if isinstance(one, str) else _judgement(task, sentences, one).model_copy(update=how)
            for task, sentences, one in zip(tasks, split, said, strict=True)
        ]
        return found, filled.usage

    async def alone(self, task: PassageTask, config: RunnableConfig | None) -> Judgement:
        """Judge one passage."""
        return await self._play(task, config)


class LlmGroups(LoopRole[GroupTask, GroupJudgement]):
    """Judges a group: together, and alone each passage that has no usable verdict then.

    Passages are asked alone one after the other, as the group has one turn. After two
    (`MOST_LOST`) in a row for which there was no reply, the server is taken to be gone.

    Raises:
        CallError: No passage can succeed: no connection, wrong key, unknown model.
        BudgetError: The budget is spent.
        RoleError: The group is a single passage that could not be judged.
    """

    def __init__(self, judge: GroupedJudge) -> None:
        self._judge = judge

    async def _play(self, task: GroupTask, config: RunnableConfig | None) -> GroupJudgement:
        tasks = task["tasks"]
        if len(tasks) == 1:
            one = await self._judge.alone(tasks[0], config)
            return GroupJudgement(verdicts=[one], usage=one.usage)
        found, spent, is_answered = await self._together(tasks, config)
        verdicts: list[Judgement | Unjudged] = []
        n_lost = 0  # in a row
        for passage, known in zip(tasks, found, strict=True):
            if isinstance(known, Judgement):
                verdicts.append(known)
            elif n_lost >= MOST_LOST:
                verdicts.append(Unjudged(cause=f"not asked alone: {known}", usage=Usage()))
            else:
                verdict, is_lost = await self._alone(passage, known, config, is_again=is_answered)
                n_lost = n_lost + 1 if is_lost else 0
                verdicts.append(verdict)
        return _with_cost(verdicts, spent)

    async def _together(
        self, tasks: Sequence[PassageTask], config: RunnableConfig | None
    ) -> tuple[list[_Found], Usage, bool]:
        """Judge a group; whether there was a reply at all comes last."""
        try:
            found, spent = await self._judge.together(tasks, config)
        except BudgetError:
            raise
        except CallError as error:
            if error.unusable:
                raise
            return [str(error)] * len(tasks), error.usage, False
        except AnswerError as error:
            return [f"of {len(tasks)} passages, {error}"] * len(tasks), error.usage, True
        return found, spent, True

    async def _alone(
        self, task: PassageTask, why: str, config: RunnableConfig | None, *, is_again: bool
    ) -> tuple[Judgement | Unjudged, bool]:
        """Judge one passage; whether there was no reply comes last."""
        try:
            one = await self._judge.alone(task, config)
        except RoleError as error:
            unjudged = Unjudged.of(error)
            cause = f"{error} (asked alone, after {why})"
            lost = isinstance(error, CallError)
            return unjudged.model_copy(update={"cause": cause}), lost
        if not is_again:
            return one, False
        changes = {
            "repaired": True,
            "problem": "; alone ".join(filter(None, (why, one.problem))),
            "usage": (one.usage or Usage()) + Usage(reasked_calls=1),
        }
        return one.model_copy(update=changes), False


def _judgement(task: PassageTask, sentences: list[Sentence], one: FilledMember) -> Judgement:
    summary = ""
    if isinstance(one, FilledFusedMember) and one.score >= task.get("summary_from", 0):
        summary = summary_of(one.summary)
    return Judgement(
        score=one.score,
        reason=harmless.one_line(one.reason),
        quote=show.quoted(task["text"], sentences, one.evidence),
        summary=summary,
    )


def _with_cost(verdicts: list[Judgement | Unjudged], spent: Usage) -> GroupJudgement:
    """Write the cost of the common call beside the first judgement, so that it is kept with it."""
    judged = (place for place, one in enumerate(verdicts) if isinstance(one, Judgement))
    place = next(judged, 0)
    bearer = verdicts[place]
    verdicts[place] = bearer.model_copy(update={"usage": (bearer.usage or Usage()) + spent})
    total = sum((one.usage or Usage() for one in verdicts), Usage())
    return GroupJudgement(verdicts=verdicts, usage=total)
