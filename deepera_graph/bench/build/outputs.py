"""The files of a build."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepera_graph.bench.build.collect import Collected
from deepera_graph.bench.build.losses import Loss
from deepera_graph.bench.build.plan import BuildPlan
from deepera_graph.bench.build.pools import instance_of
from deepera_graph.bench.jsonl import write_rows
from deepera_graph.errors import SettingsError

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
