"""Options that the commands over training data share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.errors import SettingsError

_DATA = "Data"
_SAMPLE = "sample-"  # begins the names of data sets that come with this package

Data = Annotated[
    list[Path],
    typer.Option(
        "--data",
        metavar="PATH",
        help="A file or folder, see below; give it again for more.",
        show_default=False,
        rich_help_panel=_DATA,
    ),
]
Sets = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Only these sets.",
        show_default="all",
        rich_help_panel=_DATA,
    ),
]
Split = Annotated[
    str, typer.Option(metavar="NAME", help="Judgements of a BEIR folder.", rich_help_panel=_DATA)
]
Seed = Annotated[int, typer.Option(metavar="S", min=0, help="Of splits, fits and intervals.")]
Keep = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep what was read here for the next time, about 10 KB a text.",
        show_default="keep none",
    ),
]


def check(data: Sequence[Path]) -> None:
    """Raise `SettingsError` if a path leads nowhere: said before packages are asked for."""
    for path in data:
        if not path.exists() and not str(path).startswith(_SAMPLE):
            raise SettingsError(f"{path} is no data set: there is no such file or folder")


ABOUT_DATA = """[bold]Data[/bold] are JSON lines with "id", "question", "passages" and "golden", the
ids of the passages that answer; instances as `deepera bench` writes them; folders in the layout of
BEIR (corpus.jsonl, queries.jsonl, qrels/); folders of articles (passages.jsonl, questions.jsonl);
or a folder with pubmedqa_dev/, evidence_inference/, scifact/ and scisumm/, whose sets are base,
natural, written, control, evidence_inference, scifact_train, scifact_test and scisumm. The last two
are only measured on."""
