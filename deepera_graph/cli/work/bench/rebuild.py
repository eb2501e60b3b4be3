"""A build made again from its manifest, and what came out otherwise than before."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from deepera_graph.bench.build.corpus import LsaEmbeddings
from deepera_graph.bench.build.plan import BuildPlan
from deepera_graph.bench.build.questions import DEFAULT
from deepera_graph.errors import SettingsError

_COMPARED = ("package", "embeddings", "prompts", "generators", "documents", "files")


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a manifest says.

    Attributes:
        path: The manifest.
        record: What it holds.
        plan: What was to be made.
        generators: Names of the data sets.
        model: Name of the model.
        server: Its address; None for the provider's own.
        n_documents: How many documents were read.
    """

    path: Path
    record: Mapping[str, Any]
    plan: BuildPlan
    generators: tuple[str, ...]
    model: str
    server: str | None
    n_documents: int

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a manifest.

        Raises:
            SettingsError: It cannot be read, or is no manifest of a build.
        """
        try:
            record = json.loads(path.read_bytes())
            return cls(
                path,
                record,
                BuildPlan.from_dict(record["plan"]),
                tuple(one["name"] for one in record["generators"]),
                record["model"]["model"],
                record["model"].get("server"),
                record["documents"]["read"],
            )
        except OSError as error:
            raise SettingsError(f"--manifest {path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SettingsError(
                f"--manifest {path} is no manifest of a build: {error!r}"
            ) from error

    def check_options(self, given: Collection[str]) -> None:
        """Raise `SettingsError` if an option contradicts the manifest, or is missing beside it.

        Args:
            given: Options on the command line, e.g. ``--seed``.
        """
        settled = sorted(set(given) & _SETTLED)
        if settled:
            raise SettingsError(f"--manifest settles {', '.join(settled)}: leave them out")
        elsewhere = [name for name in self.generators if name not in DEFAULT]
        if elsewhere and "--generator" not in given:
            raise SettingsError(
                f"--manifest {self.path}: {elsewhere[0]!r} was made of a file of pairs; name all "
                "generators with --generator, this one as file:PATH"
            )
        embeddings = self.record.get("embeddings", {}).get("name")
        if embeddings != LsaEmbeddings.model and "--embeddings" not in given:
            raise SettingsError(
                f"--manifest {self.path}: it was built with {embeddings}; name it with --embeddings"
            )

    def differences(self, manifest: Mapping[str, Any]) -> list[str]:
        """Return what another manifest has otherwise, by its keys; the server does not count."""
        return [name for name in _COMPARED if self.record.get(name) != manifest[name]]


_SETTLED = frozenset(
    f"--{name}"
    for name in (
        "questions", "settings", "contexts", "distractors", "attempts", "golden", "per-document",
        "seed", "max-chunk", "min-similarity", "min-group", "limit",
    )
)  # fmt: skip
