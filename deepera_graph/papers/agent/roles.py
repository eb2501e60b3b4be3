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
from hashlib import sha256
from importlib.resources import files
from typing import Any, Literal, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field

from deepera_graph.chat.parsing import Number, ReplyModel, sanitize_line
from deepera_graph.chat.structured import request_reply
from deepera_graph.errors import AnswerError, SettingsError
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.backend import LlmKwargs, open_roles_model
from deepera_graph.judges.llm.roles import LlmRole, how
from deepera_graph.papers.agent.constraints import Limits, check_limits
from deepera_graph.papers.agent.limits.reading import read_limits
from deepera_graph.papers.agent.state import (
    Action,
    LimitsRead,
    LimitsTask,
    PaperSeen,
    PaperVerdict,
    PlanTask,
    SearchPlan,
    Selected,
    SelectTask,
)
from deepera_graph.prompts import messages_of
from deepera_graph.schema import Backend, RoleSet

PACKAGE = "deepera_graph.papers.agent.prompts"
N_QUERIES = 5  # of PaSa and PaperScout
SHOWN_PAPERS = 20  # of the pool: PaperScout shows 10 expanded and 10 new ones
_SHOWN_ABSTRACT = 1200  # characters


@dataclass(frozen=True, kw_only=True)
class PaperRoles(RoleSet):
    """The roles that a chat model plays, under its name.

    Attributes:
        understand: Reads the limits of a question.
        queries: Writes queries for a question and what was found so far.
        scout: Chooses calls.
        judge: Says of papers how well they fit, and what breaks a limit.
    """

    understand: Runnable[LimitsTask, LimitsRead]
    queries: Runnable[PlanTask, SearchPlan]
    scout: Runnable[PlanTask, SearchPlan]
    judge: Runnable[SelectTask, Selected]


def paper_roles(
    model: Backend | BaseChatModel | str, **how_to_ask: Unpack[LlmKwargs]
) -> PaperRoles:
    """Have a chat model play all roles.

    Raises:
        SettingsError: The model cannot be made, or a backend has no chat model.
    """
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
        about={"prompts": _prompts_hash()},
        spec=opened.spec,
    )


def _prompts_hash() -> str:
    """Return 12 hex digits that change when a prompt changes."""
    digest = sha256()
    for one in sorted(files(PACKAGE).iterdir(), key=lambda one: one.name):
        if one.name.endswith(".md"):
            digest.update(f"{one.name}\0{one.read_text(encoding='utf-8')}\n\0".encode())
    return digest.hexdigest()[:12]


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
    queries: list[str] = Field(description="At most five; empty if nothing more would help.")


class CallReply(ReplyModel):
    """A call of a tool."""

    tool: Literal["search", "references", "citations"] = Field(description="Which tool.")
    argument: str = Field(description="The query, or the number of the paper in the list.")


class ScoutReply(ReplyModel):
    """What to do next."""

    thought: str = Field(description="What the calls have shown, in at most 40 words.")
    calls: list[CallReply] = Field(description="At most five; empty to end the search.")


class PaperReply(ReplyModel):
    """What is said of one paper."""

    paper: Number = Field(description="Its number in the list.")
    reason: str = Field(description="Why, in at most 25 words.")
    quote: str = Field(description="Words copied from its title or abstract that show it.")
    score: float = Field(description="0: unrelated; 0.5: near; 1: just what is asked for.")
    breaks: str = Field(description="The limit that it breaks, word for word; empty if none.")


class PapersReply(ReplyModel):
    """What is said of all papers shown."""

    papers: list[PaperReply] = Field(description="One entry a paper.")


class LlmUnderstand(LlmRole[LimitsTask, LimitsRead]):
    """Reads the limits of a question."""

    async def _play(self, task: LimitsTask, config: RunnableConfig | None) -> LimitsRead:
        question = show.one_line(task["question"])
        messages = messages_of(
            PACKAGE, "limits", question=question, as_of=task["as_of"] or "not known"
        )
        filled = await request_reply(self.model, messages, LimitsReply, config)
        said = filled.answer
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
                )
            )
        except SettingsError as error:
            raise AnswerError(str(error), usage=filled.usage) from error
        return LimitsRead(limits=limits.to_dict(), **how(filled))


class LlmQueries(LlmRole[PlanTask, SearchPlan]):
    """Writes queries."""

    async def _play(self, task: PlanTask, config: RunnableConfig | None) -> SearchPlan:
        messages = _plan_messages("queries", task)
        filled = await request_reply(self.model, messages, QueriesReply, config)
        queries = _texts(filled.answer.queries)[:N_QUERIES]
        return SearchPlan(
            actions=[Action(tool="search", text=one) for one in queries],
            is_complete=not queries,
            thought=sanitize_line(filled.answer.thought),
            **how(filled),
        )


class LlmScout(LlmRole[PlanTask, SearchPlan]):
    """Chooses calls; papers are named by their number, so that no id can be made up."""

    async def _play(self, task: PlanTask, config: RunnableConfig | None) -> SearchPlan:
        filled = await request_reply(self.model, _plan_messages("scout", task), ScoutReply, config)
        shown = task["pool"][:SHOWN_PAPERS]
        actions = []
        for call in filled.answer.calls:
            text = sanitize_line(call.argument)
            if call.tool != "search":
                place = text.strip("[]# ")
                known = place.isdecimal() and 1 <= int(place) <= len(shown)
                text = shown[int(place) - 1]["id"] if known else text
            if text:
                actions.append(Action(tool=call.tool, text=text))
        return SearchPlan(
            actions=actions,
            is_complete=not actions,
            thought=sanitize_line(filled.answer.thought),
            **how(filled),
        )


class LlmPaperJudge(LlmRole[SelectTask, Selected]):
    """Says how well papers fit, and what breaks a limit; a paper it forgets has no verdict."""

    async def _play(self, task: SelectTask, config: RunnableConfig | None) -> Selected:
        limits = Limits.from_dict(task["limits"])
        papers = task["papers"]
        block = "\n".join(_paper_lines(number, one) for number, one in enumerate(papers, 1))
        messages = messages_of(
            PACKAGE,
            "judge",
            question=show.one_line(limits.question),
            limits=_limit_lines(limits),
            papers=block,
            marker=show.marker(block, limits.question),
        )
        filled = await request_reply(self.model, messages, PapersReply, config)
        known = dict(enumerate(papers, 1))
        verdicts: dict[str, PaperVerdict] = {}
        for said in filled.answer.papers:
            one = known.get(said.paper)
            if one is None:
                continue
            verdicts[one["id"]] = PaperVerdict(
                id=one["id"],
                score=min(1.0, max(0.0, said.score)),
                verdict="out" if said.breaks.strip() else "in",
                reason=sanitize_line(said.reason),
                quote=_quoted(said.quote, one),
                against=sanitize_line(said.breaks),
            )
        return Selected(papers=list(verdicts.values()), **how(filled))


def _plan_messages(node: str, task: PlanTask) -> list[BaseMessage]:
    limits = Limits.from_dict(task["limits"])
    calls = [
        f"{one['id']} {one['tool']} “{show.one_line(one['text'])}”: {one['status']}, "
        f"{one['found']} found, {one['new']} new, {one['kept']} kept"
        for one in task["history"]
    ]
    shown = task["pool"][:SHOWN_PAPERS]
    papers = [
        f"[{number}] {show.one_line(one['title'])} ({one['year'] or 'no year'}), found by "
        f"{', '.join(one['calls'])}"
        for number, one in enumerate(shown, 1)
    ]
    block = "\n".join(papers) or "(none)"
    return messages_of(
        PACKAGE,
        node,
        question=show.one_line(limits.question),
        limits=_limit_lines(limits),
        calls="\n".join(calls) or "(none)",
        calls_left=str(task["actions_left"]),
        papers=block,
        marker=show.marker(block, limits.question),
    )


def _limit_lines(limits: Limits) -> str:
    plain = limits.to_dict()
    lines = [
        f"{name.replace('_', ' ')}: {value if not isinstance(value, list) else _listed(value)}"
        for name, value in plain.items()
        if name not in ("question", "topic", "notes")
    ]
    return show.one_line(" | ".join(lines)) or "none"


def _listed(value: list[Any]) -> str:
    return "; ".join(map(str, value))


def _paper_lines(number: int, one: PaperSeen) -> str:
    text = show.one_line(one["abstract"])[:_SHOWN_ABSTRACT]
    year = one["year"] or "no year"
    return (
        f"[{number}] {show.one_line(one['title'])} ({year}, {one['venue'] or 'no venue'}). {text}"
    )


def _quoted(quote: str, paper: PaperSeen) -> str:
    """Return a quote if the paper has its words; what it does not have is not shown as one."""
    bare = " ".join(quote.split())
    whole = " ".join(f"{paper['title']}. {paper['abstract']}".split())
    return bare if bare and bare.lower() in whole.lower() else ""


def _texts(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(bare for one in given if (bare := sanitize_line(one))))
