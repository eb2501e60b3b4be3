"""`deepera-lab bench`: labelled questions made of others, and looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deepera_graph.cli.opening.judges import open_chat, search_here
from deepera_graph.cli.opening.stores import find_embeddings
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.bars import Bar, progress_bar
from deepera_graph.cli.shared.console import (
    SOME_FAILED,
    check_data,
    check_file,
    check_folder,
    needing,
    tell_done,
)
from deepera_graph.cli.shared.declaring import arg, given, opt, split_names
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli import running
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.calibration.instance import Instance


@dataclass(frozen=True, kw_only=True)
class NaturalOptions:
    """How questions are made, and where they go."""

    out: Path = opt("Instances, as JSON lines.", "--out", "-o", metavar="FILE", needed=True)
    questions: Path | None = opt("Questions about the sections.", metavar="FILE", shown="in DATA")
    candidates: int = opt("Passages of a pool.", metavar="K", default=30, least=2)
    embeddings: str | None = opt(
        "Order and fill pools by cosine: a function that returns LangChain Embeddings, or a model "
        "of OpenAI.",
        metavar="MODULE:FACTORY|openai:MODEL",
        shown="BM25",
    )
    name: str | None = opt(
        "Name of the data set, put into every instance.", metavar="NAME", shown="of DATA"
    )
    overwrite: bool = opt("Replace FILE.", default=False)


@dataclass(frozen=True, kw_only=True)
class MixOptions:
    """What pools are mixed of, and where they go."""

    out: Path = opt("Instances, as JSON lines.", "--out", "-o", metavar="FILE", needed=True)
    recipe: str = opt(
        "What the noise is, see below.", metavar="nc|ssli|cc|multihop|KIND=N,...", default="ssli"
    )
    total: int = opt("Passages of a pool.", metavar="N", default=100, least=2)
    seed: int = opt("Random seed of the places.", metavar="S", default=0, least=0)
    overwrite: bool = opt("Replace FILE.", default=False)


@dataclass(frozen=True, kw_only=True)
class PromptOptions:
    """What counts as done."""

    strict: bool = opt("End with code 1 if anything was not done as asked.", default=False)


@dataclass(frozen=True, kw_only=True)
class RealismOptions:
    """What is looked at."""

    types: str | None = opt("Only distractors of these types.", metavar="NAME,...", shown="all")
    strict: bool = opt(
        "End with code 1 if a data set is flagged or could not be measured.", default=False
    )


def natural(
    data: Annotated[Path, arg("DATA", "A file or folder.")],
    *,
    chosen: NaturalOptions,
    output: options.OutputOptions,
) -> None:
    """Make questions with natural look-alikes from documents with sections."""
    with needing("bench", "bench"):
        from deepera_graph.calibration.instance import write_rows
        from deepera_graph.lab.build.natural import make_natural_instances
        from deepera_graph.lab.data.documents import open_natural

    check_file(chosen.out, overwrite=chosen.overwrite)
    search_here()
    source = open_natural(data, questions=chosen.questions)
    left_out: dict[str, str] = {}
    types: Counter[str] = Counter()
    with progress_bar("questions", hidden=output.quiet) as bar:
        instances = make_natural_instances(
            source.documents(),
            source.questions(),
            n_candidates=chosen.candidates,
            embeddings=find_embeddings(chosen.embeddings),
            dataset=chosen.name or source.name,
            left_out=left_out,
        )
        n_written = write_rows(chosen.out, _count_types(instances, types, bar))
    counts = Counter(left_out.values()).most_common()
    reasons = "; ".join(f"{n} because {reason}" for reason, n in counts)
    if not n_written:
        chosen.out.unlink()
        raise SettingsError(f"no question of {data} can be used: {reasons or 'none given'}")
    plain = {"questions": n_written, "types": dict(types.most_common()), "left_out": left_out}
    tell_done(
        output,
        {"out": str(chosen.out), **plain},
        lambda: (
            f"{chosen.out}: {count(n_written, 'question')} with "
            f"{count(types.total(), 'look-alike')} of {count(len(types), 'type')}; "
            f"{len(left_out)} left out{f' ({reasons})' if reasons else ''}"
        ),
    )


def _count_types(
    instances: Iterable[Instance], types: Counter[str], bar: Bar
) -> Iterator[Instance]:
    for number, instance in enumerate(instances, start=1):
        types.update(one.distractor_type or "" for one in instance.contexts if one.is_distractor)
        bar.move(count=number)
        yield instance


def mix(
    data: Annotated[Path, arg("DATA", "A file or folder.")],
    *,
    chosen: MixOptions,
    output: options.OutputOptions,
) -> None:
    """Mix pools with other noise from labelled questions."""
    with needing("bench", "bench"):
        from deepera_graph.calibration.instance import write_rows
        from deepera_graph.lab.data.pools import Recipe, mix_pools
        from deepera_graph.lab.data.readers import open_dataset

    recipe, lacking = Recipe.read(chosen.recipe, total=chosen.total), Counter[str]()
    check_data([data])
    check_file(chosen.out, overwrite=chosen.overwrite)
    pools = mix_pools(open_dataset(data), recipe, seed=chosen.seed, missing=lacking)
    n_written = write_rows(chosen.out, pools)
    missing = ", ".join(f"{n:,} of {kind}" for kind, n in lacking.items())
    tell_done(
        output,
        {"out": str(chosen.out), "questions": n_written, "missing": lacking},
        lambda: (
            f"{chosen.out}: {count(n_written, 'question')}"
            f"{f'; the data had too little noise: {missing} are missing' if missing else ''}"
        ),
    )


def prompts(
    *,
    chosen: PromptOptions,
    chat: options.ModelOptions,
    output: options.OutputOptions,
) -> None:
    """Say whether a chat model does what the prompts ask, on questions with known outputs."""
    with needing("bench", "bench"):
        from deepera_graph.lab.bench import fidelity
        from deepera_graph.reranker import EvidenceReranker
        from deepera_graph.settings.budget import Budget, Meter, with_meter

    if not chat.model:
        raise SettingsError("bench prompts needs a chat model, e.g. --model openai:gpt-5-mini")
    spending = given(chat, of=options.BudgetOptions)
    config = with_meter({}, Meter(Budget(**spending) if spending else None))
    with open_chat(chat) as (backend, kept), progress_bar("asking", hidden=output.quiet):
        found = fidelity.check_fidelity(EvidenceReranker(backend, cache=kept), config=config)
    nowhere = running.ResultOptions()
    running.finish(fidelity.FIDELITY, fidelity.tabulate(found), dict, nowhere, output)
    if chosen.strict and any(one.first_wrong for one in found):
        raise typer.Exit(SOME_FAILED)


def realism(
    data: Annotated[list[Path], arg("DATA", "Data sets with labelled distractors.")],
    *,
    chosen: RealismOptions,
    results: running.ResultOptions,
    output: options.OutputOptions,
) -> None:
    """Say whether distractors can be told from other passages by style alone."""
    with needing("bench", "bench"):
        from deepera_graph.lab.bench import realism_report as measure
        from deepera_graph.lab.data.readers import open_dataset
        from deepera_graph.lab.studies.run import describe_versions

    check_folder(results.out, ("realism.md", "manifest.json"), overwrite=results.overwrite)
    kinds = None if chosen.types is None else split_names("--types", chosen.types)
    reports = []
    with progress_bar("measuring", total=len(data), hidden=output.quiet) as bar:
        for path in data:
            reports.append(measure.measure_realism(open_dataset(path), kinds=kinds))
            bar.reach(len(reports))
    setup = partial(describe_versions, "numpy", "scipy", "scikit-learn")
    running.finish(measure.REALISM, measure.tabulate(reports), setup, results, output)
    if chosen.strict and any(one.flagged or not one.is_measured for one in reports):
        raise typer.Exit(SOME_FAILED)
