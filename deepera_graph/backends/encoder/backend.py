"""The encoder backend: a cross-encoder judges, and the local rules do the rest."""

import json
from collections.abc import Mapping
from hashlib import sha256
from os import PathLike, fspath
from pathlib import Path
from typing import Any, get_args

from deepera_graph.backends.encoder.find import Kind, find_model
from deepera_graph.backends.encoder.judge import EncoderJudge
from deepera_graph.backends.encoder.pairs import PairModel
from deepera_graph.backends.encoder.score import Scale, Scoring
from deepera_graph.backends.local import local_backend
from deepera_graph.curve import Curve
from deepera_graph.errors import SettingsError
from deepera_graph.roles import Backend
from deepera_graph.usage import Usage


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
        max_tokens: Most tokens of question and passage together; the passage's end is left out.
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
    _check_counts(max_tokens=max_tokens, batch_size=batch_size, threads=threads)
    if scale not in get_args(Scale):
        raise SettingsError(f"scale must be one of {list(get_args(Scale))}, got {scale!r}")
    if kind is not None and kind not in get_args(Kind):
        raise SettingsError(f"kind must be one of {list(get_args(Kind))}, got {kind!r}")
    if isinstance(model, PathLike):
        model = fspath(model)
    found = find_model(model, kind=kind, max_tokens=max_tokens, threads=threads)
    options = {
        "runtime": kind,
        "max_tokens": max_tokens,
        "batch_size": batch_size,
        "threads": threads,
        "scale": None if scale == "logit" else scale,
        "curve": None if curve is None else curve.to_dict(),
        "quote": quote or None,
    }
    spec = _spec(model, options) if isinstance(model, str) else None
    local = local_backend("rules")
    judge = EncoderJudge(
        found,
        Scoring(found.name, scale, curve, Usage() if found.is_local else Usage(calls=1)),
        batch_size=batch_size or found.batch_size,
        quote=quote,
        rebuild=None if spec is None else (_judge_from_spec, (spec,)),
    )
    return Backend(
        name="encoder",
        intent=local.intent,
        judge=judge,
        summarizer=local.summarizer,
        answerer=local.answerer,
        about={
            **_about(found, scale, curve),
            **({"batch_size": batch_size or found.batch_size} if found.mixes else {}),
        },
        spec=None if spec is None else {"kind": "encoder", **spec},
    )


def encoder_backend_from_spec(spec: Mapping[str, Any]) -> Backend:
    """Build the backend that a spec describes.

    Raises:
        SettingsError: The spec is of something else, or its model is gone.
    """
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
    }
    if model.max_tokens is not None:
        about["max_tokens"] = model.max_tokens
    if curve is None:
        about["note"] = "the score orders passages; without a curve it is no measured probability"
        return about
    plain = json.dumps(curve.to_dict(), sort_keys=True).encode()
    return {**about, "judge": f"cross-encoder, curve {sha256(plain).hexdigest()[:12]}"}


def _check_counts(**counts: Any) -> None:
    for name, count in counts.items():
        if count is not None and (isinstance(count, bool) or not isinstance(count, int)):
            raise SettingsError(f"{name} must be a whole number, got {count!r}")
        if count is not None and count < 1:
            raise SettingsError(f"{name} must be at least 1, got {count}")
