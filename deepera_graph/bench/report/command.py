"""What `deepera bench report` does: experiments and the worst questions into one page."""

from collections.abc import Sequence

from deepera_graph.bench.experiments.command import manifest, run_experiments
from deepera_graph.bench.experiments.experiment import Experiment
from deepera_graph.bench.experiments.lab import Lab
from deepera_graph.bench.report.page import page
from deepera_graph.bench.report.worst import worst_questions

N_WORST = 15


def report(
    experiments: Sequence[Experiment], lab: Lab, *, fresh: Lab | None = None, n_worst: int = N_WORST
) -> str:
    """Return the page as HTML.

    Args:
        experiments: In order; those that need a ranker that filters say so where there is none.
        lab: Rankers and data.
        fresh: The same without a cache, for experiments that ask again.
        n_worst: Worst questions of each ranker and data set, >= 0.

    Raises:
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        UnavailableError, BackendError: A ranker is not available, and the setup is strict.
    """
    results = run_experiments(experiments, lab, fresh=fresh)
    worst = worst_questions(lab.passes(), n_worst)
    return page(results, worst, manifest(lab))
