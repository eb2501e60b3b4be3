"""How a request is read: any body as JSON, in the form that its path declares, within limits."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from math import isfinite
from typing import Any, TypeVar

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from deepera_graph.errors import InputError
from deepera_graph.passages import check_length
from deepera_graph.serve.config import RequestLimits
from deepera_graph.serve.replies import RequestRefusedError, name_problems, rename_fields
from deepera_graph.serve.traffic import GONE, end_task, note_of
from deepera_graph.web import read_body

DoneT = TypeVar("DoneT")
_MOST_TOLD = 3  # things that are wrong with a body
_DEEPEST = 100  # levels of lists and objects


class PlainRoute(APIRoute):
    """A path that reads its body as JSON, whatever type it comes as: `curl -d` names another.

    What is no JSON is HTTP 400, and what does not fit the declared form 422, in our words.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle, field = super().get_route_handler(), self.body_field
        if field is None:
            return handle

        async def answer(request: Request) -> Response:
            known = getattr(field.field_info.annotation, "model_fields", ())
            plain, note = rename_fields(_read_plain(await request.body()), known)
            note_of(request).told = note
            try:
                return await handle(_PlainRequest(request, plain))
            except RequestValidationError as error:
                problems = name_problems(error.errors(), known, "field")
                n_more = len(problems) - _MOST_TOLD
                told = [*problems[:_MOST_TOLD], *([f"and {n_more} more"] if n_more > 0 else [])]
                raise RequestRefusedError(422, "input", "; ".join(told)) from error

        return answer


class _PlainRequest(Request):
    """A request whose body is read, and is JSON."""

    def __init__(self, request: Request, plain: dict[str, Any]) -> None:
        headers = [one for one in request.scope["headers"] if one[0] != b"content-type"]
        headers.append((b"content-type", b"application/json"))
        super().__init__({**request.scope, "headers": headers}, request.receive)
        self._plain = plain

    async def body(self) -> bytes:
        return b"{}"  # is not looked at, but that it is there

    async def json(self) -> Any:
        return self._plain


def _read_plain(body: bytes) -> dict[str, Any]:
    """Read a body; HTTP 400 if it is no JSON object, or one that nobody could write."""
    try:
        plain = read_body(body)
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
