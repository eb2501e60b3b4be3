"""Work that arrives piece by piece, from threads and event loops, done in batches."""

import asyncio
import atexit
import json
import math
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike, fspath
from pathlib import Path
from threading import Condition, Thread, current_thread
from time import monotonic
from typing import Any, Generic, Literal, TypeVar, get_args
from weakref import WeakSet

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.errors import AnswerError, CallError, RoleError, SettingsError
from deepera_graph.judges.cross_encoder.models import (
    Kind,
    Pair,
    PairModel,
    Reading,
    brief,
    find_model,
    pair_of,
    titled,
)
from deepera_graph.judges.trained.backend import local_backend
from deepera_graph.schema import Backend, Judgement, PassageTask
from deepera_graph.text.sentences import split_sentences
from deepera_graph.thresholds import Curve
from deepera_graph.usage import Usage

Scale = Literal["logit", "probability"]
DIGITS = 4  # what a pair gets in another batch differs by some 1e-6


@dataclass(frozen=True, slots=True)
class Scoring:
    """How the numbers of one model become scores.

    Attributes:
        name: Of the model.
        scale: What its numbers are.
        curve: From the score without it to a probability, or None.
        usage: What one pair costs.
    """

    name: str
    scale: Scale
    curve: Curve | None
    usage: Usage

    def judgement(self, reading: Reading, *, quote: str = "") -> Judgement:
        """Return the judgement of a passage.

        A logit is rounded to four digits, and becomes a score by the logistic function.

        Raises:
            AnswerError: The number is not finite, or a probability is not in [0, 1].
        """
        value = round(reading.value, DIGITS) if math.isfinite(reading.value) else reading.value
        if not math.isfinite(value) or (self.scale == "probability" and not 0 <= value <= 1):
            raise AnswerError(
                f"cross-encoder {self.name} gave {value}, which is no {self.scale}",
                usage=self.usage,
            )
        score = value if self.scale == "probability" else logistic(value)
        return Judgement(
            score=score if self.curve is None else self.curve.probability(score),
            reason="; ".join(filter(None, (self._reason(value), reading.note))),
            quote=quote,
            usage=self.usage,
        )

    def _reason(self, value: float) -> str:
        digits = 1 if self.scale == "logit" else 2
        return f"cross-encoder {self.name}, {self.scale} {value:.{digits}f}"


def logistic(logit: float) -> float:
    """Map a logit into [0, 1], with no overflow and no loss at either end."""
    if logit >= 0:
        return 1.0 / (1.0 + math.exp(-logit))
    power = math.exp(logit)
    return power / (1.0 + power)


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
PAUSE = 0.001
LONGEST_PAUSE = 0.004
LINGER = 1.0
LAST_BATCH = 10.0


class Batcher(Generic[ItemT, ResultT]):
    """Does the work of all callers in one thread, what is waiting together in one call.

    The thread begins with the first item and ends when there has been none for a second
    (`LINGER`). An item that comes alone waits 1 ms (`PAUSE`) for others, and no longer than 4 ms
    (`LONGEST_PAUSE`) while they keep coming. What waits is cut into batches by size, so that items
    of like size are together. If a batch fails, its items are done one by one, and only those fail
    that fail alone. In a forked child it starts anew.

    Args:
        work: Gives one result an item, in the same order.
        size: Of an item.
        batch_size: Most items a call, >= 1.
        renew: Called in a forked child, before any work there.
    """

    def __init__(
        self,
        work: Callable[[Sequence[ItemT]], Sequence[ResultT]],
        *,
        size: Callable[[ItemT], int],
        batch_size: int,
        renew: Callable[[], None] = lambda: None,
    ) -> None:
        self._work, self._size, self._batch_size = work, size, batch_size
        self._renew = renew
        self._line: _Line[ItemT, ResultT] = _Line()
        _ALIVE.add(self)

    def submit(self, item: ItemT) -> "Future[ResultT]":
        """Return where the result will be; cancel it, and an item still waiting is not done.

        Raises:
            RuntimeError: The program is ending.
        """
        return self._line.add(item, self._serve)

    def close(self) -> None:
        """End: finish the batch at work, cancel what waits, and take no more."""
        self._line.close()

    def start_anew(self) -> None:
        """Forget thread, lock and line of the parent process; for a forked child."""
        self._line = _Line()
        self._renew()

    def _serve(self, line: "_Line[ItemT, ResultT]") -> None:
        while entries := line.take(self._batch_size):
            entries.sort(key=lambda entry: self._size(entry[0]), reverse=True)
            for start in range(0, len(entries), self._batch_size):
                self._do(entries[start : start + self._batch_size])

    def _do(self, entries: "Sequence[_Entry[ItemT, ResultT]]") -> None:
        asked = [entry for entry in entries if entry[1].set_running_or_notify_cancel()]
        if asked and not self._done(asked) and len(asked) > 1:
            for entry in asked:
                self._done([entry])

    def _done(self, entries: "Sequence[_Entry[ItemT, ResultT]]") -> bool:
        """Do one batch; a failure is told to its only item, or else left to be tried again."""
        try:
            results = list(self._work([item for item, _ in entries]))
            if len(results) != len(entries):
                raise ValueError(f"{len(results)} results for {len(entries)} items")
        except Exception as error:  # noqa: BLE001 - the boundary to foreign code: its caller gets it
            if len(entries) == 1:
                entries[0][1].set_exception(error)
            return False
        for (_, future), result in zip(entries, results, strict=True):
            future.set_result(result)
        return True


_Entry = tuple[ItemT, "Future[ResultT]"]
_ALIVE: "WeakSet[Batcher[Any, Any]]" = WeakSet()


class _Line(Generic[ItemT, ResultT]):
    """Items that wait, and the thread that serves them, if there is one."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._entries: deque[_Entry[ItemT, ResultT]] = deque()
        self._server: Thread | None = None
        self._closed = False

    def add(
        self, item: ItemT, serve: "Callable[[_Line[ItemT, ResultT]], None]"
    ) -> "Future[ResultT]":
        future: Future[ResultT] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("the program is ending")
            if self._server is None:
                server = Thread(target=serve, args=(self,), name="deepera-batches", daemon=True)
                server.start()
                self._server = server
            self._entries.append((item, future))
            self._changed.notify()
        return future

    def take(self, n: int) -> "list[_Entry[ItemT, ResultT]]":
        """Return all that waits, once *n* are there or no more come; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._entries or self._closed, LINGER)
            self._gather(n)
            if self._closed or not self._entries:
                self._server = None
                return []
            taken = list(self._entries)
            self._entries.clear()
            return taken

    def close(self) -> None:
        with self._changed:
            self._closed = True
            server = self._server
            waiting = list(self._entries)
            self._entries.clear()
            self._changed.notify()
        for _, future in waiting:
            future.cancel()
        if server is not None and server is not current_thread():
            server.join(LAST_BATCH)

    def _gather(self, n: int) -> None:
        latest = monotonic() + LONGEST_PAUSE
        n_before = 0
        while n_before < len(self._entries) < n and monotonic() < latest and not self._closed:
            n_before = len(self._entries)
            self._changed.wait(PAUSE)


def _close_all() -> None:
    for batcher in list(_ALIVE):
        batcher.close()


def _start_all_anew() -> None:
    for batcher in list(_ALIVE):
        batcher.start_anew()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_all_anew)

Rebuild = tuple[Callable[..., Any], tuple[Any, ...]]


class EncoderJudge(Runnable[PassageTask, Judgement]):
    """Scores a passage by what a cross-encoder makes of question and passage.

    Args:
        model: The cross-encoder.
        scoring: How its numbers become scores.
        batch_size: Most pairs a call of the model, >= 1.
        quote: Whether to quote the sentence that the model puts first, at one more pair a sentence.
        rebuild: How to make this judge again where it is unpickled; None if that is not possible.
    """

    def __init__(
        self,
        model: PairModel,
        scoring: Scoring,
        *,
        batch_size: int,
        quote: bool = False,
        rebuild: Rebuild | None = None,
    ) -> None:
        self._scoring, self._quote, self._rebuild = scoring, quote, rebuild
        self._batcher: Batcher[Pair, Reading] = Batcher(
            model.read, size=_length, batch_size=batch_size, renew=model.renew
        )

    def __reduce__(self) -> Any:
        if self._rebuild is None:
            raise TypeError(f"cross-encoder {self._scoring.name} is a live object: not pickled")
        return self._rebuild

    def counting(self) -> "CountedEncoder":
        """Return a judge that costs nothing and says what this one would cost."""
        return CountedEncoder(self._scoring.usage)

    def invoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Judge one passage; calls from other threads share its batch.

        Raises:
            AnswerError: The model gave no usable number.
            CallError: The model failed on this pair alone.
        """
        if not input["text"].strip():
            return _blank()
        sentences = self._sentences(input)
        futures = [self._batcher.submit(pair) for pair in self._pairs(input, sentences)]
        try:
            readings = [future.result() for future in futures]
        except Exception as error:  # the boundary to foreign code
            raise self._told(error) from error
        finally:
            _give_up(futures)
        return self._judgement(readings, sentences)

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Judge one passage in the running loop."""
        if not input["text"].strip():
            return _blank()
        sentences = self._sentences(input)
        futures = [self._batcher.submit(pair) for pair in self._pairs(input, sentences)]
        try:
            readings = await asyncio.gather(*map(asyncio.wrap_future, futures))
        except Exception as error:  # the boundary to foreign code
            raise self._told(error) from error
        finally:
            _give_up(futures)
        return self._judgement(readings, sentences)

    def _sentences(self, task: PassageTask) -> list[str]:
        return [one.text for one in split_sentences(task["text"])] if self._quote else []

    def _pairs(self, task: PassageTask, sentences: Sequence[str]) -> list[Pair]:
        """Return the passage's pair, then that of each sentence; a lone sentence needs none."""
        alone = [] if len(sentences) < 2 else sentences
        title = task["title"]
        return [pair_of(task), *((task["question"], titled(title, one)) for one in alone)]

    def _judgement(self, readings: Sequence[Reading], sentences: Sequence[str]) -> Judgement:
        passage, *others = readings
        best = max(range(len(others)), key=lambda place: others[place].value, default=0)
        return self._scoring.judgement(passage, quote=sentences[best] if sentences else "")

    def _told(self, error: Exception) -> RoleError:
        if isinstance(error, RoleError):
            return error
        return CallError(
            f"cross-encoder {self._scoring.name} failed: {brief(error)}", usage=self._scoring.usage
        )


class CountedEncoder(Runnable[PassageTask, Judgement]):
    """Stands in for a cross-encoder where only costs are counted."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage

    def counting(self) -> "CountedEncoder":
        """Return this judge itself."""
        return self

    def invoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Return the judgement that makes the most calls follow."""
        return Judgement(score=1.0, usage=self._usage)

    async def ainvoke(
        self, input: PassageTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Judgement:
        """Do what `invoke` does, in the running loop."""
        return self.invoke(input)


def _length(pair: Pair) -> int:
    return len(pair[0]) + len(pair[1])


def _blank() -> Judgement:
    return Judgement(score=0.0, reason="the passage has no text", usage=Usage())


def _give_up(futures: "Sequence[Future[Reading]]") -> None:
    for future in futures:
        future.cancel()


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
