"""Generators of questions by name."""

from collections.abc import Sequence
from pathlib import Path

from deepera_graph.bench.build.ask import Asker
from deepera_graph.bench.build.guided import GuidedGenerator
from deepera_graph.bench.build.lmqg import PassageGenerator
from deepera_graph.bench.build.pairs import QAGenerator
from deepera_graph.bench.build.pairs_file import PairsFile
from deepera_graph.bench.build.plan import BuildPlan
from deepera_graph.errors import SettingsError

DEFAULT = ("lmqg", "guided")
FILE = "file:"


def find_generators(names: Sequence[str], asker: Asker, plan: BuildPlan) -> list[QAGenerator]:
    """Return the generators that names stand for: ``lmqg``, ``guided``, ``file:PATH``.

    Raises:
        SettingsError: A name is unknown, or two data sets would have the same name.
        DatasetError: A file cannot be read.
    """
    check_generators(names)
    return [_find(name, asker, plan) for name in names]


def check_generators(names: Sequence[str]) -> None:
    """Raise `SettingsError` if a name is unknown, or two data sets would have the same name."""
    titles = [_title(name) for name in names]
    if not titles or len(set(titles)) < len(titles):
        raise SettingsError(f"generators must be one or more, and differ, got {','.join(names)!r}")


def _title(name: str) -> str:
    if name in DEFAULT:
        return name
    if name.startswith(FILE) and name != FILE:
        return Path(name.removeprefix(FILE)).stem
    raise SettingsError(f"a generator is 'lmqg', 'guided' or 'file:PATH', got {name!r}")


def _find(name: str, asker: Asker, plan: BuildPlan) -> QAGenerator:
    if name == PassageGenerator.name:
        return PassageGenerator(asker, n=plan.per_document, seed=plan.seed)
    if name == GuidedGenerator.name:
        return GuidedGenerator(asker, n=plan.per_document)
    return PairsFile(Path(name.removeprefix(FILE)))
