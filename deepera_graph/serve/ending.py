"""The end of work that nobody waits for any more."""

import asyncio
from typing import Any

import anyio


async def end_task(task: "asyncio.Future[Any]") -> None:
    """Cancel a task once, and wait until it has ended, whatever cancels who waits here.

    A scope of anyio, as Starlette and the SDK of MCP open one for each request, cancels at every
    await. A task that is cancelled again while LangGraph stops its own tasks leaves them behind:
    they would go on asking a model for a client that is gone.
    """
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.gather(task, return_exceptions=True)
