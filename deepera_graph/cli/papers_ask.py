"""`deepera papers ask`: the papers that a question asks for, with reasons."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.opening.judges import limits_of, load_foreign, open_chat
from deepera_graph.cli.opening.limits import to_scope
from deepera_graph.cli.opening.stores import (
    SearchedOptions,
    check_searched,
    open_searched,
)
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import (
    INTERRUPTED,
    OK,
    SOME_FAILED,
    from_thread,
    go_on_command,
    say,
    text_console,
    wrap_text,
    write_text,
)
from deepera_graph.cli.shared.declaring import arg, given, opt, opt_of
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.papers.agent.settings import PaperSearchSettings
from deepera_graph.papers.paper import ListFormat
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.papers.agent.found import Found
    from deepera_graph.papers.agent.graph import PaperSearch
    from deepera_graph.papers.results import Scope
    from deepera_graph.schema import Backend
    from deepera_graph.stores.judgements import JudgementCache

_how = partial(opt, panel="How is searched")
_far = partial(opt_of, PaperSearchSettings, panel="How is searched", ranged=True, config=None)
_K = 20


@dataclass(frozen=True, kw_only=True)
class FoundOptions:
    """What is written."""

    k: int | None = opt("Most papers shown.", "-k", metavar="N", least=1, shown="20")
    format: Literal["text", "json", ListFormat, "mermaid"] = opt(
        "How it is written; [b]mermaid[/b] is the search as a tree.", default="text"
    )
    verbose: bool = opt("Also show what was looked up.", "--verbose", "-v", default=False)


@dataclass(frozen=True, kw_only=True)
class StyleOptions:
    """Who plans, and how far it goes."""

    style: Literal["rules", "sparse", "dense", "hybrid", "pasa", "spar", "scout"] | None = _how(
        "Who plans. [b]rules[/b]: labels and papers like the best, no key. [b]sparse[/b], "
        "[b]dense[/b], [b]hybrid[/b]: one search. With --model [b]pasa[/b], [b]spar[/b] or "
        "[b]scout[/b]: in the style of PaSa, SPAR or PaperScout.",
        metavar="NAME",
        shown="scout with --model, else rules",
    )
    selector: Literal["deepera", "vectors", "rules", "llm"] | None = _how(
        "Who says what fits and what breaks a limit. [b]deepera[/b]: the evidence graph, see "
        "--judge. [b]vectors[/b]: by vectors of sentences, limits alone. [b]rules[/b]: by words, "
        "limits alone. [b]llm[/b]: the chat model, with a prompt for papers.",
        metavar="NAME",
        shown="llm with --model, else vectors",
    )
    judge: str | None = _how(
        "With --selector deepera: who reads title and abstract as evidence; named as for --backend "
        "of `deepera rerank`, [b]llm[/b] is the model of --model.",
        metavar="NAME",
        shown="local",
    )
    fit: float | None = _how(
        "With --selector deepera: the score, from 0 to 1, from which on a paper fits.",
        metavar="T",
        shown="0.5 with a chat model; else papers are only ordered",
    )
    max_steps: int | None = _far("max_steps")
    max_actions: int | None = _far("max_actions")
    max_papers: int | None = _far("max_papers")


def ask(
    question: Annotated[
        str, arg("QUESTION", "What is looked for, with its limits in words, in quotes.")
    ],
    *,
    where: SearchedOptions,
    found: FoundOptions,
    style: StyleOptions,
    limits: places.WhereOptions,
    chat: options.ModelOptions,
    output: options.OutputOptions,
) -> None:
    """Search for papers in several steps, and say of each why it is there."""
    _check_style(style, chat)
    output.check_form(found.format)
    check_searched(where)
    scope = to_scope(limits)
    with (
        open_searched(where, chat.cache) as (base, failures),
        _open_search(base, style, chat) as search,
    ):
        result = _follow(search, question, scope, quiet=output.quiet)
    if result.stopped == "plan_failed" and not result.actions:
        raise BackendError(result.problems[-1])
    form = "json" if output.as_json else found.format
    if form == "text":
        text = result.to_text(k=found.k or _K, closing=not output.quiet, lookups=found.verbose)
        text = wrap_text(text, text_console().width)
    else:
        text = result.export(form, k=found.k)
    write_text(f"{text.rstrip()}\n")
    if form != "text":
        for problem in result.problems:
            say(problem)
    raise typer.Exit(SOME_FAILED if result.has_failed or failures else OK)


def _check_style(style: StyleOptions, chat: options.ChatOptions) -> None:
    """Raise `SettingsError` for options that do not go together, before anything is loaded."""
    if not chat.model:
        if style.style in ("pasa", "spar", "scout"):
            raise SettingsError(f"--style {style.style} needs --model; --style rules needs no key")
        for name in ("selector", "judge"):
            if getattr(style, name) == "llm":
                raise SettingsError(f"--{name} llm needs --model")
    for name in ("judge", "fit"):
        if getattr(style, name) is not None and style.selector != "deepera":
            raise SettingsError(f"--{name} goes with --selector deepera")


@contextmanager
def _open_search(
    base: Any, style: StyleOptions, chat: options.ModelOptions
) -> Iterator[PaperSearch]:
    from deepera_graph.papers.agent.graph import PaperSearch

    settings = given(style) | limits_of(chat)
    for name in ("style", "selector", "judge", "fit"):
        settings.pop(name, None)
    with open_chat(chat) if chat.model else nullcontext((None, None)) as (planner, kept):
        yield PaperSearch(
            base,
            planner=planner,
            style=style.style,
            selector=_find_selector(style, planner, kept),
            cache=kept,
            **settings,
        )


def _find_selector(
    style: StyleOptions, planner: Backend | None, cache: JudgementCache | None
) -> Any:
    """Return the name of a selector, or the reranker that selects."""
    if style.selector != "deepera":
        return style.selector
    from deepera_graph.judges import load_backend
    from deepera_graph.reranker import EvidenceReranker

    name = style.judge or "local"
    if name == "llm" and planner is not None:
        return EvidenceReranker(planner, cache=cache, threshold=style.fit)
    backend = load_foreign(f"--judge {name}", lambda: load_backend(name))
    return EvidenceReranker(backend, threshold=style.fit)


def _follow(search: PaperSearch, question: str, scope: Scope, *, quiet: bool) -> Found:
    """Search, and show on a bar what is being done."""
    n_calls = n_papers = 0
    result: Any = None
    try:
        with progress_bar("searching", total=search.settings.max_actions, hidden=quiet) as bar:
            for event in from_thread(search.stream(question, scope=scope)):
                if event["event"] == "called":
                    n_calls += 1
                    n_papers += event["new"]
                    bar.reach(n_calls)
                elif event["event"] == "result":
                    result = event["result"]
    except KeyboardInterrupt as error:
        done = f"{count(n_calls, 'lookup')} made, {count(n_papers, 'paper')} found so far"
        say(f"interrupted; {done}")
        if search.keeps_replies:
            say(f"the replies of the model are kept; go on with: {go_on_command()}")
        raise typer.Exit(INTERRUPTED) from error
    return result  # type: ignore[no-any-return]  # the last event has it
