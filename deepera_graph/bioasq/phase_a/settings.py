"""How a search for documents goes: its settings, checked, and what travels through its graph."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from langchain_core.documents import Document
from typing_extensions import TypedDict

from deepera_graph.bioasq.ensemble import FIRST, SECOND, nominate, weigh
from deepera_graph.bioasq.phase_a.ordering import check_n_snippets
from deepera_graph.bioasq.runs import N_DOCUMENTS
from deepera_graph.budget import Budget
from deepera_graph.errors import SettingsError
from deepera_graph.pipeline.state import append
from deepera_graph.ranges import check_choice
from deepera_graph.retrieval.search import FUSIONS, Fusion
from deepera_graph.settings import AgentSettings
from deepera_graph.usage import UsageRecord, merge_usage

Pairs = list[list[Any]]  # [pmid, score], best first


class SearchInput(TypedDict):
    """What is asked."""

    question: str


class SnippetRecord(TypedDict):
    """The fields of a `Snippet`, and how likely it is one."""

    snippet: dict[str, Any]
    probability: float


class SearchOutput(TypedDict):
    """What was found, the rankings on the way, and what went wrong.

    `retrieved`, `judged` and `listed` are rankings of all documents that were retrieved, scored and
    sorted; `documents` is the last. `failed` says why there is none, `degraded` names the steps
    that fell back, `stopped` is ``budget`` if it was spent.
    """

    question: str
    query: str
    retrieved: Pairs
    judged: Pairs
    listed: Pairs
    documents: Pairs
    snippets: list[SnippetRecord]
    failed: str
    unusable: str
    stopped: Literal["", "budget"]
    degraded: Annotated[list[str], append]
    problems: Annotated[list[str], append]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


class SearchState(SearchOutput):
    """Everything that travels; `passages` are the documents that were retrieved."""

    passages: list[Document]


Ensemble = Literal["weighted", "nominate", "last"]
ENSEMBLES: tuple[Ensemble, ...] = get_args(Ensemble)
PRESETS: Mapping[str, Mapping[str, Any]] = {
    # The chain of BioASQ 13b: all that is retrieved is scored, by a cross-encoder of one's choice.
    "paper": {
        "depth": 1000,
        "judged": 1000,
        "listed": 30,
        "ensemble": "weighted",
        "n_documents": 10,
    }
}
WEIGHTS = (1.0, 7.0)  # of the judge's and the chat model's ranking: BioASQ 13b, on validation


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings(AgentSettings):
    """How a search for documents goes.

    Attributes:
        depth: Documents retrieved, >= 1 (BioASQ 13b: 1000, 2000, 5000).
        fusion: How a hybrid collection joins its two rankings; see `PassageStore.search`.
        judged: Documents that the judge scores, the best of the first stage, >= 1.
        first_weight: Of the first stage's score, which is at most 1, beside the log odds of the
            judge's; >= 0, and with 0 the judge's score alone counts. None is 0, but for the local
            judge, which is joined with the first stage and with how closely a document follows the
            question (`local_order.value_of`).
        listed: Documents that a chat model sorts in one prompt, the best so far, >= 2.
        ensemble: How its ranking joins that of the judge: ``weighted`` by places (`weigh`),
            ``nominate``, or ``last``: the chat model's ranking alone.
        weights: For ``weighted``: those of the judge's and the chat model's ranking.
        nominated: For ``nominate``: how many documents of the judge's and of the chat model's,
            together at most `n_documents`; what is above them is filled from the chat model's.
        n_documents: Documents of a question, >= 1; there are as many wherever so many are found.
        n_snippets: Snippets of a question, 0 to 10, wherever there are so many sentences; None is
            as many as are worth it (`choose_snippets`).
        max_concurrency: Most model calls in flight, >= 1.
        budget: What a question, or all of a batch together, may cost; None is no limit.

    Raises:
        SettingsError: A value is out of range.
    """

    depth: int = 1000
    fusion: Fusion = "scores"
    judged: int = 30
    first_weight: float | None = None
    listed: int = 30
    ensemble: Ensemble = "weighted"
    weights: Sequence[float] = WEIGHTS
    nominated: Sequence[int] = (FIRST, SECOND)
    n_documents: int = N_DOCUMENTS
    n_snippets: int | None = None
    max_concurrency: int = 16
    budget: Budget | None = None
    _LEAST = MappingProxyType({"listed": 2})

    def _check(self) -> None:
        check_choice("fusion", self.fusion, FUSIONS)
        check_choice("ensemble", self.ensemble, ENSEMBLES)
        if self.first_weight is not None and not 0 <= self.first_weight < math.inf:
            raise SettingsError(f"first_weight must be >= 0, got {self.first_weight!r}")
        if self.n_snippets is not None:
            check_n_snippets(self.n_snippets)
        # both ensembles check their numbers, on nothing
        weigh([{}, {}], self.weights)
        if len(self.nominated) != 2:
            raise SettingsError(f"nominated must be two numbers, got {self.nominated!r}")
        n = self.n_documents if self.ensemble == "nominate" else None
        nominate({}, {}, n_first=self.nominated[0], n_second=self.nominated[1], n=n)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `of` reads."""
        weights = [float(one) for one in self.weights]
        return {**AgentSettings.to_dict(self), "weights": weights}


class SearchKwargs(TypedDict, total=False):
    """The settings as keyword arguments; see `SearchSettings`."""

    depth: int
    fusion: Fusion
    judged: int
    first_weight: float | None
    listed: int
    ensemble: Ensemble
    weights: Sequence[float]
    nominated: Sequence[int]
    n_documents: int
    n_snippets: int | None
    max_concurrency: int
    budget: Budget | Mapping[str, Any] | None
