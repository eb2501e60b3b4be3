"""Backends made of parts of others: mixed roles, and a cheap screen in front of a careful judge."""

from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.backends.counting import counting_judge
from deepera_graph.backends.joint_survey import joint_surveyor, with_own_notes
from deepera_graph.backends.written import written
from deepera_graph.errors import RoleError
from deepera_graph.roles import Backend, PassageTask, gives_summaries
from deepera_graph.schema import Judgement
from deepera_graph.thresholds import check_share
from deepera_graph.usage import Usage


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
    many are asked about depends on the passages; `cascade_judge` sets a limit.

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
        first = _checked(self._screen.invoke(with_own_notes("screen", input), config))
        if first.score < self._floor:
            return _screened_out(first)
        own = with_own_notes("backend", input)
        try:
            return _with_cost(_checked(self._judge.invoke(own, config)), first)
        except RoleError as error:
            error.usage = _cost(first) + error.usage
            raise

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Judge one passage in the running loop."""
        first = _checked(await self._screen.ainvoke(with_own_notes("screen", input), config))
        if first.score < self._floor:
            return _screened_out(first)
        own = with_own_notes("backend", input)
        try:
            return _with_cost(_checked(await self._judge.ainvoke(own, config)), first)
        except RoleError as error:
            error.usage = _cost(first) + error.usage
            raise


def _checked(answer: object) -> Judgement:
    return Judgement.model_validate(answer, from_attributes=True)


def _screened_out(first: Judgement) -> Judgement:
    return first.model_copy(update={"reason": f"screened out: {first.reason}"})


def _with_cost(second: Judgement, first: Judgement) -> Judgement:
    return second.model_copy(update={"usage": _cost(first) + _cost(second)})


def _cost(judgement: Judgement) -> Usage:
    return Usage(calls=1) if judgement.usage is None else judgement.usage
