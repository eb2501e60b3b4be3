"""What was built, from what, and what was dropped; no dates, so that equal builds are equal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from deepera_graph.bench.build.answer_words import holds_answer
from deepera_graph.bench.build.collect import Collected
from deepera_graph.bench.build.corpus import Corpus
from deepera_graph.bench.build.draft import Draft
from deepera_graph.bench.build.losses import Loss, counted
from deepera_graph.bench.build.plan import BuildPlan
from deepera_graph.bench.build.prompts import PACKAGE
from deepera_graph.usage import Usage
from deepera_graph.version import __version__

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
