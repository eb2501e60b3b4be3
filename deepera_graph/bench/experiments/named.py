"""The experiments by name, for the command line."""

from collections.abc import Mapping

from deepera_graph.bench.experiments import (
    ablations,
    cost,
    cutoff,
    drift,
    embedding,
    look_alikes,
    main_table,
    ranks,
    stability,
    threshold,
)
from deepera_graph.bench.experiments.experiment import Experiment

EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one
    for one in (
        main_table.EXPERIMENT,
        ranks.EXPERIMENT,
        look_alikes.EXPERIMENT,
        threshold.EXPERIMENT,
        cutoff.EXPERIMENT,
        ablations.EXPERIMENT,
        embedding.EXPERIMENT,
        stability.EXPERIMENT,
        drift.EXPERIMENT,
        cost.EXPERIMENT,
    )
}
