"""What an audit found: confusion, agreement, precision, failure types, and what is unresolved.

Source: the audit of ScholarQuest (450 pairs, three raters, majority), and its failure types.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from math import isnan
from pathlib import Path
from typing import Any

from deepera_graph.lab.bench.report import render_page
from deepera_graph.lab.quest.audit.agreement import (
    NOT_NAMED,
    Counts,
    PairVotes,
    collect_votes,
    compare_raters,
    compare_two,
    count_confusion,
    estimate_share,
    measure_agreement,
    measure_precision,
    weigh_by_build,
)
from deepera_graph.lab.quest.audit.drawing import GRADES, Audit
from deepera_graph.lab.quest.audit.labels import FAILURES, Label
from deepera_graph.lab.studies.experiment import About, StudyResult
from deepera_graph.lab.studies.run import describe_versions, write_study
from deepera_graph.lab.tables import Cell, Column, Grid
from deepera_graph.text.plain import count, name_some

PAGE, PLAIN = "report.html", "audit.json"
N_RESAMPLES = 10_000
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "krippendorff")
_LISTS = ("disagreements", "unresolved")


AUDIT = About.named("audit")


def study_audit(
    audit: Audit,  # what was drawn
    labels: Mapping[str, Mapping[str, Label]],  # by rater and pair, as `read_labels` gives them
    *,
    n_resamples: int = N_RESAMPLES,  # for intervals by bootstrap, >= 1
    seed: int = 0,  # of the bootstrap
) -> StudyResult:
    """Compare the judge with the majority of raters: all tables."""
    # A pair without a majority is unresolved, left out of what is measured, and listed; so is one
    # that nobody has labelled.
    # Raises `SettingsError` if the audit is a copy without the judge's grades.
    audit.check_key("measure with the folder that was drawn")
    votes = collect_votes(audit, labels)
    matrix = count_confusion((one.grade, one.majority) for one in votes if one.majority is not None)
    how = {"n_resamples": n_resamples, "seed": seed}
    measured = measure_agreement(matrix, **how)
    grids = [
        _confusion_table(matrix),
        Grid.told(
            "agreement",
            columns=(Column("measure"), Column("value", "number")),
            rows=tuple(measured.items()),
        ),
        _precision_table(matrix),
        _build_table(audit, matrix, how),
        _intent_table(audit, votes),
        *_rater_tables(votes, labels),
        *_failure_tables(audit, votes),
        _unresolved_table(audit, votes),
    ]
    return StudyResult(
        grids=tuple(one for one in grids if one.rows),
        findings=tuple(_findings(audit, votes, labels, matrix)),
    )


def _confusion_table(matrix: Counts) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for grade, row in zip(GRADES, matrix, strict=True):
        n = int(row.sum())
        exact = estimate_share(int(row[grade]), n)
        rows.append((f"judge {grade}", *map(int, row), n, exact))
    sums = [int(one) for one in matrix.sum(axis=0)]
    exact = estimate_share(int(matrix.trace()), int(matrix.sum()))
    return Grid(
        name="confusion",
        title="Confusion",
        columns=(
            Column("grade"),
            *Column.several("count", *(f"people {one}" for one in GRADES), "pairs"),
            Column("exact", "percent"),
        ),
        rows=(*rows, ("all", *sums, sum(sums), exact)),
        note="Rows are the judge's grades, columns the majority of people.",
    )


def _precision_table(matrix: Counts) -> Grid:
    found = measure_precision(matrix)
    return Grid.told(
        "precision",
        columns=(Column("precision"), Column("of grade 2"), Column("value", "percent")),
        rows=(
            ("strict", "people say 2", found.strict),
            ("relaxed", "people say 1 or 2", found.relaxed),
        )
        if matrix[-1].sum()
        else (),
    )


def _build_table(audit: Audit, matrix: Counts, how: Mapping[str, Any]) -> Grid:
    found = weigh_by_build(matrix, audit.judged, **how)
    whole = sum(audit.judged)
    names = {
        "exact": "pairs that people would grade as the judge did",
        "recall": "of the pairs that people would label 2, those with grade 2",
        "share of 2": "pairs that people would label 2",
    }
    return Grid(
        name="build",
        title=f"What that says of all {whole:,} judged pairs",
        columns=(Column("share of"), Column("value", "percent")),
        rows=tuple((names[name], one) for name, one in found.items() if not isnan(one.mean)),
        note="Each grade weighs what it has in the build ("
        + ", ".join(f"{n:,} of grade {g}" for g, n in zip(GRADES, audit.judged, strict=True))
        + "), not in the sample. Intervals (95 %) by a bootstrap within each grade.",
    )


def _intent_table(audit: Audit, votes: tuple[PairVotes, ...]) -> Grid:
    intents: dict[str, list[tuple[int, int]]] = {}
    for one in votes:
        if one.majority is not None:
            intent = audit.pairs[one.id].intent or "none"
            intents.setdefault(intent, []).append((one.grade, one.majority))
    rows: list[tuple[Cell, ...]] = []
    for intent, pairs in sorted(intents.items()):
        matrix = count_confusion(pairs)
        strict, relaxed = measure_precision(matrix)
        rows.append(
            (intent, len(pairs), estimate_share(int(matrix.trace()), len(pairs)), strict, relaxed)
        )
    return Grid(
        name="intents",
        title="By intent",
        columns=(
            Column("intent"),
            Column("pairs", "count"),
            *Column.several("percent", "exact", "strict precision", "relaxed precision"),
        ),
        rows=tuple(rows) if len(rows) > 1 else (),
        note="Wilson's intervals (95 %).",
    )


def _rater_tables(
    votes: tuple[PairVotes, ...], labels: Mapping[str, Mapping[str, Label]]
) -> Iterator[Grid]:
    judge = {one.id: one.grade for one in votes}
    given = {
        rater: {one.id: one.votes[rater].label or 0 for one in votes if rater in one.votes}
        for rater in labels
    }
    rows: list[tuple[Cell, ...]] = []
    for rater, mine in given.items():
        n, found = compare_two(judge, mine)
        rows.append((rater, n, *(found[name] for name in ("exact", "Spearman", "quadratic kappa"))))
    measures = (
        Column("exact", "percent"),
        *Column.several("number", "Spearman", "quadratic kappa"),
    )
    yield Grid(
        name="raters",
        title="Each rater and the judge",
        columns=(Column("rater"), Column("labels", "count"), *measures),
        rows=tuple(rows),
    )
    if len(given) < 2:
        return
    rows = []
    for first, second in combinations(given, 2):
        n, found = compare_two(given[first], given[second])
        kappas = (found[f"{name} kappa"] for name in ("unweighted", "linear", "quadratic"))
        rows.append((first, second, n, found["exact"], *kappas))
    among = compare_raters(given)
    yield Grid(
        name="rater-pairs",
        title="Raters, two by two",
        columns=(
            *Column.several("text", "rater", "and"),
            Column("pairs", "count"),
            Column("exact", "percent"),
            *Column.several("number", "kappa", "linear kappa", "quadratic kappa"),
        ),
        rows=tuple(rows),
    )
    yield Grid(
        name="rater-agreement",
        title="All raters together",
        columns=(Column("measure"), Column("pairs", "count"), Column("value", "number")),
        rows=(
            ("Krippendorff's alpha, ordinal", _count_met(votes), among.alpha_ordinal),
            ("Krippendorff's alpha, nominal", _count_met(votes), among.alpha_nominal),
            ("Fleiss' kappa", among.n_by_all, among.fleiss),
        ),
        note="Alpha is of pairs with two labels or more, Fleiss' kappa of those that all labelled.",
    )


def _count_met(votes: tuple[PairVotes, ...]) -> int:
    return sum(len(one.votes) > 1 for one in votes)


def _failure_tables(audit: Audit, votes: tuple[PairVotes, ...]) -> Iterator[Grid]:
    wrong = [one for one in votes if one.differs]
    kinds = Counter((one.failure, one.grade > (one.majority or 0)) for one in wrong)
    rows: list[tuple[Cell, ...]] = []
    ties = sorted({one.failure for one in wrong} - {*FAILURES, NOT_NAMED})
    for name in (*FAILURES, *ties, NOT_NAMED):
        high, low = kinds[name, True], kinds[name, False]
        if high or low:
            share = (high + low) / len(wrong)
            rows.append((name, FAILURES.get(name, ""), high, low, high + low, share))
    yield Grid(
        name="failures",
        title="Failure types of the judge",
        columns=(
            *Column.several("text", "type", "what it is"),
            *Column.several("count", "too high", "too low", "pairs"),
            Column("share", "percent"),
        ),
        rows=tuple(rows),
        note="Of the pairs whose majority is not the judge's grade: what most raters named.",
    )
    yield Grid(
        name="disagreements",
        title="Pairs that the judge graded otherwise",
        columns=(
            Column("pair"),
            *Column.several("count", "judge", "people"),
            *Column.several("text", "labels", "type", "question", "title", "notes"),
        ),
        rows=tuple(
            (
                one.id, one.grade, one.majority, one.shown, one.failure,
                audit.pairs[one.id].question, audit.pairs[one.id].title, _join_notes(one),
            )
            for one in wrong
        ),
    )  # fmt: skip


def _join_notes(one: PairVotes) -> str:
    return " / ".join(f"{rater}: {vote.note}" for rater, vote in one.votes.items() if vote.note)


def _unresolved_table(audit: Audit, votes: tuple[PairVotes, ...]) -> Grid:
    return Grid(
        name="unresolved",
        title="Unresolved",
        columns=(
            Column("pair"),
            Column("judge", "count"),
            *Column.several("text", "labels", "question", "title", "notes"),
        ),
        rows=tuple(
            (
                one.id, one.grade, one.shown, audit.pairs[one.id].question,
                audit.pairs[one.id].title, _join_notes(one),
            )
            for one in votes
            if one.is_unresolved
        ),
        note="No label has more than half of the votes. They count nowhere; another rater decides.",
    )  # fmt: skip


def _findings(
    audit: Audit,
    votes: tuple[PairVotes, ...],
    labels: Mapping[str, Mapping[str, Label]],
    matrix: Counts,
) -> Iterator[str]:
    n, same = int(matrix.sum()), int(matrix.trace())
    who = f"the majority of {len(labels)} raters" if len(labels) > 1 else next(iter(labels))
    yield f"{same} of {n} pairs have the grade that {who} gives them."
    if open_ones := [one.id for one in votes if one.is_unresolved]:
        least, most = same / (n + len(open_ones)), (same + len(open_ones)) / (n + len(open_ones))
        yield (
            f"Unresolved and left out: {count(len(open_ones), 'pair')}, {name_some(open_ones)}. "
            f"Exact agreement is between {100 * least:.1f} and {100 * most:.1f} % however they are "
            "resolved."
        )
    for rater, given in labels.items():
        if missing := [
            pair for pair in audit.pairs if pair not in given or given[pair].label is None
        ]:
            yield f"{rater} has not labelled {count(len(missing), 'pair')}: {name_some(missing)}."
    for grade, drawn in zip(GRADES, audit.drawn, strict=True):
        if drawn < int(audit.about["per_grade"]):
            asked = audit.about["per_grade"]
            yield f"Of grade {grade} the build has {drawn} pairs; {asked} were asked for."
    for why, number in audit.about["left_out"].items():
        yield f"{number} judged pairs {why} could not be drawn."


def shorten(result: StudyResult, *, most: int = 10) -> StudyResult:
    """Return it with the first pairs of tables that list pairs, for a terminal."""

    def cut(grid: Grid) -> Grid:
        if grid.name not in _LISTS or len(grid.rows) <= most:
            return grid
        note = f"{grid.note} The first {most} of {len(grid.rows)}; --json and --out have all."
        return replace(grid, rows=grid.rows[:most], note=note.strip())

    return replace(result, grids=tuple(map(cut, result.grids)))


def describe_audit(
    audit: Audit, labels: Mapping[str, Any], how: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all that the report depends on, as plain data: no date, no folder."""
    return {
        **describe_versions(*_LIBRARIES),
        "audit": dict(audit.about),
        "raters": {
            rater: sum(one.label is not None for one in given.values())
            for rater, given in labels.items()
        },
        "settings": dict(how),
    }


def write_audit(
    folder: Path, result: StudyResult, setup: dict[str, Any], plain: Mapping[str, Any]
) -> None:
    """Write ``audit.md``, tables as CSV, a page, ``audit.json`` of *plain*, and a manifest."""
    study = AUDIT
    write_study(study, result, setup, folder)
    raters = setup["raters"]
    about = f"{sum(one['drawn'] for one in setup['audit']['grades'].values())} pairs, "
    about += f"{count(len(raters), 'rater')}. Brackets hold 95 % intervals."
    page = render_page([(study, result)], None, setup, title=study.title, about=about)
    (folder / PAGE).write_text(page, encoding="utf-8", newline="\n")
    text = json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
    (folder / PLAIN).write_text(text, encoding="utf-8", newline="\n")
