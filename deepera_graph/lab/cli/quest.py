"""`deepera-lab bench quest build` and `judge`: a benchmark of searches for papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from deepera_graph.cli.opening.judges import chat_backend, search_here
from deepera_graph.cli.opening.sources import check_literature, open_literature
from deepera_graph.cli.opening.stores import BaseOptions, open_base
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import check_input, needing, say
from deepera_graph.cli.shared.declaring import arg, given, opt, opt_of, split_names
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli.running import NO_MODEL, Earlier, construct, tell_built, tell_estimate
from deepera_graph.lab.settings import Prefilter, QuestPlan
from deepera_graph.text.plain import count

if TYPE_CHECKING:
    from deepera_graph.lab.asking import ConstructionEstimate
    from deepera_graph.lab.construction import Built
    from deepera_graph.schema import Backend

_NO_MODEL = (
    f"{NO_MODEL}. The local judge gives no grades of 0, 1 and 2, and does not see what a question "
    "leaves out: all it can do is the prefilter"
)
_topics = partial(opt, panel="Topics")
_judges = partial(opt, panel="Who judges")
_of_plan = partial(opt_of, QuestPlan, ranged=True, config=None)
_papers = partial(_of_plan, panel="How papers are found")
_panel = partial(_of_plan, panel="How pairs are judged")


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
    workers: int = opt("Questions worked on at once.", metavar="N", default=4, least=1)

    @property
    def bases(self) -> tuple[str, ...]:
        """The bases that were given."""
        return split_names("--library", self.base) if self.base else ()

    def count_places(self, literature: places.LiteratureOptions) -> int:
        """Return how many bases and services there are; `SettingsError` if none or a wrong one."""
        from deepera_graph.papers.sources import read_names

        check_literature(literature)
        if not self.bases and literature.sources is None:
            raise SettingsError(
                "--library must name a base of papers, or --source services of literature"
            )
        n_services = len(read_names(literature.sources)) if literature.sources else 0
        return len(self.bases) + n_services

    def check_model(self, chat: options.ChatOptions) -> None:
        """Raise `SettingsError` without a model to ask: said before packages are imported."""
        if not chat.model and not self.dry_run:
            raise SettingsError(_NO_MODEL)

    @contextmanager
    def open(self, literature: places.LiteratureOptions) -> Iterator[list[Any]]:
        """Open all bases and services, and close them in the end."""
        from deepera_graph.lab.construction import WORK

        with ExitStack() as block:
            found: list[Any] = [
                block.enter_context(open_base(BaseOptions(library=one, embeddings=self.embeddings)))
                for one in self.bases
            ]
            if literature.sources is not None:
                kept = str(self.out / WORK)
                found += block.enter_context(open_literature(literature, kept)).sources
            yield found


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
    tau: int | None = _panel("tau", least=None)
    min_answers: int | None = _panel("min_answers")
    group: int | None = _panel("group")
    quorum: int | None = _panel("quorum")

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges that were given."""
        return split_names("--judge-model", self.judge_model) if self.judge_model else ()

    def open(self, chat: options.ChatOptions) -> dict[str, Any]:
        """Open the writer, the judges and the adjudicator, by the names that a recipe has."""

        def opened(name: str) -> Backend:
            model, _, url = name.partition("@")
            if not model or (url and not url.startswith(("http://", "https://"))):
                raise SettingsError(f"a judge is NAME or NAME@URL, got {name!r}")
            return chat_backend(replace(chat, model=model, base_url=url or chat.base_url))

        return {
            "model": chat_backend(chat),
            "judges": [opened(one) for one in self.judges],
            "adjudicator": opened(self.adjudicator) if self.adjudicator else None,
        }


@dataclass(frozen=True, kw_only=True)
class FindOptions:
    """Which topics, and how their papers are found."""

    limit: int | None = _topics("Only the first N topics.", metavar="N", least=1, shown="all")
    questions: bool = _topics(
        "TOPICS has questions, as questions.jsonl has them: none is written or reviewed.",
        default=False,
    )
    manifest: Path | None = _topics(
        "Repeat the build of an earlier manifest.json: its settings, and its models unless others "
        "are given. Differences are reported, with code 1.",
        metavar="FILE",
    )
    all_topics: bool = _topics("Also topics that have narrower ones below them.", default=False)
    categories: str | None = _topics(
        "Classes that a topic is mapped to, e.g. cs.CL,cs.IR, or arxiv-cs for all forty of "
        "computer science; one that fits none is left out.",
        metavar="NAME,...",
        shown="topics are not mapped",
    )
    max_answers: int | None = _papers("max_answers")
    max_scored: int | None = _papers("max_scored")
    rewrites: int | None = _papers("rewrites")
    per_search: int | None = _papers("per_search")
    max_citing: int | None = _papers("max_citing")
    max_hops: int | None = _papers("max_hops")
    prefilter: Prefilter | None = _papers("prefilter")
    only_arxiv: bool = _papers("only_arxiv", default=False)
    floor: float | None = _papers("floor")


def build(
    topics: Annotated[Path, arg("TOPICS", "A file of topics, or arxiv-cs.")],
    *,
    where: QuestPlaceOptions,
    literature: places.LiteratureOptions,
    chosen: FindOptions,
    panel: PanelOptions,
    chat: options.PaidChatOptions,
    output: options.OutputOptions,
) -> None:
    """Build a benchmark of searches for papers from topics, by chat models."""
    with needing("bench quest build", "bench"):
        from deepera_graph.lab.quest.topics import is_shipped, read_classes, read_topics
    check_input(*() if is_shipped(topics) else (topics,))
    n_sources = where.count_places(literature)
    earlier = None
    if chosen.manifest is None:
        where.check_model(chat)
    else:
        earlier = Earlier.read(chosen.manifest, "`deepera-lab bench quest`", _read_settled)
    with needing("bench quest build", "bench"):
        from deepera_graph.lab.quest.builder import answer_quest, build_quest
        from deepera_graph.lab.quest.questions import read_questions
        from deepera_graph.lab.quest.records import estimate_quest

    settings = _settings_of(replace(chosen, categories=None), panel)
    if chosen.categories:
        settings["categories"] = read_classes(split_names("--categories", chosen.categories))
    if earlier is None:
        plan = QuestPlan(**settings)
    else:
        earlier.refuse(settings)
        before = earlier.settled
        plan = before["plan"]
        chat = replace(chat, model=chat.model or before["model"])
        panel = replace(
            panel,
            judge_model=panel.judge_model or before["judges"],
            adjudicator=panel.adjudicator or before["adjudicator"],
        )
    work: Callable[..., Built]
    if chosen.questions:
        asked = read_questions(topics)[: chosen.limit]
        work, n_topics = partial(answer_quest, asked), 0
        n_questions: int | None = len(asked)
    else:
        read = read_topics(topics, whole=chosen.all_topics)
        taken = read.topics[: chosen.limit]
        work, n_topics = partial(build_quest, taken, topics_sha256=read.sha256), len(taken)
        n_questions = None
    if where.dry_run:
        found = estimate_quest(
            plan,
            n_judges=len(panel.judges) or 1,
            n_sources=n_sources,
            n_topics=n_topics,
            n_questions=n_questions,
        )
        tell_estimate(found, chat, output, _describe_estimate)
        return
    _make(
        partial(work, plan=plan),
        where=where,
        literature=literature,
        chat=chat,
        panel=panel,
        output=output,
        earlier=earlier,
    )


def judge(
    questions: Annotated[Path, arg("QUESTIONS", "Questions, as questions.jsonl has them.")],
    candidates: Annotated[Path, arg("CANDIDATES", "Papers by question, as a run has them.")],
    *,
    where: QuestPlaceOptions,
    panel: PanelOptions,
    chat: options.PaidChatOptions,
    output: options.OutputOptions,
) -> None:
    """Grade given papers for given questions, by chat models."""
    check_input(questions, candidates)
    literature = places.LiteratureOptions()
    where.count_places(literature)
    where.check_model(chat)
    with needing("bench quest judge", "bench"):
        from deepera_graph.lab.quest.builder import judge_quest
        from deepera_graph.lab.quest.questions import read_candidates, read_questions
        from deepera_graph.lab.quest.records import estimate_judging

    plan = QuestPlan(**_settings_of(panel))
    asked = read_questions(questions)
    papers = read_candidates(candidates, asked)
    if where.dry_run:
        sizes = [len(papers.get(one.id, ())) for one in asked]
        found = estimate_judging(sizes, plan, n_judges=len(panel.judges) or 1)
        tell_estimate(found, chat, output, _describe_estimate)
        return
    _make(
        partial(judge_quest, asked, papers, plan=plan),
        where=where,
        literature=literature,
        chat=chat,
        panel=panel,
        output=output,
    )


def _settings_of(*chosen: Any) -> dict[str, Any]:
    known = QuestPlan.__dataclass_fields__
    return {name: one for name, one in given(*chosen).items() if name in known}


def _read_settled(record: Any) -> dict[str, Any]:
    return {
        "plan": QuestPlan.of(record["plan"]),
        "model": record["model"]["model"],
        "judges": ",".join(one["model"] for one in record["judges"].values()),
        "adjudicator": record["adjudicator"]["model"],
    }


def _make(
    work: Callable[..., Built],
    *,
    where: QuestPlaceOptions,
    literature: places.LiteratureOptions,
    chat: options.PaidChatOptions,
    panel: PanelOptions,
    output: options.OutputOptions,
    earlier: Earlier | None = None,
) -> None:
    """Open everything, do the work under a bar, and say what came of it."""
    from deepera_graph.lab.construction import check_folder

    check_folder(where.out, overwrite=where.overwrite)
    search_here()
    models = panel.open(chat)
    if len(models["judges"]) < 2:
        say("one judge alone: nothing is settled by a second opinion; give --judge-model two names")
    with where.open(literature) as sources:
        opened = partial(work, out=where.out, sources=sources, **models)
        made = construct(
            partial(opened, questions_at_once=where.workers),
            chat=chat,
            overwrite=where.overwrite,
            output=output,
        )
    problems = [
        f"{name}: {cause}; run it again with --overwrite to ask again"
        for name, cause in sorted(made.failed.items())
    ]
    if earlier is not None:
        problems += earlier.differences(made.manifest, [*made.manifest])
    tell_built(made, output, _describe_made, problems)


def _describe_made(made: Built) -> str:
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


def _describe_estimate(found: ConstructionEstimate, by_step: str, price: str) -> str:
    total, counts = found.total_usage, found.counts
    return (
        f"{count(counts['questions'], 'question')}, about {count(counts['pairs'], 'pair')}: about "
        f"{count(total.calls, 'call')} ({by_step}), {total.input_tokens} prompt and "
        f"{total.output_tokens} reply tokens{price}, if every question passes its review; at most "
        f"{counts['most_pairs']} pairs"
    )
