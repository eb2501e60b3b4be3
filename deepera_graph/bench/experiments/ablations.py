"""Ablations: DeepEra without intent recognition, without the filter, without summaries."""

from collections.abc import Iterator, Sequence
from itertools import islice

from deepera_graph.bench.experiments.answering import values_of
from deepera_graph.bench.experiments.experiment import Column, Experiment, ExperimentResult, Grid
from deepera_graph.bench.experiments.lab import Lab, Pass
from deepera_graph.bench.experiments.numbers import estimates
from deepera_graph.bench.experiments.prefix import prefix_findings
from deepera_graph.bench.experiments.ways import Way, measure_ways, way_columns, way_rows
from deepera_graph.bench.instance import Instance
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.rank import QUESTIONS_AT_ONCE
from deepera_graph.bench.rankers.deepera import DeepEra
from deepera_graph.bench.rankers.ranker import passages_of

WHOLE = "whole"
NO_INTENT = "v1 without intent recognition"
NO_FILTER = "v2 without filter"
NEITHER = "v1 and v2 together"
NO_SUMMARY = "v3 without summaries"
RETRIEVAL = "kept in retrieval order"
NO_FILTER_RETRIEVAL = "v2 in retrieval order"
_SUMMARIES = (WHOLE, NO_INTENT, NO_FILTER, NEITHER)
_UNFILTERED = (NO_FILTER, NEITHER)
_BLIND = (NO_INTENT, NEITHER)


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    passes = [one for one in lab.filtering() if isinstance(one.ranker, DeepEra)]
    ways = [way for one in passes for way in _ways(lab, one)]
    grid = Grid(
        name="ablations",
        title="Ablations",
        columns=(Column("data set"), Column("ranker"), Column("variant"), *way_columns(lab)),
        rows=way_rows(ways),
        note=(
            f"At most {lab.setup.top_n} passages are handed on, those with a score from "
            f"{lab.setup.threshold:g} on where there is a filter. Summaries change what an answer "
            "is made from, never the order, so without a generator v3 equals the whole."
        ),
    )
    findings = prefix_findings(passes, threshold=lab.setup.threshold, n=lab.setup.top_n)
    return ExperimentResult(grids=(grid,), findings=findings)


def _ways(lab: Lab, one: Pass) -> list[Way]:
    bare = one.ranker
    if not isinstance(bare, DeepEra):
        return []
    blind = lab.once(bare.variant(f"{bare.name} without intent", intent=False), one.material)
    threshold, n = lab.setup.threshold, lab.setup.top_n
    whole = [question.kept(threshold=threshold, n=n) for question in one.questions]
    lists: dict[tuple[str | float, ...], Sequence[Judged]] = {
        (WHOLE,): whole,
        (NO_INTENT,): [each.kept(threshold=threshold, n=n) for each in blind.questions],
        (NO_FILTER,): [each.kept(threshold=None, n=n) for each in one.questions],
        (NEITHER,): [each.kept(threshold=None, n=n) for each in blind.questions],
        (NO_SUMMARY,): whole,
        (RETRIEVAL,): [
            each.kept(threshold=threshold, n=n, order="retrieval") for each in one.questions
        ],
        (NO_FILTER_RETRIEVAL,): [
            each.kept(threshold=None, n=n, order="retrieval") for each in one.questions
        ],
    }
    ways = measure_ways(lab, one, lists)
    if lab.setup.generator is None:
        return ways
    return [_from_summaries(lab, one, bare, way) for way in ways]


def _from_summaries(lab: Lab, one: Pass, bare: DeepEra, way: Way) -> Way:
    """Replace the answers made from passages by those made from summaries, as DeepEra does it."""
    variant = str(way.label[0])
    if variant not in _SUMMARIES:
        return way
    maker = bare.variant(
        f"{bare.name}, summaries",
        intent=variant not in _BLIND,
        kept_only=True,
        content="summary",
        top_n=lab.setup.top_n,
        threshold=0.0 if variant in _UNFILTERED else lab.setup.threshold,
        **({"require_evidence": False} if variant in _UNFILTERED else {}),
    )
    values = values_of(lab, _evidence(maker, one, lab.setup.top_n))
    names = [column.name for column in way_columns(lab)][-len(values) :]
    found = dict(zip(names, estimates(values, lab.setup), strict=True))
    return Way(way.material, way.ranker, way.label, {**way.means, **found})


def _evidence(maker: DeepEra, one: Pass, n: int) -> Iterator[tuple[Instance, Sequence[str]]]:
    instances = iter(one.material.dataset)
    while chunk := list(islice(instances, QUESTIONS_AT_ONCE)):
        jobs = [(each.question, passages_of(each)) for each in chunk]
        yield from zip(chunk, maker.evidence_many(jobs, n), strict=True)


EXPERIMENT = Experiment(
    name="ablations",
    title="Ablations",
    measures=(
        "DeepEra without intent recognition (v1), without the filter (v2) and without summaries "
        "(v3), and with the kept passages in retrieval order."
    ),
    run=run,
)
