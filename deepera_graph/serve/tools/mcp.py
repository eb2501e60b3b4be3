"""DeepEra as a server of the Model Context Protocol: tools for the models and agents of any host.

Source:
    https://modelcontextprotocol.io/specification, by the official SDK, https://pypi.org/project/mcp
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from deepera_graph import __version__
from deepera_graph.errors import DeepEraError
from deepera_graph.papers.calls import describe_paper_calls
from deepera_graph.serve.backing.library import Library
from deepera_graph.serve.tools.calls import OWN_TOOLS, ask_base
from deepera_graph.serve.tools.forms import describe_model, describe_type, read_arguments
from deepera_graph.serve.traffic import end_task
from deepera_graph.web import serve_app

T = TypeVar("T")
HOST, PORT, PATH = "127.0.0.1", 8090, "/mcp"
MOST_BYTES = 4 * 2**20  # of a request over HTTP
_AT_ONCE = 4  # calls that are worked on; more wait
_ABOUT = (
    "Judges passages as evidence for scientific questions, searches libraries of them and of "
    "papers. Ask one complete question at a time. Cite evidence by its number and source. If no "
    "evidence is found, say so, or ask again in other words; do not answer from other knowledge."
)
_OLD_TOOLS = {"list_collections": "list_libraries"}
_logger = logging.getLogger(__name__)


def create_mcp_server(library: Library) -> Server[Any]:
    """Return the server; `serve_stdio` and `serve_http` run it, and any ASGI server its HTTP app.

    Tools: find_evidence, ask, tabulate_studies, check_citations and list_libraries; with papers
    also search_papers, match_title, get_paper, references and citations. All of them only
    read.

    ``create_mcp_server(Library(EvidenceReranker("local"))).streamable_http_app()``
    """
    tools = [*_describe_own_tools(), *_describe_paper_tools(library)]
    places = asyncio.Semaphore(_AT_ONCE)

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        known = [one.name for one in tools]
        name = _OLD_TOOLS.get(params.name, params.name)
        if name != params.name:
            _logger.warning("%s is now %s; the old name ends with 0.11", params.name, name)
        if name not in known:
            said = f"unknown tool {params.name!r:.80}; available: {', '.join(known)}"
            raise MCPError(types.INVALID_PARAMS, said)
        async with places:
            return await _call(library, name, params.arguments or {}, context)

    return Server(
        "deepera",
        version=__version__,
        title="DeepEra",
        instructions=_ABOUT,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _call(
    library: Library,
    name: str,
    arguments: Mapping[str, Any],
    context: ServerRequestContext[Any],
) -> types.CallToolResult:
    """Call a tool; what goes wrong is a result that says what to do about it."""

    async def report(done: float, of: float, message: str) -> None:
        await context.session.report_progress(done, of, message)

    try:
        reply = await _end_whole(_work(library, name, arguments, report))
    except DeepEraError as error:
        return _fail(f"{error}")
    except Exception as error:  # the boundary to a client, which is not told of our insides
        _logger.error("%s failed: %s", name, type(error).__name__, exc_info=error)
        return _fail(f"{name} failed ({type(error).__name__}); the log of the server says more")
    return types.CallToolResult(
        content=[types.TextContent(text=reply.text)],
        structured_content=reply.plain,
        is_error=reply.has_failed,
    )


async def _end_whole(work: Coroutine[Any, Any, T]) -> T:
    """Wait for work; if the call is cancelled, cancel it once and wait until it has ended."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await end_task(task)
        raise


async def _work(library: Library, name: str, arguments: Mapping[str, Any], report: Any) -> Any:
    own = OWN_TOOLS.get(name)
    if own is not None:  # read first: what cannot be used costs nothing
        return await own.run(library, read_arguments(name, own.takes, arguments), report)
    call = next(one.call for one in describe_paper_calls() if one.tool == name)
    return await ask_base(library, call, arguments)


def _fail(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


def _describe_own_tools() -> list[types.Tool]:
    return [
        types.Tool(
            name=name,
            title=one.title,
            description=one.about,
            input_schema=describe_model(one.takes),
            output_schema=describe_type(one.gives),
            annotations=_annotate(one.title),
        )
        for name, one in OWN_TOOLS.items()
    ]


def _describe_paper_tools(library: Library) -> list[types.Tool]:
    """Describe the calls of a base of papers, each with its library as one more argument."""
    if not library.bases:
        return []
    which = {"type": "string", "enum": list(library.bases), "description": "Which library."}
    needed = ["library"] if len(library.bases) > 1 else []
    return [
        types.Tool(
            name=one.tool,
            title=one.tool.replace("_", " ").capitalize(),
            description=one.about,
            input_schema={
                **one.arguments,
                "properties": {**one.arguments["properties"], "library": which},
                "required": [*one.arguments["required"], *needed],
            },
            output_schema=describe_type(one.gives),
            annotations=_annotate(one.tool.replace("_", " ").capitalize()),
        )
        for one in describe_paper_calls()
    ]


def _annotate(title: str) -> types.ToolAnnotations:
    return types.ToolAnnotations(
        title=title,
        read_only_hint=True,
        destructive_hint=False,
        idempotent_hint=True,
        open_world_hint=False,
    )


async def serve_stdio(library: Library) -> None:
    """Answer on stdin and stdout until stdin ends."""
    # Meanwhile stdout holds the protocol alone: whatever else is printed goes to stderr.
    server = create_mcp_server(library)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def serve_http(
    library: Library, *, port: int = PORT, on_start: Callable[[str], object] | None = None
) -> None:
    """Answer at ``http://127.0.0.1:PORT/mcp`` until interrupted: on this machine alone."""
    # Port 0 is any that is free; *on_start* is called with the address once it is listened at.
    app = create_mcp_server(library).streamable_http_app(
        streamable_http_path=PATH, host=HOST, max_request_body_size=MOST_BYTES
    )
    tell = None if on_start is None else lambda address: on_start(f"{address}{PATH}")
    serve_app(app, HOST, port, what="deepera mcp --http", on_start=tell)
