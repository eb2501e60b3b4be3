"""The twin of a backend that counts what would be asked, and asks nothing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.schema import (
    Answer,
    Backend,
    Intent,
    Judgement,
    PassageTask,
    RoleAnswer,
    Summary,
    Survey,
    SurveyTask,
)
from deepera_graph.usage import Usage

_ROLES: Mapping[str, RoleAnswer] = {
    "intent": Intent(topic="any", entity_type="", intent="other", expected_answer_type="other"),
    "surveyor": Survey(notes=[]),
    "judge": Judgement(score=1.0),
    "summarizer": Summary(text="counted"),
    "answerer": Answer(text="counted", citations=[]),
}


@runtime_checkable
class Countable(Protocol):
    """A role that knows what its calls would cost."""

    def counting(self) -> Runnable[Any, Any]:
        """Return a role that costs nothing and answers with the usage this one would have."""


class Unasked(Runnable[Any, Any]):
    """Stands in for a role that is not asked: by default one call a task, its tokens not known."""

    def __init__(self, answer: RoleAnswer, *, usage: Usage | None = None) -> None:
        self._answer, self._usage = answer, Usage(calls=1) if usage is None else usage

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> RoleAnswer:
        """Return the answer that makes the most calls follow."""
        return self._answer.model_copy(update={"usage": self._usage, **self._fitting(input)})

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> RoleAnswer:
        """Do what `invoke` does, in the running loop."""
        return self.invoke(input)

    def _fitting(self, task: Any) -> dict[str, Any]:
        """Return what an answer must have of its task to be a usable one."""
        if isinstance(self._answer, Intent) and task.get("question"):
            return {"entity_type": task["question"]}
        if isinstance(self._answer, Survey):
            return {"notes": [{} for _ in task["passages"]]}
        return {}


def counting_backend(backend: Backend) -> Backend:
    """Return a backend of the same roles that counts calls and prompt tokens; see `tokens_known`.

    A role of the caller's own is not called: its calls may cost money.
    """
    roles: dict[str, Any] = {
        name: _counting(role, _ROLES[name]) for name, role in _filled(backend).items()
    }
    return replace(backend, **roles, spec=None, needs_evidence=False)


def counting_judge(judge: Runnable[PassageTask, Judgement]) -> Runnable[PassageTask, Judgement]:
    """Return the counting twin of a judge alone."""
    return _counting(judge, _ROLES["judge"])


def counting_surveyor(surveyor: Runnable[SurveyTask, Survey]) -> Runnable[SurveyTask, Survey]:
    """Return the counting twin of a surveyor alone."""
    return _counting(surveyor, _ROLES["surveyor"])


def tokens_known(backend: Backend) -> bool:
    """Whether the twin of every role knows the tokens, not just the calls."""
    return all(isinstance(role, Countable) for role in _filled(backend).values())


def _counting(role: Runnable[Any, Any], answer: RoleAnswer) -> Runnable[Any, Any]:
    return role.counting() if isinstance(role, Countable) else Unasked(answer)


def _filled(backend: Backend) -> dict[str, Runnable[Any, Any]]:
    roles = {name: getattr(backend, name) for name in _ROLES}
    return {name: role for name, role in roles.items() if role is not None}


def written(kind: str, parts: Mapping[str, Backend]) -> dict[str, Any] | None:
    """Return the spec of a backend of this kind; None if a part cannot be written down."""
    specs = {role: part.spec for role, part in parts.items()}
    if any(spec is None for spec in specs.values()):
        return None
    return {"kind": kind, **{role: dict(spec or {}) for role, spec in specs.items()}}
