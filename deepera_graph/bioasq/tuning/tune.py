"""Tuning a cross-encoder on questions of BioASQ, over sentence-transformers' trainer.

Several models and sets of pairs are tried for one epoch each; the best on validation is tuned for
more, and of its epochs again the best on validation is kept, and exported to ONNX.

Source:
    The system of BioASQ 13b that this follows: labels 0 and 1, binary cross-entropy, one epoch to
    select, three for the final model; ms-marco-MiniLM-L12 was the best of its models.
"""

import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepera_graph import __version__
from deepera_graph.agents.journal import find_differences
from deepera_graph.bioasq.runs import ScoredDocument, rank_scores, write_run
from deepera_graph.bioasq.settings import TuningSettings, TuningVariant
from deepera_graph.bioasq.tuning.encoder_trainer import (
    ONNX,
    STACK,
    EncoderTrainer,
    Read,
    check_packages,
    onnx_reader,
    rank_pools,
)
from deepera_graph.bioasq.tuning.pairs import QuestionPool, TrainingPair, make_pairs, measure_map
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.cross_encoder.models import Pair
from deepera_graph.judges.cross_encoder.onnx import quantize, silence
from deepera_graph.judges.trained.model import sha256_of
from deepera_graph.stores.embeddings import package_versions

MANIFEST, INT8, CHECKPOINTS = "tuning.json", "model_int8.onnx", "checkpoints"
_N_COMPARED = 8
_STATE = "state.json"
_FILES = (ONNX, INT8, "model.safetensors", "tokenizer.json")  # whose hashes the manifest has
OnStep = Callable[[int, int, str], None]  # steps done, steps in all, what is being tuned


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningReport:
    """What a tuning did."""

    chosen: TuningVariant  # the variant that the final model is
    # what was tried: variants, and MAP@10 on validation; empty if there was one
    selection: tuple[tuple[TuningVariant, float], ...]
    n_pairs: int  # pairs that the final model was tuned on
    n_golden: int  # those of them that are golden documents
    epochs: tuple[float, ...]  # MAP@10 on validation after each epoch of the final model
    best_epoch: int  # the one that was kept, from 1
    # MAP@10 by part, then by ranking: ``index``, ``before`` and ``after`` the tuning, and ``int8``
    figures: Mapping[str, Mapping[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "chosen": self.chosen._asdict(),
            "selection": [{**one._asdict(), "map": value} for one, value in self.selection],
            "pairs": self.n_pairs,
            "golden": self.n_golden,
            "epochs": [*self.epochs],
            "best_epoch": self.best_epoch,
            "map": {part: dict(its) for part, its in self.figures.items()},
        }


def tune_encoder(
    # by part: ``train``, ``validation``, and ``test`` if there is one
    pools: Mapping[str, Sequence[QuestionPool]],
    settings: TuningSettings,  # how
    out: Path,  # a folder; other files in it stay
    *,
    # what the manifest also says, e.g. where the data is from
    about: Mapping[str, Any] | None = None,
    resume: bool = False,  # go on from the last checkpoint of a tuning that was cut short
    on_step: OnStep = lambda n, n_in_all, what: None,  # called after each step
) -> TuningReport:
    """Tune a cross-encoder, and write it with what was measured."""
    # In *out* are then ``model.onnx`` and ``tokenizer.json``, which `encoder_backend` takes, the
    # weights as sentence-transformers reads them, the rankings by part as runs, and the manifest. A
    # checkpoint is kept after each epoch until all is done.
    # Raises `SettingsError` if a package is missing, a model cannot be loaded or exported, or what
    # is to be resumed was something else; `InputError` if there is nothing to train on.
    check_packages()
    work = _Work(settings, pools, out)
    work.begin(resume=resume)
    with silence():
        tuner = EncoderTrainer(settings, pools["validation"])
        progress = _Progress(work, settings, on_step)
        selection = [(one, _try_out(tuner, work, one, progress)) for one in work.tried]
        chosen = max(selection, key=lambda one: one[1])[0] if selection else work.variants[0]
        measured, runs = _Measured(pools), out / "runs"
        model = tuner.load(chosen.model)
        measured.add("before", tuner.reader_of(model))
        pairs = work.pairs[chosen]
        epochs = tuner.train(model, pairs, settings.epochs, work.final, progress.of(chosen))
        measured.add("after", tuner.reader_of(model))
        tuner.export(model, out, measured.examples())
        (out / INT8).unlink(missing_ok=True)
        if settings.int8:
            quantize(out / ONNX, out / INT8)
            measured.add("int8", onnx_reader(out / INT8))
    runs.mkdir(exist_ok=True)
    measured.write(runs)
    report = TuningReport(
        chosen=chosen,
        selection=tuple(selection),
        n_pairs=len(pairs),
        n_golden=sum(one.label for one in pairs),
        epochs=tuple(epochs),
        best_epoch=epochs.index(max(epochs)) + 1,
        figures=measured.figures,
    )
    work.end(report, about or {})
    return report


def _try_out(
    tuner: EncoderTrainer, work: "_Work", variant: TuningVariant, progress: "_Progress"
) -> float:
    """Tune a variant for the epochs of the selection; return its MAP@10 on validation."""
    known = work.selected.get(str(variant))
    if known is not None:
        return known
    folder = work.folder / f"variant-{work.tried.index(variant) + 1}"
    model = tuner.load(variant.model)
    n_epochs = tuner.settings.select_epochs
    epochs = tuner.train(model, work.pairs[variant], n_epochs, folder, progress.of(variant))
    shutil.rmtree(folder)
    work.select(variant, max(epochs))
    return max(epochs)


class _Work:
    """What is to be done, and the file that says what is done."""

    def __init__(
        self, settings: TuningSettings, pools: Mapping[str, Sequence[QuestionPool]], out: Path
    ) -> None:
        self._settings, self._pools, self._out = settings, pools, out
        self.folder = out / CHECKPOINTS
        self.final = self.folder / "final"
        self.variants = settings.variants()
        self.tried = self.variants if len(self.variants) > 1 else []
        self.pairs = {one: self._make_pairs(one) for one in self.variants}
        self.selected: dict[str, float] = {}
        self._ran = {"settings": _plain(settings), "data": _hash_pools(pools)}

    def begin(self, *, resume: bool) -> None:
        """Make the folder, or read what was done there."""
        state = self.folder / _STATE
        if resume and state.is_file():
            before = json.loads(state.read_text(encoding="utf-8"))
            if found := find_differences(before["ran"], self._ran):
                raise SettingsError(f"{str(self._out)!r} cannot be continued: {'; '.join(found)}")
            self.selected = before["selected"]
            return
        if resume and (self._out / MANIFEST).is_file():
            raise SettingsError(f"{str(self._out)!r} is done: there is nothing to resume")
        (self._out / MANIFEST).unlink(missing_ok=True)  # of what is replaced now
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._save()

    def select(self, variant: TuningVariant, value: float) -> None:
        self.selected[str(variant)] = value
        self._save()

    def end(self, report: TuningReport, about: Mapping[str, Any]) -> None:
        made = [self._out / name for name in _FILES if (self._out / name).exists()]
        plain = {
            "deepera_graph": __version__,
            "libraries": package_versions(*STACK),
            **self._ran,
            **about,
            "questions": {part: len(its) for part, its in self._pools.items()},
            **report.to_dict(),
            "sha256": {one.name: sha256_of(one) for one in made},
        }
        text = json.dumps(plain, ensure_ascii=False, indent=1) + "\n"
        (self._out / MANIFEST).write_text(text, encoding="utf-8")
        shutil.rmtree(self.folder)

    def _make_pairs(self, variant: TuningVariant) -> list[TrainingPair]:
        pairs = make_pairs(
            self._pools["train"],
            ratio=variant.ratio,
            since=variant.since,
            seed=self._settings.seed,
        )
        if len({one.label for one in pairs}) < 2:
            raise InputError(
                f"nothing to train on with {variant}: of {len(self._pools['train'])} questions "
                f"{'none' if not pairs else 'no document but golden ones'} is left"
            )
        return pairs

    def _save(self) -> None:
        plain = {"ran": self._ran, "selected": self.selected}
        (self.folder / _STATE).write_text(json.dumps(plain), encoding="utf-8")


class _Progress:
    def __init__(self, work: _Work, settings: TuningSettings, tell: OnStep) -> None:
        self._tell, self._before, self._now = tell, 0, 0
        a_step = settings.batch_size
        tried = [one for one in work.tried if str(one) not in work.selected]
        sizes = [math.ceil(len(work.pairs[one]) / a_step) for one in tried]
        final = max(math.ceil(len(its) / a_step) for its in work.pairs.values())
        self._n_in_all = settings.select_epochs * sum(sizes) + settings.epochs * final

    def of(self, variant: TuningVariant) -> Callable[[int], None]:
        """Return what is called with the steps of a variant so far."""
        self._before += self._now

        def note(n: int) -> None:
            self._now = n
            self._tell(self._before + n, max(self._n_in_all, self._before + n), str(variant))

        return note


@dataclass
class _Measured:
    """Rankings of the parts that are not trained on, and their MAP@10."""

    pools: Mapping[str, Sequence[QuestionPool]]
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    runs: dict[str, dict[str, list[ScoredDocument]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part, its in self._parts():
            found = {pool.id: [one.pmid for one in pool.found] for pool in its}
            run = {
                name: rank_scores({pmid: -place for place, pmid in enumerate(pmids)})
                for name, pmids in found.items()
            }
            self._note(part, "index", run)

    def add(self, name: str, read: Read) -> None:
        for part, its in self._parts():
            self._note(part, name, rank_pools(read, its))

    def examples(self) -> list[Pair]:
        """Return some pairs to compare models by."""
        pools = self.pools["validation"][:_N_COMPARED]
        return [(pool.question, pool.found[0].passage) for pool in pools if pool.found]

    def write(self, folder: Path) -> None:
        """Write the rankings as runs, e.g. ``test.after.jsonl``."""
        for name, run in self.runs.items():
            write_run(folder / f"{name}.jsonl", run)

    def _parts(self) -> Iterator[tuple[str, Sequence[QuestionPool]]]:
        return ((part, its) for part, its in self.pools.items() if part != "train" and its)

    def _note(self, part: str, name: str, run: dict[str, list[ScoredDocument]]) -> None:
        self.runs[f"{part}.{name}"] = run
        self.figures.setdefault(part, {})[name] = measure_map(self.pools[part], run)


def _plain(settings: TuningSettings) -> dict[str, Any]:
    return json.loads(json.dumps(asdict(settings)))  # type: ignore[no-any-return]  # tuples as lists


def _hash_pools(pools: Mapping[str, Sequence[QuestionPool]]) -> str:
    digest = sha256()
    for part, its in pools.items():
        for one in its:
            documents = [*one.found, *one.held]
            plain = [part, one.id, one.question, sorted(one.golden), one.year, documents]
            digest.update(json.dumps(plain).encode() + b"\n")
    return digest.hexdigest()
