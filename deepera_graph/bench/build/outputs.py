"""As many questions as are wanted: documents in a seeded order, a wave of them at a time."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from deepera_graph import __version__
from deepera_graph.bench.build.corpus import Corpus, Document
from deepera_graph.bench.build.drafts import Draft, folded
from deepera_graph.bench.build.gates import holds_answer
from deepera_graph.bench.build.model import PACKAGE
from deepera_graph.bench.build.plan import BuildPlan, Loss, Rejected, counted
from deepera_graph.bench.build.questions import Drafter, Outcome, instance_of
from deepera_graph.bench.data.instance import DatasetError, write_rows
from deepera_graph.errors import BudgetError, SettingsError
from deepera_graph.usage import Usage

MAX_WAVE = 256
_SHOWN = 200  # characters of an example in a message


@dataclass(slots=True)
class Collected:
    """The drafts of one data set, in the order of the documents."""

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
    """Return the first *n* drafts that documents give; equal questions count once."""
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


FORMAT = 1


def build_manifest(
    plan: BuildPlan,
    corpus: Corpus,
    collected: Mapping[str, Collected],
    losses: Sequence[Loss],
    *,
    usage: Mapping[str, Usage],
    model: Mapping[str, Any],
    embeddings: Mapping[str, Any],
    generators: Sequence[Mapping[str, str]],
    files: Mapping[str, str],
) -> dict[str, Any]:
    """Return the manifest of a build, in plain data."""
    return {
        "format": FORMAT,
        "package": __version__,
        "plan": plan.to_dict(),
        "generators": list(generators),
        "model": dict(model),
        "embeddings": dict(embeddings),
        "prompts": prompt_hashes(),
        "documents": {
            "sha256": corpus.fingerprint,
            "read": corpus.n_read,
            "used": len(corpus.documents),
            "min_similarity": corpus.min_similarity,
            "chunks": sum(1 for _ in corpus),
        },
        "datasets": {name: _dataset(one, plan) for name, one in collected.items()},
        "dropped": counted(losses),
        "answers": {step: _usage(used) for step, used in sorted(usage.items())},
        "files": dict(files),
    }


def prompt_hashes() -> dict[str, str]:
    """Return 12 hex digits for each prompt of the builder, by file name."""
    templates = (one for one in files(PACKAGE).iterdir() if one.name.endswith(".md"))
    return {
        one.name: sha256(one.read_bytes()).hexdigest()[:12]
        for one in sorted(templates, key=lambda one: one.name)
    }


def _dataset(collected: Collected, plan: BuildPlan) -> dict[str, Any]:
    drafts = collected.drafts
    found = sum(draft.was_found for draft in drafts)
    record: dict[str, Any] = {
        "questions": len(drafts),
        "wanted": plan.n_questions,
        "documents_asked": collected.n_documents,
        "golden": {
            "found_by_retrieval": found,
            "ceiling_of_retrieval": round(found / len(drafts), 6) if drafts else None,
            "inserted": len(drafts) - found if plan.golden == "insert" else 0,
            "outside": len(drafts) - found if plan.golden == "record" else 0,
            "answer_elsewhere": sum(map(_holds_answer_elsewhere, drafts)),
            "chunks_left_out": sum(draft.n_left_out for draft in drafts),
        },
        "pools_below_size": sum(len(draft.pool) < plan.n_contexts for draft in drafts),
    }
    if "ssli" in plan.settings:
        record["distractors"] = _distractors(collected, plan)
    return record


def _distractors(collected: Collected, plan: BuildPlan) -> dict[str, Any]:
    drafts, rejected = collected.drafts, collected.rejected
    types = Counter(one.type for draft in drafts for one in draft.distractors)
    reasons = Counter(reason.partition(":")[0] for one in rejected for reason in one.reasons)
    passed = sum(types.values())
    return {
        "passed": passed,
        "by_type": dict(sorted(types.items())),
        "places_not_filled": len(drafts) * plan.n_distractors - passed,
        "rejected": len(rejected),
        "rejected_by": dict(sorted(reasons.items())),
    }


def _holds_answer_elsewhere(draft: Draft) -> bool:
    """Whether a passage that is not golden has the words of the answer."""
    golden, pair = draft.pair.golden, draft.pair
    others = (one.chunk.text for one in draft.pool if one.chunk != golden)
    return any(holds_answer(text, pair.answer, pair.question) for text in others)


def _usage(used: Usage) -> dict[str, int]:
    """What the answers of a step took when they were new."""
    return {
        "calls": used.calls,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "asked_twice": used.reasked_calls,
    }


WORK = "work"
MANIFEST = "manifest.json"
DROPPED = "dropped.jsonl"
REJECTED = "rejected.jsonl"


def check(folder: Path, *, overwrite: bool) -> None:
    """Raise `SettingsError` if results would be lost, or cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"the results go to a folder, got the file {str(folder)!r}")
    if (folder / MANIFEST).exists() and not overwrite:
        raise SettingsError(
            f"{str(folder / MANIFEST)!r} exists: a build is there already; give --overwrite "
            "(overwrite=True) to replace it"
        )


def write_datasets(
    folder: Path, collected: Mapping[str, Collected], losses: Iterable[Loss], plan: BuildPlan
) -> dict[str, str]:
    """Write instances, losses and rejected distractors; return SHA-256 by file name."""
    _remove_earlier(folder)
    names = []
    for dataset, one in collected.items():
        for setting in plan.settings:
            names.append(f"{dataset}.{setting}.jsonl")
            rows = (instance_of(draft, setting, plan) for draft in one.drafts)
            write_rows(folder / names[-1], rows)
    write_rows(folder / DROPPED, losses)
    write_rows(folder / REJECTED, (row for one in collected.values() for row in one.rejected))
    return {name: _digest(folder / name) for name in (*names, DROPPED, REJECTED)}


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest; it comes last, so where it is, the other files are whole."""
    text = json.dumps(manifest, ensure_ascii=False, indent=2)
    part = folder / f"{MANIFEST}.part"
    part.write_text(f"{text}\n", encoding="utf-8")
    part.replace(folder / MANIFEST)


def _remove_earlier(folder: Path) -> None:
    """Remove the files of the build that is replaced, its manifest first."""
    manifest = folder / MANIFEST
    if not manifest.exists():
        return
    try:
        names = list(json.loads(manifest.read_bytes())["files"])
    except (ValueError, KeyError, TypeError):  # not ours: only what is written anew is replaced
        names = []
    manifest.unlink()
    for name in names:
        (folder / Path(name).name).unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
