"""What a chat model is asked in a search for papers: the limits, queries, actions, and verdicts.

Every role is a LangChain `Runnable`, given plain data and giving a `RoleAnswer`, so that a function
can stand in for any of them.

Source:
    PaSa (bytedance/pasa): queries, then expansion of what the selector keeps. SPAR
    (xiaofengShi/SPAR): queries that grow out of what was found. PaperScout (pty12345/PaperScout):
    calls of tools, chosen anew every round. All prompts are in our own words; no model is trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field

from deepera_graph.agents.role import LlmRole
from deepera_graph.chat.client import request_reply
from deepera_graph.chat.parsing import Number, ReplyModel, sanitize_line, schemas_hash
from deepera_graph.errors import AnswerError, SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import LlmKwargs, open_roles_model
from deepera_graph.papers.agent import asking
from deepera_graph.papers.agent.limits import Limits, check_limits
from deepera_graph.papers.agent.limits.reading import note_sizes, read_limits
from deepera_graph.papers.agent.planning import find_seeds
from deepera_graph.papers.agent.state import (
    Action,
    LimitsRead,
    LimitsTask,
    PaperSeen,
    PaperVerdict,
    PlanTask,
    RankTask,
    Reordered,
    SearchPlan,
    Selected,
    SelectTask,
)
from deepera_graph.prompts import messages_of, prompts_hash
from deepera_graph.schema import Backend, RoleSet
from deepera_graph.usage import Usage

N_QUERIES = 5  # of PaSa and PaperScout
N_EVOLVED = 2  # papers that queries of SPAR grow out of
_MOST_PAGES = 100
_NODES = ("limits", "queries", "scout", "judge", "fuse", "evolve", "reorder")


@dataclass(frozen=True, kw_only=True)
class PaperRoles(RoleSet):
    """The roles that a chat model plays, under its name; see the classes of each.

    The last three are of SPAR: without `fuse` or `evolve`, `queries` writes its queries; without
    `reorder` papers stay in the order of their scores.
    """

    understand: Runnable[LimitsTask, LimitsRead]
    queries: Runnable[PlanTask, SearchPlan]
    scout: Runnable[PlanTask, SearchPlan]
    judge: Runnable[SelectTask, Selected]
    fuse: Runnable[PlanTask, SearchPlan] | None = None
    evolve: Runnable[PlanTask, SearchPlan] | None = None
    reorder: Runnable[RankTask, Reordered] | None = None


def paper_roles(
    model: Backend | BaseChatModel | str, **how_to_ask: Unpack[LlmKwargs]
) -> PaperRoles:
    """Have a chat model play all roles."""
    needed = (
        "planning needs a chat model, and backend {name} has none; the planner 'rules' needs none"
    )
    opened = open_roles_model(model, needed=needed, **how_to_ask)
    return PaperRoles(
        name=opened.chat.name,
        understand=LlmUnderstand(opened.chat),
        queries=LlmQueries(opened.chat),
        scout=LlmScout(opened.chat),
        judge=LlmPaperJudge(opened.chat),
        fuse=LlmFuse(opened.chat),
        evolve=LlmEvolve(opened.chat),
        reorder=LlmReorder(opened.chat),
        about={
            "prompts": prompts_hash(*_NODES, package=asking.PACKAGE),
            "schemas": schemas_hash(_FILLED),
        },
        spec=opened.spec,
    )


class LimitsReply(ReplyModel):
    """The limits of a question; the topic comes first."""

    topic: str = Field(description="What is looked for, without limits, in the question's words.")
    exclude: list[str] = Field(description="What papers must not be about, use or be tested on.")
    year_from: Number | None = Field(description="Earliest year, inclusive; null if none.")
    year_to: Number | None = Field(description="Latest year, inclusive; null if none.")
    venues: list[str] = Field(description="Only these venues; empty if any will do.")
    not_venues: list[str] = Field(description="Venues left out.")
    better: list[str] = Field(
        description="If one thing has to be better than another: the two, the better one first."
    )


class QueriesReply(ReplyModel):
    """Queries for a base of papers."""

    thought: str = Field(description="What is still missing, in at most 30 words.")
    names: list[str] = Field(
        default_factory=list, description="Other names of the subject in the titles; may be empty."
    )
    queries: list[str] = Field(description="At most five; empty if nothing more would help.")


class FuseReply(ReplyModel):
    """The first queries, before anything was found."""

    thought: str = Field(description="Of which parts the question is made, in at most 30 words.")
    whole: str = Field(description="The whole topic as one query of a few words.")
    parts: list[str] = Field(description="At most three queries, each for one part of it.")


class GrownReply(ReplyModel):
    """Queries that grow out of one paper."""

    paper: str = Field(description="The paper's id.")
    queries: list[str] = Field(description="At most two.")


class EvolveReply(ReplyModel):
    """Queries that grow out of single papers."""

    thought: str = Field(description="What is still missing, in at most 30 words.")
    names: list[str] = Field(
        default_factory=list, description="Other names of the subject in these papers."
    )
    papers: list[GrownReply] = Field(description="One entry a paper; empty if nothing would help.")


class CallReply(ReplyModel):
    """A call of a tool."""

    tool: Literal["search", "references", "citations"] = Field(description="Which tool.")
    argument: str = Field(description="The query, or the id of a paper in the list.")
    page: Number = Field(default=1, description="1 for the first ten papers, 2 for the next.")


class ScoutReply(ReplyModel):
    """What to do next."""

    thought: str = Field(description="What the calls have shown, in at most 40 words.")
    names: list[str] = Field(
        default_factory=list, description="Other names of the subject in the titles; may be empty."
    )
    calls: list[CallReply] = Field(description="At most five; empty to end the search.")


class PaperReply(ReplyModel):
    """What is said of one paper."""

    paper: Number = Field(description="Its number in the list.")
    reason: str = Field(description="Why, in at most 25 words.")
    quote: str = Field(description="Words copied from its title or abstract that show it.")
    score: float = Field(description="Fit to the topic. 0: unrelated; 0.5: near; 1: just that.")
    breaks: str = Field(description="The limit that it breaks, such as L1; empty if none.")


class PapersReply(ReplyModel):
    """What is said of all papers shown."""

    papers: list[PaperReply] = Field(description="One entry a paper.")


class OrderReply(ReplyModel):
    """The best papers, in order."""

    ids: list[str] = Field(description="Ids of all papers, the most useful first.")


_FILLED = (LimitsReply, QueriesReply, ScoutReply, PapersReply, FuseReply, EvolveReply, OrderReply)


class LlmUnderstand(LlmRole[LimitsTask, LimitsRead]):
    """Reads the limits of a question."""

    async def _play(self, task: LimitsTask, config: RunnableConfig | None) -> LimitsRead:
        question = show.one_line(task["question"])
        messages = messages_of(
            asking.PACKAGE, "limits", question=question, as_of=task["as_of"] or "not known"
        )
        said, notes = await request_reply(self.model, messages, LimitsReply, config)
        by_rules = read_limits(question)  # what the reply has no field for
        try:
            limits = check_limits(
                Limits(
                    question=task["question"],
                    topic=sanitize_line(said.topic) or question,
                    exclude=_texts(said.exclude),
                    year_from=said.year_from,
                    year_to=said.year_to,
                    venues=_texts(said.venues),
                    not_venues=_texts(said.not_venues),
                    better=_texts(said.better) if len(_texts(said.better)) == 2 else (),
                    not_years=by_rules.not_years,
                    types=by_rules.types,
                    not_types=by_rules.not_types,
                    notes=note_sizes(question),
                )
            )
        except SettingsError as error:
            raise AnswerError(str(error), usage=notes["usage"]) from error
        return LimitsRead(limits=limits.to_dict(), **notes)


class LlmQueries(LlmRole[PlanTask, SearchPlan]):
    """Writes queries."""

    async def _play(self, task: PlanTask, config: RunnableConfig | None) -> SearchPlan:
        messages = asking.plan_messages("queries", task)
        said, notes = await request_reply(self.model, messages, QueriesReply, config)
        return _searches(_texts(said.queries), said.thought, _texts(said.names), **notes)


class LlmFuse(LlmRole[PlanTask, SearchPlan]):
    """Writes the first queries of SPAR: the question in a few words, and its parts."""

    async def _play(self, task: PlanTask, config: RunnableConfig | None) -> SearchPlan:
        said, notes = await request_reply(
            self.model, asking.fill_messages("fuse", task), FuseReply, config
        )
        return _searches(_texts([said.whole, *said.parts]), said.thought, **notes)


class LlmEvolve(LlmRole[PlanTask, SearchPlan]):
    """Writes queries out of the best papers that fit; without one there is nothing to write."""

    async def _play(self, task: PlanTask, config: RunnableConfig | None) -> SearchPlan:
        seeds = find_seeds(task)[:N_EVOLVED]
        if not seeds:
            return _searches((), "no paper fits", usage=Usage())
        messages = asking.evolve_messages(task, seeds)
        said, notes = await request_reply(self.model, messages, EvolveReply, config)
        queries = _texts([text for one in said.papers for text in one.queries])
        return _searches(queries, said.thought, _texts(said.names), **notes)


def _searches(
    queries: Sequence[str], thought: str, names: Sequence[str] = (), **more: Any
) -> SearchPlan:
    return SearchPlan(
        actions=[Action(tool="search", text=one, k=asking.PAGE) for one in queries[:N_QUERIES]],
        is_complete=not queries,
        thought=sanitize_line(thought),
        names=[*names],
        **more,
    )


class LlmScout(LlmRole[PlanTask, SearchPlan]):
    """Chooses calls, a page of ten papers each; papers are named by their ids.

    A paper that was never found cannot be followed, so that no id can be made up.
    """

    async def _play(self, task: PlanTask, config: RunnableConfig | None) -> SearchPlan:
        messages = asking.plan_messages("scout", task)
        said, notes = await request_reply(self.model, messages, ScoutReply, config)
        actions, refused = [], []
        for call in said.calls:
            text = sanitize_line(call.argument)
            if call.tool != "search":
                text = asking.find_paper(text, task["pool"])
            if not 1 <= call.page <= _MOST_PAGES:
                refused.append(f"{call.tool} {text!r:.400}: page {call.page} does not exist")
                continue
            offset = asking.PAGE * (call.page - 1)
            actions.append(Action(tool=call.tool, text=text, k=asking.PAGE, offset=offset))
        return SearchPlan(
            actions=actions,
            is_complete=not said.calls,
            thought=sanitize_line(said.thought),
            names=[*_texts(said.names)],
            refused=refused,
            **notes,
        )


class LlmReorder(LlmRole[RankTask, Reordered]):
    """Orders the best papers."""

    async def _play(self, task: RankTask, config: RunnableConfig | None) -> Reordered:
        if len(task["papers"]) < 2:
            return Reordered(ids=[one["id"] for one in task["papers"]], usage=Usage())
        lines = "\n".join(map(asking.pool_line, task["papers"]))
        messages = asking.fill_messages("reorder", task, lines)
        reply, notes = await request_reply(self.model, messages, OrderReply, config)
        ids = [asking.find_paper(one, task["papers"]) for one in reply.ids]
        return Reordered(ids=ids, **notes)


class LlmPaperJudge(LlmRole[SelectTask, Selected]):
    """Says how well papers fit, and what breaks a limit; a paper it forgets has no verdict."""

    async def _play(self, task: SelectTask, config: RunnableConfig | None) -> Selected:
        limits, papers = Limits.from_dict(task["limits"]), task["papers"]
        reply, notes = await request_reply(
            self.model, asking.judge_messages(task), PapersReply, config
        )
        known = dict(enumerate(papers, 1))
        verdicts: dict[str, PaperVerdict] = {}
        for said in reply.papers:
            one = known.get(said.paper)
            if one is None:
                continue
            broken = asking.read_broken(said.breaks, limits)
            verdicts[one["id"]] = PaperVerdict(
                id=one["id"],
                score=min(1.0, max(0.0, said.score)),
                verdict="out" if broken else "in",
                reason=sanitize_line(said.reason),
                quote=_quoted(said.quote, one),
                against=broken,
            )
        return Selected(papers=list(verdicts.values()), **notes)


def _quoted(quote: str, paper: PaperSeen) -> str:
    """Return a quote if the paper has its words; what it does not have is not shown as one."""
    bare = " ".join(quote.split())
    whole = " ".join(f"{paper['title']}. {paper['abstract']}".split())
    return bare if bare and bare.lower() in whole.lower() else ""


def _texts(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(bare for one in given if (bare := sanitize_line(one))))
