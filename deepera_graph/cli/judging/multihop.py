"""`deepera ask --multihop`: the steps of a question of several hops, or the passages on the way."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import OK, SOME_FAILED, say, write_json, write_text
from deepera_graph.cli.shared.declaring import opt, opt_of
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.judges import NAMED
from deepera_graph.multihop.settings import Equivalence, MultiHopSettings, Uncertainty
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.cli.judging.candidates import Opened, Place
    from deepera_graph.literature.citation import Citation
    from deepera_graph.multihop.agent.state import MultiHopResult
    from deepera_graph.multihop.passages.expansion import HopPassage, HopResult

_hops = partial(opt, panel="Several hops")
_turn = partial(opt_of, panel="Several hops")
_SHOWN_CHARS = 300
_K = 10
_OF_JUDGES = ("preset", "backend", "mode", "group_size", "cascade")


@dataclass(frozen=True, kw_only=True)
class HopOptions:
    """Whether a question is answered in several steps."""

    multihop: bool = _hops(
        "For a question whose evidence lies in several passages that no single search brings "
        "together. With a chat model (--model): ask sub-questions, answer each from its own "
        "search, then answer the question, with the sentences that prove every step. Without one: "
        "find the passages on the way, in their order.",
        brief="Answer in several steps (--model), or find the passages on the way.",
        default=False,
    )
    max_steps: int | None = _turn(MultiHopSettings, "max_steps")
    judge: str | None = _hops(
        "With --multihop and a chat model: who keeps, of the passages of a step, those that give "
        "evidence, told the answers of earlier steps: [b]llm[/b], the chat model itself, or a "
        "judge as in --backend.",
        metavar="NAME",
        shown="nobody",
    )
    samples: int | None = _turn(Uncertainty, "samples")
    equivalence: Equivalence | None = _turn(Uncertainty, "equivalence")


def check_options(
    hops: HopOptions,
    judge: options.JudgingOptions,
    search: places.SearchOptions,
) -> None:
    """Raise `SettingsError` for an option that means nothing here; a file may well have it."""
    if hops.judge is not None and not (hops.multihop and judge.model):
        raise SettingsError("--judge goes with --multihop and --model")
    if not hops.multihop:
        return
    needing = [name for name in ("answer", "adaptive") if getattr(search, name)]
    if needing and not judge.model:
        raise SettingsError(f"--{needing[0]} with --multihop needs --model")
    without_chat = not judge.model and judge.backend in NAMED  # leaves out a configured one
    named = [
        name
        for name in _OF_JUDGES
        if getattr(judge, name) is not None and not (name == "backend" and without_chat)
    ]
    kept = fields(options.FilterOptions)
    named += [one.name for one in kept if getattr(judge, one.name) not in (None, False)]
    unfit = [name for name in named if name not in judge.configured and name != "top_n"]
    if unfit:
        raise SettingsError(f"--{unfit[0].replace('_', '-')} does not go with --multihop")
    if search.format not in ("text", "json"):
        raise SettingsError(
            f"--format {search.format} does not go with --multihop: it has text and json"
        )


def ask_in_steps(
    question: str,
    place: Place,
    *,
    hops: HopOptions,
    judge: options.JudgingOptions,
    as_json: bool,
) -> int:
    """Answer a question, or find its passages, and show that; return the exit code."""
    if judge.model is None:
        with place.open() as opened:
            from deepera_graph.multihop.passages.expansion import expand_hops

            found = expand_hops(question, place.search_in(opened), k=judge.top_n or _K)
            _tell_what_lacks(found, place, opened)
            _tell_left_out(place, opened)
        shown = _hops_as_dict(found) if as_json else _hops_as_text(found, closing=not place.quiet)
        _write(shown, as_json=as_json)
        return OK
    from deepera_graph.cli.opening.judges import limits_of, open_chat, open_judge
    from deepera_graph.multihop.agent.agent import MultiHopAgent
    from deepera_graph.reranker import EvidenceReranker

    chosen = limits_of(judge)
    if hops.max_steps is not None:
        chosen["max_steps"] = hops.max_steps
    of_steps = None  # who judges the passages of a step
    if hops.judge is not None:
        chat = judge if hops.judge == "llm" else options.JudgeOptions()
        of_steps = open_judge(replace(chat, backend=hops.judge))
    with open_chat(judge, domain=judge.domain) as (backend, kept), place.open() as opened:
        adaptive = place.follow_neighbours(opened)
        if adaptive is not None and hops.samples is not None:
            uncertainty = {"samples": hops.samples, "equivalence": hops.equivalence}
            chosen["uncertainty"] = {name: one for name, one in uncertainty.items() if one}
        retriever = adaptive or SimpleNamespace(search=place.search_in(opened))
        keeper = None  # of the passages of a step, which are read whole, so none is summarized
        if of_steps is not None:
            keeper = EvidenceReranker(of_steps, cache=kept, content="passage")
        agent = MultiHopAgent(backend, retriever, judge=keeper, cache=kept, **chosen)
        with progress_bar("answering", hidden=place.quiet) as bar:
            result: MultiHopResult = bar.follow(agent.stream(question), "step")
        _tell_left_out(place, opened)
    if result.outcome == "failed" and not any(one["answer"] for one in result.steps):
        raise BackendError(result.problems[0] if result.problems else result.answer["cause"])
    shown = result.to_dict() if as_json else result.to_text(closing=not place.quiet)
    _write(shown, as_json=as_json)
    return OK if result.outcome in ("answered", "insufficient_evidence") else SOME_FAILED


def _write(found: Any, *, as_json: bool) -> None:
    if as_json:
        write_json(found)
    else:
        write_text(f"{found}\n")


def _tell_left_out(place: Place, opened: Opened) -> None:
    for note in () if place.quiet else place.describe_unknown(opened):
        say(note)


def _tell_what_lacks(found: HopResult, place: Place, opened: Opened) -> None:
    """Say on stderr why nothing was found, or that what was found has little of the question."""
    # Raises `SettingsError` if no passage at all has a field that a condition names.
    if found.passages:
        from deepera_graph.stores.words import join_title
        from deepera_graph.text.words import content_words, stem, stems

        asked = {stem(word): word for word in content_words(found.question)}
        shared = {one for each in found.passages for one in stems(join_title(each.passage))}
        missing = [word for name, word in asked.items() if name not in shared]
        if 2 * len(missing) > len(asked) and not place.quiet:
            say(f"note: the passages have few words of the question; none has {', '.join(missing)}")
    elif place.conditions:
        place.search_in(opened)(found.question, 1)  # which says it
    else:
        say("no passage shares a word with the question")


def _citation(one: HopPassage) -> Citation:
    from deepera_graph.literature.citation import Citation

    return Citation.of(one.passage.metadata, one.id)


def _hops_as_dict(found: HopResult) -> dict[str, Any]:
    from deepera_graph.export import describe_source

    return {
        "question": found.question,
        "passages": [
            {
                "id": one.id,
                "title": one.passage.metadata.get("title"),
                "text": one.passage.page_content,
                "score": one.score,
                "hop": one.hop,
                "query": one.query,
                "via": one.via,
                "metadata": one.passage.metadata,
                "citation": describe_source(_citation(one)),
            }
            for one in found.passages
        ],
        "n_read": len(found.ranked),
        "n_searches": found.n_searches,
    }


def _hops_as_text(found: HopResult, *, closing: bool) -> str:
    """Return the passages in path order, each with what led to it, and how they were found."""
    lines = [" ".join(found.question.split()), ""]
    for number, one in enumerate(found.passages, start=1):
        source = _citation(one)
        cited = str(source) if source.is_known else ""
        led = f"led to by [{one.via}], " if one.via else ""
        lines += [
            f"{number:>2}. hop {one.hop}  {one.score:.2f}  [{one.id}] {cited}".rstrip(),
            f"    {_short(one.passage.page_content)}",
            f"    {led}found by “{' '.join(one.query.split())}”",
        ]
    if closing:
        lines += [
            "",
            f"{count(len(found.passages), 'passage')} of {len(found.ranked)} that were read, in "
            f"path order, after {found.n_searches} searches; no judge has read them: for an answer "
            "give --model",
        ]
    return "\n".join(lines)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS].rstrip()} ..."
