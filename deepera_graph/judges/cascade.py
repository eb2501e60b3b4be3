"""A surveyor that has one judge score all passages, and picks those that another shall read."""

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.concurrency import ado_many, do_many
from deepera_graph.errors import AnswerError, BudgetError, CallError, RoleError, SettingsError
from deepera_graph.judges.base import counting_judge, counting_surveyor, written
from deepera_graph.pipeline.survey import find_problem
from deepera_graph.schema import (
    PROMISE,
    Backend,
    GroupJudgement,
    GroupTask,
    Judgement,
    JudgesGroups,
    PassageTask,
    PassageText,
    ReadsAhead,
    Survey,
    SurveyTask,
    Unjudged,
    gives_summaries,
)
from deepera_graph.thresholds import check_share
from deepera_graph.usage import Usage

Surveyor = Runnable[SurveyTask, Survey]


def joint_surveyor(surveyors: Mapping[str, Surveyor | None]) -> "JointSurveyor | None":
    """Return a surveyor that asks those of several parts; None if no part has one."""
    own = {part: surveyor for part, surveyor in surveyors.items() if surveyor is not None}
    return JointSurveyor(own) if own else None


def with_own_notes(part: str, task: PassageTask) -> PassageTask:
    """Return a task with the notes made for one part, under their own names; without, if none."""
    rest = task.copy()
    given = rest.pop("notes", {})
    head = f"{part}."
    notes = {
        name.removeprefix(head): value for name, value in given.items() if name.startswith(head)
    }
    if notes:
        rest["notes"] = notes
    return rest


class JointSurveyor(Runnable[SurveyTask, Survey]):
    """Asks one surveyor after the other, and names each note after its part: ``part.note``.

    Raises:
        RoleError: One of them failed; carries what all of them cost.
    """

    def __init__(self, surveyors: Mapping[str, Surveyor]) -> None:
        self._surveyors = dict(surveyors)

    def counting(self) -> "JointSurveyor":
        """Return this surveyor as it costs, asking nothing."""
        return JointSurveyor({part: counting_surveyor(s) for part, s in self._surveyors.items()})

    def read_ahead(self, passages: Sequence[PassageText]) -> None:
        """Have those begin that can."""
        for surveyor in self._surveyors.values():
            if isinstance(surveyor, ReadsAhead):
                surveyor.read_ahead(passages)

    def invoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Survey:
        """Survey the passages."""
        found: dict[str, Survey] = {}
        try:
            for part, surveyor in self._surveyors.items():
                found[part] = _checked_joint_survey(input, surveyor.invoke(input, config))
        except RoleError as error:
            error.usage = _cost_joint_survey(found) + error.usage
            raise
        return _joined_joint_survey(found)

    async def ainvoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Survey:
        """Survey the passages in the running loop."""
        found: dict[str, Survey] = {}
        try:
            for part, surveyor in self._surveyors.items():
                found[part] = _checked_joint_survey(input, await surveyor.ainvoke(input, config))
        except RoleError as error:
            error.usage = _cost_joint_survey(found) + error.usage
            raise
        return _joined_joint_survey(found)


def _checked_joint_survey(task: SurveyTask, answer: object) -> Survey:
    survey = Survey.model_validate(answer, from_attributes=True)
    problem = find_problem(task, survey)
    if problem:
        raise AnswerError(problem, usage=survey.usage or Usage(calls=1))
    return survey


def _named(part: str, name: str) -> str:
    """Name a note after its part; `PROMISE` is for the graph, and keeps its name."""
    return name if name == PROMISE else f"{part}.{name}"


def _joined_joint_survey(found: Mapping[str, Survey]) -> Survey:
    """Put the notes of all parts on each passage together; all have as many."""
    named = (
        [{_named(part, name): value for name, value in notes.items()} for notes in survey.notes]
        for part, survey in found.items()
    )
    return Survey(
        notes=[dict(ChainMap(*of_one)) for of_one in zip(*named, strict=True)],
        usage=_cost_joint_survey(found),
        repaired=any(survey.repaired for survey in found.values()),
        problem="; ".join(filter(None, (survey.problem for survey in found.values()))),
    )


def _cost_joint_survey(found: Mapping[str, Survey]) -> Usage:
    costs = (survey.usage or Usage(calls=1) for survey in found.values())
    return sum(costs, Usage())


def mixed_backend(
    *,
    intent: Backend,
    judge: Backend,
    summarizer: Backend,
    answerer: Backend | None = None,
) -> Backend:
    """Take each role from another backend, e.g. the local judge with summaries of a model.

    Args:
        intent: Whose intent recognizer to use.
        judge: Whose relevance judge to use, and the surveyor that makes its notes, if it has one.
        summarizer: Whose evidence summarizer to use.
        answerer: Whose answerer to use; that of *summarizer* if None.
    """
    answerer = answerer or summarizer
    parts = {"intent": intent, "judge": judge, "summarizer": summarizer, "answerer": answerer}
    return Backend(
        name="+".join(dict.fromkeys(part.name for part in parts.values())),
        intent=intent.intent,
        judge=judge.judge,
        summarizer=summarizer.summarizer,
        answerer=answerer.answerer,
        surveyor=judge.surveyor,
        needs_evidence=judge.needs_evidence,
        about={"roles": {role: {"backend": p.name, **p.about} for role, p in parts.items()}},
        spec=written("mixed", parts),
    )


def screened_backend(screen: Backend, backend: Backend, *, floor: float = 0.2) -> Backend:
    """Let *backend* judge only what the judge of *screen* scores at least *floor*, in [0, 1].

    A passage under the floor keeps the score of the screen, which is lower than any threshold
    worth setting, and costs no call. Each judge gets the notes of its own backend's surveyor. How
    many are asked about depends on the passages; `cascade_backend` sets a limit.

    Raises:
        SettingsError: *floor* is not in [0, 1].
    """
    check_share("floor", floor)
    spec = written("screened", {"screen": screen, "backend": backend})
    return Backend(
        name=f"{screen.name}>{backend.name}",
        intent=backend.intent,
        judge=ScreenedJudge(screen.judge, backend.judge, floor),
        summarizer=backend.summarizer,
        answerer=backend.answerer,
        surveyor=joint_surveyor({"screen": screen.surveyor, "backend": backend.surveyor}),
        needs_evidence=backend.needs_evidence,
        about={
            "screen": {"backend": screen.name, "floor": floor, **screen.about},
            **backend.about,
        },
        spec=None if spec is None else {**spec, "floor": floor},
    )


class ScreenedJudge(Runnable[PassageTask, Judgement]):
    """A judge that is only asked about what a cheaper judge does not rule out.

    Of the notes in its task, the screen gets those of ``screen`` and the other those of
    ``backend``; see `joint_surveyor`.
    """

    def __init__(
        self,
        screen: Runnable[PassageTask, Judgement],
        judge: Runnable[PassageTask, Judgement],
        floor: float,
    ) -> None:
        self._screen, self._judge, self._floor = screen, judge, floor
        self.gives_summaries = gives_summaries(judge)

    def counting(self) -> "ScreenedJudge":
        """Return this judge as it costs most: with the screen letting everything through."""
        return ScreenedJudge(counting_judge(self._screen), counting_judge(self._judge), 0.0)

    def invoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Judge one passage."""
        first = _checked_mixed(self._screen.invoke(with_own_notes("screen", input), config))
        if first.score < self._floor:
            return _screened_out(first)
        own = with_own_notes("backend", input)
        try:
            return _with_cost(_checked_mixed(self._judge.invoke(own, config)), first)
        except RoleError as error:
            error.usage = _cost_mixed(first) + error.usage
            raise

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Judge one passage in the running loop."""
        first = _checked_mixed(await self._screen.ainvoke(with_own_notes("screen", input), config))
        if first.score < self._floor:
            return _screened_out(first)
        own = with_own_notes("backend", input)
        try:
            return _with_cost(_checked_mixed(await self._judge.ainvoke(own, config)), first)
        except RoleError as error:
            error.usage = _cost_mixed(first) + error.usage
            raise


def _checked_mixed(answer: object) -> Judgement:
    return Judgement.model_validate(answer, from_attributes=True)


def _screened_out(first: Judgement) -> Judgement:
    return first.model_copy(update={"reason": f"screened out: {first.reason}"})


def _with_cost(second: Judgement, first: Judgement) -> Judgement:
    return second.model_copy(update={"usage": _cost_mixed(first) + _cost_mixed(second)})


def _cost_mixed(judgement: Judgement) -> Usage:
    return Usage(calls=1) if judgement.usage is None else judgement.usage


PICKED, SCORE = "picked", "score"
AT_ONCE = 16  # calls of the first judge in flight, as many as a reranker has by default
PickVerdict = Judgement | RoleError
Worth = Callable[[PassageTask, Judgement], float]


def by_score(task: PassageTask, judgement: Judgement) -> float:
    """Return what a judge thinks of a passage."""
    return judgement.score


def by_length(task: PassageTask, judgement: Judgement) -> float:
    """Return how much a passage costs to read, in characters."""
    return len(task["title"]) + len(task["section"]) + len(task["text"])


def failure_of(error: Exception) -> RoleError:
    """Return what an error of a judge means for its passage: any is a failed one."""
    if isinstance(error, RoleError):
        return error
    return CallError(f"{type(error).__name__}: {error}", usage=Usage(failed_calls=1))


class Picker(Runnable[SurveyTask, Survey]):
    """Has a judge score all passages, with the notes of its own surveyor, and picks the best.

    A picked passage gets the note ``picked`` 1, and no other that its judge is told, so that what
    is made of it does not depend on the others; its score is its `PROMISE`. Any other gets
    ``picked`` 0 and its ``score``; one that the judge failed on gets no notes. Of equal scores, the
    text that comes first in the alphabet wins: neither the place of a passage nor how often it came
    in counts.

    Args:
        surveyor: Of the judge; None if it needs none.
        judge: Scores all passages.
        n: Most passages picked, >= 1.
        worth: What the best ones are best in.

    Raises:
        RoleError: The surveyor failed, the judge failed on every passage, or the budget is spent;
            carries what all of it cost.
    """

    def __init__(
        self,
        surveyor: Runnable[SurveyTask, Survey] | None,
        judge: Runnable[PassageTask, Judgement],
        n: int,
        *,
        worth: Worth = by_score,
    ) -> None:
        self._surveyor, self._judge, self._n, self._worth = surveyor, judge, n, worth

    def counting(self) -> "Picker":
        """Return this surveyor as it costs; it picks the longest passages, which cost most."""
        surveyor = None if self._surveyor is None else counting_surveyor(self._surveyor)
        return Picker(surveyor, counting_judge(self._judge), self._n, worth=by_length)

    def read_ahead(self, passages: Sequence[PassageText]) -> None:
        """Have the judge's own surveyor begin, if it can."""
        if isinstance(self._surveyor, ReadsAhead):
            self._surveyor.read_ahead(passages)

    def invoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Survey:
        """Score all passages, and pick the best."""
        survey = None
        if self._surveyor is not None:
            survey = _checked_pick(input, self._surveyor.invoke(input, config))
        tasks = _tasks(input, survey)

        def judge(task: PassageTask) -> PickVerdict:
            try:
                return Judgement.model_validate(
                    self._judge.invoke(task, config), from_attributes=True
                )
            except Exception as error:  # noqa: BLE001 - foreign code: it fails on one passage
                return failure_of(error)

        return self._picked(tasks, do_many(judge, tasks, AT_ONCE), survey)

    async def ainvoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Survey:
        """Score all passages, and pick the best, in the running loop."""
        survey = None
        if self._surveyor is not None:
            survey = _checked_pick(input, await self._surveyor.ainvoke(input, config))
        tasks = _tasks(input, survey)

        async def judge(task: PassageTask) -> PickVerdict:
            try:
                return Judgement.model_validate(
                    await self._judge.ainvoke(task, config), from_attributes=True
                )
            except Exception as error:  # noqa: BLE001 - foreign code: it fails on one passage
                return failure_of(error)

        return self._picked(tasks, await ado_many(judge, tasks, AT_ONCE), survey)

    def _picked(
        self, tasks: Sequence[PassageTask], verdicts: Sequence[PickVerdict], survey: Survey | None
    ) -> Survey:
        usage = sum(map(_cost_pick, verdicts), Usage() if survey is None else _cost_pick(survey))
        _raise_if_vain(verdicts, usage)
        worth = {
            place: self._worth(tasks[place], verdict)
            for place, verdict in enumerate(verdicts)
            if isinstance(verdict, Judgement)
        }
        best = set(sorted(worth, key=lambda place: (-worth[place], place))[: self._n])
        notes = [_notes(verdict, place in best) for place, verdict in enumerate(verdicts)]
        return Survey(notes=notes, usage=usage)


def _tasks(task: SurveyTask, survey: Survey | None) -> list[PassageTask]:
    tasks: list[PassageTask] = [
        {
            "question": task["question"],
            "intent": task["intent"],
            "text": passage["text"],
            "title": passage["title"],
            "section": passage["section"],
        }
        for passage in task["passages"]
    ]
    if survey is not None:
        for one, notes in zip(tasks, survey.notes, strict=True):
            one["notes"] = notes
    return tasks


def _checked_pick(task: SurveyTask, answer: object) -> Survey:
    survey = Survey.model_validate(answer, from_attributes=True)
    problem = find_problem(task, survey)
    if problem:
        raise AnswerError(problem, usage=_cost_pick(survey))
    return survey


def _raise_if_vain(verdicts: Sequence[PickVerdict], usage: Usage) -> None:
    """Raise if nothing was judged, or the budget ended it; passages left out are not worse ones."""
    errors = [one for one in verdicts if isinstance(one, RoleError)]
    fatal: list[RoleError] = [one for one in errors if isinstance(one, BudgetError)]
    if len(errors) == len(verdicts):
        fatal += errors
    if fatal:
        fatal[0].usage = usage
        raise fatal[0]


def _notes(verdict: PickVerdict, is_picked: bool) -> dict[str, float]:
    if isinstance(verdict, RoleError):
        return {}
    if is_picked:
        return {PICKED: 1.0, PROMISE: verdict.score}
    return {PICKED: 0.0, SCORE: verdict.score}


def _cost_pick(answer: Judgement | Survey | RoleError) -> Usage:
    return Usage(calls=1) if answer.usage is None else answer.usage


LOCAL, LLM = "local", "llm"  # whose notes
COUNTED = "counted"
MOST_UNREAD = 0.1  # the highest score without the careful judge


class CascadeJudge(Runnable[PassageTask, Judgement]):
    """Asks the careful judge for what the survey picked; see `cascade_backend` and `Picker`.

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


Verdict = Judgement | Unjudged


def build_cascade_judge(
    local: Runnable[PassageTask, Judgement],
    llm: Runnable[PassageTask, Judgement],
    keep: int,
    *,
    unread_summary: str = "",
) -> CascadeJudge:
    """Return the judge of a cascade; it judges groups if *llm* does."""
    if isinstance(llm, JudgesGroups):
        return GroupedCascade(
            local, llm, keep, llm.group_size, llm.of_groups(), unread_summary=unread_summary
        )
    return CascadeJudge(local, llm, keep, unread_summary=unread_summary)


class GroupedCascade(CascadeJudge):
    """Has the careful judge read what was picked in groups of *group_size*; the rest takes none."""

    def __init__(
        self,
        local: Runnable[PassageTask, Judgement],
        llm: Runnable[PassageTask, Judgement],
        keep: int,
        group_size: int,
        groups: Runnable[GroupTask, GroupJudgement],
        *,
        unread_summary: str = "",
    ) -> None:
        super().__init__(local, llm, keep, unread_summary=unread_summary)
        self.group_size, self._groups = group_size, groups

    def counting(self) -> CascadeJudge:
        """Return this judge as it costs, asking nothing."""
        local, llm = counting_judge(self._local), counting_judge(self._llm)
        return build_cascade_judge(local, llm, self._keep, unread_summary=COUNTED)

    def of_groups(self) -> Runnable[GroupTask, GroupJudgement]:
        """Return the role that judges a group."""
        return CascadeGroups(self, self._groups)


class CascadeGroups(Runnable[GroupTask, GroupJudgement]):
    """Has the careful judge read what was picked of a group together, and judges the rest alone."""

    def __init__(self, judge: GroupedCascade, groups: Runnable[GroupTask, GroupJudgement]) -> None:
        self._judge, self._groups = judge, groups

    def invoke(
        self, input: GroupTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroupJudgement:
        """Judge a group."""
        alone: list[Verdict] = []
        for task in _others(input):
            try:
                alone.append(_checked_cascade_groups(self._judge.invoke(task, config)))
            except Exception as error:  # noqa: BLE001 - foreign code: it fails on one passage
                alone.append(Unjudged.of(failure_of(error)))
        picked = _picked(input)
        if not picked["tasks"]:
            return _joined_cascade_groups(input, [], alone)
        try:
            answer = self._groups.invoke(picked, config)
        except RoleError as error:
            return _joined_cascade_groups(input, _left(picked, error), alone)
        return _joined_cascade_groups(input, answer.verdicts, alone)

    async def ainvoke(
        self, input: GroupTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroupJudgement:
        """Judge a group in the running loop."""
        alone: list[Verdict] = []
        for task in _others(input):
            try:
                alone.append(_checked_cascade_groups(await self._judge.ainvoke(task, config)))
            except Exception as error:  # noqa: BLE001 - foreign code: it fails on one passage
                alone.append(Unjudged.of(failure_of(error)))
        picked = _picked(input)
        if not picked["tasks"]:
            return _joined_cascade_groups(input, [], alone)
        try:
            answer = await self._groups.ainvoke(picked, config)
        except RoleError as error:
            return _joined_cascade_groups(input, _left(picked, error), alone)
        return _joined_cascade_groups(input, answer.verdicts, alone)


def _is_picked(task: PassageTask) -> bool:
    return survey_of(task).get(PICKED) == 1


def _picked(group: GroupTask) -> GroupTask:
    return {"tasks": [with_own_notes(LLM, task) for task in group["tasks"] if _is_picked(task)]}


def _others(group: GroupTask) -> Iterator[PassageTask]:
    return (task for task in group["tasks"] if not _is_picked(task))


def _checked_cascade_groups(answer: object) -> Judgement:
    return Judgement.model_validate(answer, from_attributes=True)


def _left(group: GroupTask, error: RoleError) -> list[Verdict]:
    """Leave all of a group unjudged; what it cost is written beside the first."""
    unjudged = Unjudged.of(error)
    free = unjudged.model_copy(update={"usage": Usage()})
    return [unjudged, *[free] * (len(group["tasks"]) - 1)]


def _joined_cascade_groups(
    group: GroupTask, picked: list[Verdict], others: list[Verdict]
) -> GroupJudgement:
    from_picked, from_others = iter(picked), iter(others)
    verdicts = [next(from_picked if _is_picked(one) else from_others) for one in group["tasks"]]
    costs = (Usage(calls=1) if one.usage is None else one.usage for one in verdicts)
    return GroupJudgement(verdicts=verdicts, usage=sum(costs, Usage()))


KEEP = 30


def cascade_backend(local: Backend, llm: Backend, keep: int = KEEP) -> Backend:
    """Let *local* judge all passages of a question, and *llm* the best *keep* of them.

    Made for 100 to 1,000 passages: *llm* is asked about *keep* distinct texts, however many there
    are. What it does not read has a tenth of the score of *local*: at most 0.1, lower than any
    threshold worth setting, and in the order of *local*. Intent, summaries and answers are those of
    *llm*. To ask about all that is not ruled out, instead, there is `screened_backend`.

    If the survey fails, which is where *local* judges, the cost stays bounded: *local* alone judges
    each passage, its scores stand as they are, and every reason says so. *llm* is not asked then.
    The same holds for a single passage that *local* failed on. A passage that *llm* fails on has
    failed; the score of *local* does not take its place.

    Args:
        local: Any backend that may judge everything, e.g. `local_backend`, with its surveyor.
        llm: Any backend that judges the best.
        keep: Most distinct texts that *llm* judges, >= 1.

    Raises:
        SettingsError: *keep* is no whole number >= 1.
    """
    asked: object = keep
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise SettingsError(f"keep must be a whole number >= 1, got {keep!r}")
    parts = {LOCAL: local, LLM: llm}
    spec = written("cascade", parts)
    picker = Picker(local.surveyor, local.judge, keep)
    return Backend(
        name=f"{local.name}>{llm.name}",
        intent=llm.intent,
        judge=build_cascade_judge(local.judge, llm.judge, keep),
        summarizer=llm.summarizer,
        answerer=llm.answerer,
        surveyor=joint_surveyor({LOCAL: picker, LLM: llm.surveyor}),
        needs_evidence=llm.needs_evidence,
        about={"cascade": {"backend": local.name, "keep": keep, **local.about}, **llm.about},
        spec=None if spec is None else {**spec, "keep": keep},
    )
