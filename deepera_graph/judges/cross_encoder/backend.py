"""A cross-encoder as a judge, and the backend around it."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple, get_args
from weakref import WeakSet

from langchain_core.runnables import RunnableConfig

from deepera_graph.errors import AnswerError, BudgetError, CallError, RoleError, SettingsError
from deepera_graph.judges.base import CountedJudge, Judge
from deepera_graph.judges.cross_encoder.models import (
    GivenModel,
    Pair,
    PairModel,
    PairReading,
    SentenceModel,
    with_title,
)
from deepera_graph.judges.cross_encoder.onnx import OnnxModel
from deepera_graph.judges.heuristic.roles import heuristic_backend
from deepera_graph.packages import describe_error
from deepera_graph.schema import Backend, Batch, Judgement, Unjudged, Verdict, Window
from deepera_graph.settings.budget import Tab, carried
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.settings.thresholds import Curve
from deepera_graph.text.words import split_sentences
from deepera_graph.usage import Usage

Scale = Literal["logit", "probability"]
Kind = Literal["onnx", "sentence-transformers"]
_PATH_LIKE = ("/", "./", "../", "~", ".\\", "..\\")
_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
_SIGNS: tuple[tuple[str, Kind], ...] = (  # what tells the kind of a folder, the first first
    (_ONNX_FILES[0], "onnx"),
    ("config.json", "sentence-transformers"),
    (_ONNX_FILES[1], "onnx"),
)
_DIGITS = 4  # what a pair gets in another batch differs by some 1e-6


@dataclass(frozen=True, slots=True)
class Scoring:
    """How the numbers of one model become scores."""

    name: str  # of the model
    scale: Scale  # what its numbers are
    curve: Curve | None  # from the score without it to a probability
    usage: Usage  # what one pair costs

    def judgement(self, reading: PairReading, *, quote: str = "") -> Judgement:
        """Return the judgement of a passage; a number that is none of the scale is an error."""
        value = round(reading.value, _DIGITS) if math.isfinite(reading.value) else reading.value
        is_logit = self.scale == "logit"
        if not math.isfinite(value) or not (is_logit or 0 <= value <= 1):
            raise AnswerError(
                f"cross-encoder {self.name} gave {value}, which is no {self.scale}",
                usage=self.usage,
            )
        score = logistic(value) if is_logit else value
        reason = f"cross-encoder {self.name}, {self.scale} {value:.{1 if is_logit else 2}f}"
        return Judgement(
            score=score if self.curve is None else self.curve.probability(score),
            reason="; ".join(filter(None, (reason, reading.note))),
            quote=quote,
            usage=self.usage,
        )


def logistic(logit: float) -> float:
    """Map a logit into [0, 1], with no overflow and no loss at either end."""
    if logit >= 0:
        return 1.0 / (1.0 + math.exp(-logit))
    power = math.exp(logit)
    return power / (1.0 + power)


_ALIVE: "WeakSet[EncoderJudge]" = WeakSet()


class EncoderJudge(Judge):
    """Scores passages by what a cross-encoder makes of them; is pickled as its *spec*."""

    def __init__(
        self,
        model: PairModel,
        scoring: Scoring,
        *,
        batch_size: int,
        quote: bool = False,
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        self._model, self._scoring, self._batch_size = model, scoring, batch_size
        self._quote, self._spec = quote, spec
        self.asks_model = bool(scoring.usage.calls)
        self._lock = Lock()
        _ALIVE.add(self)

    def __reduce__(self) -> Any:
        if self._spec is None:
            raise TypeError(f"cross-encoder {self._scoring.name} is a live object: not pickled")
        return _judge_from_spec, (self._spec,)

    def counting(self) -> CountedJudge:
        """Return a judge that costs nothing and says what this one would cost."""
        return CountedJudge(self, self._scoring.usage)

    def judge(self, batch: Batch, config: RunnableConfig | None = None) -> list[Verdict]:
        """Judge a batch; a pair that the model fails on fails alone."""
        tab = carried(config).tab
        verdicts: dict[int, Verdict] = {}
        asked: dict[int, _Passage] = {}
        for place, window in enumerate(batch["windows"]):
            if not window["text"].strip():
                verdicts[place] = _BLANK
                continue
            try:
                self._start(tab)
            except BudgetError as error:
                verdicts[place] = Unjudged.of(error)
            else:
                asked[place] = self._list_pairs(batch["question"], window)
        found = iter(self._read([pair for one in asked.values() for pair in one.pairs]))
        for place, passage in asked.items():
            verdicts[place] = self._verdict(passage, list(islice(found, len(passage.pairs))))
            if self._scoring.usage.calls:
                tab.end(self._scoring.usage)
        return [verdicts[place] for place in range(len(batch["windows"]))]

    def start_anew(self) -> None:
        """Forget what does not survive a fork; for the child."""
        self._lock = Lock()
        self._model.renew()

    def _start(self, tab: Tab) -> None:
        if self._scoring.usage.calls:
            tab.start()

    def _list_pairs(self, question: str, window: Window) -> "_Passage":
        """Return the passage's pair, then that of each sentence; a lone sentence needs none."""
        sentences = [one.text for one in split_sentences(window["text"])] if self._quote else []
        texts = [window["text"], *(sentences if len(sentences) > 1 else ())]
        return _Passage([(question, with_title(window["title"], one)) for one in texts], sentences)

    def _read(self, pairs: Sequence[Pair]) -> list[PairReading | Exception]:
        order = sorted(range(len(pairs)), key=lambda place: -sum(map(len, pairs[place])))
        found: dict[int, PairReading | Exception] = {}
        for start in range(0, len(order), self._batch_size):
            places = order[start : start + self._batch_size]
            readings = self._read_batch([pairs[place] for place in places])
            found.update(zip(places, readings, strict=True))
        return [found[place] for place in range(len(pairs))]

    def _read_batch(self, pairs: Sequence[Pair]) -> list[PairReading | Exception]:
        """Read pairs in one call; if it fails, one by one."""
        try:
            with self._lock:
                readings = self._model.read(pairs)
            if len(readings) != len(pairs):
                raise ValueError(f"{len(readings)} results for {len(pairs)} pairs")
        except Exception as error:  # noqa: BLE001 - the boundary to foreign code
            if len(pairs) == 1:
                return [error]
            return [one for pair in pairs for one in self._read_batch([pair])]
        return list(readings)

    def _verdict(
        self, passage: "_Passage", readings: Sequence[PairReading | Exception]
    ) -> Judgement | Unjudged:
        name, usage = self._scoring.name, self._scoring.usage
        known: list[PairReading] = []
        for one in readings:
            if isinstance(one, RoleError):
                return Unjudged.of(one)
            if isinstance(one, Exception):
                failed = f"cross-encoder {name} failed: {describe_error(one)}"
                return Unjudged.of(CallError(failed, usage=usage))
            known.append(one)
        first, *others = known
        best = max(range(len(others)), key=lambda place: others[place].value, default=0)
        quote = passage.sentences[best] if passage.sentences else ""
        try:
            return self._scoring.judgement(first, quote=quote)
        except AnswerError as error:
            return Unjudged.of(error)


class _Passage(NamedTuple):
    """The pairs to read of a passage, its own first, and its sentences if one is to be quoted."""

    pairs: list[Pair]
    sentences: list[str]


_BLANK = Judgement(score=0.0, reason="the passage has no text", usage=Usage())


def _start_all_anew() -> None:
    for judge in list(_ALIVE):
        judge.start_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_all_anew)


def encoder_backend(
    model: Any,
    *,
    kind: Kind | None = None,
    max_tokens: int | None = None,
    batch_size: int | None = None,
    threads: int | None = None,
    scale: Scale = "logit",
    curve: Curve | None = None,
    quote: bool = False,
) -> Backend:
    """Have a cross-encoder judge, and the local rules do the rest.

    Args:
        model: An ONNX file, or a folder with ``model.onnx`` and ``tokenizer.json``; a cross-encoder
            of sentence-transformers, by folder or name; or an object with ``predict(pairs)``,
            ``score(pairs)`` or ``rank(query, docs, doc_ids)``, e.g. one of `rerankers`.
        kind: ``onnx`` or ``sentence-transformers``, for a folder that holds both; found by default.
        max_tokens: Most tokens of question and passage together; the end of the longer is left out.
            By default what the model says, for ONNX at most 512.
        batch_size: Most pairs a call of the model, >= 1. By default 32, and 8 for ONNX; 1 if the
            scores depend on what else is in the batch, as those of int8 models may.
        threads: Threads of one call of an ONNX model, >= 1; by default one a core.
        scale: What the model gives: a ``logit``, or a ``probability``.
        curve: From the logistic function of the logit, or from the probability, to the score.
        quote: Whether to quote the sentence that the model puts first, at one more pair a sentence.

    Raises:
        SettingsError: A package or a file is missing, the model is of another kind, or a number is
            out of range.
    """
    counts = {"max_tokens": max_tokens, "batch_size": batch_size, "threads": threads}
    for name, count in counts.items():
        if count is not None:
            check_at_least(name, count, 1)
    if scale not in get_args(Scale):
        raise SettingsError(f"scale must be one of {list(get_args(Scale))}, got {scale!r}")
    if kind is not None and kind not in get_args(Kind):
        raise SettingsError(f"kind must be one of {list(get_args(Kind))}, got {kind!r}")
    if isinstance(model, PathLike):
        model = fspath(model)
    found = find_encoder(model, kind=kind, max_tokens=max_tokens, threads=threads)
    options = {
        "runtime": kind,
        **counts,
        "scale": None if scale == "logit" else scale,
        "curve": None if curve is None else curve.to_dict(),
        "quote": quote or None,
    }
    spec = _spec(model, options) if isinstance(model, str) else None
    size = batch_size or found.batch_size
    judge = EncoderJudge(
        found,
        Scoring(found.name, scale, curve, Usage() if found.is_local else Usage(calls=1)),
        batch_size=size,
        quote=quote,
        spec=spec,
    )
    return replace(
        heuristic_backend(),
        name="encoder",
        judge=judge,
        about=_about(found, scale, curve) | ({"batch_size": size} if found.mixes else {}),
        spec=None if spec is None else {"kind": "encoder", **spec},
    )


def find_encoder(
    model: Any, *, kind: Kind | None, max_tokens: int | None, threads: int | None
) -> PairModel:
    """Return the model that a name or a path stands for, or wrap an object."""
    if not isinstance(model, str):
        _refuse("a live object", kind=kind, max_tokens=max_tokens, threads=threads)
        return GivenModel(model)
    if (kind or _find_kind(model)) == "onnx":
        file = _find_file(Path(model).expanduser())
        return OnnxModel(file, max_tokens=max_tokens, threads=threads)
    _refuse("a model of sentence-transformers", threads=threads)
    return SentenceModel(model, max_tokens=max_tokens)


def _find_kind(model: str) -> Kind:
    """Tell an ONNX file, or a folder with one, from a folder or a name of sentence-transformers."""
    if not model.strip():
        raise SettingsError(f"model must be a name, a file or a folder, got {model!r}")
    place = Path(model).expanduser()
    if place.is_dir():
        return _find_kind_of_folder(place)
    if place.suffix.lower() == ".onnx":
        return "onnx"
    if place.is_file():
        raise SettingsError(f"model must be an ONNX file or a folder, got the file {model!r}")
    if model.startswith(_PATH_LIKE):
        raise SettingsError(f"model must be a name, a file or a folder; {model!r} does not exist")
    return "sentence-transformers"


def _find_kind_of_folder(folder: Path) -> Kind:
    for name, kind in _SIGNS:
        if (folder / name).is_file():
            return kind
    raise SettingsError(
        f"the folder {str(folder)!r} holds no model: neither model.onnx with tokenizer.json, nor "
        "config.json with weights"
    )


def _find_file(place: Path) -> Path:
    if not place.exists():
        raise SettingsError(f"{str(place)!r} does not exist")
    for one in (place, *(place / name for name in _ONNX_FILES)):
        if one.is_file():
            return one.resolve()
    raise SettingsError(f"{place} holds no model.onnx")


def _refuse(what: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise SettingsError(f"{name} does not go with {what}")


def encoder_backend_from_spec(spec: Mapping[str, Any]) -> Backend:
    """Build the backend that a spec describes; `SettingsError` if it is of something else."""
    options = dict(spec)
    curve = options.pop("curve", None)
    try:
        return encoder_backend(
            options.pop("model"),
            kind=options.pop("runtime", None),
            curve=None if curve is None else Curve.from_dict(curve),
            **options,
        )
    except (TypeError, KeyError) as error:
        raise SettingsError(f"not the spec of an encoder backend: {error}") from error


def _judge_from_spec(spec: Mapping[str, Any]) -> Any:
    return encoder_backend_from_spec(spec).judge


def _spec(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    place = Path(model).expanduser()
    named = str(place.resolve()) if place.exists() else model
    return {"model": named, **{name: one for name, one in options.items() if one is not None}}


def _about(model: PairModel, scale: Scale, curve: Curve | None) -> dict[str, Any]:
    about: dict[str, Any] = {
        "judge": "cross-encoder",
        "model": model.name,
        "judge_version": model.version,
        "scale": scale,
        **({} if model.max_tokens is None else {"max_tokens": model.max_tokens}),
    }
    if curve is None:
        about["note"] = "the score orders passages; without a curve it is no measured probability"
        return about
    plain = json.dumps(curve.to_dict(), sort_keys=True).encode()
    return {**about, "judge": f"cross-encoder, curve {sha256(plain).hexdigest()[:12]}"}
