"""The whole check of a manuscript.

read -> resolve -> judge (one branch a pair of claim and reference) -> decide -> suggest (one branch
a claim that nothing supports) -> report. Nothing to judge: resolve -> decide. Nothing to suggest:
decide -> report.
"""

import asyncio
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from deepera_graph.agents.run import AgentRun, Event
from deepera_graph.chat import sending
from deepera_graph.evidence.asking import Asked, Steps, choose_reranker, steps_node
from deepera_graph.evidence.check.citing import Claim
from deepera_graph.evidence.check.library import (
    CitedWork,
    WorkLibrary,
    ask_services,
    join_duplicates,
)
from deepera_graph.evidence.check.manuscript import (
    MANY,
    Manuscript,
    as_file,
    read_manuscript,
)
from deepera_graph.evidence.check.references import Reference, ReferenceIndex
from deepera_graph.evidence.check.report import (
    Alternative,
    CheckedPair,
    CheckReport,
    describe_work,
    settle_pair,
)
from deepera_graph.evidence.check.verdict import MOST_OTHERS, ClaimVerifier, Verified, note_overview
from deepera_graph.prompts import read_rules
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.retrieval.documents.pdf_pages import PdfReader
from deepera_graph.settings.budget import Estimate
from deepera_graph.usage import Usage, UsageRecord, merge_usage

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from deepera_graph.agents.journal import Journal
    from deepera_graph.papers.sources import Literature

NOTHING_GIVEN = (
    "no papers were given to read: name files or folders of what is cited (SOURCE), a library "
    "(--library), or services (--source europe_pmc); abstracts in a --bib are read, too"
)
_AT_ONCE = 4  # references that services are asked for


class CheckInput(TypedDict):
    """What the graph is given: a manuscript by its path, or as it was read; its references."""

    path: str
    bibliography: str | None
    manuscript: NotRequired[dict[str, Any]]


class CheckState(CheckInput, total=False):
    """What the nodes write."""

    works: dict[str, dict[str, Any]]
    notes: list[str]
    pairs: Annotated[list[dict[str, Any]], operator.add]
    suggestions: Annotated[list[dict[str, Any]], operator.add]
    usage: Annotated[dict[str, UsageRecord], merge_usage]
    doubtful: list[dict[str, Any]]
    report: dict[str, Any]


class PairTask(TypedDict):
    """A pair to judge: a claim, its reference, and the work if there is one."""

    claim: dict[str, Any]
    reference: dict[str, Any] | None
    key: str
    work: dict[str, Any] | None


class SuggestTask(TypedDict):
    """A claim that nothing supports, and the studies that it cites."""

    claim: dict[str, Any]
    without: int


class ManuscriptCheck:
    """Checks whether what a manuscript cites says what it is cited for.

    ``ManuscriptCheck(library=WorkLibrary(read_passages("papers/"))).check("draft.docx").counts``

    Args:
        reranker: Who judges; the local judge if None. A chat model decides by direction and quote.
        library: The works that are cited, and other studies; without it what the list of references
            has of abstracts.
        literature: Services that are asked for works that the library does not have; if None,
            nothing is sent anywhere.
        journal: Keeps verdicts, so that a check that was cut short goes on; opened by the caller.
        pdf_reader: ``"pypdf"`` or ``"pdfium"``.
    """

    def __init__(
        self,
        reranker: EvidenceReranker | None = None,
        *,
        library: WorkLibrary | None = None,
        literature: "Literature | None" = None,
        journal: "Journal | None" = None,
        pdf_reader: PdfReader = "pypdf",
    ) -> None:
        self.reranker = choose_reranker(reranker, content="passage")
        self.library = WorkLibrary() if library is None else library
        self._literature, self._journal, self._pdf_reader = literature, journal, pdf_reader
        self._verifier = ClaimVerifier(self.reranker, read_rules("claims"))
        self.graph = self._build()

    def check(
        self, path: str | Path | Manuscript, bibliography: str | Path | None = None, **config: Any
    ) -> CheckReport:
        """Check a manuscript, or one that was read; see `read_manuscript` for what it may be.

        Raises:
            InputError: The manuscript cannot be read, has no references, or cites none.
            SettingsError: The package that reads it is not installed.
        """
        return CheckRun(self, path, bibliography, config).finish()

    async def acheck(
        self, path: str | Path | Manuscript, bibliography: str | Path | None = None, **config: Any
    ) -> CheckReport:
        """Do what `check` does, in the running loop."""
        return await CheckRun(self, path, bibliography, config).afinish()

    def check_text(self, manuscript: str, **config: Any) -> CheckReport:
        """Check a text in Markdown, which has its list of references under a heading.

        Raises:
            InputError: The text has no references, or cites none.
        """
        with as_file(manuscript) as path:
            return self.check(path, **config)

    async def acheck_text(self, manuscript: str, **config: Any) -> CheckReport:
        """Do what `check_text` does, in the running loop."""
        with as_file(manuscript) as path:
            return await self.acheck(path, **config)

    def estimate(self, path: str | Path, bibliography: str | Path | None = None) -> Estimate:
        """Say what a check would cost at most; nothing is asked, of services neither."""
        manuscript = self._read_file(path, bibliography)
        works = self._resolve(manuscript)
        jobs = [
            (claim.statement, self._verifier.cut(claim.statement, works[key]))
            for claim in manuscript.claims
            for key in claim.keys
            if claim.purpose != "method" and key in works
        ]
        if len(self.library):
            others = [one.statement for one in manuscript.claims if one.purpose != "method"]
            jobs += [
                (one, self.library.search_others(one, MOST_OTHERS, without=0)) for one in others
            ]
        return self._verifier.reranker.estimate(jobs)

    def _build(self) -> "CompiledStateGraph[Any, None, Any, Any]":
        graph: StateGraph[Any, None, Any, Any] = StateGraph(CheckState, input_schema=CheckInput)
        graph.add_node("read", self._read)
        graph.add_node("resolve", RunnableLambda(self._look_up, afunc=self._alook_up))
        graph.add_node("judge", steps_node(self._judge))
        graph.add_node("decide", _decide)
        graph.add_node("suggest", steps_node(self._suggest))
        graph.add_node("report", self._report)
        graph.add_edge(START, "read")
        graph.add_edge("read", "resolve")
        graph.add_conditional_edges("resolve", _one_per_pair, ["judge", "decide"])
        graph.add_edge("judge", "decide")  # waits for every branch
        graph.add_conditional_edges("decide", _one_per_doubtful, ["suggest", "report"])
        graph.add_edge("suggest", "report")
        graph.add_edge("report", END)
        return graph.compile(name="ManuscriptCheck")

    def _read(self, state: CheckState) -> dict[str, Any]:
        if "manuscript" in state:
            found = Manuscript.from_dict(state["manuscript"])
        else:
            found = self._read_file(state["path"], state["bibliography"])
        notes = [f"not checked: {one}" for one in found.faults]
        if len(found.references) >= MANY:
            notes.append(
                f"{len(found.references)} references: {found.n_pairs} "
                f"pair{'s' * (found.n_pairs != 1)} of claim and reference to judge one by one, "
                "which takes a while"
            )
        return {"manuscript": found.to_dict(), "notes": notes}

    def _read_file(self, path: str | Path, bibliography: str | Path | None) -> Manuscript:
        works = self.library.references()
        return read_manuscript(
            path, bibliography=bibliography, works=works, pdf_reader=self._pdf_reader
        )

    def _look_up(self, state: CheckState) -> dict[str, Any]:
        return sending.run(self._alook_up(state))

    async def _alook_up(self, state: CheckState) -> dict[str, Any]:
        """Resolve the references; of services, ask for those that are cited for what they say."""
        manuscript = Manuscript.from_dict(state["manuscript"])
        works = self._resolve(manuscript)
        if (services := self._literature) is not None:
            claims = [one for one in manuscript.claims if one.purpose != "method"]
            cited = {key for one in claims for key in one.keys}
            places = asyncio.Semaphore(_AT_ONCE)

            async def ask(one: Reference) -> None:
                async with places:
                    found = await ask_services(services, one, works.get(one.key))
                if found is not None:
                    works[one.key] = self.library.mark(found, one)

            asked = (ask(one) for one in manuscript.references if one.key in cited)
            await asyncio.gather(*asked)
        return {"works": {key: work.to_dict() for key, work in works.items()}}

    def _resolve(self, manuscript: Manuscript) -> dict[str, CitedWork]:
        found = {one.key: self.library.find(one) for one in manuscript.references}
        return {key: work for key, work in found.items() if work is not None}

    def _judge(self, task: PairTask) -> Steps[dict[str, Any]]:
        """Judge a pair, unless the verdict needs no judge, or is in the journal."""
        claim = Claim.from_dict(task["claim"])
        work = None if task["work"] is None else CitedWork.from_dict(task["work"])
        known = self._journal.entries.get(_name_pair(task)) if self._journal else None
        if known is not None:
            return {"pairs": [CheckedPair.from_dict(known["pair"]).to_dict()]}
        reference = None if task["reference"] is None else Reference.from_dict(task["reference"])
        status = None if reference is None else self.library.status_of(reference)
        namesakes = [] if reference is None else self.library.list_namesakes(reference)
        settled = settle_pair(
            claim, task["key"], reference, work, status=status, namesakes=namesakes
        )
        if settled is not None or work is None:
            return {"pairs": [] if settled is None else [settled.to_dict()]}
        verified = yield from self._verifier.verify(claim.statement, work)
        return self._end(task, claim, work, verified)

    def _end(
        self, task: PairTask, claim: Claim, work: CitedWork, verified: Verified
    ) -> dict[str, Any]:
        """Draw the verdict of what was judged, and keep it unless the judge failed."""
        found = verified.decision
        if work.status == "retracted":
            said = f"the judge finds the claim {found.verdict.replace('_', ' ')} in it"
            found = replace(found, verdict="retracted", notes=(said, *found.notes))
        reference = task["reference"] or {"text": ""}
        about = {"reference": reference["text"], **describe_work(work)}
        pair = CheckedPair.of(claim, task["key"], note_overview(claim.purpose, found), **about)
        if self._journal is not None and found.verdict != "not_judged":
            self._journal.put(_name_pair(task), {"pair": pair.to_dict()})
        return {"pairs": [pair.to_dict()], "usage": {"judge": verified.usage.record()}}

    def _suggest(self, task: SuggestTask) -> Steps[dict[str, Any]]:
        """Look for the best other study of the library."""
        claim = Claim.from_dict(task["claim"])
        found = self.library.search_others(claim.statement, MOST_OTHERS, without=task["without"])
        if not found:
            return {"suggestions": []}
        result = yield Asked(self.reranker, claim.statement, found)
        best = Alternative.of(result)
        suggestions = [] if best is None else [{"claim": claim.number, "other": asdict(best)}]
        return {"suggestions": suggestions, "usage": {"suggest": result.total_usage.record()}}

    def _report(self, state: CheckState) -> dict[str, Any]:
        others = {one["claim"]: one["other"] for one in state.get("suggestions", [])}
        manuscript = join_duplicates(Manuscript.from_dict(state["manuscript"]), state["works"])
        order = {one.key: n for n, one in enumerate(manuscript.references)}
        pairs = sorted(
            state.get("pairs", []),
            key=lambda one: (one["claim"]["number"], order.get(one["key"], len(order))),
        )
        report = CheckReport(
            manuscript=manuscript,
            pairs=tuple(
                CheckedPair.from_dict({**one, "other": others.get(one["claim"]["number"])})
                for one in pairs
            ),
            notes=(*state.get("notes", []), *self._tell_nothing_to_read(pairs)),
            usage=sum((Usage.of(one) for one in state.get("usage", {}).values()), Usage()),
            judge=self.reranker.backend.name,
        )
        return {"report": report.to_dict()}

    def _tell_nothing_to_read(self, pairs: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        """Say what to give where works are unavailable because no place of papers was given."""
        is_given = len(self.library) or self._literature is not None
        if is_given or all(one["verdict"] != "unavailable" for one in pairs):
            return ()
        return (NOTHING_GIVEN,)


class CheckRun(AgentRun[CheckReport]):
    """One manuscript on its way; its question, to the kernel, is the file.

    Its events are ``read``, with the number of pairs, ``pair`` for each verdict, and ``result``.
    """

    name, kind, begun = "check", "checker", "manuscript"
    differs = "by another judge, or with other settings"

    def __init__(
        self,
        checker: ManuscriptCheck,
        path: str | Path | Manuscript,
        bibliography: str | Path | None = None,
        config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        named = None if bibliography is None else str(bibliography)
        read = {"manuscript": path.to_dict()} if isinstance(path, Manuscript) else {}
        file = str(path.path if isinstance(path, Manuscript) else path)
        given = {"question": file, "path": file, "bibliography": named, **read}
        self._at_once = checker.reranker.questions_at_once
        settings = checker.reranker.settings
        super().__init__(checker.graph, given, RunnableConfig(**config), settings)  # type: ignore[typeddict-item]  # keys of a config

    def _n_threads(self, asked: int | None, *, in_loop: bool) -> int | None:
        return min(asked or self._at_once, self._at_once)

    def _told(self, node: str, update: Mapping[str, Any]) -> Iterable[Event]:
        if node == "read":
            yield {"event": "read", "n_pairs": Manuscript.from_dict(update["manuscript"]).n_pairs}
        for one in update.get("pairs", ()) if node == "judge" else ():
            shown = {name: one[name] for name in ("key", "verdict", "score")}
            yield {"event": "pair", "claim": one["claim"]["sentence"], **shown}

    def result(self) -> CheckReport:
        """Return the report."""
        return CheckReport.from_dict(self._state["report"])


def _one_per_pair(state: CheckState) -> list[Send] | str:
    manuscript = Manuscript.from_dict(state["manuscript"])
    index = ReferenceIndex(manuscript.references)
    tasks = [
        PairTask(
            claim=claim.to_dict(),
            reference=None if (found := index.by_key(key)) is None else found.to_dict(),
            key=key,
            work=state["works"].get(key),
        )
        for claim in manuscript.claims
        for key in claim.keys
    ]
    return [Send("judge", one) for one in tasks] or "decide"


def _decide(state: CheckState) -> dict[str, Any]:
    """Find the claims that nothing supports, and what they cite."""
    by_claim: dict[int, list[dict[str, Any]]] = {}
    for one in state.get("pairs", []):
        by_claim.setdefault(one["claim"]["number"], []).append(one)
    doubtful = []
    for group in by_claim.values():
        verdicts = {one["verdict"] for one in group}
        if verdicts.isdisjoint({"supported", "method"}):
            works = [state["works"].get(one["key"], {}).get("study", 0) for one in group]
            doubtful.append({"claim": group[0]["claim"], "without": works[0]})
    return {"doubtful": doubtful}


def _one_per_doubtful(state: CheckState) -> list[Send] | str:
    return [Send("suggest", one) for one in state["doubtful"]] or "report"


def _name_pair(task: PairTask) -> str:
    """Return what a pair is kept under: the claim, the reference and what there is to read."""
    passages: Iterable[Document] = (task["work"] or {}).get("passages", ())
    said = "\0".join([task["claim"]["statement"], *(one.page_content for one in passages)])
    digest = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{task['claim']['number']}/{task['key']}/{digest}"
