"""What `build` and `judge` share: their options, the bases and models they open, and their end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.opening.judges import chat_backend, search_here
from deepera_graph.cli.opening.stores import BaseOptions, open_base
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import say
from deepera_graph.cli.shared.declaring import opt, split_names
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli.running import NO_MODEL, Earlier, construct, tell_built
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.lab.asking import ConstructionEstimate
    from deepera_graph.lab.construction import Built
    from deepera_graph.lab.quest.plan import QuestPlan
    from deepera_graph.schema import Backend

_NO_MODEL = (
    f"{NO_MODEL}. The local judge gives no grades of 0, 1 and 2, and does not see what a question "
    "leaves out: all it can do is the prefilter"
)
_judges = partial(opt, panel="Who judges")
_panel = partial(opt, panel="How pairs are judged")


@dataclass(frozen=True, kw_only=True)
class QuestPlaceOptions:
    """Where papers are, and where the benchmark goes."""

    base: str | None = opt(
        "Bases of papers that are searched: files, or addresses of `deepera papers serve`.",
        "--library",
        "-l",
        metavar="FILE|URL,...",
    )
    out: Path = opt("Where the benchmark goes.", "--out", "-o", metavar="FOLDER", needed=True)
    embeddings: str | None = opt(
        "Embeddings the bases were built with, unless these are [b]local[/b]; see `deepera index "
        "--help`.",
        metavar="NAME",
    )
    dry_run: bool = opt("Only estimate calls, tokens and cost.", default=False)
    overwrite: bool = opt("Replace a benchmark in FOLDER; kept replies are used.", default=False)
    workers: int = opt(
        "Questions worked on at once.", metavar="N", default=4, least=1, setting="questions_at_once"
    )


@dataclass(frozen=True, kw_only=True)
class PanelOptions:
    """Who judges beside the model that writes, and how."""

    judge_model: str | None = _judges(
        "Chat models that grade pairs, two or more; each may have a server of its own, NAME@URL.",
        metavar="NAME,...",
        shown="--model alone",
    )
    adjudicator: str | None = _judges(
        "Chat model that settles what judges disagree on.", metavar="NAME", shown="--model"
    )
    tau: int | None = _panel("Least grade of an answer.", metavar="1|2", shown="2")
    min_answers: int | None = _panel(
        "Questions with fewer answers are left out.", metavar="N", least=1, shown="5"
    )
    group: int | None = _panel(
        "Papers that a judge sees in one call.", metavar="N", least=1, shown="10"
    )
    quorum: int | None = _panel(
        "Judges that must have graded a pair.", metavar="N", least=1, shown="more than half"
    )


def read_settled(record: Any) -> dict[str, Any]:
    """Return what the manifest of an earlier construction settles."""
    from deepera_graph.lab.quest.plan import QuestPlan

    return {
        "plan": QuestPlan.of(record["plan"]),
        "model": record["model"]["model"],
        "judges": ",".join(one["model"] for one in record["judges"].values()),
        "adjudicator": record["adjudicator"]["model"],
    }


def settle(
    earlier: Earlier, chat: options.ChatOptions, panel: PanelOptions
) -> tuple[options.ChatOptions, PanelOptions]:
    """Return the models of an earlier construction, unless others are given."""
    before = earlier.settled
    return replace(chat, model=chat.model or before["model"]), replace(
        panel,
        judge_model=panel.judge_model or before["judges"],
        adjudicator=panel.adjudicator or before["adjudicator"],
    )


@contextmanager
def open_places(
    where: QuestPlaceOptions, literature: places.LiteratureOptions
) -> Iterator[list[Any]]:
    """Open all bases and services, and close them in the end."""
    from deepera_graph.cli.judging.literature import open_literature
    from deepera_graph.lab.construction import WORK

    with ExitStack() as block:
        found: list[Any] = [
            block.enter_context(open_base(BaseOptions(library=one, embeddings=where.embeddings)))
            for one in list_bases(where)
        ]
        if literature.sources is not None:
            kept = str(where.out / WORK)
            found += block.enter_context(open_literature(literature, kept)).sources
        yield found


def list_bases(where: QuestPlaceOptions) -> tuple[str, ...]:
    """Return the names of the bases that were given."""
    return split_names("--library", where.base) if where.base else ()


def count_places(where: QuestPlaceOptions, literature: places.LiteratureOptions) -> int:
    """Return how many bases and services there are; `SettingsError` if none, or one is wrong."""
    from deepera_graph.cli.judging.literature import check_literature
    from deepera_graph.papers.sources import read_names

    check_literature(literature)
    bases = list_bases(where)
    if not bases and literature.sources is None:
        raise SettingsError(
            "--library must name a base of papers, or --source services of literature"
        )
    return len(bases) + (len(read_names(literature.sources)) if literature.sources else 0)


def check_model(where: QuestPlaceOptions, chat: options.ChatOptions) -> None:
    """Raise `SettingsError` if there is no model to ask: said before packages are imported."""
    if not chat.model and not where.dry_run:
        raise SettingsError(_NO_MODEL)


def open_models(chat: options.ChatOptions, panel: PanelOptions) -> dict[str, Any]:
    """Open the writer, the judges and the adjudicator, by the names that a recipe gives them."""

    def opened(name: str) -> Backend:
        model, _, url = name.partition("@")
        if not model or (url and not url.startswith(("http://", "https://"))):
            raise SettingsError(f"a judge is NAME or NAME@URL, got {name!r}")
        return chat_backend(replace(chat, model=model, base_url=url or chat.base_url))

    judges = list_judges(panel)
    return {
        "model": chat_backend(chat),
        "judges": [opened(one) for one in judges],
        "adjudicator": opened(panel.adjudicator) if panel.adjudicator else None,
    }


def list_judges(panel: PanelOptions) -> tuple[str, ...]:
    """Return the names of the judges that were given."""
    return split_names("--judge-model", panel.judge_model) if panel.judge_model else ()


def make(
    work: Callable[..., Built],
    *,
    where: QuestPlaceOptions,
    literature: places.LiteratureOptions,
    chat: options.ChatOptions,
    panel: PanelOptions,
    budget: options.BudgetOptions,
    output: options.OutputOptions,
    plan: QuestPlan,
    earlier: Earlier | None = None,
) -> None:
    """Open everything, do the work under a bar, and say what came of it."""
    from deepera_graph.lab.construction import check_folder

    check_folder(where.out, overwrite=where.overwrite)
    search_here()
    models = open_models(chat, panel)
    if len(models["judges"]) < 2:
        say("one judge alone: nothing is settled by a second opinion; give --judge-model two names")
    with open_places(where, literature) as sources:
        opened = partial(work, where.out, sources=sources, plan=plan, **models)
        made = construct(
            partial(opened, questions_at_once=where.workers),
            chat=chat,
            budget=budget,
            overwrite=where.overwrite,
            output=output,
        )
    problems = [
        f"{name}: {cause}; run it again with --overwrite to ask again"
        for name, cause in sorted(made.failed.items())
    ]
    if earlier is not None:
        problems += earlier.differences(made.manifest, [*made.manifest])
    tell_built(made, output, describe_made, problems)


def describe_made(made: Built) -> str:
    """Return what came out: questions, pairs, why questions ended, and where all of it is."""
    about: Mapping[str, Any] = made.manifest
    questions, pairs = about["questions"], about["pairs"]
    intents = ", ".join(f"{n} {name}" for name, n in questions["intents"].items() if n)
    grades = ", ".join(f"{n} of grade {grade}" for grade, n in pairs["grades"].items())
    stops = ", ".join(f"{name} {n}" for name, n in about["stops"].items())
    lines = [
        f"{count(questions['kept'], 'question')} of {questions['written']} written ({intents}), "
        f"{count(about['answers']['all'], 'answer')}",
        f"{count(pairs['scored'], 'pair')} judged: {grades}; {pairs['adjudicated']} settled, "
        f"{pairs['filtered']} marked down and {pairs['unfiltered']} passed over by the last "
        f"filter, {pairs['unjudged']} unjudged",
        f"questions ended by: {stops}",
    ]
    for stage, reasons in about["rejected"].items():
        shown = ", ".join(f"{name} {n}" for name, n in reasons.items())
        lines.append(f"rejected ({stage}): {shown}")
    lines.append(f"{count(made.n_sent, 'call')}; written to {made.folder}")
    return "\n".join(lines)


def describe_estimate(found: ConstructionEstimate, by_step: str, price: str) -> str:
    """Return what a dry run says."""
    total, counts = found.total_usage, found.counts
    return (
        f"{count(counts['questions'], 'question')}, about {count(counts['pairs'], 'pair')}: about "
        f"{count(total.calls, 'call')} ({by_step}), {total.input_tokens} prompt and "
        f"{total.output_tokens} reply tokens{price}, if every question passes its review; at most "
        f"{counts['most_pairs']} pairs"
    )
