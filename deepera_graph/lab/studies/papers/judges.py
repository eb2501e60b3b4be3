"""What a selector of a given accuracy makes of what a search found: scripted judges.

A scripted judge knows the truth and tells it with a given probability, so it says how good a real
one has to be before a search gains by it. It orders and marks, as `PaperSearch` does: what it keeps
comes first, what it does not keep stays below.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import httpx

from deepera_graph.calibration.statistics import Values
from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.lab.bench.figures import CurveFigure, CurvePoints, draw_curve
from deepera_graph.lab.studies.experiment import StudyResult
from deepera_graph.lab.studies.papers.runs import Call, Limits, PaperQuery, QueryRun, Run, System
from deepera_graph.lab.studies.papers.scores import (
    PaperBench,
    QueryScores,
    SystemScores,
    limit_scores,
)
from deepera_graph.lab.tables import Column, Grid, MetricEstimate, Row
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.base import PaperBase

ACCURACIES = (1.0, 0.9, 0.8)
AS_FOUND = "none"
_PANELS = ("R@25", "precision of kept", "F1 of kept", "first #gold that break a limit")
Truth = Callable[[PaperQuery, str], bool]


def is_answer(query: PaperQuery, paper: str) -> bool:
    """Tell whether a paper is an answer of a query: the truth of data with exact answers."""
    return paper in query.gold


def check_accuracies(accuracies: Sequence[float]) -> None:
    """Raise `SettingsError` for one that is not in [0, 1]."""
    for one in accuracies:
        if not 0 <= one <= 1:
            raise SettingsError(f"the accuracy of a judge must be in [0, 1], got {one}")


def judge_paper(
    query: PaperQuery, paper: str, accuracy: float, *, seed: int = 0, truth: Truth = is_answer
) -> bool:
    """Tell the truth with a probability of *accuracy*, in [0, 1]."""
    # The draw depends on seed, query and paper alone: a judge errs wherever a better one does.
    digest = blake2b(f"{seed}\0{query.id}\0{paper}".encode(), digest_size=8).digest()
    return truth(query, paper) is (int.from_bytes(digest) < accuracy * 2**64)


def judge_run(
    run: Run,
    queries: Sequence[PaperQuery],
    accuracy: float,
    *,
    seed: int = 0,
    truth: Truth = is_answer,
) -> dict[str, QueryRun]:
    """Return a run as a scripted judge orders and marks it; failed queries stay as they are."""
    # Raises `SettingsError` if the accuracy is not in [0, 1].
    check_accuracies([accuracy])
    judged = {}
    for query in queries:
        if (one := run.get(query.id)) is None:
            continue
        kept = tuple(
            paper
            for paper in one.ranked
            if judge_paper(query, paper, accuracy, seed=seed, truth=truth)
        )
        rest = tuple(paper for paper in one.ranked if paper not in {*kept})
        judged[query.id] = replace(one, ranked=kept + rest, kept=kept)
    return judged


def study_judges(
    bench: PaperBench,
    runs: Mapping[str, Run],
    *,
    accuracies: Sequence[float] = ACCURACIES,
    truth: Truth = is_answer,
) -> StudyResult:
    """Measure what each run becomes by judges of several accuracies: a table and a figure."""
    rows: list[Row] = []
    curves: dict[str, dict[str, CurvePoints]] = {name: {} for name in _PANELS}
    for name, run in runs.items():
        rows.append((name, AS_FOUND, 0.0, *_measure(bench, name, run)))
        found = {}
        for accuracy in accuracies:
            judged = judge_run(run, bench.queries, accuracy, seed=bench.seed, truth=truth)
            found[accuracy] = _measure(bench, name, judged)
            n = sum(len(one.ranked) for one in judged.values()) / len(bench.queries)
            rows.append((name, f"{accuracy:g}", n, *found[accuracy]))
        for place, panel in enumerate(_PANELS):
            known = {x: mean for x, one in sorted(found.items()) if (mean := one[place])}
            if known:
                curves[panel][name] = draw_curve([*known], [*known.values()])
    grid = Grid.told(
        "judges",
        columns=(
            Column("system"),
            Column("accuracy"),
            Column("papers judged", "number"),
            *Column.several("percent", *_PANELS),
        ),
        rows=tuple(rows),
    )
    drawing = CurveFigure(
        name="judges",
        title="By accuracy of the judge",
        x_label="accuracy",
        y_label="percent",
        panels={name: panel for name, panel in curves.items() if panel},
    )
    return StudyResult(grids=(grid,), drawings=(drawing,) if any(curves.values()) else ())


def _measure(bench: PaperBench, name: str, run: Run) -> tuple[MetricEstimate | None, ...]:
    """Return the four panels' numbers; the last is None where nothing is known to break a limit."""
    system = SystemScores.of(name, run, bench)
    early = system.values["R@25"]
    limits = limit_scores(bench, system)
    if limits:
        columns = [
            Values.of([getattr(one, what) for one in limits.values()])
            for what in ("precision", "f1", "first")
        ]
        right, f1, first = bench.estimate(columns)
        return (*bench.estimate([early]), right, f1, first)
    pairs = [_kept(query, one) for query, one in zip(bench.queries, system.scores, strict=True)]
    recall, right, f1 = bench.estimate([early, *map(Values.of, zip(*pairs, strict=True))])
    return recall, right, f1, None


def _kept(query: PaperQuery, one: QueryScores) -> tuple[float, float]:
    right = 0 if one.problem else len(query.gold.intersection(one.kept))
    if not right:
        return 0.0, 0.0
    share, recall = right / len(one.kept), right / len(query.gold)
    return share, 2 * share * recall / (share + recall)


_DEPTH = 300  # papers that a service is asked for, as ScholarQuest asks external searches
_TIMEOUT = 60.0
_LISTS = ("hits", "papers", "results")
_IDS = ("id", "arxiv_id", "arxiv", "paper_id", "doi")


def search_by_service(
    url: str, *, base: PaperBase | None = None, limits: Limits = "years"
) -> System:
    """Return the system that a service is, such as ``http://localhost:8080/v1/search``."""
    # It is one request a query, with the limits of the query; hidden papers are taken out anyhow.
    # The base matches what comes back, by any id, else by title; without one ids are as they come.
    address = httpx.URL(url)
    if address.scheme not in ("http", "https") or not address.host:
        raise SettingsError(f"{url!r} is no address such as http://localhost:8080/v1/search")

    def system(query: PaperQuery) -> QueryRun:
        scope = query.scope(limits).to_dict().items()
        asked = {name: ",".join(one) if isinstance(one, list) else str(one) for name, one in scope}
        plain = _ask(address, {"query": query.text, "k": str(_DEPTH), **asked})
        ids = [id for one in _listed(plain, url)[:_DEPTH] if (id := _match(one, base))]
        found = tuple(id for id in dict.fromkeys(ids) if id not in query.hidden)
        call = Call(id="S1", tool="search", asked=query.text, found=found)
        return QueryRun(ranked=found, calls=(call,), rounds=1)

    return system


def _ask(url: httpx.URL, asked: Mapping[str, str]) -> Any:
    try:
        reply = httpx.get(url.copy_merge_params(dict(asked)), timeout=_TIMEOUT)
    except httpx.HTTPError as error:
        raise StoreError(f"{url} gave no answer: {error}") from error
    if reply.status_code != httpx.codes.OK:
        raise StoreError(f"{url} answered HTTP {reply.status_code}: {reply.text[:200]!r}")
    try:
        return json.loads(reply.content)
    except ValueError as error:
        raise StoreError(f"{url} answered no JSON: {reply.text[:80]!r}") from error


def _listed(plain: Any, url: str) -> list[Any]:
    for name in _LISTS:
        if isinstance(plain, dict) and isinstance(plain.get(name), list):
            found: list[Any] = plain[name]
            return found
    raise StoreError(f"{url} answered without a list under {', '.join(_LISTS)}: {plain!r:.80}")


def _match(given: Any, base: PaperBase | None) -> str:
    """Return the id that a paper goes by in the base, else its own; empty if it has none."""
    one = given.get("paper", given) if isinstance(given, dict) else {"id": given}
    ids = [*_ids_of(one)] if isinstance(one, dict) else [normalize_id(str(one))]
    if base is not None:
        known = next((paper for id in ids if (paper := base.get(id))), None)
        title = one.get("title") if isinstance(one, dict) else None
        if known is None and isinstance(title, str) and title.strip():
            known = base.title(title).paper
        if known is not None:
            return normalize_id(known.id)
    return ids[0] if ids else ""


def _ids_of(one: Mapping[str, Any]) -> Iterator[str]:
    for name in _IDS:
        if isinstance(one.get(name), str | int) and str(one[name]).strip():
            yield normalize_id(str(one[name]))
