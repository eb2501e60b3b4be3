"""What `build` and `judge` share: their options, the bases and models they open, and their end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import typer

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import (
    INTERRUPTED,
    SOME_FAILED,
    count,
    describe_estimate,
    go_on_command,
    progress_bar,
    reading_manifest,
    say,
    tell,
)
from deepera_graph.cli.shared.declaring import given, opt, split_names
from deepera_graph.errors import BackendError, BudgetError, SettingsError, StoreError

if TYPE_CHECKING:
    from deepera_graph.lab.quest.builder import QuestProgress, QuestResult
    from deepera_graph.lab.quest.estimate import QuestEstimate
    from deepera_graph.lab.quest.plan import QuestPlan
    from deepera_graph.schema import Backend

_CONTINUE = "what was answered is kept, run it again to go on"
_NO_MODEL = (
    "a chat model is needed: give --model, e.g. openai:gpt-5-mini. The local judge gives no grades "
    "of 0, 1 and 2, and does not see what a question leaves out: all it can do is the prefilter"
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
        "Questions worked on at once.",
        metavar="N",
        default=4,
        least=1,
        setting="questions_at_once",
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


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the manifest of an earlier construction says."""

    path: Path
    record: Mapping[str, Any]
    plan: Mapping[str, Any]
    model: str
    judges: str
    adjudicator: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a manifest."""
        with reading_manifest(path, "`deepera-lab bench quest`") as record:
            return cls(
                path,
                record,
                record["plan"],
                record["model"]["model"],
                ",".join(one["model"] for one in record["judges"].values()),
                record["adjudicator"]["model"],
            )

    def settle(
        self, plan: Mapping[str, Any], chat: options.ChatOptions, panel: PanelOptions
    ) -> tuple[QuestPlan, options.ChatOptions, PanelOptions]:
        """Return the plan and the models, those that are given first; *plan* must be empty."""
        from deepera_graph.lab.quest.plan import QuestPlan

        if plan:
            named = ", ".join(f"--{one.replace('_', '-')}" for one in plan)
            raise SettingsError(f"--manifest settles {named}: leave them out")
        return (
            QuestPlan.from_dict(self.plan),
            replace(chat, model=chat.model or self.model),
            replace(
                panel,
                judge_model=panel.judge_model or self.judges,
                adjudicator=panel.adjudicator or self.adjudicator,
            ),
        )

    def differences(self, manifest: Mapping[str, Any]) -> list[str]:
        """Return in what another manifest differs, by its keys."""
        return [name for name in manifest if self.record.get(name) != manifest[name]]


@contextmanager
def open_places(
    where: QuestPlaceOptions, literature: options.LiteratureOptions
) -> Iterator[list[Any]]:
    """Open all bases and services, and close them in the end."""
    from deepera_graph.cli.judging.literature import open_literature
    from deepera_graph.cli.papers.base import BaseOptions, open_base
    from deepera_graph.lab.quest.outputs import WORK

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


def count_places(where: QuestPlaceOptions, literature: options.LiteratureOptions) -> int:
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


@dataclass(frozen=True, slots=True)
class QuestModels:
    """The models of a construction, opened."""

    model: Backend
    judges: list[Backend]
    adjudicator: Backend | None


def open_models(chat: options.ChatOptions, panel: PanelOptions) -> QuestModels:
    """Open the writer, the judges and the adjudicator."""
    from deepera_graph.cli.opening.judges import chat_backend

    def opened(name: str) -> Backend:
        model, _, url = name.partition("@")
        if not model or (url and not url.startswith(("http://", "https://"))):
            raise SettingsError(f"a judge is NAME or NAME@URL, got {name!r}")
        return chat_backend(replace(chat, model=model, base_url=url or chat.base_url))

    judges = list_judges(panel)
    return QuestModels(
        chat_backend(chat),
        [opened(one) for one in judges],
        opened(panel.adjudicator) if panel.adjudicator else None,
    )


def list_judges(panel: PanelOptions) -> tuple[str, ...]:
    """Return the names of the judges that were given."""
    return split_names("--judge-model", panel.judge_model) if panel.judge_model else ()


def make(
    work: Callable[..., QuestResult],
    *,
    where: QuestPlaceOptions,
    literature: options.LiteratureOptions,
    chat: options.ChatOptions,
    panel: PanelOptions,
    budget: options.BudgetOptions,
    output: options.OutputOptions,
    plan: QuestPlan,
    earlier: Earlier | None = None,
) -> None:
    """Open everything, do the work under a bar, and say what came of it."""
    from deepera_graph.budget import Budget
    from deepera_graph.cli.opening.judges import search_here
    from deepera_graph.lab.build.outputs import check_folder
    from deepera_graph.lab.quest.builder import CALLS_AT_ONCE

    check_folder(where.out, overwrite=where.overwrite)
    search_here()
    models = open_models(chat, panel)
    if len(models.judges) < 2:
        say("one judge alone: nothing is settled by a second opinion; give --judge-model two names")
    at_once = chat.max_concurrency
    with (
        open_places(where, literature) as sources,
        progress_bar("building", hidden=output.quiet) as bar,
    ):

        def show(progress: QuestProgress) -> None:
            if progress.n_wanted:
                bar.move(to=progress.n_done, count=progress.n_judged, total=progress.n_wanted)
            else:
                bar.move(to=progress.n_topics, count=progress.n_topics, total=progress.n_all_topics)

        made = _keep_going(
            lambda: work(
                where.out,
                sources=sources,
                model=models.model,
                judges=models.judges,
                adjudicator=models.adjudicator,
                plan=plan,
                calls_at_once=CALLS_AT_ONCE if at_once is None else at_once,
                questions_at_once=where.workers,
                budget=Budget(**given(budget)),
                overwrite=where.overwrite,
                on_progress=show,
            )
        )
    tell(output, made.manifest, lambda: describe_made(made))
    for name, cause in sorted(made.failed.items()):
        say(f"{name}: {cause}; run it again with --overwrite to ask again")
    changed = [] if earlier is None else earlier.differences(made.manifest)
    if earlier is not None and changed:
        say(f"not the same as in {earlier.path}: {', '.join(changed)}")
    if made.failed or changed:
        raise typer.Exit(SOME_FAILED)


def _keep_going(work: Callable[[], QuestResult]) -> QuestResult:
    """Say how a run that ends early goes on."""
    try:
        return work()
    except (BudgetError, KeyboardInterrupt) as error:
        say(f"{str(error) or 'interrupted'}; {_CONTINUE}: {go_on_command()}")
        code = SOME_FAILED if isinstance(error, BudgetError) else INTERRUPTED
        raise typer.Exit(code) from error
    except (BackendError, StoreError) as error:
        raise type(error)(f"{error}; {_CONTINUE}") from error


def describe_made(made: QuestResult) -> str:
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


def tell_estimate(
    found: QuestEstimate, budget: options.BudgetOptions, output: options.OutputOptions
) -> None:
    """Write what a run would ask of models, and what that costs where prices are known."""
    from deepera_graph.budget import Budget

    limits: Budget = Budget(**given(budget))
    total = found.total_usage
    calls, by_step, price = describe_estimate(found.usage, total, limits)
    plain = {
        "topics": found.n_topics,
        "questions": found.n_questions,
        "pairs": found.n_pairs,
        "most_pairs": found.most_pairs,
        **calls,
    }
    words = (
        f"{count(found.n_questions, 'question')}, about {count(found.n_pairs, 'pair')}: about "
        f"{count(total.calls, 'call')} ({by_step}), {total.input_tokens} prompt and "
        f"{total.output_tokens} reply tokens{price}, if every question passes its review; at most "
        f"{found.most_pairs} pairs"
    )
    tell(replace(output, quiet=False), plain, lambda: words)


Prefilter = Literal["local", "words", "none"]
