"""Embeddings, generators and judges of answers by name, for the command line."""

from collections.abc import Sequence

from langchain_core.embeddings import Embeddings

from deepera_graph.bench.answers.generator import ChatGenerator, Extractive, Generator
from deepera_graph.bench.answers.judge import LfsJudge
from deepera_graph.bench.experiments.setup import SEARCHERS
from deepera_graph.bench.rankers.dense import Dense
from deepera_graph.bench.rankers.models import Models
from deepera_graph.bench.rankers.named import make_ranker
from deepera_graph.errors import SettingsError

FIRST, LLM = "first", "llm"


def embeddings_of(names: Sequence[str]) -> dict[str, Embeddings]:
    """Return the embeddings that names stand for; those that need no model are left out.

    Args:
        names: ``bm25``, ``lsa``, or a dense ranker as `deepera_graph.bench.rankers.named` has it.

    Raises:
        SettingsError: A name stands for no embeddings.
        UnavailableError: A package or weights are missing.
    """
    found = {}
    for name in names:
        if name in SEARCHERS:
            continue
        ranker = make_ranker(name) if name.startswith("dense") else None
        if not isinstance(ranker, Dense):
            raise SettingsError(
                f"embeddings must be {', '.join(SEARCHERS)}, dense:module:factory or "
                f"dense-st:NAME, got {name!r}"
            )
        found[ranker.name] = ranker.embeddings
    return found


def generator_of(name: str, models: Models) -> Generator | None:
    """Return who answers: ``first`` needs no model, ``llm`` is the model for all; none for empty.

    Raises:
        SettingsError: The model cannot be made.
        UnavailableError: A package or a key is missing.
    """
    if not name:
        return None
    if name == FIRST:
        return Extractive()
    return ChatGenerator(models.chat("" if name == LLM else name))


def answer_judge_of(name: str, models: Models) -> LfsJudge | None:
    """Return who scores answers; ``llm`` is the model for all, none for empty.

    Raises:
        SettingsError: The model cannot be made.
        UnavailableError: A package or a key is missing.
    """
    return LfsJudge(models.chat("" if name == LLM else name)) if name else None


def as_ranker_names(*names: str) -> tuple[str, ...]:
    """Return names of rankers that ask the same chat models, so that these can be made ready."""
    return tuple(
        "llm-pointwise" if name == LLM else f"llm-pointwise:{name}"
        for name in names
        if name and name != FIRST
    )
