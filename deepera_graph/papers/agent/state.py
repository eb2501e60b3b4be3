"""What travels through the graph of a search for papers, and what the caller can turn."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from deepera_graph.papers.results import SearchMode
from deepera_graph.pipeline.state import append, merge_by, replace_keys
from deepera_graph.schema import RoleAnswer
from deepera_graph.usage import UsageRecord, merge_usage

Tool = Literal["search", "references", "citations"]
Status = Literal["planned", "ok", "empty", "no_words", "unknown", "failed"]
Verdict = Literal["in", "out", "unjudged"]
StopReason = Literal[
    "", "complete", "max_steps", "max_actions", "max_papers", "no_gain", "plan_failed", "budget"
]


class Action(BaseModel):
    """A call of the base that a planner asks for.

    `weight` says how much a place in its ranking counts when rankings are joined, > 0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    tool: Tool = Field(description="search, references or citations.")
    text: str = Field(description="The query, or the id of a paper that was found.")
    k: int = Field(default=10, ge=1, le=1000, description="Most papers wanted.")
    offset: int = Field(default=0, ge=0, description="How many to pass over, for the next page.")
    mode: SearchMode | None = Field(default=None, description="How a search is made.")
    weight: float = Field(default=1.0, gt=0, description="Of its ranking.")


class SearchPlan(RoleAnswer):
    """What a planner wants done next; no action ends the search."""

    actions: list[Action] = Field(description="Calls of the base, in order.")
    is_complete: bool = Field(default=False, description="Whether nothing more is to be done.")
    thought: str = Field(default="", description="Why, in a few words.")
    names: list[str] = Field(
        default_factory=list, description="Other names of the subject that were seen in papers."
    )
    refused: list[str] = Field(
        default_factory=list, description="What was wanted and can be no action, with the cause."
    )


class ActionSeen(TypedDict):
    """An action and its yield, as a planner sees it.

    `id` is S1, R2 or C3: S for a search, R for references, C for citations, with its place among
    all calls. `found` papers came back, `more` says that there is another page, `new` were not in
    the pool, `kept` of these break no limit and were not judged unfit.
    """

    id: str
    tool: Tool
    text: str
    offset: int
    status: Status
    found: int
    more: bool
    new: int
    kept: int


class ActionRecord(ActionSeen):
    """One call of the base, and what came of it.

    `left` papers were new and did not fit into `max_papers`; `ids` are those that came into the
    pool or were there, in order.
    """

    step: int
    k: int
    mode: SearchMode | None
    weight: float
    cause: str
    left: int
    ids: list[str]


class FoundBy(TypedDict):
    """A call that found a paper, its place there, from 1, and what that adds to `fused`."""

    call: str
    rank: int
    share: float


class JudgedPaper(TypedDict):
    """What is known of a paper by judging it.

    `score` is the selector's, in [0, 1], or None while there is none. `verdict` is ``out`` only for
    what breaks a limit, ``unjudged`` if the selector failed or was not asked. `fits` says whether
    it was judged to fit well enough: None if nobody knows; False without a score was too far from
    the topic to be judged. `against` is the limit that it breaks.
    """

    score: float | None
    verdict: Verdict
    fits: bool | None
    reason: str
    quote: str
    against: str


class PooledPaper(JudgedPaper):
    """A paper of the pool.

    `fused` joins the ranks of all calls that found it. `doubt`, in [0, 1], is how much a paper that
    is in may break a limit: `fused` counts by that share less.
    """

    paper: dict[str, Any]
    found_by: list[FoundBy]
    fused: float
    doubt: float


class PaperSeen(JudgedPaper):
    """A paper of the pool as planners and selectors see it.

    `calls` found it, the first in round `step`; `followed` are the tools by which its citations
    were followed.
    """

    id: str
    title: str
    abstract: str
    year: int | None
    venue: str
    calls: list[str]
    step: int
    followed: list[Tool]


class PlanTask(TypedDict):
    """What a planner is given: limits, all actions with their yield, and the pool, best first.

    `step` counts from 1; `modes` are those the base can search in. `actions_left` is the most
    actions that will be carried out now, `calls_left` the most in all rounds to come. `refused` is
    what was asked for in the last round and not made, with the cause; `names` are other names of
    the subject that earlier plans have noted. With `judged_first` papers are judged before they are
    planned with, so that one without a judgement is not known to fit.
    """

    question: str
    limits: dict[str, Any]
    step: int
    actions_left: int
    calls_left: int
    judged_first: bool
    refused: list[str]
    names: list[str]
    modes: list[SearchMode]
    history: list[ActionSeen]
    pool: list[PaperSeen]


class SelectTask(TypedDict):
    """What a selector is given: limits, papers that are new, other names of the subject."""

    limits: dict[str, Any]
    names: list[str]
    papers: list[PaperSeen]


class PaperVerdict(BaseModel):
    """What a selector says of a paper; `score` None leaves its place to the searches."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    id: str = Field(description="Of the paper.")
    score: float | None = Field(default=None, ge=0, le=1, description="How well it fits.")
    verdict: Literal["in", "out"] = Field(default="in", description="out: it breaks a limit.")
    fits: bool | None = Field(
        default=None, description="Whether it fits well enough; None: if it scores above .5."
    )
    reason: str = Field(default="", description="Why, in a sentence.")
    quote: str = Field(default="", description="Words of title or abstract that show it.")
    against: str = Field(default="", description="The limit that it breaks.")
    doubt: float = Field(
        default=0.0, ge=0, le=1, description="How much it may break one; takes from its ranks."
    )


class Selected(RoleAnswer):
    """Verdicts on papers."""

    papers: list[PaperVerdict] = Field(description="One a paper.")
    failures: dict[str, str] = Field(
        default_factory=dict, description="By id why a paper has no verdict."
    )


class RankTask(TypedDict):
    """What a reranker is given: the limits, and the best papers, best first."""

    limits: dict[str, Any]
    names: list[str]
    papers: list[PaperSeen]


class Reordered(RoleAnswer):
    """The best papers in a new order."""

    ids: list[str] = Field(description="Ids, best first; papers left out keep their order.")


class LimitsTask(TypedDict):
    """What reads the limits of a question: the question, the date of asking, venues of the base."""

    question: str
    as_of: str
    venues: list[str]


class LimitsRead(RoleAnswer):
    """Limits as they were read, see `deepera_graph.papers.agent.limits.Limits`."""

    limits: dict[str, Any] = Field(description="`Limits.to_dict`.")


def merge_pool(
    old: dict[str, PooledPaper] | None, new: dict[str, Any] | None
) -> dict[str, PooledPaper]:
    """Write papers into the pool by id; None as *new* starts again from none."""
    if new is None:
        return {}
    merged: dict[str, Any] = dict(old or {})
    for id, changed in new.items():
        merged[id] = {**merged.get(id, {}), **changed}
    return merged


def merge_actions(old: list[ActionRecord] | None, new: list[Any] | None) -> list[ActionRecord]:
    """Write what is known of actions into the list, by id, as `merge_by` does."""
    return merge_by("id", old, new)  # type: ignore[return-value]


class PaperSearchInput(TypedDict):
    """What is asked, and what may be seen: `Scope.to_dict`."""

    question: str
    scope: dict[str, Any]


class PaperSearchOutput(TypedDict):
    """What was found: papers by id, the ranking, and all that was done."""

    question: str
    limits: dict[str, Any]
    pool: Annotated[dict[str, PooledPaper], merge_pool]
    ranking: list[str]
    actions: Annotated[list[ActionRecord], merge_actions]
    stopped: StopReason
    problems: Annotated[list[str], append]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


class PaperSearchState(PaperSearchOutput):
    """Everything that travels."""

    scope: dict[str, Any]
    searched: dict[str, Any]  # the scope with the question's limits in it
    step: int
    idle: int
    thought: str
    fresh: list[str]  # papers that are to be judged
    names: list[str]  # other names of the subject
    refused: list[str]  # what the last plan asked for and was not made
    results: Annotated[dict[str, list[dict[str, Any]]], replace_keys]


class CallTask(TypedDict):
    """An action on its way to the base."""

    action: ActionRecord
    searched: dict[str, Any]
