"""A role that answers from the cache what it has answered before."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ValidationError

from deepera_graph.cache.key import cache_key
from deepera_graph.cache.store import JudgementCache
from deepera_graph.schema import RoleAnswer
from deepera_graph.usage import Usage
from deepera_graph.version import __version__

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
        hedged_calls=own.hedged_calls,
        cached_calls=max(0, stored.calls - own.calls),
    )
