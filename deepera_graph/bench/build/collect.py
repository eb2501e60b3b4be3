"""As many questions as are wanted: documents in a seeded order, a wave of them at a time."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from deepera_graph.bench.build.document import Document
from deepera_graph.bench.build.draft import Draft
from deepera_graph.bench.build.losses import Loss, Rejected
from deepera_graph.bench.build.pairs import folded
from deepera_graph.bench.build.questions import Drafter, Outcome
from deepera_graph.bench.errors import DatasetError
from deepera_graph.errors import BudgetError

MAX_WAVE = 256
_SHOWN = 200  # characters of an example in a message


@dataclass(slots=True)
class Collected:
    """The drafts of one data set, in the order of the documents.

    Attributes:
        drafts: As many as were wanted, or all there are.
        rejected: All distractors that failed the gates on the way.
        losses: All documents and questions that were dropped on the way.
        n_documents: Documents that were asked about.
    """

    drafts: list[Draft] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    n_documents: int = 0


async def collect(
    drafter: Drafter,
    documents: Sequence[Document],
    *,
    n: int,
    per_document: int = 1,
    on_drafts: Callable[[int], None] = lambda n_drafts: None,
) -> Collected:
    """Return the first *n* drafts that documents give; equal questions count once.

    A wave is as large as the number of drafts that are missing, so that no call is in vain, and no
    larger than 256.

    Args:
        drafter: Makes drafts of a document.
        documents: In the order in which they are asked about.
        n: Drafts wanted, >= 1.
        per_document: Most drafts of one document, >= 1.
        on_drafts: Told how many drafts there are, each time a document is done.

    Raises:
        BudgetError: The budget is spent.
        BackendError: The model can be asked nothing.
    """
    collected = Collected()
    rest = iter(documents)
    asked: set[str] = set()
    while missing := n - len(collected.drafts):
        wave = list(islice(rest, min(-(-missing // per_document), MAX_WAVE)))
        if not wave:
            break
        told = _Told(on_drafts, len(collected.drafts), n)
        for document, outcome in zip(wave, await _all(drafter, wave, told), strict=True):
            _add(collected, document, outcome, asked, n)
        on_drafts(len(collected.drafts))
    return collected


def shuffled(documents: Sequence[Document], seed: int, name: str) -> list[Document]:
    """Return documents in an order by chance, another for each data set."""
    order = list(documents)
    Random(f"{seed} documents {name}").shuffle(order)
    return order


def check_not_in_vain(collected: Mapping[str, Collected]) -> None:
    """Raise `DatasetError` if no data set has a question; it names the reasons with an example."""
    if any(one.drafts for one in collected.values()):
        return
    told = "; ".join(f"{name}: {_why_none(one)}" for name, one in collected.items())
    raise DatasetError(f"no question could be made: {told}")


def _why_none(one: Collected) -> str:
    """Say what became of the documents, e.g. ``7 asked about, unusable-reply 7 (L3: ...)``."""
    counts = Counter(loss.reason for loss in one.losses).most_common()
    reasons = ", ".join(f"{reason} {n}" for reason, n in counts)
    often = counts[0][0] if counts else ""
    first = next((loss for loss in one.losses if loss.reason == often), None)
    example = f" ({first.document}: {first.detail[:_SHOWN] or first.reason})" if first else ""
    gates = Counter(reason.partition(":")[0] for row in one.rejected for reason in row.reasons)
    rejected = ", ".join(f"{gate} {n}" for gate, n in gates.most_common())
    tail = f"; distractors rejected: {rejected}" if rejected else ""
    return f"{one.n_documents} documents asked about, {reasons or 'none gave any'}{example}{tail}"


@dataclass(slots=True)
class _Told:
    """Counts drafts as documents are done."""

    on_drafts: Callable[[int], None]
    n_drafts: int
    most: int

    def add(self, outcome: Outcome) -> None:
        self.n_drafts = min(self.most, self.n_drafts + len(outcome.drafts))
        self.on_drafts(self.n_drafts)


async def _all(drafter: Drafter, wave: Sequence[Document], told: _Told) -> list[Outcome]:
    """Draft a wave at once.

    When the model is out of reach, the others are cancelled; when the budget is spent, calls in
    flight are finished, as they are paid for.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_within_budget(drafter, one, told)) for one in wave]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    outcomes: list[Outcome] = []
    for task in tasks:
        result = task.result()
        if isinstance(result, BudgetError):
            raise result
        outcomes.append(result)
    return outcomes


async def _within_budget(
    drafter: Drafter, document: Document, told: _Told
) -> Outcome | BudgetError:
    try:
        outcome = await drafter.draft(document)
    except BudgetError as error:
        return error
    told.add(outcome)
    return outcome


def _add(
    collected: Collected, document: Document, outcome: Outcome, asked: set[str], n: int
) -> None:
    collected.n_documents += 1
    collected.losses.extend(outcome.losses)
    for draft in (*outcome.drafts, *outcome.unfinished):
        collected.rejected.extend(draft.rejected)
    for draft in outcome.drafts:
        question = folded(draft.pair.question)
        if question in asked:
            reason, detail = "question-asked-twice", draft.pair.question
            collected.losses.append(
                Loss(stage=draft.dataset, document=document.id, reason=reason, detail=detail)
            )
        elif len(collected.drafts) < n:
            asked.add(question)
            collected.drafts.append(draft)
