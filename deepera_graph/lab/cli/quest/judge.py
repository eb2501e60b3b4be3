"""`deepera-lab bench quest judge`: the pairs of given questions and papers, graded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import check_input, needing
from deepera_graph.cli.shared.declaring import given
from deepera_graph.lab.cli.quest.making import (
    PanelOptions,
    QuestPlaceOptions,
    check_model,
    count_places,
    list_judges,
    make,
    tell_estimate,
)

if TYPE_CHECKING:
    from deepera_graph.lab.quest.builder import QuestResult


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
    literature = options.LiteratureOptions()
    count_places(where, literature)
    check_model(where, chat)
    with needing("bench quest judge", "bench"):
        from deepera_graph.lab.quest.builder import judge_quest
        from deepera_graph.lab.quest.estimate import estimate_judging
        from deepera_graph.lab.quest.judges.reading import read_candidates, read_questions
        from deepera_graph.lab.quest.plan import QuestPlan

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
        tell_estimate(found, budget, output)
        return

    def work(out: Path, **how: Any) -> QuestResult:
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
