"""The shell of every construction: its folder, its journal, its files, its manifest.

It has two recipes: `lab.build` makes questions with look-alikes, `lab.quest` searches for papers.
Replies are kept in the folder ``work`` within the results as they come, so that a run that was cut
off goes on, and one that is repeated asks for nothing.
"""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, Protocol, Self

import numpy as np
from langchain_core.embeddings import Embeddings
from pydantic import BaseModel

from deepera_graph import __version__
from deepera_graph.agents.cached import cache_key
from deepera_graph.agents.journal import Journal
from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.judges.trained.model import sha256_of
from deepera_graph.lab.asking import MAX_CONCURRENCY, StepModel, without_server
from deepera_graph.schema import Backend
from deepera_graph.settings.budget import Budget, Limiter, Meter
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.stores.judgements import JudgementCache, open_cache
from deepera_graph.text.jsonl import naming_full_file, replacing, writing_alone
from deepera_graph.usage import Usage

WORK = "work"
MANIFEST = "manifest.json"
FORMAT = 1
_BATCH = 256  # texts embedded at once
CALLS_AT_ONCE = MAX_CONCURRENCY


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a construction is: parts done and wanted, and what it counts, replies or pairs."""

    n_done: int = 0
    n_wanted: int = 0
    n_counted: int = 0


@dataclass(frozen=True, slots=True)
class Built:
    """What a construction made."""

    folder: Path  # where the files are
    manifest: dict[str, Any]  # what ``manifest.json`` holds
    n_sent: int  # calls of this run whose replies had not been kept
    # what calls failed for, with the cause; a run with *overwrite* asks again
    failed: Mapping[str, str] = field(default_factory=dict)
    n_failed: int = 0  # how many calls of this run failed


class Construction:
    """One run in a folder; its steps are within a block of `open`."""

    def __init__(
        self,
        out: Path,  # the folder; made if missing
        *,
        calls_at_once: int = CALLS_AT_ONCE,  # most calls of models in flight, >= 1
        # what this run may cost; when it is spent, another run goes on
        budget: Budget | None = None,
        # whether results in the folder may be replaced; kept replies are used anyway
        overwrite: bool = False,
        # told how far things are; called in another thread
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        check_at_least("calls_at_once", calls_at_once, 1)
        check_folder(out, overwrite=overwrite)
        self.out, self.work, self._overwrite = out, out / WORK, overwrite
        self._limiter, self._meter = Limiter(calls_at_once), Meter(budget)
        self.progress, self._on_progress = Progress(), on_progress
        self._models: list[StepModel] = []

    @contextmanager
    def open(self) -> Iterator[Self]:
        """Open what is kept; no other process can build in the folder meanwhile."""
        # Raises `SettingsError` if another process does; `StoreError` if the folder cannot be used.
        cache = open_cache(self.work)
        assert cache is not None  # a folder was named
        with cache, ExitStack() as block:
            busy = f"another process builds in {str(self.out)!r}; one at a time can"
            block.enter_context(writing_alone(self.work / "construction", busy))
            self.cache = cache
            yield self

    def model(self, backend: Backend, *, on_answer: Callable[[], None] = lambda: None) -> StepModel:
        """Return a model to be asked, within the budget and the limit of this run."""
        made = StepModel(
            without_server(backend),
            cache=self.cache,
            limiter=self._limiter,
            meter=self._meter,
            on_answer=on_answer,
        )
        self._models.append(made)
        return made

    def apart(self, model: StepModel) -> StepModel:
        """Return a model that counts its calls apart."""
        made = model.count_apart()
        self._models.append(made)
        return made

    def move(self, **changes: int) -> None:
        """Tell how far things are, by the fields of `Progress` that changed."""
        self.progress = replace(self.progress, **changes)
        self._on_progress(self.progress)

    @contextmanager
    def journal(self, name: str, ran: Mapping[str, Any]) -> Iterator[Journal]:
        """Open what keeps the parts that are finished."""
        with ExitStack() as block:
            try:
                opened = Journal(self.work / name, ran).open(resume=not self._overwrite)
                journal = block.enter_context(opened)
            except SettingsError as error:
                raise SettingsError(
                    f"{error}; --overwrite (overwrite=True) starts over, with kept replies"
                ) from error
            try:
                yield journal
            except OSError as error:
                raise StoreError(
                    f"the folder {str(self.out)!r} cannot be written: {error.strerror or error}"
                ) from error

    @contextmanager
    def write(self, *names: str) -> Iterator[dict[str, "RowFile"]]:
        """Give files for rows, in the order of the names; `finish` puts them where they belong."""
        # Until then they are in the folder ``work``, so that what was built before stays.
        with ExitStack() as block:
            yield {name: block.enter_context(RowFile(self.work / name)) for name in names}

    def finish(
        self, manifest: Mapping[str, Any], rows: Mapping[str, "RowFile"], **more: Any
    ) -> Built:
        """Put files of rows in place of those of an earlier run, the manifest last."""
        # So where the manifest is, the other files are whole. It ends with their SHA-256.
        for one in rows.values():
            one.close()
        hashes = {name: sha256_of(one.path) for name, one in rows.items()}
        whole = {**manifest, "files": hashes}
        _remove_earlier(self.out)
        for name, one in rows.items():
            one.path.replace(self.out / name)
        text = json.dumps(whole, ensure_ascii=False, indent=2)
        with replacing(self.out / MANIFEST) as file:
            file.write(f"{text}\n".encode())
        n_failed = sum(one.n_failed for one in self._models)
        n_sent = sum(one.n_sent for one in self._models)
        return Built(self.out, whole, n_sent, n_failed=n_failed, **more)


class RowFile:
    """A file of JSON lines that is written row by row; what is left of it at the end goes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Open it, empty."""
        self._file = self.path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        """Close it, and remove it unless it was moved."""
        self.close()
        self.path.unlink(missing_ok=True)

    def append(self, row: BaseModel | Mapping[str, Any]) -> None:
        """Write a row."""
        assert self._file is not None
        if isinstance(row, BaseModel):
            text = row.model_dump_json(exclude_defaults=True)
        else:
            text = json.dumps(row, ensure_ascii=False, allow_nan=False)
        with naming_full_file(self.path):
            self._file.write(text.encode("utf-8") + b"\n")

    def close(self) -> None:
        """Write all of it to the disk."""
        if self._file is not None:
            with naming_full_file(self.path):
                self._file.close()
            self._file = None


class RowSink(Protocol):
    """Whatever takes rows: a list, a file, a log."""

    def append(self, row: Any, /) -> None:
        """Take a row."""
        ...


class ReasonLog:
    """What went no further: counted by stage and reason, with the first of each; and written."""

    def __init__(self, file: RowSink) -> None:
        self._file = file
        self.counts: dict[str, Counter[str]] = {}
        self.first: dict[tuple[str, str], Any] = {}

    def append(self, row: Any, /) -> None:
        """Take one, which has a `stage` and a `reason`."""
        self.counts.setdefault(row.stage, Counter())[row.reason] += 1
        self.first.setdefault((row.stage, row.reason), row)
        if not isinstance(row, BaseModel):
            row = {name: value for name, value in asdict(row).items() if value}
        self._file.append(row)

    def describe(self) -> dict[str, dict[str, int]]:
        """Return how many there are by stage and reason, both in order of the alphabet."""
        return {stage: dict(sorted(found.items())) for stage, found in sorted(self.counts.items())}


def begin_manifest(
    plan: Mapping[str, Any], made_of: Mapping[str, Any], package: str
) -> dict[str, Any]:
    """Return the beginning of a manifest: what made it, down to its prompts."""
    return {
        "format": FORMAT,
        "package": __version__,
        "plan": dict(plan),
        **made_of,
        "prompts": hash_prompts(package),
    }


def hash_prompts(package: str) -> dict[str, str]:
    """Return 12 hex digits for each prompt of a package, by file name."""
    templates = (one for one in files(package).iterdir() if one.name.endswith(".md"))
    return {
        one.name: sha256(one.read_bytes()).hexdigest()[:12]
        for one in sorted(templates, key=lambda one: one.name)
    }


def plain_usage(used: Usage) -> dict[str, int]:
    """Return what replies took when they were new, in plain data."""
    return {
        "calls": used.calls,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "asked_twice": used.reasked_calls,
    }


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise `SettingsError` if results would be lost, or cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"the results go to a folder, got the file {str(folder)!r}")
    if (folder / MANIFEST).exists() and not overwrite:
        raise SettingsError(
            f"{str(folder / MANIFEST)!r} exists: the folder holds a build; give --overwrite "
            "(overwrite=True) to replace it"
        )


def _remove_earlier(folder: Path) -> None:
    """Remove the files of the run that is replaced, its manifest first."""
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


class CachedEmbeddings(Embeddings):
    """Embeddings that compute the vector of a text once, and keep it in single precision."""

    def __init__(self, embeddings: Embeddings, identity: str, cache: JudgementCache) -> None:
        self._embeddings, self._cache = embeddings, cache
        self.model = identity

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text; shape (n_texts, n_dimensions)."""
        keys = [self._key("text", text) for text in texts]
        found = {key: vector for key in set(keys) if (vector := self._read(key)) is not None}
        by_key = dict(zip(keys, texts, strict=True))
        missing = [(key, text) for key, text in by_key.items() if key not in found]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            made = self._embeddings.embed_documents([text for _, text in batch])
            for (key, _), vector in zip(batch, made, strict=True):
                found[key] = self._keep(key, vector)
        return [found[key] for key in keys]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question; shape (n_dimensions,)."""
        key = self._key("question", text)
        stored = self._read(key)
        return self._keep(key, self._embeddings.embed_query(text)) if stored is None else stored

    def _key(self, kind: str, text: str) -> str:
        return cache_key("vector", {kind: text}, {"embeddings": self.model})

    def _read(self, key: str) -> list[float] | None:
        value = self._cache.get(key)
        return None if value is None else _floats(base64.b64decode(value["vector"]))

    def _keep(self, key: str, vector: Sequence[float]) -> list[float]:
        """Store a vector, and return it as it will be read back."""
        data = np.asarray(vector, dtype="<f4").tobytes()
        self._cache.put(key, "vector", {"vector": base64.b64encode(data).decode()})
        return _floats(data)


def _floats(data: bytes) -> list[float]:
    vector: list[float] = np.frombuffer(data, dtype="<f4").tolist()
    return vector
