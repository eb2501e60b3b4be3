"""Every error this package raises on purpose.

DeepEraError
├── SettingsError    a setting is out of range                    (also a ValueError)
├── InputError       a question or a passage cannot be used       (also a ValueError)
├── PromptError      a template and its values disagree           (also a KeyError)
├── RoleError        a role gave no usable answer
│   ├── AnswerError  the role replied, but unusably
│   ├── CallError    the role could not be reached, or refused the call
│   └── BudgetError  the role was not called, as the budget is spent
├── WorkerError      a worker of an engine was lost over a task, again and again
├── BackendError     nothing could be judged: the backend is unreachable or refuses the key
├── FailedShareError more calls of a measurement failed than it may leave out
└── StoreError       a passage store is locked or unreachable
    └── MissingStoreError  there is none of that name, or no neighbours of it
"""

from typing import TYPE_CHECKING

from deepera_graph.usage import Usage

if TYPE_CHECKING:
    from pydantic import ValidationError


class DeepEraError(Exception):
    """Base of every error this package raises on purpose."""


class SettingsError(DeepEraError, ValueError):
    """A setting is out of range; the message names the value."""


class InputError(DeepEraError, ValueError):
    """A question or a passage cannot be used; the message names it."""


class PromptError(DeepEraError, KeyError):
    """A template and the values it is filled with disagree."""

    def __str__(self) -> str:
        """Return the message without the quotation marks that `KeyError` adds."""
        return str(self.args[0]) if self.args else ""


class RoleError(DeepEraError):
    """A role gave no usable answer.

    Attributes:
        usage: What the failed attempts cost.
    """

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()


class AnswerError(RoleError):
    """The role replied, but unusably."""


class CallError(RoleError):
    """The role could not be reached, or refused the call.

    Attributes:
        status: HTTP status, or None if there was no answer.
        transport: True when the connection failed or timed out, so that trying again may help.
        retry_after: Seconds the server asks to wait, >= 0, or None.
        unusable: True when no passage can succeed: no connection, wrong key, unknown model.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        transport: bool = False,
        retry_after: float | None = None,
        unusable: bool = False,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message, usage=usage)
        self.status = status
        self.transport = transport
        self.retry_after = retry_after
        self.unusable = unusable


class BudgetError(RoleError):
    """The role was not called, as the budget is spent; the message names the limit."""


class WorkerError(DeepEraError):
    """A task could not be done: every worker that had it in hand was lost."""


class BackendError(DeepEraError):
    """Nothing could be judged: the backend is unreachable or refuses the key."""


class FailedShareError(DeepEraError):
    """More calls of a measurement failed than its figures could bear; the message has the share."""


class StoreError(DeepEraError):
    """A passage store is missing, locked or unreachable."""


class MissingStoreError(StoreError):
    """There is no collection of that name, or no store in that folder: it may be mistyped."""


def name_problems(error: "ValidationError") -> str:
    """Say what a schema refuses in an answer, and where."""
    problems = (
        f"{'.'.join(map(str, problem['loc'])) or 'answer'}: {problem['msg']}"
        f", got {problem['input']!r:.80}"
        for problem in error.errors()
    )
    return "unusable answer: " + "; ".join(problems)
