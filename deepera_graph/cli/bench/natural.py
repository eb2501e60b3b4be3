"""The options of `deepera bench natural`."""

from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES
from deepera_graph.cli.extras import needing

EPILOG = f"""[bold]Examples:[/bold]

  deepera bench natural ori_pqal.json --out natural.jsonl

  deepera bench natural trials/ --out natural.jsonl --candidates 40

  deepera bench natural papers.jsonl --questions asked.jsonl --out natural.jsonl --json

[bold]DATA[/bold] is PubMedQA's JSON, whose sections of results are the evidence; a folder of
articles (passages.jsonl, questions.jsonl); or documents with "id" and "sections" ("name" and
"text"), with --questions: JSON lines of "id", "document", "question" and "golden", the names or
places (from 0) of the sections that answer.

Look-alikes are the other sections of the document that answers; their type is the heading. The
rest of a pool are the best sections of other documents by BM25, or by --embeddings. No model is
asked.

It needs more packages: pip install 'deepera-graph\\[bench]'.

{CODES}"""


def natural(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A file or folder.")],
    *,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Instances, as JSON lines."),
    ],
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Questions about the sections.", show_default="in DATA"),
    ] = None,
    candidates: Annotated[int, typer.Option(metavar="K", min=2, help="Passages of a pool.")] = 30,
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FACTORY|openai:MODEL",
            help="Order and fill pools by cosine: a function that returns LangChain Embeddings, "
            "or a model of OpenAI.",
            show_default="BM25",
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(metavar="NAME", help="Put into every instance.", show_default="of DATA"),
    ] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Make questions with natural look-alikes from documents with sections."""
    with needing("bench", "bench"):
        from deepera_graph.cli.work.bench import natural as work  # noqa: PLC0415 - quick --help

    work.run(
        work.Request(
            data=data,
            out=out,
            questions=questions,
            n_candidates=candidates,
            embeddings=embeddings,
            name=name,
            overwrite=overwrite,
        ),
        as_json=as_json,
        quiet=quiet,
    )
