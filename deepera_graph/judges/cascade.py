"""Two judges one after the other, and backends made of parts of others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from langchain_core.runnables import RunnableConfig

from deepera_graph.judges.base import (
    Judge,
    PlanRequest,
    Prepares,
    as_judge,
    counting_judge,
    joint_spec,
    read_verdicts,
    window_key,
)
from deepera_graph.schema import Backend, Batch, Candidate, Judgement, Unjudged, Verdict, Window
from deepera_graph.settings.ranges import check_at_least, check_share
from deepera_graph.usage import Usage

KEEP = 30
MOST_UNREAD = 0.1  # the highest score without the careful judge
_FIRST, _SECOND, _UNREAD = "first", "second", "unread"  # parts of a cascade


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
        judge: Whose relevance judge to use.
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
        needs_evidence=judge.needs_evidence,
        names_evidence=judge.names_evidence,
        about={"roles": {role: {"backend": p.name, **p.about} for role, p in parts.items()}},
        spec=joint_spec("mixed", parts),
    )


def screened_backend(screen: Backend, backend: Backend, *, floor: float = 0.2) -> Backend:
    """Let *backend* judge only what the judge of *screen* scores at least *floor*, in [0, 1].

    A passage under the floor keeps the score of the screen, which is lower than any threshold
    worth setting, and costs no call. How many are asked about depends on the passages;
    `cascade_backend` sets a limit.

    Raises:
        SettingsError: *floor* is not in [0, 1].
    """
    check_share("floor", floor)
    spec = joint_spec("screened", {"screen": screen, "backend": backend})
    return Backend(
        name=f"{screen.name}>{backend.name}",
        intent=backend.intent,
        judge=ScreenedJudge(as_judge(screen.judge), as_judge(backend.judge), floor),
        summarizer=backend.summarizer,
        answerer=backend.answerer,
        needs_evidence=backend.needs_evidence,
        names_evidence=backend.names_evidence,
        about={
            "screen": {"backend": screen.name, "floor": floor, **screen.about},
            **backend.about,
        },
        spec=None if spec is None else {**spec, "floor": floor},
    )


def cascade_backend(local: Backend, llm: Backend, keep: int = KEEP) -> Backend:
    """Let *local* judge all passages of a question, and *llm* the best *keep* of them.

    Made for 100 to 1,000 passages: *llm* is asked about *keep* distinct texts, however many there
    are. What it does not read has a tenth of the score of *local*: at most 0.1, lower than any
    threshold worth setting, and in the order of *local*. Intent, summaries and answers are those of
    *llm*. To ask about all that is not ruled out, instead, there is `screened_backend`.

    A passage that *local* or *llm* fails on has failed: the score of *local* does not take the
    place of that of *llm*, and *llm* is not asked about what *local* could not judge.

    Args:
        local: Any backend that may judge everything, e.g. `local_backend`.
        llm: Any backend that judges the best.
        keep: Most distinct texts that *llm* judges, >= 1.

    Raises:
        SettingsError: *keep* is no whole number >= 1.
    """
    check_at_least("keep", keep, 1)
    spec = joint_spec("cascade", {"local": local, "llm": llm})
    return Backend(
        name=f"{local.name}>{llm.name}",
        intent=llm.intent,
        judge=CascadeJudge(as_judge(local.judge), as_judge(llm.judge), keep),
        summarizer=llm.summarizer,
        answerer=llm.answerer,
        needs_evidence=llm.needs_evidence,
        names_evidence=llm.names_evidence,
        about={"cascade": {"backend": local.name, "keep": keep, **local.about}, **llm.about},
        spec=None if spec is None else {**spec, "keep": keep},
    )


class _TwoJudges(Judge):
    """A cheap judge first, and a careful one for some windows; two rounds of `plan`."""

    def __init__(self, first: Judge, second: Judge) -> None:
        self._judges: dict[str, Judge] = {_FIRST: first, _SECOND: second}
        self.gives_summaries, self.group_size = second.gives_summaries, second.group_size
        self.asks_model = first.asks_model or second.asks_model
        self.operating_point, self.evidence_point = second.operating_point, second.evidence_point

    def prepare(self, windows: Sequence[Window]) -> None:
        """Have those begin that can."""
        for judge in self._judges.values():
            if isinstance(judge, Prepares):
                judge.prepare(windows)

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        """Have a batch judged by the judge that planned it."""
        part, own = _split_part(batch)
        verdicts = read_verdicts(own, self._judges[part].judge(own, config))
        return [self._take(part, verdict) for verdict in verdicts]

    async def ajudge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        """Do what `judge` does, in the running loop."""
        part, own = _split_part(batch)
        verdicts = read_verdicts(own, await self._judges[part].ajudge(own, config))
        return [self._take(part, verdict) for verdict in verdicts]

    def question_problem(self, question: str, windows: Sequence[Window]) -> str:
        """Say what the first of them says that says anything."""
        judges = (self._judges[part] for part in (_FIRST, _SECOND))
        return next(filter(None, (one.question_problem(question, windows) for one in judges)), "")

    def missing_words(self, question: str, windows: Sequence[Window]) -> Sequence[str]:
        """Return what the careful judge misses: it has the last word."""
        return self._judges[_SECOND].missing_words(question, windows)

    def _plan_part(
        self, part: str, request: PlanRequest, *, open: Sequence[int], next: Sequence[int]
    ) -> list[Batch]:
        if not next:
            return []
        own = request.of_part(part, open=open, next=next)
        if part == _FIRST:
            own = replace(own, summary_from=None)
        batches = self._judges[part].plan(own)
        return [{**one, "part": f"{part}.{one['part']}".rstrip(".")} for one in batches]

    def _take(self, part: str, verdict: Verdict) -> Verdict:
        """Make a candidate of what the first judge lets pass."""
        if isinstance(verdict, Candidate):
            by = f"{part}.{verdict.by}".rstrip(".")
            return verdict.model_copy(update={"by": by})
        if part != _FIRST or isinstance(verdict, Unjudged):
            return verdict
        return self._decide(verdict)

    def _decide(self, first: Judgement) -> Verdict:
        return Candidate(first_score=first.score, by=_FIRST, usage=first.usage)


class CascadeJudge(_TwoJudges):
    """Has a cheap judge score all windows, and a careful one the best *keep*.

    Of equal scores, the text that comes first in the alphabet wins. Where costs are counted, the
    longest are taken for the best, and what is not read is not kept.
    """

    def __init__(
        self, first: Judge, second: Judge, keep: int, *, counts_costs: bool = False
    ) -> None:
        super().__init__(first, second)
        self._judges[_UNREAD] = _Unread(keep, counts_costs=counts_costs)
        self._keep, self._counts_costs = keep, counts_costs

    def counting(self) -> "CascadeJudge":
        """Return this judge as it costs, asking nothing."""
        first, second = (counting_judge(self._judges[part]) for part in (_FIRST, _SECOND))
        return CascadeJudge(first, second, self._keep, counts_costs=True)

    def plan(self, request: PlanRequest) -> list[Batch]:
        """Ask the first judge about all, and then the second about the best."""
        scores = request.candidates.get(_FIRST, {})
        fresh = [number for number in request.open if number not in scores]
        if fresh:
            return self._plan_part(_FIRST, request, open=fresh, next=fresh)
        best = self._best(request)
        picked = [number for number in request.next if number in best]
        batches = self._plan_part(
            _SECOND, request, open=[one for one in request.open if one in best], next=picked
        )
        if unread := [number for number in request.next if number not in best]:
            batches.append(request.batch(unread, part=_UNREAD, scores=scores))
        return batches

    def promise(self, request: PlanRequest) -> Mapping[int, float] | None:
        """Say how the first judge scored the best; the others cost nothing."""
        return self._best(request) or None

    def _best(self, request: PlanRequest) -> dict[int, float]:
        scores = request.candidates.get(_FIRST, {})
        worth: dict[int, float] = dict(scores)
        if self._counts_costs:
            worth = {
                number: sum(map(len, window_key(request.windows[number]))) for number in scores
            }
        best = sorted(worth, key=lambda number: (-worth[number], number))[: self._keep]
        return {number: scores[number] for number in best}


class _Unread(Judge):
    """Judges what the careful judge does not read: a tenth of its first score."""

    def __init__(self, keep: int, *, counts_costs: bool) -> None:
        self._keep, self._counts_costs = keep, counts_costs

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        return [self._verdict(score) for score in batch["scores"]]

    async def ajudge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        return self.judge(batch)

    def _verdict(self, score: float) -> Verdict:
        reason = (
            f"not among the best {self._keep} of the local judge ({score:.2f}): the language "
            "model did not read it"
        )
        if self._counts_costs:
            return Unjudged(cause=reason, usage=Usage())
        return Judgement(score=round(MOST_UNREAD * score, 6), reason=reason, usage=Usage())


class ScreenedJudge(_TwoJudges):
    """Asks a careful judge only about what a cheap one does not rule out."""

    def __init__(self, first: Judge, second: Judge, floor: float) -> None:
        super().__init__(first, second)
        self._floor = floor

    def counting(self) -> "ScreenedJudge":
        """Return this judge as it costs most: with the screen letting everything through."""
        first, second = (counting_judge(self._judges[part]) for part in (_FIRST, _SECOND))
        return ScreenedJudge(first, second, 0.0)

    def plan(self, request: PlanRequest) -> list[Batch]:
        """Ask the first judge about what is new, and the second about what it let pass."""
        passed = request.candidates.get(_FIRST, {})
        fresh, rest = (
            [number for number in request.next if (number in passed) == has_passed]
            for has_passed in (False, True)
        )
        return [
            *self._plan_part(
                _FIRST, request, open=[one for one in request.open if one not in passed], next=fresh
            ),
            *self._plan_part(
                _SECOND, request, open=[one for one in request.open if one in passed], next=rest
            ),
        ]

    def _decide(self, first: Judgement) -> Verdict:
        if first.score >= self._floor:
            return super()._decide(first)
        return first.model_copy(update={"reason": f"screened out: {first.reason}"})


def _split_part(batch: Batch) -> tuple[str, Batch]:
    """Return which part of a cascade a batch is for, and the batch as that part planned it."""
    part, _, own = batch["part"].partition(".")
    return part, {**batch, "part": own}
