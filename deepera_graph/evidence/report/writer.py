"""The writing of a report, as a whole.

receive -> outline -> write (one branch a group of studies) -> gather -> check (one branch a
sentence) and revise (one branch a sentence that did not pass) -> gather -> ... until every sentence
has passed or is dropped. Without a chat model, or studies that are evidence: receive -> gather.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from deepera_graph.agents.role import RoleNode, Update, wrap_role
from deepera_graph.agents.run import AgentRun, Event, make_manifest, share_limits
from deepera_graph.evidence.asking import Steps, choose_reranker, steps_node
from deepera_graph.evidence.check.verdict import ClaimVerifier
from deepera_graph.evidence.report.report import (
    EvidenceReport,
    ReportStudy,
    describe_all,
    list_gaps,
    list_studies,
)
from deepera_graph.evidence.report.roles import (
    Outline,
    OutlineTask,
    Paragraph,
    ReportRoles,
    StudyText,
    report_roles,
)
from deepera_graph.evidence.report.sentences import (
    MOST_SENTENCES,
    GroupBranch,
    GroupRecord,
    SentenceBranch,
    SentenceRecord,
    drop_sentence,
    end_check,
    find_missing,
    group_studies,
    key_of,
    list_works,
    make_paragraphs,
    quote_group,
    quote_instead,
    record_paragraph,
    record_revised,
)
from deepera_graph.passages import PassageLike
from deepera_graph.pipeline.state import append, replace_keys
from deepera_graph.prompts import text_of
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.schema import EVIDENCE, POSSIBLE
from deepera_graph.settings.budget import Limiter
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import UsageRecord, merge_usage

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

MOST_GROUPS, MOST_TEXTS = 6, 3  # paragraphs, passages of a study that are shown
_STEPS = 25
_NO_MODEL = ReportRoles(name="quotes", outliner=None, writer=None, reviser=None, spec={})  # type: ignore[arg-type]  # nobody asks them


class ReportInput(TypedDict):
    """What the graph is given: a question, and the plain form of the result of a rerank."""

    question: str
    judged: dict[str, Any]


class ReportState(ReportInput, total=False):
    """What the nodes write."""

    studies: list[dict[str, Any]]
    works: list[dict[str, Any]]
    groups: list[GroupRecord]
    sentences: Annotated[dict[str, SentenceRecord], replace_keys]
    problems: Annotated[list[str], append]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


class ReportWriter:
    """Writes several paragraphs on a question, and shows no sentence that was not checked.

    ``ReportWriter().write(question, passages).paragraphs``

    Without a chat model it quotes the studies. With one, the model groups them and writes; each
    sentence is then judged against every study that it cites, as `ManuscriptCheck` does; one that
    is not supported is written anew once, then left out and counted.

    Args:
        reranker: Who judges passages and checks sentences; the local judge if None.
        model: Who writes: a LangChain chat model, its name, ``provider:model``, its backend, or
            `ReportRoles`; None quotes.
        cache: Where what was written is kept, so that it is not paid for twice.

    Raises:
        SettingsError: The model cannot be made, or what it writes cannot be kept in a cache.
    """

    def __init__(
        self,
        reranker: EvidenceReranker | None = None,
        *,
        model: Any = None,
        cache: JudgementCache | None = None,
    ) -> None:
        self.reranker = choose_reranker(reranker, content="passage")
        self._has_writer = model is not None
        roles = _NO_MODEL if model is None else model
        self.roles = roles if isinstance(roles, ReportRoles) else report_roles(roles)
        self.verifier, self.cache = ClaimVerifier(self.reranker), cache
        self.graph = self._build()

    def write(
        self, question: str, passages: Iterable[PassageLike], config: RunnableConfig | None = None
    ) -> EvidenceReport:
        """Judge passages, and write of those that are kept; one budget holds for all of it.

        Raises:
            InputError: The question or a passage cannot be used.
        """
        shared = share_limits(config, self.reranker.settings)
        return self.write_from(self.reranker.rerank(question, passages, config=shared), shared)

    async def awrite(
        self, question: str, passages: Iterable[PassageLike], config: RunnableConfig | None = None
    ) -> EvidenceReport:
        """Do what `write` does, in the running loop."""
        shared = share_limits(config, self.reranker.settings)
        judged = await self.reranker.arerank(question, passages, config=shared)
        return await self.awrite_from(judged, shared)

    def write_from(
        self, judged: RerankResult, config: RunnableConfig | None = None
    ) -> EvidenceReport:
        """Write of passages that were judged."""
        return ReportRun(self, judged, config).finish()

    async def awrite_from(
        self, judged: RerankResult, config: RunnableConfig | None = None
    ) -> EvidenceReport:
        """Do what `write_from` does, in the running loop."""
        return await ReportRun(self, judged, config).afinish()

    def most_calls(self, n_studies: int) -> int:
        """Return the most calls that writing of so many studies takes, >= 0; judging not counted.

        Sentences that cite all studies of their group, and each is written anew, take so many; a
        fifth of it is usual.
        """
        if not self._has_writer or not n_studies:
            return 0
        n_groups = min(MOST_GROUPS, n_studies)
        n_pairs = MOST_SENTENCES * (n_studies if self.reranker.backend.asks_model else 0)
        return 1 + n_groups * (1 + MOST_SENTENCES) + 2 * n_pairs

    def _build(self) -> "CompiledStateGraph[Any, None, Any, Any]":
        graph: StateGraph[Any, None, Any, Any] = StateGraph(ReportState, input_schema=ReportInput)
        graph.add_node("receive", self._receive)
        graph.add_node("gather", lambda state: {})
        graph.add_edge(START, "receive")
        if self._has_writer:
            self._add_writer(graph)
        else:
            graph.add_edge("receive", "gather")
            graph.add_edge("gather", END)
        return graph.compile(name="ReportWriter")

    def _add_writer(self, graph: StateGraph[Any, None, Any, Any]) -> None:
        limiter = Limiter(self.reranker.settings.max_concurrency)

        def wrap(name: str, role: Runnable[Any, Any], answer: type[Any]) -> Runnable[Any, Any]:
            fingerprint = self.roles.fingerprint
            return wrap_role(
                name, role, answer, limiter=limiter, cache=self.cache, fingerprint=fingerprint
            )

        outline: RoleNode[Any, Any, Outline] = RoleNode(
            "outline",
            ask=_ask_outline,
            role=wrap("outline", self.roles.outliner, Outline),
            record=_record_outline,
            on_failure=lambda _, error: {"problems": [f"outline: {error}; grouped by rules"]},
            run_name=lambda _: "outline",
        )
        write: RoleNode[Any, Any, Paragraph] = RoleNode(
            "write",
            ask=lambda branch: branch["task"],
            role=wrap("paragraph", self.roles.writer, Paragraph),
            record=record_paragraph,
            on_failure=quote_instead,
            run_name=lambda branch: f"paragraph {branch['group']['place']}",
        )
        revise: RoleNode[Any, Any, Paragraph] = RoleNode(
            "revise",
            ask=lambda branch: branch["task"],
            role=wrap("revise", self.roles.reviser, Paragraph),
            record=record_revised,
            on_failure=drop_sentence,
            run_name=lambda branch: f"revise {key_of(branch['sentence'])}",
        )
        for name, node in (("outline", outline), ("write", write), ("revise", revise)):
            graph.add_node(name, node)
        graph.add_node("check", steps_node(self._check))
        graph.add_conditional_edges("receive", _begin, ["outline", "write", "gather"])
        graph.add_conditional_edges("outline", _one_per_group, ["write"])
        for name in ("write", "check", "revise"):
            graph.add_edge(name, "gather")  # waits for every branch
        graph.add_conditional_edges("gather", _one_per_sentence, ["check", "revise", END])

    def _receive(self, state: ReportState) -> Update:
        found = list_studies(RerankResult.from_dict(state["judged"]))
        studies = [study for study, _ in found]
        groups = [*group_studies(studies, EVIDENCE), *group_studies(studies, POSSIBLE)]
        quoted = [one for one in groups if one["band"] == POSSIBLE or not self._has_writer]
        quotes = {key: one for group in quoted for key, one in quote_group(group, studies).items()}
        return {
            "studies": [asdict(one) for one in studies],
            "works": [work.to_dict() for _, work in found],
            "groups": groups,
            "sentences": None,
            "problems": None,
            "usage": None,
        } | ({"sentences": quotes} if quotes else {})

    def _check(self, branch: SentenceBranch) -> Steps[Update]:
        works, said = list_works(branch), self._ask_of(branch)
        if settled := find_missing(branch, works):
            return end_check(branch, settled, [])
        verified = []
        for one in works:
            verified.append((yield from self.verifier.verify(said, one)))
        return end_check(branch, [], verified)

    def _ask_of(self, branch: SentenceBranch) -> str:
        """Return a sentence as it is judged: of a chat model all of it is asked for."""
        text = branch["sentence"]["text"]
        if not self.reranker.backend.asks_model:
            return text
        return text_of("deepera_graph.prompts", "whole", statement=text)


class ReportRun(AgentRun[EvidenceReport]):
    """One report."""

    name, kind, begun = "report", "report writer", "groups"
    differs = "by another writer, or with other settings"

    def __init__(
        self, writer: ReportWriter, judged: RerankResult, config: RunnableConfig | None
    ) -> None:
        self._writer, self._judged = writer, judged
        given = {"question": judged.question, "judged": judged.to_dict()}
        settings = writer.reranker.settings
        super().__init__(writer.graph, given, config, settings, n_steps=_STEPS)

    def _n_threads(self, asked: int | None, *, in_loop: bool) -> int | None:
        limit = self._settings.max_concurrency
        return None if in_loop else min(asked or limit, limit)  # sentences are checked at once

    def _told(self, node: str, update: Mapping[str, Any]) -> Iterable[Event]:
        yield {"event": node}

    def result(self) -> EvidenceReport:
        """Put the report together."""
        state, judged = self._state, self._judged
        studies = [ReportStudy(**one) for one in state["studies"]]
        records = sorted(state["sentences"].values(), key=lambda one: one["place"])
        dropped = [one for one in records if one["state"] != "shown"]
        shown = [one for one in records if one["state"] == "shown"]
        manifest = make_manifest(self._writer.roles, self._writer.reranker.settings)
        return EvidenceReport(
            question=judged.question,
            overview=tuple(describe_all(studies)),
            paragraphs=tuple(make_paragraphs(state["groups"], shown, studies)),
            gaps=tuple(list_gaps(judged, studies)),
            studies=tuple(studies),
            left_out=tuple("; ".join(one["reasons"]) for one in dropped),
            n_rewritten=sum(one["is_rewritten"] for one in shown),
            problems=tuple(state["problems"]),
            usage={**judged.usage, **self.usage},
            seconds=self.seconds,
            manifest={**manifest, "judge": judged.manifest.get("backend", "")},
        )


def _begin(state: ReportState) -> list[Send] | str:
    """Divide the studies that are evidence; a single one needs no outline."""
    n = sum(one["band"] == EVIDENCE for one in state["studies"])
    return "outline" if n > 1 else _one_per_group(state) if n else "gather"


def _show_study(state: ReportState, number: int, most: int) -> StudyText:
    study, work = state["studies"][number - 1], state["works"][number - 1]
    texts = [one.page_content for one in work["passages"][:most]]
    title = work["source"]["title"]
    return StudyText(number=number, title=title, says=study["says"], texts=texts)


def _ask_outline(state: ReportState) -> OutlineTask:
    sure = [one["number"] for one in state["studies"] if one["band"] == EVIDENCE]
    studies = [_show_study(state, number, 1) for number in sure]
    for one in studies:
        if quote := state["studies"][one["number"] - 1]["quote"]:
            one["texts"] = [quote]
    return {"question": state["question"], "studies": studies}


def _record_outline(state: ReportState, outline: Outline) -> Update:
    """Keep the groups as far as their studies exist; what they leave out is grouped by rules."""
    by_rules = [one for one in state["groups"] if one["band"] == EVIDENCE]
    sure = {number for one in by_rules for number in one["studies"]}
    groups: list[GroupRecord] = []
    for one in outline.groups[:MOST_GROUPS]:
        known = [number for number in dict.fromkeys(one.studies) if number in sure]
        if known and known not in [group["studies"] for group in groups]:
            groups.append(GroupRecord(place=0, point=one.point, studies=known, band=EVIDENCE))
    told = {number for one in groups for number in one["studies"]}
    for rest in by_rules:
        if left := [number for number in rest["studies"] if number not in told]:
            groups.append({**rest, "studies": left})
    groups = [{**one, "place": place} for place, one in enumerate(groups)]
    return {"groups": [*groups, *(one for one in state["groups"] if one["band"] == POSSIBLE)]}


def _one_per_group(state: ReportState) -> list[Send]:
    studies = [ReportStudy(**one) for one in state["studies"]]
    branches = [
        GroupBranch(
            group=group,
            task={
                "question": state["question"],
                "point": group["point"],
                "studies": [_show_study(state, one, MOST_TEXTS) for one in group["studies"]],
            },
            quotes=quote_group(group, studies),
        )
        for group in state["groups"]
        if group["band"] == EVIDENCE
    ]
    return [Send("write", one) for one in branches]


def _one_per_sentence(state: ReportState) -> list[Send] | str:
    of_group = {one["place"]: one["studies"] for one in state["groups"]}
    sends = []
    for one in state["sentences"].values():
        node = {"new": "check", "failed": "revise"}.get(one["state"])
        if node is None:
            continue
        known = of_group[one["place"][0]]
        shown = [number for number in one["studies"] if number in known] or known
        branch = SentenceBranch(
            sentence=one,
            works=[state["works"][number - 1] for number in shown],
            task={
                "question": state["question"],
                "sentence": one["text"],
                "cited": one["studies"],
                "reasons": one["reasons"],
                "studies": [_show_study(state, number, MOST_TEXTS) for number in shown],
            },
        )
        sends.append(Send(node, branch))
    return sends or END
