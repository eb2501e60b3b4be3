"""A chat model in the roles of a backend: it reads, judges alone or in groups, sums up, answers."""

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

from langchain_core.runnables import RunnableConfig

from deepera_graph.agents.role import LlmRole, counting_model, fill_messages
from deepera_graph.chat import sending
from deepera_graph.chat.client import ChatModel, CutOffError, request_reply
from deepera_graph.chat.parsing import sanitize, sanitize_line
from deepera_graph.errors import AnswerError, BudgetError, CallError, RoleError
from deepera_graph.judges.base import Judge, PlanRequest, window_key
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.prompt import (
    AnswerReply,
    FindingReply,
    FusedFindingReply,
    FusedGroupReply,
    FusedMemberReply,
    FusedReply,
    GroupReply,
    IntentReply,
    JudgementReply,
    MemberReply,
    SummaryReply,
    VerdictReply,
    read_verdicts,
)
from deepera_graph.prompts import Domain
from deepera_graph.schema import (
    LONGEST_POSITION,
    Answer,
    AnswerTask,
    Batch,
    Intent,
    IntentTask,
    Judgement,
    PassageTask,
    Summary,
    Unjudged,
    Verdict,
    passage_tasks,
    read_direction,
)
from deepera_graph.text.words import Sentence, split_sentences
from deepera_graph.usage import Usage


class LlmIntent(LlmRole[IntentTask, Intent]):
    """Reads a question."""

    async def _play(self, task: IntentTask, config: RunnableConfig | None) -> Intent:
        useless = show.one_line(task["problem"]).replace("entity_type", "entities")
        problem = f"\n\nYour first reading was useless: {useless}" if task["problem"] else ""
        question = show.one_line(task["question"])
        messages = fill_messages(self.domain, "intent", question=question, problem=problem)
        reply, notes = await request_reply(self.model, messages, IntentReply, config)
        return Intent(**reply.model_dump(), **notes)


class LlmSummarizer(LlmRole[PassageTask, Summary]):
    """Shortens one kept passage."""

    async def _play(self, task: PassageTask, config: RunnableConfig | None) -> Summary:
        values = show.passage_values(task, sanitize(task["text"]))
        messages = fill_messages(self.domain, "summarize", **values)
        reply, notes = await request_reply(self.model, messages, SummaryReply, config)
        return Summary(text=summary_of(reply.text), **notes)


class LlmAnswerer(LlmRole[AnswerTask, Answer]):
    """Answers from the kept evidence."""

    async def _play(self, task: AnswerTask, config: RunnableConfig | None) -> Answer:
        block = show.evidence_block(task["evidence"])
        question = show.one_line(task["question"])
        form = show.intent_values(task["intent"])["expected_answer_type"]
        messages = fill_messages(
            self.domain,
            "answer",
            question=question,
            expected_answer_type=form,
            marker=show.marker(block, question, form),
            evidence=block,
        )
        reply, notes = await request_reply(self.model, messages, AnswerReply, config)
        return Answer(
            text=reply.text,
            citations=reply.citations,
            **notes,
        )


def summary_of(said: str) -> str:
    """Return a summary; one that says NONE is empty."""
    text = said.strip()
    return "" if text.upper() in {"NONE", "NONE."} else text


class LlmJudge(Judge):
    """Scores one passage a call; the evidence is named by sentence number and cut out by us."""

    def __init__(self, model: ChatModel, domain: Domain | None = None) -> None:
        self.model, self.domain = model, domain

    def counting(self) -> Self:
        """Return this judge on a model that counts its prompts and is never asked."""
        return type(self)(counting_model(), self.domain)

    def with_rules(self, added: Domain) -> Self:
        """Return this judge with further rules for its scores, after those of its field."""
        judge, field = copy(self), self.domain
        judge.domain = replace(field, score=field.score + added.score) if field else added
        return judge

    def plan(self, request: PlanRequest) -> list[Batch]:
        """Judge each window by itself."""
        return [request.batch([number]) for number in request.next]

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        """Judge a batch, waiting in this thread."""
        return sending.run(self._judge(passage_tasks(batch), config))

    async def ajudge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        """Judge a batch, waiting in the running loop."""
        return await sending.arun(self._judge(passage_tasks(batch), config))

    async def _judge(
        self, tasks: Sequence[PassageTask], config: RunnableConfig | None
    ) -> list[Verdict]:
        return [await self._judge_one(task, config) for task in tasks]

    async def _judge_one(self, task: PassageTask, config: RunnableConfig | None) -> Judgement:
        sentences = split_sentences(task["text"])
        values = show.passage_values(task, show.numbered(sentences))
        messages = fill_messages(self.domain, "score", **values)
        reply, notes = await request_reply(self.model, messages, JudgementReply, config)
        return Judgement(
            score=reply.score,
            **_evidence(task, sentences, reply.reason, reply),
            **notes,
        )


_BOTH = ("score", "summarize")  # the rules of the field that a prompt for both has


class FusedJudge(LlmJudge):
    """Scores one passage a call, and summarizes it if the score is high enough for that to count.

    Where a reply with a summary does not fit into the model's limit of tokens, the score alone is
    asked for: a summary must not cost a passage its score.
    """

    gives_summaries = True

    async def _judge_one(self, task: PassageTask, config: RunnableConfig | None) -> Judgement:
        try:
            return await self._judge_fused(task, config)
        except AnswerError as error:
            if "summary_from" not in task or not isinstance(error.__cause__, CutOffError):
                raise
            return await self._judge_without_summary(task, config, error)

    async def _judge_without_summary(
        self, task: PassageTask, config: RunnableConfig | None, error: AnswerError
    ) -> Judgement:
        bare = task.copy()
        del bare["summary_from"]
        try:
            judgement = await self._judge_fused(bare, config)
        except RoleError as again:
            again.usage = error.usage + again.usage
            raise
        used = error.usage + (judgement.usage or Usage()) + Usage(reasked_calls=1)
        changes = {"usage": used, "repaired": True, "problem": str(error)}
        return judgement.model_copy(update=changes)

    async def _judge_fused(self, task: PassageTask, config: RunnableConfig | None) -> Judgement:
        sentences = split_sentences(task["text"])
        messages = fill_messages(
            self.domain,
            "fused",
            _BOTH,
            **show.passage_values(task, show.numbered(sentences)),
            **show.wanted_values(task),
        )
        kind = FusedReply if "summary_from" in task else VerdictReply
        reply, notes = await request_reply(self.model, messages, kind, config)
        return _judgement(task, sentences, reply, **notes)


MOST_CHARACTERS = 24_000  # of a group: about 6 000 tokens, which leaves room in 8 192
MOST_LOST = 2
_Found = Judgement | str


class GroupedJudge(FusedJudge):
    """Scores, and summarizes, up to *group_size* passages of a question in one call.

    A passage that has no usable verdict then is asked about alone, as by `FusedJudge`: one after
    the other, as the group has one turn. After two (`MOST_LOST`) in a row for which there was no
    reply, the server is taken to be gone.
    """

    def __init__(self, model: ChatModel, domain: Domain | None, group_size: int) -> None:
        super().__init__(model, domain)
        self.group_size = group_size

    def counting(self) -> Self:
        """Return this judge on a model that counts its prompts and is never asked."""
        return type(self)(counting_model(), self.domain, self.group_size)

    def plan(self, request: PlanRequest) -> list[Batch]:
        """Cut what is next into groups; the same texts make the same groups."""
        sizes = {
            number: sum(map(len, window_key(request.windows[number]))) for number in request.next
        }
        return [request.batch(group) for group in _cut_groups(sizes, self.group_size)]

    async def _judge(
        self, tasks: Sequence[PassageTask], config: RunnableConfig | None
    ) -> list[Verdict]:
        if len(tasks) == 1:
            return await super()._judge(tasks, config)
        found, spent, is_answered = await self._judge_together(tasks, config)
        verdicts: list[Verdict] = []
        n_lost = 0  # in a row
        for task, known in zip(tasks, found, strict=True):
            if isinstance(known, Judgement):
                verdicts.append(known)
            elif n_lost >= MOST_LOST:
                verdicts.append(Unjudged(cause=f"not asked alone: {known}", usage=Usage()))
            else:
                verdict, is_lost = await self._judge_alone(task, known, config, is_answered)
                n_lost = n_lost + 1 if is_lost else 0
                verdicts.append(verdict)
        return _with_cost(verdicts, spent)

    async def _judge_together(
        self, tasks: Sequence[PassageTask], config: RunnableConfig | None
    ) -> tuple[list[_Found], Usage, bool]:
        """Return judgements, or what is wrong; the cost of all; and whether there was a reply."""
        try:
            found, spent = await self._ask_together(tasks, config)
        except BudgetError:
            raise
        except CallError as error:
            if error.unusable:
                raise
            return [str(error)] * len(tasks), error.usage, False
        except AnswerError as error:
            return [f"of {len(tasks)} passages, {error}"] * len(tasks), error.usage, True
        return found, spent, True

    async def _ask_together(
        self, tasks: Sequence[PassageTask], config: RunnableConfig | None
    ) -> tuple[list[_Found], Usage]:
        fused = "summary_from" in tasks[0]
        kind: type[GroupReply] = FusedGroupReply if fused else GroupReply
        member: type[MemberReply] = FusedMemberReply if fused else MemberReply
        split = [split_sentences(task["text"]) for task in tasks]
        messages = fill_messages(
            self.domain,
            "grouped",
            _BOTH,
            **show.group_values(tasks, list(map(show.numbered, split))),
            **show.wanted_values(tasks[0]),
        )
        reply, notes = await request_reply(self.model, messages, kind, config)
        shown = "\n".join(message.text for message in messages)
        said = read_verdicts(reply.verdicts, len(tasks), member, shown)
        of_one = {**notes, "usage": Usage()}
        found = [
            one if isinstance(one, str) else _judgement(task, sentences, one, **of_one)
            for task, sentences, one in zip(tasks, split, said, strict=True)
        ]
        return found, notes["usage"]

    async def _judge_alone(
        self,
        task: PassageTask,
        why: str,
        config: RunnableConfig | None,
        is_again: bool,
    ) -> tuple[Judgement | Unjudged, bool]:
        """Judge one passage; whether there was no reply comes last."""
        try:
            one = await self._judge_one(task, config)
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


def _cut_groups(sizes: Mapping[int, int], most: int) -> list[list[int]]:
    """Cut windows into runs, none above *most* or `MOST_CHARACTERS`, that differ by one at most.

    The longest decides when all are done; and one that is left over would be asked in another way.
    """
    numbers = sorted(sizes)
    n_runs = max(1, -(-len(numbers) // most))
    bounds = [len(numbers) * run // n_runs for run in range(n_runs + 1)]
    runs: list[list[int]] = []
    for start, end in pairwise(bounds):
        n_characters = 0
        for number in numbers[start:end]:
            n_characters += sizes[number]
            if number == numbers[start] or n_characters > MOST_CHARACTERS:
                runs.append([])
                n_characters = sizes[number]
            runs[-1].append(number)
    return runs


def _evidence(
    task: PassageTask, sentences: list[Sentence], reason: str, found: JudgementReply | FindingReply
) -> dict[str, Any]:
    """Return why, with what was given for a direction or a sentence and is none, and the quote."""
    unknown = show.describe_unknown(sentences, found.evidence)
    position, unread = read_position(found.direction)
    said = filter(None, (reason, unread, unknown))
    return {
        "direction": found.direction,
        "reason": sanitize_line("; ".join(said)),
        "position": sanitize_line(position),
        "quote": show.quoted(task["text"], sentences, found.evidence),
        "evidence_unknown": bool(unknown),
    }


def _judgement(
    task: PassageTask, sentences: list[Sentence], one: VerdictReply | MemberReply, **notes: Any
) -> Judgement:
    found = one.finding or FindingReply(evidence=[])
    reason = show.describe_score(one.score) if one.reason is None else one.reason
    summary = ""
    if isinstance(found, FusedFindingReply) and one.score >= task.get("summary_from", 0):
        summary = summary_of(found.summary)
    return Judgement(
        score=one.score,
        summary=summary,
        **_evidence(task, sentences, reason, found),
        **notes,
    )


def _with_cost(verdicts: list[Verdict], spent: Usage) -> list[Verdict]:
    """Write the cost of the common call beside the first judgement, so that it is kept with it."""
    judged = (place for place, one in enumerate(verdicts) if isinstance(one, Judgement))
    bearer = next(judged, 0)
    cost = (verdicts[bearer].usage or Usage()) + spent
    paid = verdicts[bearer].model_copy(update={"usage": cost})
    return [paid if place == bearer else one for place, one in enumerate(verdicts)]


_NO_DIRECTION = frozenset({"", "none", "null", "n_a", "na", "not_applicable"})


def read_position(said: object) -> tuple[str, str]:
    """Read what stands in place of a direction, as "kinesin-3 faster"; empty for a direction.

    What is neither is described in words, as the second.
    """
    if not isinstance(said, str):
        return "", "" if said is None else f"no direction: {said!r:.40}"
    is_none = re.sub(r"\W+", "_", said.lower()).strip("_") in _NO_DIRECTION
    if is_none or read_direction(said) is not None:
        return "", ""
    return " ".join(said.split()).strip(" .;,")[:LONGEST_POSITION], ""
