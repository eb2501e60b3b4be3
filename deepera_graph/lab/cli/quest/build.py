"""`deepera-lab bench quest build` and `judge`: a benchmark of searches for papers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared.console import check_input, needing
from deepera_graph.cli.shared.declaring import given, opt, split_names
from deepera_graph.lab.cli.quest.making import (
    PanelOptions,
    QuestPlaceOptions,
    check_model,
    count_places,
    describe_estimate,
    list_judges,
    make,
    read_settled,
    settle,
)
from deepera_graph.lab.cli.running import Earlier, tell_estimate

if TYPE_CHECKING:
    from deepera_graph.lab.construction import Built


_topics = partial(opt, panel="Topics")
_papers = partial(opt, panel="How papers are found")


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
    max_answers: int | None = _papers(
        "Answers at which a question ends.", metavar="N", least=1, shown="500"
    )
    max_scored: int | None = _papers(
        "Judged papers at which a question ends.", metavar="N", least=1, shown="10000"
    )
    rewrites: int | None = _papers(
        "Queries of each of five kinds.", metavar="N", least=1, shown="2, which makes ten"
    )
    per_search: int | None = _papers(
        "Papers that one search of one base returns.", metavar="K", least=1, shown="10"
    )
    max_citing: int | None = _papers(
        "Papers citing an answer that are looked at; of its references all are.",
        metavar="N",
        least=0,
        shown="30",
    )
    max_hops: int | None = _papers(
        "Steps along citations, 0 to 2.", metavar="N", least=0, shown="2"
    )
    prefilter: Literal["local", "words", "none"] | None = _papers(
        "What leaves out papers that are far from a question: [b]local[/b], by meaning, about 25 "
        "papers a second and core; [b]words[/b]; or [b]none[/b].",
        metavar="NAME",
        shown="local",
    )
    only_arxiv: bool = _papers(
        "Keep only what is matched to arXiv, by an id or by a record of arXiv among the sources.",
        default=False,
    )
    floor: float | None = _papers(
        "Nearness below which a paper is far, if only one search found it.",
        metavar="X",
        shown="0.15 by meaning, 0.1 by words",
    )


def build(
    topics: Annotated[
        Path, typer.Argument(metavar="TOPICS", help="A file of topics, or arxiv-cs.")
    ],
    *,
    where: QuestPlaceOptions,
    literature: places.LiteratureOptions,
    chosen: FindOptions,
    panel: PanelOptions,
    chat: options.ChatOptions,
    budget: options.BudgetOptions,
    output: options.OutputOptions,
) -> None:
    """Build a benchmark of searches for papers from topics, by chat models."""
    with needing("bench quest build", "bench"):
        from deepera_graph.lab.quest.topics import is_shipped, read_topics
    check_input(*() if is_shipped(topics) else (topics,))
    n_sources = count_places(where, literature)
    earlier = None
    if chosen.manifest is None:
        check_model(where, chat)
    else:
        earlier = Earlier.read(chosen.manifest, "`deepera-lab bench quest`", read_settled)
    with needing("bench quest build", "bench"):
        from deepera_graph.lab.quest.builder import answer_quest, build_quest
        from deepera_graph.lab.quest.plan import QuestPlan, estimate_quest
        from deepera_graph.lab.quest.questions import read_questions

    settings = _plan_of(chosen, panel)
    if earlier is None:
        plan = QuestPlan(**settings)
    else:
        earlier.refuse(settings)
        plan = earlier.settled["plan"]
        chat, panel = settle(earlier, chat, panel)
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
            n_judges=len(list_judges(panel)) or 1,
            n_sources=n_sources,
            n_topics=n_topics,
            n_questions=n_questions,
        )
        tell_estimate(found, budget, output, describe_estimate)
        return
    make(
        work,
        where=where,
        literature=literature,
        chat=chat,
        panel=panel,
        budget=budget,
        output=output,
        plan=plan,
        earlier=earlier,
    )


def _plan_of(chosen: FindOptions, panel: PanelOptions) -> dict[str, Any]:
    """Return what was given of a plan."""
    apart = (
        "limit",
        "manifest",
        "questions",
        "all_topics",
        "categories",
        "judge_model",
        "adjudicator",
    )
    found = {name: one for name, one in given(chosen, panel).items() if name not in apart}
    if chosen.categories:
        from deepera_graph.lab.quest.topics import read_classes

        found["categories"] = read_classes(split_names("--categories", chosen.categories))
    return found


def judge(
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="Questions, as questions.jsonl has them.")
    ],
    candidates: Annotated[
        Path, typer.Argument(metavar="CANDIDATES", help="Papers by question, as a run has them.")
    ],
    *,
    where: QuestPlaceOptions,
    panel: PanelOptions,
    chat: options.ChatOptions,
    budget: options.BudgetOptions,
    output: options.OutputOptions,
) -> None:
    """Grade given papers for given questions, by chat models."""
    check_input(questions, candidates)
    literature = places.LiteratureOptions()
    count_places(where, literature)
    check_model(where, chat)
    with needing("bench quest judge", "bench"):
        from deepera_graph.lab.quest.builder import judge_quest
        from deepera_graph.lab.quest.plan import QuestPlan, estimate_judging
        from deepera_graph.lab.quest.questions import read_candidates, read_questions

    settings = given(panel)
    plan = QuestPlan(**{
        name: settings[name]
        for name in ("tau", "min_answers", "group", "quorum")
        if name in settings
    })  # fmt: skip
    asked = read_questions(questions)
    papers = read_candidates(candidates, asked)
    if where.dry_run:
        sizes = [len(papers.get(one.id, ())) for one in asked]
        found = estimate_judging(sizes, plan, n_judges=len(list_judges(panel)) or 1)
        tell_estimate(found, budget, output, describe_estimate)
        return

    def work(out: Path, **how: Any) -> Built:
        return judge_quest(asked, papers, out, **how)

    make(
        work,
        where=where,
        literature=literature,
        chat=chat,
        panel=panel,
        budget=budget,
        output=output,
        plan=plan,
    )
