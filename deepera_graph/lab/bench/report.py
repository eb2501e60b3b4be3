"""The page of `deepera-lab bench report`: studies, and the questions a ranker got most wrong."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.resources import files
from math import inf, isnan
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from deepera_graph.calibration.instance import Context, Instance
from deepera_graph.lab.bench.figures import figure_bytes
from deepera_graph.lab.bench.rank import RankedQuestion
from deepera_graph.lab.studies.base import RankerRun, StudyRunner
from deepera_graph.lab.studies.experiment import About, StudyResult
from deepera_graph.lab.studies.run import Study, manifest, run_studies
from deepera_graph.lab.tables import Cell, Column, Grid, MetricEstimate, format_cell

_SVG_ID = re.compile(r'(\bid="|href="#|url\(#)([^")]+)')
_BLACK = re.compile(r"(stroke|fill): #000000")
_TEXT = re.compile(r"<text ")
LONGEST = 1200
OUTSIDE = "not among the candidates"
_HERE = files("deepera_graph.lab.bench.report_page")
MOST_OPEN_ROWS = 40
_DATASET, _RANKER = "data set", "ranker"
N_WORST = 15


def inline_svg(figure: Figure, name: str) -> str:
    """Return one `svg` element."""
    text = figure_bytes(figure, ".svg", transparent=True).decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = _SVG_ID.sub(rf"\g<1>{name}-\g<2>", text)
    text = _BLACK.sub(r"\1: currentColor", text)
    return _TEXT.sub('<text fill="currentColor" ', text).strip()


class ShownPassage(NamedTuple):
    """A passage as the page shows it: `quote` is what the ranker quoted of its text."""

    kind: str
    rank: int | None
    first_rank: int
    score: float | None
    before: str
    quote: str
    after: str
    reason: str


class WorstQuestion(NamedTuple):
    """One question that a ranker got wrong; `golden` is None if it was not among the candidates."""

    dataset: str
    ranker: str
    id: str
    question: str
    answer: str
    winner: ShownPassage | None
    golden: ShownPassage | None

    @property
    def golden_rank(self) -> str:
        """Where the golden passage stands, in words."""
        if self.golden is None:
            return OUTSIDE
        return "not returned" if self.golden.rank is None else f"rank {self.golden.rank}"


def worst_questions(passes: Iterable[RankerRun], n: int) -> list[WorstQuestion]:
    """Return the *n* worst questions of each run of a ranker that is not random, worst first."""
    # Those with the golden passage furthest down first, then with the winner's score furthest
    # above.
    found = []
    by_data: dict[str, list[RankerRun]] = {}
    for one in passes:
        if not one.ranker.is_random:
            by_data.setdefault(one.data.name, []).append(one)
    for of in by_data.values():
        chosen = [(one, _pick_worst(one.questions, n)) for one in of]
        places = {place for _, some in chosen for place in some}
        instances = {
            place: instance for place, instance in enumerate(of[0].data.dataset) if place in places
        }
        found += [
            _show_worst(one, one.questions[place], instances[place])
            for one, some in chosen
            for place in some
        ]
    return found


def _pick_worst(questions: Sequence[RankedQuestion], n: int) -> list[int]:
    wrong = [
        place
        for place, one in enumerate(questions)
        if one.judged.golden and one.judged.golden_rank() > 1  # where something answers
    ]
    return sorted(wrong, key=lambda place: _badness(questions[place]), reverse=True)[:n]


def _badness(question: RankedQuestion) -> tuple[bool, float, float]:
    """Questions whose golden passage can be reached come first: the ranker is to blame."""
    reachable = not question.judged.golden.keys().isdisjoint(question.first)
    scores = question.scores
    best = max(scores.values(), default=0.0)
    golden = max((scores[id] for id in question.judged.golden if id in scores), default=-inf)
    return reachable, question.judged.golden_rank(), best - golden


def _show_worst(one: RankerRun, question: RankedQuestion, instance: Instance) -> WorstQuestion:
    contexts, judged = {one.id: one for one in instance.contexts}, question.judged
    # the best golden passage, else one that was not returned
    golden = (id for id in (*judged.ranked, *question.first) if id in judged.golden)
    winner, best = next(iter(judged.ranked), None), next(golden, None)
    return WorstQuestion(
        dataset=one.data.name,
        ranker=one.ranker.name,
        id=instance.id,
        question=instance.question,
        answer=_cut(instance.gold_answer),
        winner=None if winner is None else _show_passage(one, question, contexts[winner]),
        golden=None if best is None else _show_passage(one, question, contexts[best]),
    )


def _show_passage(run: RankerRun, question: RankedQuestion, context: Context) -> ShownPassage:
    id, returned = context.id, context.id in question.judged.ranked
    reason, quote = question.why(id) if returned else ("", "")
    score = question.scores.get(id)
    failed = run.ranker.marks_failures and score is not None and score < 0
    shown = _cut(context.text)
    before, found, after = shown.partition(quote) if quote else (shown, "", "")
    return ShownPassage(
        kind="golden" if context.is_golden else question.judged.types.get(id, "other"),
        rank=question.judged.ranked.index(id) + 1 if returned else None,
        first_rank=question.first.index(id) + 1,
        score=None if failed else score,
        before=before,
        quote=found,
        after=after,
        reason=reason,
    )


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST].rsplit(' ', 1)[0]} …"


def render_page(
    results: Sequence[tuple[About, StudyResult]],
    worst: Sequence[WorstQuestion] | None,
    manifest: dict[str, Any],
    *,
    title: str = "Evidence benchmark",
    about: str = "",
) -> str:
    """Return the page: no resource from elsewhere, no date; the same input gives the same text."""
    # *about* stands below the title, instead of the numbers of data sets and rankers; with None for
    # *worst* there is no section of worst questions.
    script, style = _read_asset("page.js"), _read_asset("page.css")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["score"] = lambda score: "–" if score is None else f"{score:.3g}"
    template = environment.from_string(_read_asset("page.html.jinja"))
    return template.render(
        title=title,
        style=Markup(style),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        sections=[_describe_section(*one) for one in results],
        worst=worst,
        datasets=list(dict.fromkeys(one.dataset for one in worst or ())),
        rankers=list(dict.fromkeys(one.ranker for one in worst or ())),
        manifest=json.dumps(manifest, indent=2, ensure_ascii=False),
        lead=about or _describe_runs(manifest),
        missing=manifest.get("not_available", ()),
    )


def _describe_runs(manifest: dict[str, Any]) -> str:
    counts = f"{len(manifest['datasets'])} data sets, {len(manifest['rankers'])} rankers."
    return f"{counts} Brackets hold 95 % intervals over questions."


def _describe_section(study: About, result: StudyResult) -> dict[str, Any]:
    return {
        "name": study.name,
        "title": study.title,
        "measures": study.measures,
        "findings": result.findings,
        "tables": [_describe_table(grid) for grid in result.grids],
        "figures": [
            {
                "title": drawing.title,
                "svg": Markup(inline_svg(drawing.draw(), f"{study.name}-{drawing.name}")),
            }
            for drawing in result.drawings
        ],
    }


def _describe_table(grid: Grid) -> dict[str, Any]:
    return {
        "name": grid.name,
        "title": grid.title,
        "note": grid.note,
        "columns": [{"name": one.heading, "is_text": one.unit == "text"} for one in grid.columns],
        "rows": [
            [_describe_cell(cell, column) for cell, column in zip(row, grid.columns, strict=True)]
            for row in grid.rows
        ],
        "is_long": len(grid.rows) > MOST_OPEN_ROWS,
        "choices": [_describe_choices(grid, name) for name in (_DATASET, _RANKER)],
    }


def _describe_choices(grid: Grid, name: str) -> dict[str, Any]:
    place = next((at for at, one in enumerate(grid.columns) if one.name == name), None)
    values = {} if place is None else dict.fromkeys(str(row[place]) for row in grid.rows)
    return {"name": name, "place": place or 0, "values": [*values] if len(values) > 1 else []}


def _describe_cell(cell: Cell, column: Column) -> dict[str, Any]:
    """Return the mean apart from its interval, and a number to sort by."""
    text = format_cell(cell, column.unit)
    mean, _, rest = text.partition(" ") if isinstance(cell, MetricEstimate) else (text, "", "")
    number = cell.mean if isinstance(cell, MetricEstimate) else cell
    known = isinstance(number, int | float) and not isnan(number)
    return {
        "mean": mean,
        "rest": rest,
        "sort": f"{number:.9g}" if known else "",
        "is_text": column.unit == "text",
    }


def _read_asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def render_report(
    studies: Sequence[Study],
    runner: StudyRunner,
    *,
    fresh: StudyRunner | None = None,
    n_worst: int = N_WORST,
) -> str:
    """Return the page as HTML; *fresh*, without a cache, is for studies that ask again."""
    results = run_studies(studies, runner, fresh=fresh)
    worst = worst_questions(runner.runs(), n_worst)
    return render_page(results, worst, manifest(runner))
