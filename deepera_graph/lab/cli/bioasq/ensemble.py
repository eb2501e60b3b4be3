"""`deepera-lab bioasq ensemble`: one run of two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.bioasq.settings import FIRST, MAX_DOCUMENTS, SECOND, check_pair
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import check_file, check_input, say, tell
from deepera_graph.cli.shared.declaring import given, opt
from deepera_graph.errors import SettingsError
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.bioasq.ensemble import Tried, WeightSearch
    from deepera_graph.bioasq.questions import BioasqQuestion
    from deepera_graph.bioasq.runs import Run

_BEST_SHOWN = 5
_join = partial(opt, panel="How they are joined")


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    """How two runs become one."""

    weights: str | None = _join(
        "Add up points for places, or what --scores says, with these weights.",
        metavar="W,W",
        many=float,
    )
    nominate: str | None = _join(
        "Take this many of the first run, then this many new ones of the second; what one lacks "
        "the other fills.",
        metavar="N,N",
        shown="6,4",
        many=int,
        setting="nominated",
    )
    search_weights: bool = _join(
        "Try all pairs of weights from 0 to 10, and take the best for --golden by MAP of ten "
        "documents. Use questions that nothing else is measured on.",
        default=False,
    )
    golden: Path | None = _join("With --search-weights: golden questions.", metavar="FILE")
    scores: Literal["rank", "reciprocal", "min-max"] | None = _join(
        "With weights, what is added up. [b]rank[/b]: 1.0 for the first place down to 0.1 for the "
        "tenth. [b]reciprocal[/b]: 1 / (60 + rank). [b]min-max[/b]: the scores, from 0 to 1.",
        metavar="HOW",
        shown="rank",
    )
    n_documents: int | None = _join(
        "With weights: documents of a question.", "--documents", metavar="N", least=1, shown="10"
    )
    questions: Path | None = _join(
        "Write a submission for these questions, not a run. Snippets that stand in FILE are kept "
        "where their document is.",
        metavar="FILE",
    )


@dataclass(frozen=True, kw_only=True)
class JoinFiles:
    """Where the result goes."""

    out: Path = opt(
        "The run, JSON lines; a TREC run if the name ends with .trec.",
        "--out",
        "-o",
        metavar="FILE",
        needed=True,
    )
    overwrite: bool = opt("Replace a file that exists.", default=False)


def ensemble(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="It decides where documents tie.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="The other run.")],
    *,
    chosen: JoinOptions,
    files: JoinFiles,
    output: options.OutputOptions,
) -> None:
    """Make one run of two."""
    _check_join(first, second, chosen, files)
    from deepera_graph.bioasq.ensemble import nominate, search_weights, weigh
    from deepera_graph.bioasq.questions import read_questions
    from deepera_graph.bioasq.runs import read_run

    both = [read_run(first), read_run(second)]
    asked = None if chosen.questions is None else read_questions(chosen.questions)
    remarks = [*_compare_runs({first: both[0], second: both[1]})]
    if chosen.questions is not None and asked is not None:
        remarks += _compare_asked(both, chosen.questions, asked)
    for one in remarks if not output.quiet else ():
        say(one)
    how, plain = chosen.scores or "rank", given(chosen)
    found: WeightSearch | None = None
    if chosen.search_weights and chosen.golden is not None:
        found = search_weights(both[0], both[1], read_questions(chosen.golden), how=how)
    weights = found.best.weights if found else plain.get("weights")
    if weights is not None:
        made = weigh(both, weights, how=how, n=chosen.n_documents or MAX_DOCUMENTS)
    else:
        n_first, n_second = plain.get("nominated", (FIRST, SECOND))
        made = nominate(both[0], both[1], n_first=n_first, n_second=n_second)
    from deepera_graph.bioasq.questions import write_questions
    from deepera_graph.bioasq.runs import submit_run, write_run, write_trec

    if asked is not None:
        write_questions(files.out, submit_run(made, asked))
    else:
        (write_trec if files.out.suffix == ".trec" else write_run)(files.out, made)
    n_written = len(made if asked is None else asked)
    tell(
        output, _describe_join(n_written, found, files), lambda: _tell_join(n_written, found, files)
    )


def _check_join(first: Path, second: Path, chosen: JoinOptions, files: JoinFiles) -> None:
    """Raise `SettingsError` for options that do not go together, and files that are not there."""
    ways = {
        "--weights": chosen.weights is not None,
        "--nominate": chosen.nominate is not None,
        "--search-weights": chosen.search_weights,
    }
    named = [name for name, wanted in ways.items() if wanted]
    if len(named) > 1:
        raise SettingsError(f"give one of {', '.join(ways)}, got {' and '.join(named)}")
    if chosen.search_weights != (chosen.golden is not None):
        raise SettingsError("--search-weights and --golden go together")
    if chosen.scores is not None and named not in (["--weights"], ["--search-weights"]):
        raise SettingsError("--scores goes with --weights or --search-weights")
    if chosen.n_documents is not None and named not in (["--weights"], ["--search-weights"]):
        raise SettingsError(
            "--documents goes with --weights or --search-weights: --nominate says itself how many"
        )
    plain = given(chosen)
    for option, name in (("--weights", "weights"), ("--nominate", "nominated")):
        if name in plain:
            check_pair(option, plain[name])
    check_input(first, second, chosen.golden, chosen.questions)
    check_file(files.out, overwrite=files.overwrite)


def _compare_runs(runs: Mapping[Path, Run]) -> Iterator[str]:
    """Yield what one run has and the other lacks; raise `SettingsError` if one ranks nothing."""
    ranked = {
        path: {name for name, ranking in run.items() if ranking} for path, run in runs.items()
    }
    in_all = set().union(*ranked.values())
    for path, names in ranked.items():
        if not names:
            raise SettingsError(f"{str(path)!r} ranks no document")
        if lacking := len(in_all - names):
            yield f"{path} has no document for {lacking} of {count(len(in_all), 'question')}"


def _compare_asked(
    runs: Sequence[Run], questions: Path, asked: Sequence[BioasqQuestion]
) -> Iterator[str]:
    """Yield how many questions no run has; raise `SettingsError` if that is all of them."""
    n_lacking = sum(all(one.id not in run for run in runs) for one in asked)
    if n_lacking == len(asked):
        raise SettingsError(f"neither run has a question of {str(questions)!r}")
    if n_lacking:
        yield f"{n_lacking} of {count(len(asked), 'question')} in {questions} are in neither run"


def _describe_join(n: int, found: WeightSearch | None, files: JoinFiles) -> dict[str, Any]:
    plain: dict[str, Any] = {"questions": n, "out": str(files.out)}
    if found is not None:
        plain["weights"], plain["map"] = list(found.best.weights), found.best.map
        plain["golden_questions"] = found.n_questions
        plain["tried"] = [{"weights": list(one.weights), "map": one.map} for one in found.tried]
    return plain


def _ratio(weights: tuple[float, float]) -> Fraction | None:
    """Return the share of the first run; None for two weights of 0."""
    total = Fraction(weights[0]) + Fraction(weights[1])
    return Fraction(weights[0]) / total if total else None


def _tell_join(n: int, found: WeightSearch | None, files: JoinFiles) -> str:
    lines = []
    if found is not None:
        best = sorted(found.tried, key=lambda one: one != found.best)
        distinct: dict[Fraction | None, Tried] = {}  # 2:2 is 1:1
        for one in sorted(best, key=lambda one: -one.map):
            distinct.setdefault(_ratio(one.weights), one)
        shown = [
            f"{one.weights[0]:g}:{one.weights[1]:g} {one.map:.4f}"
            for one in [*distinct.values()][:_BEST_SHOWN]
        ]
        asked = count(found.n_questions, "golden question")
        lines.append(f"best weights by MAP@10 of {asked}: {', '.join(shown)}")
    lines.append(f"{count(n, 'question')} in {files.out}")
    return "\n".join(lines)
