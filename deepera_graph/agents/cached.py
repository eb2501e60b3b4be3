"""Roles, and a judge, that answer from the cache what they have answered before."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, ValidationError

from deepera_graph import __version__
from deepera_graph.agents.twin import TwinRunnable, Work, ask
from deepera_graph.errors import RoleError, SettingsError
from deepera_graph.schema import (
    Batch,
    Candidate,
    Judgement,
    RoleAnswer,
    Unjudged,
    Verdict,
    fail_all,
    passage_tasks,
)
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import Usage

_SCALARS = (str, bool, int, type(None))


def cache_key(role: str, task: Mapping[str, object], fingerprint: Mapping[str, object]) -> str:
    """Name the answer of one role to one task; another model, prompt or passage names another.

    The name is the same in every process, on every Python, in any order of the keys. Text counts
    as it is, code point by code point; a float counts as its `repr`; 1, 1.0 and true differ; a
    tuple counts as the list it becomes in JSON. The values themselves cannot be read back.

    Returns:
        64 hexadecimal digits, the SHA-256 of the canonical JSON of the three in UTF-8.
    """
    whole = {"role": role, "task": task, "fingerprint": fingerprint}
    try:
        text = json.dumps(
            _plain(whole, "cache key"), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
    except RecursionError:
        raise SettingsError("cache key: nested too deep, or holds itself") from None
    # A lone surrogate is a code point like any other here, and must not equal half of a pair.
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: object, place: str) -> object:
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise SettingsError(f"{place} must be a finite number, got {value!r}")
    if isinstance(value, Mapping):
        return {_text(key, place): _plain(item, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{place}[{number}]") for number, item in enumerate(value)]
    raise SettingsError(f"{place} must be a JSON value, got {type(value).__name__}")


def _text(key: object, place: str) -> str:
    if isinstance(key, str):
        return key
    raise SettingsError(f"the keys of {place} must be text, got {key!r}")


TaskT = TypeVar("TaskT", bound=Mapping[str, Any])
AnswerT = TypeVar("AnswerT", bound=RoleAnswer)

_COLUMNS = ("calls", "input_tokens", "output_tokens", "reasked_calls")


@lru_cache(maxsize=64)
def _read_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of an answer; it takes milliseconds, and a run makes many roles."""
    return schema.model_json_schema()


class _Answers(Generic[AnswerT]):
    """The answers of one role in a cache, by task; opened at once, to find a bad file early."""

    def __init__(
        self,
        *,
        name: str,
        schema: type[AnswerT],
        cache: JudgementCache,
        fingerprint: Mapping[str, Any],
    ) -> None:
        self._name, self._schema, self._cache = name, schema, cache.open()
        full = {
            "given": fingerprint,
            "schema": _read_schema(schema),
            "package": __version__,
        }
        self._fingerprint = {"sha256": cache_key(name, {}, full)}

    def key(self, task: Mapping[str, Any]) -> str:
        return cache_key(self._name, task, self._fingerprint)

    def find(self, key: str, *, cached: bool = True) -> AnswerT | None:
        """Return a stored answer with what it cost when it was new."""
        value = self._cache.get(key)
        if value is None:
            return None
        try:
            usage = Usage(**value["usage"])
            if cached:
                usage = replace(usage, cached_calls=usage.calls)
            schema = Candidate if "first_score" in value else self._schema
            return schema.model_validate({**value, "usage": usage})  # type: ignore[return-value]
        except (KeyError, TypeError, ValidationError):  # damaged: ask again
            self._cache.forget(key)
            return None

    def keep(self, key: str, answer: AnswerT) -> AnswerT:
        """Store an answer; if an equal task was faster, give its answer, as later runs will."""
        schema = Candidate if isinstance(answer, Candidate) else self._schema
        try:
            checked = schema.model_validate(answer, from_attributes=True)
        except ValidationError:  # not ours to judge: who called the role says what is wrong
            return answer
        value = checked.model_dump(mode="json", include=set(schema.model_fields))
        usage = checked.usage or Usage(calls=1)
        value["usage"] = {column: getattr(usage, column) for column in _COLUMNS}
        value |= {"repaired": checked.repaired, "problem": checked.problem}
        if self._cache.put(key, self._name, value):
            return answer
        first = self.find(key, cached=False)
        if first is None:
            return answer
        return first.model_copy(update={"usage": _paid(first.usage or Usage(), usage)})


def _paid(stored: Usage, own: Usage) -> Usage:
    """Return the stored cost, with so many calls beside it that all add up to those really sent."""
    return replace(
        stored,
        failed_calls=own.failed_calls + max(0, own.calls - stored.calls),
        cached_calls=max(0, stored.calls - own.calls),
    )


class CachedRole(TwinRunnable[TaskT, AnswerT], Generic[TaskT, AnswerT]):
    """A role in front of which stands a judgement cache.

    Only answers are stored, never errors. Two equal tasks in flight at the same time are two
    calls; both give the answer that was stored first, so that a later run gives the same again.
    Put it around the role that checks answers and holds the limit: a hit then waits for nobody.

    The key has the *name* of the role, its task, the JSON schema of its answers, the package
    version, and *fingerprint*, JSON values that name all else the answer depends on: model,
    parameters, base URL, prompts, the schema a model is shown.
    """

    def __init__(
        self,
        role: Runnable[TaskT, AnswerT],
        *,
        name: str,
        schema: type[AnswerT],
        cache: JudgementCache,
        fingerprint: Mapping[str, Any],
    ) -> None:
        self.name, self._role = name, role
        self._answers = _Answers(name=name, schema=schema, cache=cache, fingerprint=fingerprint)

    def work(self, task: TaskT, config: RunnableConfig | None) -> Work[AnswerT]:
        """Answer from the cache, or call the role and keep its answer."""
        key = self._answers.key(task)
        found = self._answers.find(key)
        return found or self._answers.keep(key, (yield ask(self._role, task, config)))


class CachedBatches(TwinRunnable[Batch, list[Verdict]]):
    """A judge in front of which stands a judgement cache; see `CachedRole`.

    A verdict is kept by its window, whatever windows were judged with it; only those that the cache
    does not have are judged, as a smaller batch. Of a joint batch, where a verdict depends on all
    windows, all are judged if one is missing, and the key has all of them.
    """

    def __init__(
        self,
        judge: Runnable[Batch, list[Verdict]],
        *,
        cache: JudgementCache,
        fingerprint: Mapping[str, Any],
    ) -> None:
        self._judge = judge
        self._answers: _Answers[Any] = _Answers(
            name="judge", schema=Judgement, cache=cache, fingerprint=fingerprint
        )

    def work(self, task: Batch, config: RunnableConfig | None) -> Work[list[Verdict]]:
        """Answer from the cache, and judge the rest together."""
        keys = [self._answers.key(one) for one in _tasks(task)]
        found: list[Verdict | None] = [self._answers.find(key) for key in keys]
        if task["is_joint"] and None in found:
            found = [None] * len(keys)
        missing = [place for place, one in enumerate(found) if one is None]
        judged: list[Verdict] = []
        if missing:
            rest = _part_of(task, missing)
            try:
                judged = yield ask(self._judge, rest, config)
            except RoleError as error:
                judged = fail_all(rest, error)
        for place, one in zip(missing, judged, strict=True):
            is_kept = not isinstance(one, Unjudged)
            found[place] = self._answers.keep(keys[place], one) if is_kept else one
        return [one for one in found if one is not None]


def _tasks(batch: Batch) -> list[dict[str, Any]]:
    """Return all that the verdict on each window depends on."""
    beside: dict[str, Any] = {}
    if batch["part"]:
        beside["part"] = batch["part"]
    if batch["is_joint"]:
        beside["pool"] = cache_key("pool", {"windows": batch["windows"]}, {})
    tasks: list[dict[str, Any]] = [{**task, **beside} for task in passage_tasks(batch)]
    for task, score in zip(tasks, batch.get("scores", ()), strict="scores" in batch):
        task["score"] = score
    return tasks


def _part_of(batch: Batch, places: Sequence[int]) -> Batch:
    """Return a batch of some windows of a batch."""
    part: Batch = {
        **batch,
        "windows": [batch["windows"][place] for place in places],
        "numbers": [batch["numbers"][place] for place in places],
    }
    if "scores" in batch:
        part["scores"] = [batch["scores"][place] for place in places]
    return part
