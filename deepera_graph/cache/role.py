"""A role that answers from the cache what it has answered before."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ValidationError

from deepera_graph import __version__
from deepera_graph.cache.store import JudgementCache
from deepera_graph.errors import RoleError, SettingsError
from deepera_graph.schema import (
    GroupJudgement,
    GroupTask,
    Judgement,
    PassageTask,
    RoleAnswer,
    Unjudged,
)
from deepera_graph.usage import Usage

_SCALARS = (str, bool, int, type(None))


def cache_key(role: str, task: Mapping[str, object], fingerprint: Mapping[str, object]) -> str:
    """Name the answer of one role to one task; another model, prompt or passage names another.

    The name is the same in every process, on every Python, in any order of the keys. Text counts
    as it is, code point by code point; a float counts as its `repr`; 1, 1.0 and true differ; a
    tuple counts as the list it becomes in JSON. The values themselves cannot be read back.

    Args:
        role: Which role answers, e.g. ``"judge"``.
        task: All that the role is given: question, intent, passage.
        fingerprint: All else that the answer depends on: backend, model, parameters, base URL,
            prompt hash, answer schema, package version.

    Returns:
        64 hexadecimal digits, the SHA-256 of the canonical JSON of the three in UTF-8.

    Raises:
        SettingsError: Something in *task* or *fingerprint* is not a JSON value, or a key is not
            text; the message names its place, never its value.
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


class CachedRole(Runnable[TaskT, AnswerT], Generic[TaskT, AnswerT]):
    """A role in front of which stands a judgement cache.

    Only answers are stored, never errors. Two equal tasks in flight at the same time are two
    calls; both give the answer that was stored first, so that a later run gives the same again.
    Put it around the role that checks answers and holds the limit: a hit then waits for nobody.

    Args:
        role: Any Runnable that answers in *schema*.
        name: Which role it is, e.g. ``"judge"``; part of the key.
        schema: What the role answers in; its JSON schema is part of the key.
        cache: Where answers are kept; opened here, so that a bad file is found before a run.
        fingerprint: JSON values that name all else the answer depends on: model, parameters, base
            URL, prompts, the schema a model is shown. The package version is added.

    Raises:
        SettingsError: *fingerprint* holds something other than JSON values.
        StoreError: The file of the cache cannot be used.
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
        self.name = name
        self._role, self._schema, self._cache = role, schema, cache.open()
        full = {
            "given": fingerprint,
            "schema": schema.model_json_schema(),
            "package": __version__,
        }
        self._fingerprint = {"sha256": cache_key(name, {}, full)}

    def invoke(self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any) -> AnswerT:
        """Answer from the cache, or call the role and keep its answer."""
        key = self._key(input)
        return self._stored(key) or self._keep(key, self._role.invoke(input, config))

    async def ainvoke(
        self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AnswerT:
        """Answer from the cache, or call the role in the running loop and keep its answer."""
        key = self._key(input)
        return self._stored(key) or self._keep(key, await self._role.ainvoke(input, config))

    def find(self, task: TaskT) -> AnswerT | None:
        """Return the answer to a task that the cache has, if it has one."""
        return self._stored(self._key(task))

    def keep(self, task: TaskT, answer: AnswerT) -> AnswerT:
        """Keep an answer that was got elsewhere; return the one that was stored first."""
        return self._keep(self._key(task), answer)

    def _key(self, task: TaskT) -> str:
        return cache_key(str(self.name), task, self._fingerprint)

    def _stored(self, key: str, *, cached: bool = True) -> AnswerT | None:
        """Return a stored answer with what it cost when it was new."""
        value = self._cache.get(key)
        if value is None:
            return None
        try:
            usage = Usage(**value["usage"])
            if cached:
                usage = replace(usage, cached_calls=usage.calls)
            return self._schema.model_validate({**value, "usage": usage})
        except (KeyError, TypeError, ValidationError):  # damaged: ask again
            self._cache.forget(key)
            return None

    def _keep(self, key: str, answer: AnswerT) -> AnswerT:
        """Store an answer; if an equal task was faster, give its answer, as later runs will."""
        try:
            checked = self._schema.model_validate(answer, from_attributes=True)
        except ValidationError:  # not ours to judge: who called the role says what is wrong
            return answer
        value = checked.model_dump(mode="json", include=set(self._schema.model_fields))
        usage = checked.usage or Usage(calls=1)
        value["usage"] = {column: getattr(usage, column) for column in _COLUMNS}
        value |= {"repaired": checked.repaired, "problem": checked.problem}
        if self._cache.put(key, str(self.name), value):
            return answer
        first = self._stored(key, cached=False)
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


_Found = list[Judgement | None]


class CachedGroups(Runnable[GroupTask, GroupJudgement]):
    """A judge of groups in front of which stands a judgement cache.

    A judgement is kept by its passage, whatever passages were judged with it; only those that the
    cache does not have are judged, as a smaller group.

    Args:
        role: Judges groups.
        single: Judges passages alone, behind the cache; what both find is kept in one place.
    """

    def __init__(
        self,
        role: Runnable[GroupTask, GroupJudgement],
        single: CachedRole[PassageTask, Judgement],
    ) -> None:
        self._role, self._single = role, single

    def invoke(
        self, input: GroupTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroupJudgement:
        """Answer from the cache, and judge the rest together."""
        found, rest = self._found(input)
        if not rest["tasks"]:
            return _joined(found, [])
        try:
            answer = self._role.invoke(rest, config)
        except RoleError as error:
            return _joined(found, _left(rest, error))
        return self._kept(found, rest, answer)

    async def ainvoke(
        self, input: GroupTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroupJudgement:
        """Do what `invoke` does, in the running loop."""
        found, rest = self._found(input)
        if not rest["tasks"]:
            return _joined(found, [])
        try:
            answer = await self._role.ainvoke(rest, config)
        except RoleError as error:
            return _joined(found, _left(rest, error))
        return self._kept(found, rest, answer)

    def _found(self, group: GroupTask) -> tuple[_Found, GroupTask]:
        found = [self._single.find(task) for task in group["tasks"]]
        pairs = zip(group["tasks"], found, strict=True)
        return found, {"tasks": [task for task, judgement in pairs if judgement is None]}

    def _kept(self, found: _Found, rest: GroupTask, answer: GroupJudgement) -> GroupJudgement:
        verdicts = [
            one if isinstance(one, Unjudged) else self._single.keep(task, one)
            for task, one in zip(rest["tasks"], answer.verdicts, strict=True)
        ]
        return _joined(found, verdicts)


def _left(rest: GroupTask, error: RoleError) -> list[Judgement | Unjudged]:
    """Leave all of a group unjudged; what it cost is written beside the first."""
    unjudged = Unjudged.of(error)
    free = unjudged.model_copy(update={"usage": Usage()})
    return [unjudged, *[free] * (len(rest["tasks"]) - 1)]


def _joined(found: _Found, verdicts: list[Judgement | Unjudged]) -> GroupJudgement:
    """Put what was judged into the places of what was not found."""
    new = iter(verdicts)
    every = [next(new) if one is None else one for one in found]
    return GroupJudgement(
        verdicts=every, usage=sum((one.usage or Usage() for one in every), Usage())
    )
