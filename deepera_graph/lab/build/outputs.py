"""The folder of a build: data sets, drop log, rejected distractors, and a manifest of it all."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import file_digest, sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from deepera_graph import __version__
from deepera_graph.calibration.instance import DatasetError, write_rows
from deepera_graph.errors import SettingsError
from deepera_graph.lab.build.corpus import Corpus
from deepera_graph.lab.build.plan import PACKAGE, BuildPlan, DropRecord, count_drops
from deepera_graph.lab.build.writing.questions import Drafts, make_instance
from deepera_graph.usage import Usage

WORK = "work"
CORPUS = "corpus.sqlite3"
MANIFEST = "manifest.json"
DROPPED = "dropped.jsonl"
REJECTED = "rejected.jsonl"
FORMAT = 1


def check_any_question(datasets: Mapping[str, Drafts]) -> None:
    """Raise `DatasetError` if no data set has a question; it names the reasons with an example."""
    if not any(one.drafts for one in datasets.values()):
        reasons = "; ".join(f"{name}: {one.explain_empty()}" for name, one in datasets.items())
        raise DatasetError(f"no question could be made: {reasons}")


def build_manifest(
    plan: BuildPlan,
    corpus: Corpus,
    datasets: Mapping[str, Drafts],
    drops: Sequence[DropRecord],
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
        "prompts": hash_prompts(),
        "documents": {
            "sha256": corpus.fingerprint,
            "read": corpus.n_read,
            "used": len(corpus.documents),
            "min_similarity": corpus.min_similarity,
            "chunks": corpus.n_chunks,
        },
        "datasets": {name: one.describe(plan) for name, one in datasets.items()},
        "dropped": count_drops(drops),
        "answers": {
            step: {
                "calls": used.calls,
                "input_tokens": used.input_tokens,
                "output_tokens": used.output_tokens,
                "asked_twice": used.reasked_calls,
            }
            for step, used in sorted(usage.items())
        },
        "files": dict(files),
    }


def hash_prompts(package: str = PACKAGE) -> dict[str, str]:
    """Return 12 hex digits for each prompt of a package, by file name."""
    templates = (one for one in files(package).iterdir() if one.name.endswith(".md"))
    return {
        one.name: sha256(one.read_bytes()).hexdigest()[:12]
        for one in sorted(templates, key=lambda one: one.name)
    }


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise `SettingsError` if results would be lost, or cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"the results go to a folder, got the file {str(folder)!r}")
    if (folder / MANIFEST).exists() and not overwrite:
        raise SettingsError(
            f"{str(folder / MANIFEST)!r} exists: a build is there already; give --overwrite "
            "(overwrite=True) to replace it"
        )


def write_datasets(
    folder: Path, datasets: Mapping[str, Drafts], drops: Iterable[DropRecord], plan: BuildPlan
) -> dict[str, str]:
    """Write instances, drops and rejected distractors; return SHA-256 by file name."""
    remove_earlier(folder)
    names = []
    for dataset, one in datasets.items():
        for setting in plan.settings:
            names.append(f"{dataset}.{setting}.jsonl")
            rows = (make_instance(draft, setting, plan) for draft in one.drafts)
            write_rows(folder / names[-1], rows)
    write_rows(folder / DROPPED, drops)
    write_rows(folder / REJECTED, (row for one in datasets.values() for row in one.rejected))
    return {name: hash_file(folder / name) for name in (*names, DROPPED, REJECTED)}


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest; it comes last, so where it is, the other files are whole."""
    text = json.dumps(manifest, ensure_ascii=False, indent=2)
    part = folder / f"{MANIFEST}.part"
    part.write_text(f"{text}\n", encoding="utf-8")
    part.replace(folder / MANIFEST)


def remove_earlier(folder: Path) -> None:
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


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
