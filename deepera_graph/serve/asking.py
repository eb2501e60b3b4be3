"""A request, read: its body in a form, its limits, and whether anybody waits for it."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from math import isfinite
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from deepera_graph.errors import InputError
from deepera_graph.passages import check_length
from deepera_graph.serve.config import RequestLimits
from deepera_graph.serve.problems import name_problems
from deepera_graph.serve.replies import RequestRefusedError
from deepera_graph.serve.traffic.boundary import GONE
from deepera_graph.serve.traffic.ending import end_task
from deepera_graph.web.serving import read_body

ModelT = TypeVar("ModelT", bound=BaseModel)
DoneT = TypeVar("DoneT")
_MOST_TOLD = 3  # things that are wrong with a body
_DEEPEST = 100  # levels of lists and objects


async def read_plain(request: Request) -> dict[str, Any]:
    """Read a body; HTTP 400 if it is no JSON object, or one that nobody could write."""
    try:
        plain = read_body(await request.body())
        _check_values(plain)
    except InputError as error:
        raise RequestRefusedError(400, "input", str(error)) from error
    return plain


def _check_values(plain: dict[str, Any]) -> None:
    """Raise `InputError` for what no reply could repeat: 1e999, or data nested too deep to copy."""
    level: list[Any] = [plain]
    for _ in range(_DEEPEST):
        if any(isinstance(one, float) and not isfinite(one) for one in level):
            raise InputError("the body: a number in it is too large")
        level = [part for one in level for part in _parts_of(one)]
        if not level:
            return
    raise InputError(f"the body: it is nested more than {_DEEPEST} levels deep")


def _parts_of(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def read_form(plain: dict[str, Any], form: type[ModelT]) -> ModelT:
    """Read plain data in a form; what does not fit is HTTP 422."""
    try:
        return form.model_validate(plain)
    except ValidationError as error:
        problems = name_problems(error, form, "field")
        n_more = len(problems) - _MOST_TOLD
        told = [*problems[:_MOST_TOLD], *([f"and {n_more} more"] if n_more > 0 else [])]
        raise RequestRefusedError(422, "input", "; ".join(told)) from error


def check_size(question: str, texts: Sequence[str], limits: RequestLimits) -> None:
    """Raise `RequestRefusedError`, HTTP 422, if there is too much to read, or no question."""
    if not question.strip():
        raise RequestRefusedError(422, "input", "the question is empty")
    check_length(question)
    if len(texts) > limits.documents:
        message = f"a request may have {limits.documents} passages, got {len(texts)}"
        raise RequestRefusedError(422, "too_many", message)
    n = len(question) + sum(map(len, texts))
    if n > limits.characters:
        message = f"a request may have {limits.characters} characters, got {n}"
        raise RequestRefusedError(422, "too_many", message)


async def unless_gone(request: Request, work: Coroutine[Any, Any, DoneT]) -> DoneT:
    """Return what *work* gives; if the client goes away before, give it up."""
    doing: asyncio.Task[DoneT] = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_wait_until_gone(request))
    try:
        await asyncio.wait((doing, watching), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise RequestRefusedError(GONE, "gone", "the client went away")
        return doing.result()
    finally:
        await end_task(watching)
        await end_task(doing)


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue
