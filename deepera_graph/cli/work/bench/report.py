"""What `deepera bench report` does."""

from pathlib import Path

from deepera_graph.bench.report import report
from deepera_graph.bench.studies.run import STUDIES, Study
from deepera_graph.cli.exits import say
from deepera_graph.cli.work.backend import search_here
from deepera_graph.cli.work.bench.bars import bars
from deepera_graph.cli.work.bench.chat_models import ChatModels
from deepera_graph.cli.work.bench.names import split_names
from deepera_graph.cli.work.bench.outputs import check_file
from deepera_graph.cli.work.bench.study import tell_missing
from deepera_graph.cli.work.bench.study_request import Request
from deepera_graph.errors import SettingsError

__all__ = ["ChatModels", "Request", "run"]


def run(
    request: Request,
    chat_models: ChatModels,
    *,
    out: Path,
    studies: str | None,
    n_worst: int,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Run the studies and write the page.

    Raises:
        SettingsError: An option is out of range, or a file would be lost.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        MetricError: A metric is unknown.
        UnavailableError, BackendError: A ranker cannot run here and it is strict.
        BudgetError: The budget is spent.
        StoreError: The cache that was asked for cannot be used.
    """
    chosen = _chosen(studies)
    check_file(out, overwrite=overwrite)
    search_here()
    with request.opened(chat_models) as config, bars(hidden=quiet) as watch:
        runner = config.open_runner(watch=watch)
        fresh = config.open_runner(watch=watch, cached=False)
        text = report(chosen, runner, fresh=fresh, n_worst=n_worst)
    out.write_text(text, encoding="utf-8", newline="\n")
    tell_missing(runner)
    if not quiet:
        say(f"wrote {out}")


def _chosen(studies: str | None) -> list[Study]:
    if studies is None:
        return list(STUDIES.values())
    names = split_names("--studies", studies)
    for name in names:
        if name not in STUDIES:
            raise SettingsError(f"--studies are {', '.join(STUDIES)}, got {name!r}")
    return [STUDIES[name] for name in dict.fromkeys(names)]
