"""Selecting by this package's own graph: an `EvidenceReranker` reads papers as passages.

The topic of the question is asked of title and abstract: intent, a score for each paper in
parallel, a threshold, a reason and a quote. What the question excludes is asked apart, of the
sentences that say what a paper itself does; a paper that passes is out.

Source:
    The graph is DeepEra's; that a selector has to keep limits apart from the topic is a finding of
    the ScholarQuest study.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.judges.adapters import IntentOnce
from deepera_graph.judges.base import as_judge
from deepera_graph.papers.agent.constraints import Limits
from deepera_graph.papers.agent.selectors.sentences import own_words, select_by_vectors
from deepera_graph.papers.agent.state import PaperSeen, PaperVerdict, Selected, SelectTask
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import Backend
from deepera_graph.thresholds import OPERATING_POINT
from deepera_graph.usage import Usage

_ALL = 10**6
_ORDERS_ONLY = 0.0  # threshold of a judge whose scores are no shares of relevance: nothing falls
_Jobs = list[tuple[str, list[dict[str, Any]]]]


class EvidenceSelector(Runnable[SelectTask, Selected]):
    """Scores papers by a reranker, and leaves out what its judge finds to break an exclusion.

    Papers fit from the reranker's threshold on, if one was set; else from .5 on with a judge of the
    scale of chat models, and with others (``local``) all do, and are only ordered. An exclusion is
    held against a paper from the judge's own threshold on, or where `select_by_vectors` does.

    Args:
        judge: Whose settings, cache and limits hold; a backend is taken with those by default.
    """

    def __init__(self, judge: EvidenceReranker | Backend) -> None:
        given = judge if isinstance(judge, EvidenceReranker) else EvidenceReranker(judge)
        backend = given.backend
        once = replace(backend, intent=IntentOnce(backend.intent))
        plain = given.with_backend(once).with_settings(
            content="passage",
            top_n=_ALL,
            on_empty="empty",
            on_error="keep_last",
            answer=False,
            stop_after=None,
        )
        least = _ORDERS_ONLY
        if as_judge(backend.judge).operating_point == OPERATING_POINT:
            least = 0.5
        set_here = given.settings.threshold
        self._fitting = plain.with_settings(threshold=least if set_here is None else set_here)
        self._breaking = plain.with_settings(threshold=None)
        self.about = f"{backend.name}, threshold {least if set_here is None else set_here}"
        self.is_costly = as_judge(backend.judge).asks_model

    def invoke(
        self, input: SelectTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Selected:
        """Judge papers."""
        out, fitting, breaking = _ask(input, config)
        results = self._fitting.batch(fitting, config=config)
        return _read(input, out, results, self._breaking.batch(breaking, config=config))

    async def ainvoke(
        self, input: SelectTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Selected:
        """Do what `invoke` does, in the running loop."""
        out, fitting, breaking = _ask(input, config)
        results = await self._fitting.abatch(fitting, config=config)
        return _read(input, out, results, await self._breaking.abatch(breaking, config=config))


def _ask(
    task: SelectTask, config: RunnableConfig | None
) -> tuple[dict[str, PaperVerdict], _Jobs, _Jobs]:
    """Return what is out without a question, and the two kinds of questions about the rest."""
    limits = Limits.from_dict(task["limits"])
    marked = select_by_vectors(task, config).papers if limits.exclude else []
    out = {one.id: one for one in marked if one.verdict == "out"}
    rest = [one for one in task["papers"] if one["id"] not in out]
    if not rest:
        return out, [], []
    fitting = [(limits.topic, [_passage(one) for one in rest])]
    said = [{"id": one["id"], "text": words} for one in rest if (words := own_words(one))]
    return out, fitting, [(phrase, said) for phrase in limits.exclude] if said else []


def _passage(paper: PaperSeen) -> dict[str, Any]:
    """Return a paper as a passage; one without an abstract is read by its title."""
    title = {"title": paper["title"]} if paper["abstract"] else {}
    return {"id": paper["id"], "text": paper["abstract"] or paper["title"], "metadata": title}


def _read(
    task: SelectTask,
    out: Mapping[str, PaperVerdict],
    fitting: Sequence[RerankResult],
    breaking: Sequence[RerankResult],
) -> Selected:
    exclude = Limits.from_dict(task["limits"]).exclude
    scored = _by_id(fitting[0]) if fitting else {}
    against = [(phrase, _by_id(one)) for phrase, one in zip(exclude, breaking, strict=False)]
    verdicts, failures = [*out.values()], {}
    for id, one in scored.items():
        said = [(phrase, found[id]) for phrase, found in against if id in found]
        failed = next((each for each in (one, *(two for _, two in said)) if _failed(each)), None)
        broken = next(((phrase, two) for phrase, two in said if two.kept), None)
        if broken is not None:
            verdicts.append(_against(id, *broken))
        elif failed is not None:
            failures[id] = failed.reason
        else:
            verdicts.append(
                PaperVerdict(
                    id=id, score=one.score, fits=one.kept, reason=one.reason, quote=one.quote
                )
            )
    usage = sum((one.total_usage for one in (*fitting, *breaking)), Usage())
    return Selected(papers=verdicts, failures=failures, usage=usage)


def _by_id(result: RerankResult) -> dict[str, RankedPassage]:
    return {one.id: one for one in result.all_passages}


def _failed(one: RankedPassage) -> bool:
    return one.score is None


def _against(id: str, phrase: str, one: RankedPassage) -> PaperVerdict:
    return PaperVerdict(
        id=id,
        verdict="out",
        reason=f"excluded: {phrase}; {one.reason}".rstrip("; "),
        quote=one.quote,
        against=phrase,
    )
